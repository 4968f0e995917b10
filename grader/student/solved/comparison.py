"""Load the data for `grader compare`, which shows other correct files next to the student's file.

`solutions/NN-name/compare.py` lists the variants and when to choose each of them, the calls for
which the cost is counted, and the questions to the student.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from grader.code.course_modules import modules_of_course
from grader.course import REFERENCE, Course, Problem
from grader.errors import CourseError, UsageError

QuestionAndAnswer = tuple[str, Callable[[], str]]


@dataclass(frozen=True)
class RightFile:
    """A correct file to show.

    Attributes:
        name: the variant's name; empty for the reference.
        source: the file's content.
        when: a sentence about when to choose this variant, or "".
    """

    name: str
    source: str
    when: str = ""


@dataclass(frozen=True)
class Comparison:
    """The files to show next to a student's file, and the problem's `compare.py`.

    Attributes:
        files: the reference, followed by the variants.
        script: the content of `compare.py`.
    """

    files: tuple[RightFile, ...]
    script: str


@dataclass(frozen=True)
class Script:
    """The values that a `compare.py` defines.

    Attributes:
        calls: a description of the calls for which the cost is counted.
        cost: a function that takes a module and returns a function that makes these calls.
        questions: a function that takes a module and returns (question, function) pairs. Each
            of these functions returns the answer to its question.
    """

    calls: str
    cost: Callable[[Any], Callable[[], object]]
    questions: Callable[[Any], Sequence[QuestionAndAnswer]]

    @classmethod
    def load(cls, source: str, course: Course) -> Script:
        """Run the content of a `compare.py`, which can import modules of the course."""
        with modules_of_course(course.root):
            names = vars(module_of(source, "compare"))
        return cls(names["CALLS"], names["cost"], names["questions"])


def module_of(source: str, name: str) -> ModuleType:
    """Run source code as a module with this name, and return the module."""
    module = ModuleType(name)
    sys.modules[name] = module  # dataclasses look up their module
    exec(compile(source, f"<{name}>", "exec"), vars(module))
    return module


def comparison_of(course: Course, problem: Problem) -> Comparison:
    """Return the files to show for a problem, and the content of its `compare.py`.

    Raises:
        UsageError: the problem has no `compare.py`.
        CourseError: a name in `STYLES` of `compare.py` is not the name of a variant.
    """
    path = course.comparison(problem)
    if not path.is_file():
        raise UsageError(f"The solutions of {problem.id} have no {path.name}.")
    source = path.read_text(encoding="utf-8")
    known = {name: file.read_text("utf-8") for name, file in course.right_files(problem).items()}
    files = [RightFile("", known[REFERENCE])]
    for name, when in _styles(source).items():
        if name not in known:
            raise CourseError(f"{path} names the style '{name}', but there is no such variant")
        files.append(RightFile(name, known[name], when))
    return Comparison(tuple(files), source)


def _styles(script: str) -> dict[str, str]:
    """Return `STYLES` of a `compare.py`: for each variant, a sentence about when to choose it."""
    for node in ast.parse(script).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "STYLES":
            return dict(ast.literal_eval(node.value))
    return {}
