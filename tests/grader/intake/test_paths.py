"""Errors in the instructor's paths, and in the entries of a class folder, are reported."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from grader.course import Course
from grader.errors import SubmissionError
from grader.intake import limits
from grader.intake.submissions import find_submissions, read_submissions
from tests.grader.intake.uploads import (
    FILE,
    ID,
    OTHER,
    RIGHT,
    WRONG,
    Files,
    Take,
    as_ordinary_user,
    assert_bad,
    open_to_all,
    source,
    write,
)


@pytest.mark.parametrize("what", ["missing", "file", "empty"])
def test_an_empty_path_is_refused(tmp_path: Path, small_course: Course, what: str) -> None:
    path = tmp_path / what
    if what == "file":
        path.write_text("")
    elif what == "empty":
        path.mkdir()
    with pytest.raises(SubmissionError, match=what):
        find_submissions(path, small_course)


@pytest.mark.parametrize("name", ["bad.zip", "bad.tar.gz", "bad.7z"])
def test_a_single_bad_archive_has_a_row(tmp_path: Path, small_course: Course, name: str) -> None:
    (tmp_path / name).write_bytes(b"nothing of that kind")
    (submission,) = find_submissions(tmp_path / name, small_course)
    assert submission.name == "bad"
    assert_bad(
        submission,
        "not a complete zip or tar archive" if name != "bad.7z" else "not read; submit one",
    )


def test_one_file_without_the_option_is_refused(tmp_path: Path, small_course: Course) -> None:
    with pytest.raises(
        SubmissionError, match=f"contains no submissions.*for example with --problem {ID}"
    ):
        read_submissions(write(tmp_path / "ada", {"problem.py": RIGHT}), small_course)


@pytest.mark.parametrize("problem", ["", "01"])
def test_a_flat_folder_is_refused_with_advice(
    take: Take, two_problems: Course, problem: str
) -> None:
    names = ["ada_lovelace_problem1.py", "kurt_goedel_problem1.py", "Noether, Emmy - problem 1.py"]
    with pytest.raises(SubmissionError, match="to a folder with the student's name"):
        take(dict.fromkeys(names, RIGHT), problem=problem, course=two_problems)


def test_a_folder_of_a_different_problem_is_reported(tmp_path: Path, two_problems: Course) -> None:
    path = write(tmp_path / "work" / OTHER, {"problem.py": RIGHT})
    (submission,) = read_submissions(path, two_problems, two_problems.select(["01"])[0]).submissions
    assert source(submission) is None
    assert f"is for {OTHER}, which is not graded now" in submission.files[ID].reason


# One entry of a class


def _dangling(path: Path) -> None:
    path.symlink_to("nowhere")


def _too_large(path: Path) -> None:
    write(path, {f"extra{number}": b"" for number in range(6)})


def _too_large_below(path: Path) -> None:
    _too_large(path / "problems")


def _closed(path: Path) -> None:
    path.mkdir(mode=0)


IS_LINK = "is a link, which is not followed."
ODD = {_dangling: IS_LINK, _closed: "can't be read (Permission denied)."}
ODD |= dict.fromkeys([_too_large, _too_large_below], "contains more than 5 files and folders.")


@pytest.mark.skipif(sys.platform == "win32", reason="links and modes differ on Windows")
@pytest.mark.parametrize("make", ODD)
def test_an_unreadable_entry_of_a_class_has_a_row(
    tmp_path: Path,
    small_course: Course,
    monkeypatch: pytest.MonkeyPatch,
    make: Callable[[Path], None],
) -> None:
    """The entry is also reported if its path is given instead of that of the class."""
    monkeypatch.setattr(limits, "MAX_ENTRIES", 5)
    folder = write(tmp_path / "class", {f"{name}/{FILE}": RIGHT for name in ("ada", "cho")})
    open_to_all(tmp_path)
    make(folder / "bea")
    ada, bea, cho = as_ordinary_user(lambda: find_submissions(folder, small_course))
    assert (source(ada), source(bea), source(cho)) == (RIGHT, None, RIGHT)
    assert (bea.files[ID].bad, bea.files[ID].reason) == (True, f"'bea' {ODD[make]}")
    if make is _too_large_below:
        (alone,) = find_submissions(folder / "bea", small_course)
        assert ODD[make] in alone.files[ID].reason
    else:
        with pytest.raises(SubmissionError, match="bea"):
            as_ordinary_user(lambda: find_submissions(folder / "bea", small_course))


METADATA = b"submission_1:\n  :submitters:\n  - :name: Bea\n    :email: bea@x.edu\n"
HOSTILE = {
    "gradescope": {"submission_metadata.yml": METADATA, f"submission_1/{FILE}": WRONG},
    "moodle": {
        f"Bea_8_assignsubmission_file/{FILE}": WRONG,
        f"C_9_assignsubmission_file/{FILE}": b"",
    },
    "canvas": {"bea_8_1_problem_01.py": WRONG, "cho_9_2_problem_01.py": WRONG},
    "class": {f"bea/{FILE}": WRONG, f"cho/{FILE}": WRONG},
}


@pytest.mark.parametrize("files", HOSTILE.values(), ids=HOSTILE)
def test_a_single_folder_of_a_class_has_one_row(
    tmp_path: Path, small_course: Course, files: Files
) -> None:
    folder = write(tmp_path / "class", {f"{name}/{FILE}": RIGHT for name in ("ada", "bea", "cho")})
    write(folder / "mallory", files)
    submissions = find_submissions(folder, small_course)
    assert [s.identity for s in submissions] == ["ada", "bea", "cho", "mallory"]
    assert [source(s) for s in submissions[:3]] == [RIGHT, RIGHT, RIGHT]
    assert [s.members for s in submissions] == [()] * 4
