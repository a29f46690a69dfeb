"""Serializers of users, tokens and API keys."""

from typing import Any

from rest_framework import serializers

from core.security.scopes import KEY_SCOPES

SCOPES = [scope.value for scope in KEY_SCOPES]
MAX_PLAYBOOKS = 100


class CredentialsSerializer(serializers.Serializer[Any]):
    email = serializers.CharField(max_length=254)
    password = serializers.CharField(max_length=1000, trim_whitespace=False)


class LoginSerializer(CredentialsSerializer):
    code = serializers.CharField(
        max_length=20,
        required=False,
        help_text="For an account with a second factor: the app's code, or a recovery code.",
    )


class RegistrationSerializer(serializers.Serializer[Any]):
    email = serializers.CharField()
    status = serializers.CharField(help_text="`registered`, also for an address in use.")
    message = serializers.CharField()


class TokenRefreshSerializer(serializers.Serializer[Any]):
    refresh = serializers.CharField(max_length=4000)


class TokensSerializer(serializers.Serializer[Any]):
    access = serializers.CharField(help_text="Send it as `Authorization: Bearer …`.")
    refresh = serializers.CharField(help_text="Valid for one call to /auth/refresh.")
    expires_in = serializers.IntegerField(help_text="Lifetime of `access` in seconds.")
    token_type = serializers.CharField(default="Bearer")


class CurrentUserSerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField(source="user.pk")
    email = serializers.CharField(source="user.email")
    created_at = serializers.DateTimeField(source="user.created_at")
    scopes = serializers.ListField(child=serializers.CharField())
    api_key = serializers.CharField(
        source="api_key.name", allow_null=True, help_text="Name of the key in use."
    )


class AccountDeleteSerializer(serializers.Serializer[Any]):
    password = serializers.CharField(max_length=1000, trim_whitespace=False)
    code = serializers.CharField(
        max_length=20, required=False, help_text="For an account with a second factor."
    )


class ApiKeySerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    name = serializers.CharField()
    prefix = serializers.CharField(
        source="visible_prefix",
        help_text="The visible part after `ace_live_`; empty for a key that the operator chose.",
    )
    scopes = serializers.ListField(child=serializers.ChoiceField(choices=SCOPES))
    playbook_ids = serializers.ListField(
        child=serializers.UUIDField(), help_text="Empty: all of yours."
    )
    state = serializers.ChoiceField(choices=["active", "revoked", "expired"])
    created_at = serializers.DateTimeField()
    last_used_at = serializers.DateTimeField(allow_null=True, help_text="To the minute.")
    expires_at = serializers.DateTimeField(allow_null=True)
    revoked_at = serializers.DateTimeField(allow_null=True)


class ApiKeyWithSecretSerializer(ApiKeySerializer):
    """A key with its secret, which is shown only once."""

    key = serializers.CharField(help_text="The token. It cannot be shown again.")


class ApiKeyUpdateSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=100)
    scopes = serializers.ListField(
        child=serializers.ChoiceField(choices=SCOPES), allow_empty=False, max_length=len(SCOPES)
    )
    playbook_ids = serializers.ListField(
        child=serializers.UUIDField(),
        default=list,
        max_length=MAX_PLAYBOOKS,
        help_text="Limit the key to these playbooks; empty: all of yours.",
    )


class ApiKeyCreateSerializer(ApiKeyUpdateSerializer):
    expires_at = serializers.DateTimeField(
        required=False, allow_null=True, help_text="Default: in 90 days."
    )


class ApiKeyRotateSerializer(serializers.Serializer[Any]):
    overlap_hours = serializers.IntegerField(
        min_value=0, max_value=168, default=24, help_text="How long the old key keeps working."
    )


class WebhookDeliverySerializer(serializers.Serializer[Any]):
    id = serializers.CharField(source="message_id", help_text="The `webhook-id` of each attempt.")
    event = serializers.CharField()
    created_at = serializers.DateTimeField()
    attempts = serializers.IntegerField()
    status = serializers.IntegerField(allow_null=True, help_text="Of the last response.")
    error = serializers.CharField(help_text="Why the last attempt failed, or empty.")
    delivered_at = serializers.DateTimeField(allow_null=True)
    next_attempt_at = serializers.DateTimeField(
        allow_null=True, help_text="null: delivered, or given up."
    )


class WebhookSerializer(serializers.Serializer[Any]):
    """The webhook of your account, and its last 20 deliveries, newest first."""

    url = serializers.CharField()
    updated_at = serializers.DateTimeField()
    failures = serializers.IntegerField(help_text="Consecutive failed deliveries.")
    disabled_at = serializers.DateTimeField(
        allow_null=True, help_text="When the URL responded with 410; set it again to resume."
    )
    deliveries = WebhookDeliverySerializer(source="last_deliveries", many=True)


class WebhookWithSecretSerializer(serializers.Serializer[Any]):
    url = serializers.CharField()
    secret = serializers.CharField(help_text="Signs the events. It cannot be shown again.")


class WebhookUpdateSerializer(serializers.Serializer[Any]):
    url = serializers.CharField(max_length=500)
