"""The layers of the package: what may import what. CONTRIBUTING says the same in a picture."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import grader

PACKAGE = Path(grader.__file__).parent
TOP = {"answer", "batch", "break_result", "cost", "course", "environment", "errors", "files"}
TOP |= {
    "forbidden",
    "loading",
    "needs",
    "operands",
}
TOP |= {"packing", "result", "returned", "stopwatch", "text", "unknown", "unwritten"}
MAY_IMPORT = {
    **dict.fromkeys(TOP, TOP),
    "testing": TOP | {"testing"},
    "boundary": TOP | {"boundary"},
    "intake": TOP | {"intake"},
    "book": {"errors", "files", "result", "text", "book"},
    "reports": {"break_result", "errors", "files", "result", "text", "unknown", "reports"},
    "student": TOP | {"testing", "student"},
    "grading": TOP | {"testing", "boundary", "intake", "book", "reports", "grading"},
    "author": TOP | {"testing", "boundary", "intake", "reports", "grading", "author"},
    "cli": TOP
    | {"testing", "boundary", "intake", "book", "reports", "student", "grading", "author"},
}
"""For each folder, and each file at the top: the folders and files whose modules it may import."""

WORKERS_SIDE = {"boundary/worker", "boundary/protocol", "cost", "forbidden", "operands"}
WORKERS_SIDE |= {"returned", "unwritten"}
"""All that a process with a student's code in it may hold of the package."""


def imported(path: Path) -> set[str]:
    """The modules of the package that a file imports, anywhere in it, as paths without `.py`."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        found |= {place for name in names if (place := place_of(name))}
    return found


def place_of(name: str) -> str:
    """Where an imported name's module is in the package; empty for one of another package."""
    first, _, rest = name.partition(".")
    if first != "grader":
        return ""
    parts = rest.split(".") if rest else []
    while parts and not is_module(PACKAGE.joinpath(*parts)):
        parts.pop()
    return "/".join(parts)


def is_module(path: Path) -> bool:
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


def room(place: str) -> str:
    """The folder, or the file at the top, that a module is in."""
    return place.partition("/")[0].removesuffix(".py")


MODULES = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("module", MODULES)
def test_it_imports_only_what_it_may(module: str) -> None:
    if module == "__init__.py":
        assert imported(PACKAGE / module) == {"student/notebook"}  # when a notebook asks for it
        return
    here = room(module)
    assert here in MAY_IMPORT, f"{here} has no place in the layers; give it one here"
    above = {place for place in imported(PACKAGE / module) if room(place) not in MAY_IMPORT[here]}
    assert not above, f"{module} imports {', '.join(sorted(above))}"


def test_files_at_the_top_import_each_other_one_way() -> None:
    """What everything stands on has an order, so that it can be read file by file."""
    waiting = {name: imported(PACKAGE / f"{name}.py") & TOP for name in TOP}
    while waiting:
        ready = {name for name, needs in waiting.items() if not needs & waiting.keys()}
        assert ready, f"these import each other in a circle: {', '.join(sorted(waiting))}"
        for name in ready:
            del waiting[name]


def test_a_worker_holds_its_protocol_and_what_is_forbidden() -> None:
    waiting, seen = {"boundary/worker"}, set[str]()
    while waiting:
        place = waiting.pop()
        seen.add(place)
        path = PACKAGE / place
        files = [path.with_suffix(".py")] if not path.is_dir() else [*path.rglob("*.py")]
        waiting |= {p for file in files for p in imported(file)} - seen
    outside = {place for place in seen if not any(place.startswith(own) for own in WORKERS_SIDE)}
    assert not outside, f"a worker would load {', '.join(sorted(outside))}"


def test_the_package_uses_no_private_part_of_pytest() -> None:
    for module in MODULES:
        tree = ast.parse((PACKAGE / module).read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not any(name.startswith("_pytest") for name in names), module
