"""Says that PyTorch is being loaded, which takes seconds, or that it isn't there.

It is imported before PyTorch by what loads it.
"""

from __future__ import annotations

import sys

from grader.errors import UsageError
from grader.needs import require_torch

_WORDS = "Loading PyTorch ..."


def _on_screen() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


try:
    require_torch()
except UsageError as error:
    raise SystemExit(str(error)) from None

if _SAID := "torch" not in sys.modules and _on_screen():
    print(_WORDS, end="", file=sys.stderr, flush=True)


def take_back() -> None:
    """Remove the words again, if they were said."""
    global _SAID
    if _SAID:
        print("\r" + " " * len(_WORDS) + "\r", end="", file=sys.stderr, flush=True)
    _SAID = False
