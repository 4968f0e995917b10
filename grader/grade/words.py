"""Add names of mistakes to kept results when the catalogue has changed.

Marks do not depend on these names, so a new mistake in the catalogue does not require a new run of
the tests. Each result contains the wrong answers that matched no known mistake. These answers are
compared with the new catalogue. Existing diagnoses do not change until the problem is graded again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from grader.course import Course, Problem
from grader.grade.provenance import words_sha256
from grader.result import DIAGNOSED, ProblemResult, TestResult

if TYPE_CHECKING:
    from grader.diagnose.evidence import Evidence
    from grader.diagnose.fingerprints import Fingerprints


class Words:
    """The current catalogue of a course's mistakes."""

    def __init__(self, course: Course) -> None:
        self._problems = {problem.id: problem for problem in course.problems()}
        self._hash = cache(words_sha256)
        self._known = cache(_load)

    def renewed(self, result: ProblemResult) -> ProblemResult:
        """Return a problem's result. Add mistakes that are new in the current catalogue."""
        problem = self._problems.get(result.id)
        if problem is None:
            return result
        now = self._hash(problem)
        if result.provenance.get("words", "") == now:
            return result
        result = replace(result, provenance={**result.provenance, "words": now})
        return _renewed(result, self._known(problem)) if result.unknown else result


def _load(problem: Problem) -> Fingerprints:
    # Imported here, because it loads torch, which a run without changes does not need.
    from grader.diagnose.fingerprints import Fingerprints

    return Fingerprints.load(problem.fingerprints)


def _renewed(result: ProblemResult, known: Fingerprints) -> ProblemResult:
    from grader.diagnose.naming import without_named

    evidence = [each for each in _named_now(result, known) if each.sentence not in result.diagnoses]
    parts = {part for each in evidence for part in each.parts}
    names = tuple(name for each in evidence for name in each.names)
    return replace(
        result,
        diagnoses=[*result.diagnoses, *(each.sentence for each in evidence)],
        mistakes=[*result.mistakes, *([*each.names] for each in evidence)],
        unknown=without_named(result.unknown, parts),
        tests=[_with_names(test, names) for test in result.tests],
    )


def _named_now(result: ProblemResult, known: Fingerprints) -> Iterable[Evidence]:
    """Return the known mistakes that match failures to which no mistake is attached yet."""
    from grader.diagnose.fingerprints import with_deviations
    from grader.diagnose.naming import diagnose, kept_answers

    answers = {
        part: kept_answers(g) for part, g in result.unknown.items() if part in known.reference
    }
    if not answers:
        return []
    evidence = diagnose(known, with_deviations(known.reference, answers))
    return [each for each in evidence if all(name in known.texts for name in each.names)]


def _with_names(test: TestResult, names: tuple[str, ...]) -> TestResult:
    if not names or test.status not in DIAGNOSED:
        return test
    return replace(test, diagnosis=(*test.diagnosis, *names))
