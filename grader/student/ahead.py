"""Choose the tests to run first after a file was saved."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection
from pathlib import Path

from grader.result import ProblemResult, Status, TestResult

_SECONDS, _MOST = 2.0, 5
"""Limits of their total time and number, because they run again later in the usual order."""


def text_of(path: Path) -> str:
    """Return the readable text of a file."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def changed_names(before: str, now: str) -> set[str]:
    """Return the functions and classes that differ between two texts of a file."""
    old, new = _definitions(before), _definitions(now)
    return {name for name in new if new[name] != old.get(name)}


def _definitions(text: str) -> dict[str, str]:
    """Return each function and class of a file, without comments; none if it isn't Python."""
    try:
        found = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    kinds = (ast.FunctionDef, ast.ClassDef)
    return {each.name: ast.dump(each) for each in found if isinstance(each, kinds)}


def first_tests(last: ProblemResult, changed: Collection[str]) -> list[str]:
    """Return ids of tests: first failed tests about the change, then other failed ones, then the
    rest.

    Args:
        last: the last result of the problem.
        changed: the names of functions and classes that were changed.
    """
    failed = {test.id for test in last.tests if test.status is not Status.PASSED}
    about = {test.id for test in last.tests if _speaks_of(test, changed)}

    def worth(test: TestResult) -> int:
        return 2 * (test.id in failed) + (test.id in about)

    ranked = sorted((test for test in last.tests if worth(test)), key=lambda test: -worth(test))
    chosen: list[str] = []
    seconds = 0.0
    for test in ranked[:_MOST]:
        seconds += test.seconds
        if chosen and seconds > _SECONDS:
            break
        chosen.append(test.id)
    return chosen


def _speaks_of(test: TestResult, names: Collection[str]) -> bool:
    words = {word.lower() for word in re.findall(r"\w+", test.title)}
    return any(name.lower() in words for name in names)
