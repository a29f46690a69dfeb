"""Generators of OAuth tokens, whose prefixes tell them from API keys."""

import secrets

ACCESS, REFRESH = "ace_oat_", "ace_ort_"


def make_access_token(request: object) -> str:
    """256 random bits; oauthlib passes its request, which is not used."""
    return ACCESS + secrets.token_urlsafe(32)


def make_refresh_token(request: object) -> str:
    return REFRESH + secrets.token_urlsafe(32)
