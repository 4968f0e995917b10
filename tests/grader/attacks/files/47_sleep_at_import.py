"""Sleeps at import. A timeout."""

import time

time.sleep(10**6)
