"""What a right solution is compared with: the reference, two other styles, and two questions.

`solutions/NN-name/compare.py` says of a problem which right files of `variants/` are shown, and
when one would choose each; what is called to count its cost; and what is asked afterwards. A
students' copy has all of it as one sealed file.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from grader.code.course_modules import modules_of_course
from grader.course import REFERENCE, Course, Problem
from grader.errors import CourseError, UsageError
from grader.run.sealed import packed, unpacked

COMPARE_FILE = "compare.py"
"""Lies beside a problem's reference solution."""

QuestionAndAnswer = tuple[str, Callable[[], str]]


@dataclass(frozen=True)
class RightFile:
    """A right solution that is shown.

    Attributes:
        name: of the variant; empty for the reference.
        source: the file.
        when: when one would choose this style.
    """

    name: str
    source: str
    when: str = ""


@dataclass(frozen=True)
class Comparison:
    """What one's own solution of a problem is shown beside.

    Attributes:
        files: the reference, then the other styles.
        script: the problem's `compare.py`.
    """

    files: tuple[RightFile, ...]
    script: str


@dataclass(frozen=True)
class Script:
    """What a `compare.py` says.

    Attributes:
        calls: in words, what is called to count its cost.
        cost: takes the code, and returns what makes these calls.
        questions: takes the code, and returns each question with what works its answer out.
    """

    calls: str
    cost: Callable[[Any], Callable[[], object]]
    questions: Callable[[Any], Sequence[QuestionAndAnswer]]

    @classmethod
    def load(cls, source: str, course: Course) -> Script:
        """Run a `compare.py`, which may import the course's own modules."""
        with modules_of_course(course.root):
            said = vars(module_of(source, "compare"))
        return cls(said["CALLS"], said["cost"], said["questions"])


def module_of(source: str, name: str) -> ModuleType:
    """Run a source as a module of this name, and return it."""
    module = ModuleType(name)
    sys.modules[name] = module  # dataclasses look their module up
    exec(compile(source, f"<{name}>", "exec"), vars(module))
    return module


def has_comparison(course: Course, problem: Problem) -> bool:
    """Return whether the course's author has written what a problem is compared with."""
    return _script_of(course, problem).is_file()


def sealed_comparison(problem: Problem) -> Path:
    """Return where a students' copy has what a problem is compared with."""
    return problem.folder / ".compare.bin"


def seal_comparison(course: Course, problem: Problem) -> bytes:
    """Return all that is needed as one piece that nobody reads by accident."""
    found = _written(course, problem)
    return packed([found.script, [[each.name, each.source, each.when] for each in found.files]])


def comparison_of(course: Course, problem: Problem) -> Comparison:
    """Return what a problem is compared with, from its solutions or from a students' copy.

    Raises:
        UsageError: there is nothing.
        CourseError: a style is named that there is not.
    """
    if has_comparison(course, problem):
        return _written(course, problem)
    try:
        script, files = unpacked(sealed_comparison(problem))
    except FileNotFoundError:
        raise UsageError(
            f"This copy of the course has nothing to compare {problem.id} with: whoever handed it "
            "out has left that out."
        ) from None
    return Comparison(tuple(RightFile(*each) for each in files), script)


def _script_of(course: Course, problem: Problem) -> Path:
    return course.solution(problem).with_name(COMPARE_FILE)


def _written(course: Course, problem: Problem) -> Comparison:
    path = _script_of(course, problem)
    source = path.read_text(encoding="utf-8")
    known = {name: file.read_text("utf-8") for name, file in course.right_files(problem).items()}
    found = [RightFile("", known[REFERENCE])]
    for name, when in _styles(source).items():
        if name not in known:
            raise CourseError(f"{path} names the style '{name}', and there is no such variant")
        found.append(RightFile(name, known[name], when))
    return Comparison(tuple(found), source)


def _styles(script: str) -> dict[str, str]:
    """Return the names of the styles to show, with when one would choose each.

    They are read and not run: a release needs no torch.
    """
    for node in ast.parse(script).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "STYLES":
            return dict(ast.literal_eval(node.value))
    return {}
