"""Set up an `explore.py` script, which imports this module first.

Python searches the script's folder for modules first, so a student's `random.py` or `numpy.py`
would replace the installed module. Therefore this module removes the folder from the search path.
Before that, it imports only modules that no student's file can replace.
"""

import os
import sys

TYPE_CHECKING = False  # a student's file could replace `typing` or `types`
if TYPE_CHECKING:
    from types import TracebackType


def start() -> None:
    """Remove the script's folder from the search path, and print only one line after Ctrl-C."""
    script = os.path.abspath(sys.argv[0])
    if os.path.basename(script) != "explore.py":
        return  # imported by a notebook or a test
    if sys.path and os.path.abspath(sys.path[0]) == os.path.dirname(script):
        del sys.path[0]
    sys.path.append(os.path.dirname(os.path.dirname(script)))  # shared modules of problems
    sys.excepthook = _print_exception
    if not {"-h", "--help"}.isdisjoint(sys.argv[1:]):
        _help(script)


def _help(script: str) -> None:
    """Print a script's docstring, and exit before the script loads PyTorch."""
    import ast
    from pathlib import Path

    print(ast.get_docstring(ast.parse(Path(script).read_text(encoding="utf-8"))))
    sys.exit()


def _print_exception(
    kind: type[BaseException], error: BaseException, traceback: "TracebackType | None"
) -> None:
    if issubclass(kind, KeyboardInterrupt):
        print("\nStopped.", file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, traceback)


start()
