"""URLs of the account pages."""

from allauth.account import views as check
from allauth.mfa.base import views as factors
from allauth.mfa.recovery_codes import views as recovery
from allauth.mfa.totp import views as app
from allauth.mfa.webauthn import views as passkeys
from django.urls import URLPattern, path

from accounts.activity import activity
from accounts.web import api_key_views, email_link_views, login_views, settings_views

urlpatterns: list[URLPattern] = [
    path("login", login_views.log_in, name="log_in"),
    path("register", login_views.register, name="register"),
    path("login/reset", email_link_views.request_reset, name="request_reset"),
    path(
        "login/reset/<str:uid>/<str:token>", email_link_views.reset_password, name="reset_password"
    ),
    path("verify/<str:token>", email_link_views.verify_email, name="verify_email"),
    path(
        "settings/second-factor/first", email_link_views.request_enrolment, name="request_enrolment"
    ),
    path(
        "settings/second-factor/first/<str:token>",
        email_link_views.begin_enrolment,
        name="begin_enrolment",
    ),
    path("logout", login_views.log_out, name="log_out"),
    path("settings", settings_views.index, name="settings"),
    path("settings/email", settings_views.change_email, name="change_email"),
    path("settings/email/resend", settings_views.resend_verification, name="resend_verification"),
    path("settings/password", settings_views.change_password, name="change_password"),
    path("settings/sessions", settings_views.sessions, name="sessions"),
    path("settings/sessions/<int:pk>/end", settings_views.end_session, name="end_session"),
    path("settings/llm-key", settings_views.llm_key, name="llm_key"),
    path("settings/llm-key/test", settings_views.try_llm_key, name="try_llm_key"),
    path("settings/llm-key/remove", settings_views.remove_llm_key, name="remove_llm_key"),
    path("settings/webhook", settings_views.webhook, name="webhook"),
    path("settings/webhook/test", settings_views.test_webhook, name="test_webhook"),
    path("settings/webhook/remove", settings_views.remove_webhook, name="remove_webhook"),
    path("settings/export", settings_views.export_account, name="export_account"),
    path("settings/delete", settings_views.delete_account, name="delete_account"),
    path("activity", activity, name="activity"),
    path("keys", api_key_views.keys, name="keys"),
    path("keys/<uuid:pk>/rotate", api_key_views.rotate_key, name="rotate_key"),
    path("keys/<uuid:pk>/revoke", api_key_views.revoke_key, name="revoke_key"),
    path("keys/apps/<uuid:pk>/disconnect", api_key_views.disconnect, name="disconnect_app"),
]
# allauth's views, with the names that allauth looks up.
FACTOR = "settings/second-factor"
allauth_urlpatterns: list[URLPattern] = [
    path("login", login_views.log_in, name="account_login"),
    path("register", login_views.register, name="account_signup"),
    path("logout", login_views.log_out, name="account_logout"),
    path("login/code", factors.authenticate, name="mfa_authenticate"),
    path("settings/confirm", check.reauthenticate, name="account_reauthenticate"),
    path("settings/confirm/code", factors.reauthenticate, name="mfa_reauthenticate"),
    path(
        "settings/confirm/passkey",
        passkeys.reauthenticate_webauthn,
        name="mfa_reauthenticate_webauthn",
    ),
    path(FACTOR, factors.index, name="mfa_index"),
    path(f"{FACTOR}/app", app.activate_totp, name="mfa_activate_totp"),
    path(f"{FACTOR}/app/remove", app.deactivate_totp, name="mfa_deactivate_totp"),
    path(f"{FACTOR}/codes", recovery.view_recovery_codes, name="mfa_view_recovery_codes"),
    path(
        f"{FACTOR}/codes/new", recovery.generate_recovery_codes, name="mfa_generate_recovery_codes"
    ),
    path(
        f"{FACTOR}/codes/download",
        recovery.download_recovery_codes,
        name="mfa_download_recovery_codes",
    ),
    path(f"{FACTOR}/passkeys", passkeys.list_webauthn, name="mfa_list_webauthn"),
    path(f"{FACTOR}/passkeys/new", passkeys.add_webauthn, name="mfa_add_webauthn"),
    path(
        f"{FACTOR}/passkeys/<int:pk>/remove", passkeys.remove_webauthn, name="mfa_remove_webauthn"
    ),
    path(f"{FACTOR}/passkeys/<int:pk>", passkeys.edit_webauthn, name="mfa_edit_webauthn"),
]
