"""Runs the student's file and lists what is in it."""

from __future__ import annotations

import importlib.util
import linecache
import sys
from types import ModuleType

from grader.isolation.protocol import FILE, MAX_NAME, MODULE, Header
from grader.isolation.worker.exceptions import describe_loading

_NAMES_TOLD = 2000


def hide_own_modules() -> None:
    """Take the grader's modules away from `import`, and all names from the main module.

    What is left of a worker's word is then not one assignment away. Who looks through frames or all
    objects still finds them; docs/isolation.md says what hangs on it.
    """
    for name in [name for name in sys.modules if name.partition(".")[0] == "grader"]:
        del sys.modules[name]
    main = vars(sys.modules["__main__"])
    for name in [name for name in main if not name.startswith("__")]:
        del main[name]


def run_file(source: bytes, module: ModuleType) -> Header:
    """Run a file's source as a module; return what was raised, for the answer, or nothing."""
    module.__file__ = FILE
    sys.modules[MODULE] = module
    try:
        code = compile(source, FILE, "exec")
        text = importlib.util.decode_source(source)  # compile doesn't look into comments
        # For what reads its own source, as torch.jit.script does.
        linecache.cache[FILE] = (len(text), None, text.splitlines(keepends=True), FILE)
        exec(code, module.__dict__)
    except BaseException as exception:
        return {"error": describe_loading(exception, source)}
    return {}


def public_names(module: ModuleType) -> list[str]:
    """Return the names of the functions and classes that a test could call, the latest of many."""
    members = list(vars(module).items())
    names = [name for name, value in members if _is_public(name) and callable(value)]
    return names[-_NAMES_TOLD:]


def _is_public(name: object) -> bool:
    """Return whether a key of a module's is a name that a test could use."""
    # Through globals() a module may have any key.
    if type(name) is not str or name.startswith("_"):
        return False
    return name.isidentifier() and len(name) <= MAX_NAME
