"""The same verdict, test by test, in process and across the boundary."""

from collections.abc import Iterator

import pytest

from grader.course import own_course
from grader.plugin import LocalFiles, Session
from grader.result import TestResult
from grader.testing import run_tests
from grader.verdict import CannotLoad

COURSE = own_course()
# Mistakes that are told otherwise across the boundary on purpose, or that chance decides about.
LEFT_OUT = ("chang", "in_place", "dropout")


def candidates() -> Iterator[object]:
    """The reference, the stub and one mistake of each problem."""
    for problem in COURSE.problems():
        solution = COURSE.solution(problem)
        if not solution.is_file():
            continue
        wrong = sorted((solution.parent / "mistakes").glob("*.py"))
        wrong = [path for path in wrong if not any(word in path.name for word in LEFT_OUT)]
        chosen = [solution, problem.stub, *wrong[:1]]
        for path in chosen:
            yield pytest.param(problem, path, id=f"{problem.id}-{path.parent.name}-{path.stem}")


def verdicts(problem, open_problem) -> list[TestResult]:
    session = Session(open_problem, hidden=True, diagnose=False)
    run_tests([problem], session, COURSE.root, timeout=120)
    return session.results[problem.id].tests


@pytest.mark.parametrize(("problem", "path"), candidates())
def test_parity(sandbox, problem, path):
    opened = {}

    def remote(problem, forbidden):
        if not opened:
            try:
                opened["file"] = sandbox.open(path.read_bytes(), forbidden)
            except CannotLoad as reason:
                opened["file"] = reason
        if isinstance(opened["file"], CannotLoad):
            raise opened["file"]
        return opened["file"]

    here = verdicts(problem, LocalFiles(lambda problem: path))
    there = verdicts(problem, remote)
    assert [(t.id, t.status.value) for t in there] == [(t.id, t.status.value) for t in here]
