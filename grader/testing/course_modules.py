"""Imports a course's own modules, whatever another course in this process has under their names."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType


@contextmanager
def modules_of_course(root: Path) -> Iterator[None]:
    """Let what is imported from a course's `problems/` be its own; put things back afterwards.

    Test files may import what stands in `problems/`, such as `worked_example.py`. Python and pytest
    know modules by their names only, and every course has the same names: a module of that name
    which is there already would be taken for this course's. So those are set aside for a while.

    Args:
        root: the course's folder.
    """
    folder = root / "problems"
    names = {folder.name, *(path.stem for path in folder.glob("*.py"))}
    others = _taken_out(names)
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()  # a file may be new since Python last looked
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        _taken_out(names)
        sys.modules.update(others)


def _taken_out(names: set[str]) -> dict[str, ModuleType]:
    """Take modules of these names, and what is in them, out of those that Python knows."""
    found = [name for name in sys.modules if name.partition(".")[0] in names]
    return {name: sys.modules.pop(name) for name in found}
