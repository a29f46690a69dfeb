"""django-oauth-toolkit's token server with our rules; named in settings.OAUTH2_PROVIDER.

Codes and refresh tokens are single-use. The connection is locked first, so that one of several
parallel requests wins; the others count as reuse, which revokes the tokens that were issued. So
every call of the token endpoint runs in one transaction.
"""

import logging
import uuid
from collections.abc import Mapping
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest
from oauth2_provider.models import Application, Grant, RefreshToken
from oauth2_provider.oauth2_backends import OAuthLibCore
from oauth2_provider.oauth2_validators import OAuth2Validator
from oauthlib.common import Request
from oauthlib.oauth2.rfc6749.errors import CustomOAuth2Error

from accounts.keys.key_format import digest, matches
from accounts.models import ConnectedApp
from accounts.oauth.connections import end_idle_connections
from accounts.oauth.metadata import same_resource
from core import audit
from core.security.scopes import granted_scopes

logger = logging.getLogger(__name__)
# At DEBUG they log codes and tokens.
for _logger in ("oauthlib", "oauth2_provider"):
    logging.getLogger(_logger).setLevel(logging.WARNING)


class OAuthBackend(OAuthLibCore):  # type: ignore[misc]  # theirs has no types
    """Passes codes on as digests, as they are stored."""

    def extract_body(self, request: HttpRequest) -> list[tuple[str, str]]:
        pairs = super().extract_body(request)
        return [(name, digest(value) if name == "code" else value) for name, value in pairs]


class OAuthValidator(OAuth2Validator):  # type: ignore[misc]  # theirs has no types
    """Our rules on top of django-oauth-toolkit's."""

    def validate_code(
        self,
        client_id: str,
        code: str,
        client: Application,
        request: Request,
        *args: Any,
        **kw: Any,
    ) -> bool:
        request.connected = _lock(Grant.objects.filter(code=code))
        if super().validate_code(client_id, code, client, request, *args, **kw):
            return bool(request.user.is_active) and request.connected is not None
        # A code used before revokes its tokens, whose family is derived from it.
        family = RefreshToken.objects.filter(token_family=_family_of(code))
        if _lock(family) is not None:
            _revoke_family(family, "code")
        return False

    def validate_refresh_token(
        self, refresh_token: str, client: Application, request: Request, *args: Any, **kw: Any
    ) -> bool:
        rows = RefreshToken.objects.filter(token_checksum=digest(refresh_token))
        request.connected = _lock(rows)
        used = rows.exclude(revoked=None).first()
        if used is not None:
            _revoke_family(
                RefreshToken.objects.filter(token_family=used.token_family), "refresh token"
            )
            return False
        if not super().validate_refresh_token(refresh_token, client, request, *args, **kw):
            return False
        return bool(request.user.is_active) and request.connected is not None

    def get_original_scopes(self, refresh_token: str, request: Request, *a: Any, **kw: Any) -> str:
        """The scopes of the used token that the user still consents to."""
        scopes = super().get_original_scopes(refresh_token, request, *a, **kw).split()
        agreed = granted_scopes(request.connected.scopes)
        return " ".join(scope for scope in scopes if scope in agreed)

    def is_within_original_scope(
        self, request_scopes: list[str], refresh_token: str, request: Request, *a: Any, **kw: Any
    ) -> bool:
        """A refresh may narrow the scopes (RFC 6749 section 6), also to one that `write` includes.

        The new refresh token has the narrower scopes, and the pair before it ends.
        """
        held = granted_scopes(self.get_original_scopes(refresh_token, request).split())
        return set(request_scopes) <= held

    def revoke_token(
        self, token: str, token_type_hint: str, request: Request, *args: Any, **kw: Any
    ) -> None:
        super().revoke_token(token, token_type_hint, request, *args, **kw)
        end_idle_connections(client=request.client)

    def _check_secret(self, provided_secret: str, stored_secret: str) -> bool:
        # 256 random bits need no slow hash: see accounts/keys/key_format.py.
        return matches(provided_secret, stored_secret)

    def _check_and_set_request_resource(self, request: Request) -> None:
        """The token has the resource of its code or of its predecessor (RFC 8707)."""
        if request.grant_type == "authorization_code":
            source = Grant.objects.get(code=request.code, application=request.client)
        else:
            source = request.refresh_token_instance
        pairs = request.decoded_body or []
        sent = [value for name, value in pairs if name == "resource" and value]
        if any(not same_resource(uri, known=source.resource) for uri in sent):
            problem = "This code or token is for another resource."
            raise CustomOAuth2Error(error="invalid_target", description=problem, request=request)
        request.resource = source.resource

    def _create_authorization_code(
        self, request: Request, code: Mapping[str, str], expires: Any = None
    ) -> Grant:
        return super()._create_authorization_code(
            request, {**code, "code": digest(code["code"])}, expires
        )

    def _create_refresh_token(
        self, request: Request, refresh_token_code: str, access_token: Any, previous: Any
    ) -> RefreshToken:
        made = super()._create_refresh_token(request, refresh_token_code, access_token, previous)
        if request.grant_type == "authorization_code":
            made.token_family = _family_of(request.code)
            made.save(update_fields=["token_family"])
        elif request.scope:
            _narrow_connection(request.connected, made)
        return made


def _lock(rows: QuerySet[Any]) -> ConnectedApp | None:
    """Lock the connection of the code or token in `rows`, and so all of its token families.

    Otherwise a pair issued while reuse of an older token revokes the family would outlive it.
    """
    ids = rows.values_list("user_id", "application_id").first()
    if ids is None:
        return None
    apps = ConnectedApp.objects.select_for_update(of=("self",), no_key=True)
    return apps.filter(user_id=ids[0], application_id=ids[1]).first()


def _narrow_connection(app: ConnectedApp, token: RefreshToken) -> None:
    """The connection shows what its only token still allows; the caller holds its lock."""
    tokens = RefreshToken.objects.filter(user=token.user, application=token.application)
    if tokens.filter(revoked=None).exclude(pk=token.pk).exists():
        return
    app.scopes = token.access_token.scope.split()
    app.save(update_fields=["scopes"])


def _revoke_family(members: QuerySet[Any], what: str) -> None:
    """Revoke all tokens of one consent: one of them may be stolen."""
    token = members.filter(revoked=None).select_related("user", "application").first()
    if token is None:
        return
    logger.warning(
        "A %s was used twice; its tokens of app %s are revoked", what, token.application_id
    )
    RefreshToken.revoke_family(token.token_family)
    audit.record(
        action="end_app_sign_in",
        by=None,
        subject=token.application,
        owner=token.user,
        name=token.application.name,
        reason=f"{what} used twice",
    )


def _family_of(code_digest: str) -> uuid.UUID:
    """The family of the tokens that this code is exchanged for."""
    return uuid.UUID(code_digest[:32])
