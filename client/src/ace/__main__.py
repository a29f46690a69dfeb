"""`python -m ace`."""

import sys

from ace.cli import main

if __name__ == "__main__":
    sys.exit(main())
