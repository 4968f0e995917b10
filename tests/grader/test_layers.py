"""Each module imports only the layers that the picture in CONTRIBUTING.md allows."""

from __future__ import annotations

import ast
import functools
from pathlib import Path

import grader

PACKAGE = Path(grader.__file__).parent
TOP = {"course", "csv_table", "errors", "files", "result", "text"}
ALLOWED = {
    "code": set[str](),
    "diagnose": {"code"},
    "run": {"code", "diagnose"},
    "sandbox": {"code"},
    "intake": set[str](),
    "gradebook": set[str](),
    "reports": set[str](),
    "grade": {"code", "diagnose", "run", "sandbox", "intake", "gradebook", "reports"},
    "student": {"code", "diagnose", "run"},
    "author": {"code", "diagnose", "run", "sandbox", "intake", "reports", "grade"},
    "cli": {"run", "student"},
    "cli_instructor": {
        *("cli", "run", "intake", "gradebook", "reports", "grade", "author", "diagnose"),
    },
}
"""The folders that each folder may import, in addition to itself and the files at the top.

Only `cli_instructor` may import `cli`, and nothing may import `cli_instructor`.
"""

WITHOUT_COURSE = {"gradebook", "reports"}
"""Folders that may not import `course`, as they read only results."""

WORKER_MODULES = {"sandbox/worker", "sandbox/frames"}
WORKER_MODULES |= {
    f"code/{name}" for name in ("cost", "forbidden", "graded_alone", "quiet", "tensors")
}
"""The modules of the package that a process with student code may load."""


def imported_modules(path: Path) -> set[str]:
    """Return the modules of the package that a file imports, as paths without `.py`."""
    return {place for name in imported_names(path) if (place := module_path(name))}


@functools.cache
def imported_names(path: Path) -> set[str]:
    """Return all modules that a file imports."""
    modules = set[str]()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            modules |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Call) and called_name(node.func) == "import_module":
            names = [argument.value for argument in node.args if isinstance(argument, ast.Constant)]
            modules |= {name for name in names if isinstance(name, str)}
    return modules


def called_name(function: ast.expr) -> str:
    """Return the name of a called function without its module or object."""
    return getattr(function, "attr", "") or getattr(function, "id", "")


def module_path(name: str) -> str:
    """Return the path of the module that defines a name, or "" for a name of another package."""
    first, _, rest = name.partition(".")
    if first != "grader":
        return ""
    parts = rest.split(".") if rest else []
    while parts and not is_module(PACKAGE.joinpath(*parts)):
        parts.pop()
    return "/".join(parts)


def is_module(path: Path) -> bool:
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


def layer(place: str) -> str:
    """Return the folder of a module, or the module if it is not in a folder."""
    return place.partition("/")[0].removesuffix(".py")


MODULES = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))


def forbidden_imports(module: str) -> set[str]:
    """Return the imports of a module that its layer does not allow."""
    here = layer(module)
    allowed = TOP - ({"course"} if here in WITHOUT_COURSE else set())
    if here == "__init__":
        allowed = {"student/notebook"}  # imported only in a notebook
    elif here not in TOP:
        assert here in ALLOWED, f"{here} is not in the layers; add it here"
        allowed |= ALLOWED[here] | {here}
    return {p for p in imported_modules(PACKAGE / module) if not {p, layer(p)} & allowed}


def test_modules_import_only_allowed_layers() -> None:
    assert {module: above for module in MODULES if (above := forbidden_imports(module))} == {}


def test_files_at_the_top_are_used_by_several_folders() -> None:
    top = {path.stem for path in PACKAGE.glob("*.py")}
    assert top == TOP | {"__init__", "cli", "cli_instructor"}


def test_files_at_the_top_have_no_circular_imports() -> None:
    waiting = {name: imported_modules(PACKAGE / f"{name}.py") & TOP for name in TOP}
    while waiting:
        ready = {name for name, needs in waiting.items() if not needs & waiting.keys()}
        assert ready, f"these files import each other in a circle: {', '.join(sorted(waiting))}"
        for name in ready:
            del waiting[name]


def test_a_worker_loads_only_the_protocol_and_the_forbidden_functions() -> None:
    waiting, seen = {"sandbox/worker"}, set[str]()
    while waiting:
        place = waiting.pop()
        seen.add(place)
        path = PACKAGE / place
        files = [path.with_suffix(".py")] if not path.is_dir() else [*path.rglob("*.py")]
        waiting |= {p for file in files for p in imported_modules(file)} - seen
    outside = {place for place in seen if not any(place.startswith(own) for own in WORKER_MODULES)}
    assert not outside, f"a worker would load {', '.join(sorted(outside))}"


def test_the_sandbox_does_not_import_pytest() -> None:
    for module in (module for module in MODULES if layer(module) == "sandbox"):
        first = {name.partition(".")[0] for name in imported_names(PACKAGE / module)}
        assert not first & {"pytest", "_pytest"}, module


def test_only_the_instructors_commands_import_the_commands() -> None:
    for module in MODULES:
        commands = imported_modules(PACKAGE / module) & {"cli", "cli_instructor"}
        assert commands <= ({"cli"} if module == "cli_instructor.py" else set()), module


def test_the_package_uses_no_private_names_of_pytest() -> None:
    for module in MODULES:
        private = [n for n in imported_names(PACKAGE / module) if n.startswith("_pytest")]
        assert not private, module
