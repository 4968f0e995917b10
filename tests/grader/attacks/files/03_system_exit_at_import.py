"""Raises SystemExit at import. The result is an error, as for any other exception."""

import sys

sys.exit(0)
