"""The same verdict, test by test, in process and across the boundary."""

import re
import shutil
from collections.abc import Iterator

import pytest

from grader.course import Course, own_course
from grader.errors import CannotLoad
from grader.result import TestResult
from grader.testing.local_files import LocalFiles
from grader.testing.session import Session
from grader.testing.suite import run_tests

COURSE = own_course()
BY_CHANCE = "dropout"
"""In the names of mistakes about which chance decides."""


def candidates() -> Iterator[object]:
    """The reference, the stub and one mistake of each problem."""
    for problem in COURSE.problems():
        solution = COURSE.solution(problem)
        if not solution.is_file():
            continue
        wrong = sorted((solution.parent / "mistakes").glob("*.py"))
        wrong = [path for path in wrong if BY_CHANCE not in path.name]
        wrong.sort(key=lambda path: "change" not in path.name)  # first who changes an argument
        chosen = [solution, problem.stub, *wrong[:1]]
        for path in chosen:
            marks = () if problem.id.startswith("01") else pytest.mark.slow
            yield pytest.param(
                problem, path, marks=marks, id=f"{problem.id}-{path.parent.name}-{path.stem}"
            )


def verdicts(problem, open_problem, root=COURSE.root, tests=()) -> list[TestResult]:
    session = Session(open_problem, hidden=True, diagnose=False)
    run_tests([problem], session, root, tests, timeout=120)
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


@pytest.mark.slow
def test_long_sequences_in_loops_fit_into_a_workers_memory(sandbox, tmp_path):
    """Loops over pairs aren't asked for them; should one be taken for another way, it goes well."""
    shutil.copytree(COURSE.root / "problems", tmp_path / "problems")
    (problem,) = (p for p in Course(tmp_path).problems() if p.id.startswith("05"))
    shared = tmp_path / "problems/worked_example.py"
    text = shared.read_text(encoding="utf-8")
    text, found = re.subn(r"return third - second > .*", "return False", text)
    assert found == 1
    shared.write_text(text, encoding="utf-8")
    loops = COURSE.solution(problem).parent / "variants/entry_by_entry.py"
    opened = sandbox.open(loops.read_bytes())
    try:
        (found,) = verdicts(problem, lambda *_: opened, tmp_path, ["test_sequences_of_any_length"])
    finally:
        opened.close()
    assert found.status == "passed", found.message
