"""One TLS context for every HTTP client of a process.

Each client of httpx2 reads the machine's certificates, which took 20 ms of CPU, a tenth of a test
of MCP. The tests speak plain HTTP; a context with other arguments is made as ever.
"""

from functools import cache

import httpcore2


def install() -> None:
    """From here on clients of this process share their contexts."""
    httpcore2.default_ssl_context = cache(httpcore2.default_ssl_context)
