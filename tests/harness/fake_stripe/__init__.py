"""A small Stripe for tests: a real HTTP server with a clock of its own.

`world` is what Stripe knows and how time changes it, `api` its REST routes, `pages` the pay page
and the portal, `delivery` the events it sends, `server` the thread that listens.
"""
