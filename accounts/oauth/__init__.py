"""OAuth 2.1 for agents that log in by browser: django-oauth-toolkit with our rules.

Its rows, its token server and its checks are used; its pages and its management views are not.
"""
