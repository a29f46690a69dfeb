"""OAuth 2.1 for agents that log in by browser: django-oauth-toolkit with our rules.

Its models, token server and validation are used; its pages and management views are not.
"""
