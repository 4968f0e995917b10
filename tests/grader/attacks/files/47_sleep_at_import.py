"""Sleeps at import. The result is a timeout."""

import time

time.sleep(10**6)
