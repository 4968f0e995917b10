"""`grader replay` runs one graded test again, and shows its source, errors and checks."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from grader.course import Course
from grader.errors import SubmissionError, UsageError
from grader.grade import replay as replaying
from grader.grade.previous import save_result
from grader.grade.replay import Replay, Rerun, find_one, find_test, replay, report
from grader.grade.settings import Settings
from grader.intake.submissions import find_submissions
from grader.result import ProblemResult, Status, SubmissionResult, TestResult
from tests.grader.intake.uploads import FILE, write

SOURCE = """print("while it is imported")

def double(x):
    print("asked for", x.tolist(), "\\x1b[31m")
    return helper(x) if x.numel() == 3 else x + x

def helper(x):
    return x.tolist()["three"]
"""


@pytest.fixture
def graded(tmp_path: Path, small_course: Course) -> Path:
    """Write two submissions, and the result of one of them, which was graded with seed 7."""
    write(tmp_path / "class", {f"{name}/{FILE}": SOURCE for name in ("ada", "bob")})
    (ada, _) = find_submissions(tmp_path / "class", small_course)
    test = TestResult("test_hidden", "It doubles", True, 2, Status.ERROR, "an error")
    problem = ProblemResult("01-doubling", ada.files["01-doubling"].sha256, [test])
    problem.provenance = {"seed": 7, "isolation": "process"}
    save_result(SubmissionResult("ada", 7, "process", "", [problem]), tmp_path / "out" / "results")
    return tmp_path


@pytest.fixture
def seeds(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Replace the function that runs a test. Return the list of the seeds that it receives."""
    used = []

    def run(function: str, isolation: str, *args: Any) -> Rerun:
        used.append(args[4].seed)
        return Rerun([TestResult("test_hidden", "It doubles", True, 2, Status.PASSED)], {}, "")

    monkeypatch.setattr(replaying, "call_apart", run)
    return used  # type: ignore[return-value]


@pytest.mark.slow
def test_a_replay_shows_the_source_the_error_and_the_checks(
    graded: Path, new_course: Callable[[Path], Course], tmp_path: Path
) -> None:
    course = new_course(tmp_path / "recorded")
    path, settings = graded / "class/ada", Settings(call_seconds=60, isolation="process")
    found = replay(path, "test_hidden", course, settings, graded / "out")
    text = report(found)
    assert "test_hidden: error" in text
    assert 'check(problem.double(x), solution.double(x), "double(x)")' in found.source
    assert "TypeError" in text
    assert 'return x.tolist()["three"]' in found.rerun.tracebacks["test_hidden"]
    assert "test_doubling.py" in found.rerun.tracebacks["test_hidden"]
    assert "while it is imported" in text
    assert "asked for" in text
    assert "double(x): wrong" in text
    assert "the reference: a Tensor of shape (3,), float32" in text
    assert "\x1b" not in text
    assert not found.notes


@pytest.fixture
def replayed(graded: Path, small_course: Course, seeds: list[int]) -> Callable[[str], Replay]:
    """Return a function that replays a hidden test of a student.

    The seed is 3 if the student has no result.
    """
    settings = Settings(3, isolation="process")
    folder, out = graded / "class", graded / "out"
    return lambda name: replay(folder / name, "test_hidden", small_course, settings, out)


def test_the_seed_comes_from_a_readable_result(
    graded: Path, replayed: Callable[[str], Replay], seeds: list[int]
) -> None:
    replayed("ada")
    missing = report(replayed("bob"))
    assert f"There is no result in {graded / 'out'}. The seed is 3." in missing
    path = graded / "out/results/ada.json"
    data = json.loads(path.read_text())
    data["problems"][0]["tests"][0]["max"] = None
    path.write_text(json.dumps(data))
    damaged = report(replayed("ada"))
    assert f"The result in {path} can't be used: Expected `float`, got `null`" in damaged
    assert seeds == [7, 3, 3]


def test_a_changed_file_is_reported(graded: Path, replayed: Callable[[str], Replay]) -> None:
    (graded / "class/ada" / FILE).write_text("def double(x): return x + x")
    found = replayed("ada")
    assert found.notes == ["The file has changed since it was graded."]
    assert (
        "test_hidden: passed\n  In the graded run, where other tests ran before it: error"
        in report(found)
    )


@pytest.mark.parametrize(
    "test", ["test_doubles", "01/test_doubles", "01-doubling/test_doubles", "01/test_doubles[1]"]
)
def test_a_test_may_have_a_short_name(small_course: Course, test: str) -> None:
    problem, name = find_test(test, small_course)
    assert (problem.id, name) == ("01-doubling", test.rpartition("/")[2])


@pytest.mark.parametrize("test", ["test_halves", "02/test_doubles", "", "probe", "../x"])
def test_an_unknown_test_is_reported(small_course: Course, test: str) -> None:
    with pytest.raises(UsageError, match="there are: |did you mean "):
        find_test(test, small_course)


def test_a_submission_is_found_by_its_name_in_reports(
    graded: Path, replayed: Callable[[str], Replay], seeds: list[int]
) -> None:
    """In a Canvas download without names, a student is found by the real name in the result."""
    path = graded / "out/results/ada.json"
    path.write_text(path.read_text().replace('"full_name": ""', '"full_name": "Ada Lovelace"'))
    assert (replayed("Ada Lovelace").submission, seeds) == ("ada", [7])


def test_a_submission_may_be_given_as_a_path(graded: Path, small_course: Course) -> None:
    assert find_one(graded / "class" / "ada", small_course).name == "ada"
    with pytest.raises(SubmissionError, match="2 submissions"):
        find_one(graded / "class", small_course)
    with pytest.raises(SubmissionError, match="class: There is no submission called .eve"):
        find_one(graded / "class" / "eve", small_course)
