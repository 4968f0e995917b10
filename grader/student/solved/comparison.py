"""Load the data for comparing a correct file with the reference and two variants.

`solutions/NN-name/compare.py` lists the variants and when to choose each of them, the calls whose
cost is counted, and the questions. A students' copy has this file only if it has `solutions/`.
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
    """A right solution to show.

    Attributes:
        name: the variant's name; empty for the reference.
        source: the file's content.
        when: a sentence about when to choose this style.
    """

    name: str
    source: str
    when: str = ""


@dataclass(frozen=True)
class Comparison:
    """The files to show next to a student's file, and the script of the comparison.

    Attributes:
        files: the reference, followed by the variants.
        script: the problem's `compare.py`.
    """

    files: tuple[RightFile, ...]
    script: str


@dataclass(frozen=True)
class Script:
    """The content of a `compare.py`.

    Attributes:
        calls: a description of the calls whose cost is counted.
        cost: takes the code, and returns a function that makes these calls.
        questions: takes the code, and returns each question with a function for its answer.
    """

    calls: str
    cost: Callable[[Any], Callable[[], object]]
    questions: Callable[[Any], Sequence[QuestionAndAnswer]]

    @classmethod
    def load(cls, source: str, course: Course) -> Script:
        """Run the text of a `compare.py`, which may import the course's modules, and return its
        content.
        """
        with modules_of_course(course.root):
            names = vars(module_of(source, "compare"))
        return cls(names["CALLS"], names["cost"], names["questions"])


def module_of(source: str, name: str) -> ModuleType:
    """Run code as a module with this name, and return the module."""
    module = ModuleType(name)
    sys.modules[name] = module  # dataclasses look up their module
    exec(compile(source, f"<{name}>", "exec"), vars(module))
    return module


def comparison_of(course: Course, problem: Problem) -> Comparison:
    """Return the files and the script for the comparison of a student's file.

    Raises:
        UsageError: the problem has no `compare.py`.
        CourseError: `compare.py` names a style that is not a variant.
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
    """Return the sentences that say when to choose each style, by the style's name."""
    for node in ast.parse(script).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "STYLES":
            return dict(ast.literal_eval(node.value))
    return {}
