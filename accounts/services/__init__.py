"""What the doors can do with people, their sign-ins and their keys."""

from accounts.services.account_data import (
    delete_account,
    export_account,
    forget_what_is_over,
)
from accounts.services.api_keys import (
    create_api_key,
    revoke_api_key,
    rotate_api_key,
    update_api_key,
)
from accounts.services.credentials import principal_for_bearer, principal_for_key
from accounts.services.enrolment import check_enrolment, request_enrolment
from accounts.services.letters import read_verification
from accounts.services.llm_keys import (
    LlmCredential,
    llm_credential_for,
    remove_llm_key,
    set_llm_key,
    try_llm_key,
)
from accounts.services.people import (
    change_password,
    end_other_sessions,
    end_session,
    recheck_person,
    request_email_change,
    request_password_reset,
    resend_verification,
    reset_password,
    user_of_reset,
    verify_email,
)
from accounts.services.signing_in import check_code, check_password, log_in, register_user
from accounts.services.starting import leave_start
from accounts.tokens import TokenPair, issue_tokens, refresh_tokens, revoke_tokens

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
    "forget_what_is_over",
    "issue_tokens",
    "leave_start",
    "llm_credential_for",
    "log_in",
    "principal_for_bearer",
    "principal_for_key",
    "read_verification",
    "recheck_person",
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
    "user_of_reset",
    "verify_email",
]
