"""Leaves at import as a program would. An error like any other."""

import sys

sys.exit(0)
