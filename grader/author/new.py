"""Create a small example problem. Once its fingerprints are written, it passes the audit."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path
from string import Template

from grader.course import MANIFEST, SUBMISSION_FILE, Course, Problem, is_problem_folder
from grader.diagnose.edits import EDITS_FILE
from grader.errors import UsageError
from grader.files import write_whole

TEMPLATES = Path(__file__).parent / "new_problem"
"""The folder of the templates, which contain placeholders such as `$number`."""

_VALUES = {
    "torch": {
        "import": "import torch",
        "imports": "import pytest\nimport torch",
        "Array": "torch.Tensor",
        "array": "torch.tensor",
        "kind": "tensor",
        "copy": "clone",
        "equal": "torch.equal",
    },
    "numpy": {
        "import": "import numpy as np",
        "imports": "import numpy as np\nimport pytest",
        "Array": "np.ndarray",
        "array": "np.array",
        "kind": "array",
        "copy": "copy",
        "equal": "np.array_equal",
    },
}
"""Maps each value of `values` in `course.toml` to the texts that replace placeholders."""


def new_problem(course: Course, id: str, part: str = "") -> Problem:
    """Write the files of a new problem and its entry in `course.toml`.

    Args:
        course: the course to change.
        id: the id of the new problem, such as `12-name`.
        part: the id of the part that the problem will belong to; empty for the last part.

    Raises:
        UsageError: the id is invalid or already used, or the part does not exist.
        CannotWrite: a file can't be written.
    """
    problem = Problem(course.root / "problems" / id)
    _require_free(course, problem)
    manifest = course.manifest
    chosen = manifest.part(part) if part else manifest.parts[-1]
    words = id[3:].split("-")
    names = {
        "id": id,
        "number": id[:2],
        "title": " ".join(words).capitalize(),
        "function": _function(id),
        "part": chosen.id,
        "part_line": f"Part {chosen.id} · " if chosen.optional else "",
        **_VALUES[manifest.values],
    }
    for path, template in _files(course, problem):
        write_whole(path, _filled(template, names))
    write_whole(course.salt(problem), secrets.token_hex(32) + "\n")
    # The entry is written last, so that the course never contains an incomplete problem.
    text = (course.root / MANIFEST).read_text(encoding="utf-8")
    write_whole(course.root / MANIFEST, text.rstrip("\n") + "\n" + _filled("entry.toml", names))
    return problem


def _require_free(course: Course, problem: Problem) -> None:
    if not is_problem_folder(problem.folder) or not "".join(problem.id[3:].split("-")).isalpha():
        raise UsageError(
            f"'{problem.id}' is not a valid id. Use two digits and a name, such as 12-layer-norm."
        )
    for other in course.manifest.problems:
        if other.id[:2] == problem.id[:2]:
            raise UsageError(f"The number {other.id[:2]} is already used by {other.id}.")
    for path in (problem.folder, course.solution(problem).parent, _oracles(problem)):
        if path.exists():
            raise UsageError(f"{path} already exists.")


def _oracles(problem: Problem) -> Path:
    return problem.folder.parent / "shared/oracles" / f"{_function(problem.id)}.py"


def _function(id: str) -> str:
    return "_".join(id[3:].split("-"))


def _files(course: Course, problem: Problem) -> Iterator[tuple[Path, str]]:
    """Yield (path, template name) pairs of the files of a new problem."""
    solution, oracles = course.solution(problem), _oracles(problem)
    yield oracles, "oracles.py"
    for folder in (oracles.parent, oracles.parent.parent):
        if not (folder / "__init__.py").exists():
            yield folder / "__init__.py", "package.py"
    yield problem.folder / "README.md", "README.md"
    yield problem.folder / SUBMISSION_FILE, "problem.py"
    yield problem.test_file, "test.py"
    yield problem.probe_file, "probe.py"
    yield solution, "solution.py"
    yield solution.parent / "variants" / "turned.py", "turned.py"
    yield solution.parent / EDITS_FILE, "mistakes.edits"


def _filled(template: str, names: dict[str, str]) -> str:
    text = (TEMPLATES / f"{template}.txt").read_text(encoding="utf-8")
    return Template(text).substitute(names)
