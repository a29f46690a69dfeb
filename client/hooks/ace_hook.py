#!/usr/bin/env python3
"""Starts a hook from the plugin's own folder: nothing has to be installed."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from ace.hooks import run  # noqa: E402 - needs the path

run(sys.argv[1:])
