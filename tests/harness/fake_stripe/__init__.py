"""A fake Stripe for tests: an HTTP server with its own clock.

`world` holds its objects and applies time to them, `api` its REST routes, `pages` checkout and
portal, `delivery` the webhook events, `server` the listening thread.
"""
