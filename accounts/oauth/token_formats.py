"""The tokens' own form: told from an API key at a glance, and blanked out of texts like one."""

import re
import secrets

ACCESS, REFRESH = "ace_oat_", "ace_ort_"
TOKEN_PATTERN = re.compile(r"ace_o[ar]t_[0-9A-Za-z_-]{43}")


def make_access_token(request: object) -> str:
    """256 random bits; oauthlib passes its request, which has no say in it."""
    return ACCESS + secrets.token_urlsafe(32)


def make_refresh_token(request: object) -> str:
    return REFRESH + secrets.token_urlsafe(32)
