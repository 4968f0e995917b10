"""Ends the process with exit status 0 at import. No test may take that for a pass."""

import os

os._exit(0)
