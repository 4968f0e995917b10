"""Never comes back from C, where Python's signal handlers don't run. A timeout."""

import re


def double(x):
    return re.match("(a*)*b", "a" * 64)
