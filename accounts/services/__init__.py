"""What the doors can do with people, their sign-ins and their keys."""

from accounts.keys.api_keys import create_api_key, revoke_api_key, rotate_api_key, update_api_key
from accounts.keys.credentials import principal_for_bearer, principal_for_key
from accounts.keys.jwt_tokens import TokenPair, issue_tokens, refresh_tokens, revoke_tokens
from accounts.keys.llm_keys import (
    LlmCredential,
    llm_credential_for,
    remove_llm_key,
    set_llm_key,
    try_llm_key,
)
from accounts.mfa.enrolment import check_enrolment, request_enrolment
from accounts.services.account_settings import (
    change_password,
    end_other_sessions,
    end_session,
    finish_onboarding,
    reauthenticate_user,
    request_email_change,
    request_password_reset,
    resend_verification,
    reset_password,
    user_for_reset_token,
    verify_email,
)
from accounts.services.cleanup import delete_expired_rows
from accounts.services.email_verification import read_verification_token
from accounts.services.login import check_code, check_password, log_in, register_user
from accounts.services.personal_data import delete_account, export_account

__all__ = [
    "LlmCredential",
    "TokenPair",
    "change_password",
    "check_code",
    "check_enrolment",
    "check_password",
    "create_api_key",
    "delete_account",
    "end_other_sessions",
    "end_session",
    "export_account",
    "delete_expired_rows",
    "issue_tokens",
    "finish_onboarding",
    "llm_credential_for",
    "log_in",
    "principal_for_bearer",
    "principal_for_key",
    "read_verification_token",
    "reauthenticate_user",
    "refresh_tokens",
    "register_user",
    "remove_llm_key",
    "request_email_change",
    "request_enrolment",
    "request_password_reset",
    "resend_verification",
    "reset_password",
    "revoke_api_key",
    "revoke_tokens",
    "rotate_api_key",
    "set_llm_key",
    "try_llm_key",
    "update_api_key",
    "user_for_reset_token",
    "verify_email",
]
