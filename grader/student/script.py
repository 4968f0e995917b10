"""What every `explore.py` imports first, so that it starts and ends well.

Python looks for modules beside a script first, so a student's file called `random.py` or `numpy.py`
would be loaded in the place of the real one. A script that draws needs no file beside it. This file
imports nothing that could be hidden so.
"""

import os
import sys

TYPE_CHECKING = False  # typing, like types, may be a student's file here
if TYPE_CHECKING:
    from types import TracebackType


def start() -> None:
    """Look for modules where they are installed only, and let Ctrl-C end the script in a word."""
    own = os.path.abspath(sys.argv[0])
    if os.path.basename(own) != "explore.py":
        return  # a notebook, or a test
    if sys.path and os.path.abspath(sys.path[0]) == os.path.dirname(own):
        del sys.path[0]
    sys.path.append(os.path.dirname(os.path.dirname(own)))  # what problems share
    sys.excepthook = _told
    if not {"-h", "--help"}.isdisjoint(sys.argv[1:]):
        _help(own)


def _help(script: str) -> None:
    """Print what a script says of itself, before it loads PyTorch, and end."""
    import ast
    from pathlib import Path

    print(ast.get_docstring(ast.parse(Path(script).read_text(encoding="utf-8"))))
    sys.exit()


def _told(
    kind: type[BaseException], error: BaseException, traceback: "TracebackType | None"
) -> None:
    if issubclass(kind, KeyboardInterrupt):
        print("\nStopped.", file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, traceback)


start()
