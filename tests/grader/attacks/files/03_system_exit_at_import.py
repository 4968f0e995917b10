"""Raises SystemExit at import. An error like any other."""

import sys

sys.exit(0)
