"""Refuses what would bring a forbidden function back, as Python's audit hooks see it.

Python asks each hook before it does certain things, and a hook can't be taken away again. This one
refuses

- to run code of torch's, loaded late, in which a forbidden function is written;
- to make a function of such code, or to give it to another one;
- to call what lies at an address (ctypes), below Python and torch's dispatcher;
- to change the code of this package's own functions, of which the hook itself is one.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from types import CodeType, FunctionType
from typing import Any

from grader.forbidden import TORCH, ForbiddenCall, traces

_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep


def install(names: Iterable[str], called: list[str]) -> None:
    """Refuse it from now on, in this process.

    Args:
        names: the forbidden functions, as for `grader.forbidden.Guard`; without any, nothing is
            refused.
        called: where to note the first one that was asked for.
    """
    betraying = tuple((trace.lower(), name) for trace, name in traces(names).items())
    if not betraying:
        return
    _hook.__defaults__ = (betraying, called, *_KNOWN)
    sys.addaudithook(_hook)


_KNOWN = (TORCH, _PACKAGE, type, CodeType, FunctionType, ForbiddenCall, PermissionError)


def _hook(
    event: str,
    args: tuple[Any, ...],
    traces: Any = (),
    called: Any = None,
    torch: Any = "",
    package: Any = "",
    type: Any = None,
    code_type: Any = None,
    function_type: Any = None,
    forbidden_call: Any = None,
    refused: Any = None,
) -> None:
    # Student code may replace every name that Python looks up in a module, built-in ones as well.
    # So all that is needed here are operators, methods of built-in types, and these defaults.
    if event.startswith("ctypes."):
        raise refused("ctypes can't be used here")
    if event == "object.__setattr__":
        changed, _, code = args
        if type(changed) is function_type and changed.__code__.co_filename.startswith(package):
            raise refused("this function can't be changed")
    elif event == "exec" or event == "function.__new__":
        code = args[0]
    else:
        return
    found = [code]
    for code in found:  # with all that is written inside of it
        if type(code) is code_type and code.co_filename.startswith(torch):
            found.extend(code.co_consts)
            name = code.co_qualname.lower()
            for trace, forbidden in traces:
                if trace in name:
                    called[:] = called or [forbidden]
                    raise forbidden_call(forbidden)
