"""`--only NAME` accepts an identity, a file's name or a real name. Other names are errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.course import Course
from grader.errors import UsageError
from grader.intake.handed_in import Submission
from grader.intake.identity import only_these
from grader.intake.submissions import read_submissions
from tests.grader.intake.uploads import RIGHT, write


@pytest.fixture
def submissions(tmp_path: Path, small_course: Course) -> list[Submission]:
    names = ["王芳_1004", "李娜_1005", "ada_12", "ada_13", "renée_14"]
    files = {f"{name}_{n}_problem_01.py": RIGHT for n, name in enumerate(names, 1)}
    return read_submissions(write(tmp_path / "class", files), small_course).submissions


@pytest.mark.parametrize(
    ("name", "identity"),
    [
        ("canvas:1004", "canvas:1004"),
        ("李娜", "canvas:1005"),
        ("rene\u0301e", "canvas:14"),
        ("13", "canvas:13"),
    ],
)
def test_a_submission_is_found_by_any_of_its_names(
    submissions: list[Submission], name: str, identity: str
) -> None:
    (one,) = only_these(submissions, [name])
    assert one.identity == identity
    assert only_these(submissions, [one.name]) == [one]


def test_each_submission_is_found_only_once(submissions: list[Submission]) -> None:
    some = only_these(submissions, ["王芳", "canvas:1004", "canvas:13"])
    assert [s.identity for s in some] == ["canvas:13", "canvas:1004"]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("ada", "'ada' matches more than one student; use one of 'canvas:12' or 'canvas:13'"),
        ("renee", "There is no submission called 'renee'. Did you mean .*'renée'"),
        ("Ada", "Did you mean 'ada'"),
        ("100", "Did you mean 'canvas:1004' or 'canvas:1005'"),
        ("zzz", "There is no submission called 'zzz'.$"),
        ("", "There is no submission called ''.$"),
    ],
)
def test_an_ambiguous_name_is_an_error(submissions: list[Submission], name: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        only_these(submissions, [name])
