"""Import modules of a course, even if modules of another course have the same names."""

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
    """In a `with` block, import modules in `problems/` from this course.

    Test files may import modules from `problems/`, such as `shared/`. Python finds loaded modules
    only by name, and different courses use the same names. Therefore the loaded modules of another
    course are removed, and restored after the block.

    Args:
        root: the course's folder.
    """
    folder = root / "problems"
    names = {folder.name, *(path.stem for path in folder.glob("*") if path.suffix in ("", ".py"))}
    others = _removed(names)
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()  # so that Python finds new files
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        _removed(names)
        sys.modules.update(others)


def _removed(names: set[str]) -> dict[str, ModuleType]:
    """Remove the modules with these names and their submodules from `sys.modules`. Return them."""
    loaded = [name for name in sys.modules if name.partition(".")[0] in names]
    return {name: sys.modules.pop(name) for name in loaded}


def modules_used(sources: Iterable[bytes], folder: Path, *, without: str = "") -> list[Path]:
    """Return the files in a folder that Python code imports, directly or indirectly.

    Args:
        sources: the contents of Python files. A file with a syntax error imports nothing.
        folder: the folder that contains the modules, such as a course's `problems/`.
        without: the name of a package to omit, or "". Modules that only this package imports are
            also omitted.
    """
    used = set[Path]()
    waiting = [name for source in sources for name in imported_names(source)]
    while waiting:
        name = waiting.pop()
        module = folder.joinpath(*name.split(".")).with_suffix(".py")
        left_out = without and f"{name}.".startswith(f"{without}.")
        if module not in used and module.is_file() and not left_out:
            used.add(module)
            waiting += imported_names(module.read_bytes())
    return sorted(used)


@lru_cache(maxsize=256)  # a run reads the same files several times
def imported_names(source: bytes) -> tuple[str, ...]:
    """Return the names of the modules that Python code may import.

    `from a import b` may import two modules: `a` and `a.b`. Code with a syntax error imports
    nothing.
    """
    try:
        statements = list(_statements(ast.parse(source)))
    except (SyntaxError, ValueError, RecursionError):  # RecursionError: deep nesting
        return ()
    names: list[str] = []
    for node in statements:
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return tuple(names)


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield all statements in a node. Expressions are not searched, to save time."""
    for name in ("body", "handlers", "orelse", "finalbody", "cases"):
        for inner in getattr(node, name, ()):
            yield inner
            yield from _statements(inner)
