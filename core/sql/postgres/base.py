"""Django's PostgreSQL backend with prepared statements and a check of idle connections.

**Prepared.** `prepared_cursor` runs statements that the server plans once for each connection, not
at each run. All others keep the values in their text, where the planner sees them.

**Idle.** Asking the server whether it is there, as psycopg's pool can, takes a round trip at each
use. A server that goes closes its end, which can be seen here: only then it is asked.
"""

import select
from typing import Any

from django.db.backends.postgresql import base, operations
from psycopg import OperationalError
from psycopg_pool import ConnectionPool


class PreparedCursor(base.ServerBindingCursor):
    def execute(self, query: Any, params: Any = None, **_options: Any) -> Any:
        return super().execute(query, params, prepare=True)  # type: ignore[misc]  # not in the stubs


class DatabaseOperations(operations.DatabaseOperations):
    def last_executed_query(self, cursor: Any, sql: str, params: Any) -> Any:
        """As Django's, for `connection.queries`; psycopg forgets the text of a prepared one."""
        return super().last_executed_query(cursor, sql, params) or self.compose_sql(sql, params)


class DatabaseWrapper(base.DatabaseWrapper):
    ops_class = DatabaseOperations

    def get_connection_params(self) -> dict[str, Any]:
        """Django's, with preparing allowed: where no cursor asks for it, nothing is prepared."""
        return super().get_connection_params() | {"prepare_threshold": 0}

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """One of the pool, if there is one: never one that the server has closed."""
        connection = super().get_new_connection(conn_params)
        while self.pool and _has_ended(connection):
            connection.close()
            self.pool.putconn(connection)
            connection = super().get_new_connection(conn_params)
        return connection

    def prepared_cursor(self) -> Any:
        """A cursor for a statement that runs often."""
        self.ensure_connection()
        usual, self.connection.cursor_factory = self.connection.cursor_factory, PreparedCursor
        try:
            return self.cursor()
        finally:
            self.connection.cursor_factory = usual


def _has_ended(connection: Any) -> bool:
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    if not poll.poll(0):
        return False
    try:  # what came unasked may also be a notice
        ConnectionPool.check_connection(connection)
    except OperationalError:
        return True
    return False
