"""The billing app."""

from django.apps import AppConfig

from accounts.hooks import hooks


class BillingConfig(AppConfig):
    name = "billing"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from billing.limits.plan_limits import check_key_limit  # noqa: PLC0415 - needs the models
        from billing.limits.quota import keep_used_quota  # noqa: PLC0415 - likewise

        hooks.check_api_key_limit = check_key_limit
        hooks.keep_used_quota = keep_used_quota
