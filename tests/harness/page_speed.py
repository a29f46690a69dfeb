"""How long each page of a large account takes: `python -m tests.harness.page_speed`.

With `--pin` the number of queries that each page makes is written to tests/pages/query_counts.txt,
which a test holds the pages to: look at the difference before it is committed.

Measured in process on the database of the tests, so without the network; the limit of 300 ms is
this command's and no test's, because a machine that does other things as well is slower.
"""

import os
import sys

import django

LIMIT_MS = 300


def main() -> int:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.test")
    django.setup()
    from django.db import connection  # noqa: PLC0415 - needs django.setup()
    from django.test.utils import setup_test_environment  # noqa: PLC0415 - as above

    from tests.harness import page_timing  # noqa: PLC0415 - as above

    setup_test_environment(debug=False)
    name = connection.settings_dict["NAME"]
    connection.creation.create_test_db(verbosity=0, autoclobber=True)
    try:
        with page_timing.world_of("big@example.org", big=True) as world:
            measured = page_timing.measure_all(world, rounds=page_timing.ROUNDS)
    finally:
        connection.creation.destroy_test_db(name, verbosity=0)
    if "--pin" in sys.argv:
        page_timing.write_pins(measured)
    for one in sorted(measured, key=lambda one: -one.ms):
        late = "  OVER THE LIMIT" if one.ms > LIMIT_MS else ""
        told = f"{one.ms:7.1f} ms ({one.cpu_ms:6.1f} of CPU) {one.queries:3} queries"
        told += f" {one.bytes / 1024:7.1f} KiB"
        print(f"{told}  {one.page}{late}")
    slow = [one for one in measured if one.ms > LIMIT_MS]
    print(f"{len(measured)} pages, {len(slow)} over {LIMIT_MS} ms (best of {page_timing.ROUNDS})")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
