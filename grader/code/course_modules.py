"""Imports a course's own modules, whatever another course in this process has under their names."""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from types import ModuleType


@contextmanager
def modules_of_course(root: Path) -> Iterator[None]:
    """Let what is imported from a course's `problems/` be its own; put things back afterwards.

    Test files may import what stands in `problems/`, such as `shared/`. Python and pytest
    know modules by their names only, and every course has the same names: a module of that name
    which is there already would be taken for this course's. So those are set aside for a while.

    Args:
        root: the course's folder.
    """
    folder = root / "problems"
    names = {folder.name, *(path.stem for path in folder.glob("*") if path.suffix in ("", ".py"))}
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


def modules_used(sources: Iterable[bytes], folder: Path, *, without: str = "") -> list[Path]:
    """Return the modules below a folder that some sources import, and those that these import.

    Args:
        sources: what stands in files of Python; what can't be read as such imports nothing.
        folder: where modules are looked for: a course's `problems/`.
        without: a package to leave out, with what only it imports.
    """
    found = set[Path]()
    waiting = [name for source in sources for name in imported_names(source)]
    while waiting:
        name = waiting.pop()
        module = folder.joinpath(*name.split(".")).with_suffix(".py")
        left_out = without and f"{name}.".startswith(f"{without}.")
        if module not in found and module.is_file() and not left_out:
            found.add(module)
            waiting += imported_names(module.read_bytes())
    return sorted(found)


@lru_cache(maxsize=256)  # a run asks for the same files several times
def imported_names(source: bytes) -> tuple[str, ...]:
    """Return the names of all modules that a source may import; `from a import b` gives two.

    What can't be read as Python imports nothing.
    """
    try:
        statements = list(_statements(ast.parse(source)))
    except (SyntaxError, ValueError, RecursionError):  # the last of thousands of branches in others
        return ()
    names: list[str] = []
    for node in statements:
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return tuple(names)


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """Give all statements in one, also those in functions; expressions would be most of a tree."""
    for name in ("body", "handlers", "orelse", "finalbody", "cases"):
        for inner in getattr(node, name, ()):
            yield inner
            yield from _statements(inner)
