"""Ends the process with exit status 0 at import. That is never a pass."""

import os

os._exit(0)
