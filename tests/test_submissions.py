"""What comes in: every odd file is a sentence, and nothing is followed, waited for or guessed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from grader.course import Course
from grader.submissions import MAX_SOURCE_BYTES, SubmissionError, find_submissions, read_source


def submission(root: Path, name: str, *, below: str = "", file: str = "problem.py") -> Path:
    folder = root / name / below / "01-doubling"
    folder.mkdir(parents=True)
    (folder / file).write_bytes(b"x = 1\n")
    return root / name


@pytest.fixture
def class_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "class"
    folder.mkdir()
    return folder


def test_a_folder_of_submissions(class_folder: Path, small_course: Course) -> None:
    submission(class_folder, "ada")
    submission(class_folder, "grace", below="problems")
    found = find_submissions([class_folder], small_course)
    assert [s.name for s in found] == ["ada", "grace"]
    assert all(s.files["01-doubling"].source == b"x = 1\n" for s in found)
    assert all(len(s.files["01-doubling"].sha256) == 64 for s in found)


def test_one_submission(class_folder: Path, small_course: Course) -> None:
    (found,) = find_submissions([submission(class_folder, "ada")], small_course)
    assert found.name == "ada"


def test_a_missing_folder_and_a_misspelt_one(class_folder: Path, small_course: Course) -> None:
    (class_folder / "ada" / "1-doubling").mkdir(parents=True)
    (found,) = find_submissions([class_folder], small_course)
    assert found.files["01-doubling"].source is None
    assert "did you mean 01-doubling?" in found.notes[0]


def test_a_misspelt_file_is_named_and_not_guessed(class_folder: Path, small_course: Course) -> None:
    submission(class_folder, "ada", file="problem (1).py")
    (found,) = find_submissions([class_folder], small_course)
    file = found.files["01-doubling"]
    assert file.source is None
    assert "'problem (1).py': it has to be called problem.py" in file.reason


@pytest.mark.parametrize(
    "name", ["a b", "ü", "-x", "=1+1", "x" * 200, "a;rm -rf", "a\nb", "é\u202e"]
)
def test_odd_names_are_data(class_folder: Path, small_course: Course, name: str) -> None:
    submission(class_folder, name)
    (found,) = find_submissions([class_folder], small_course)
    assert found.files["01-doubling"].source
    assert found.name.isascii()
    assert "/" not in found.name
    assert "\n" not in found.name


def test_names_that_become_the_same_stay_apart(class_folder: Path, small_course: Course) -> None:
    for name in ["é", "è", "A_", "a_"]:
        submission(class_folder, name)
    names = [s.name.lower() for s in find_submissions([class_folder], small_course)]
    assert len(set(names)) == 4


@pytest.mark.parametrize("what", ["missing", "file", "empty"])
def test_a_path_that_holds_nothing_is_refused(
    tmp_path: Path, small_course: Course, what: str
) -> None:
    path = tmp_path / what
    if what == "file":
        path.write_text("")
    elif what == "empty":
        path.mkdir()
    with pytest.raises(SubmissionError, match=what):
        find_submissions([path], small_course)


def test_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret.py").write_text("secret = 1\n")
    (tmp_path / "problem.py").symlink_to(tmp_path / "secret.py")
    file = read_source(tmp_path / "problem.py")
    assert file.source is None
    assert "is a link" in file.reason


def test_a_linked_folder_is_not_followed(class_folder: Path, small_course: Course) -> None:
    submission(class_folder, "ada")
    (class_folder / "eve").mkdir()
    (class_folder / "eve" / "01-doubling").symlink_to(class_folder / "ada" / "01-doubling")
    eve = find_submissions([class_folder], small_course)[1]
    assert eve.files["01-doubling"].source is None


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "problem.py")
    assert "not a regular file" in read_source(tmp_path / "problem.py").reason


def test_a_folder_and_a_huge_file_are_refused(tmp_path: Path) -> None:
    (tmp_path / "folder.py").mkdir()
    assert read_source(tmp_path / "folder.py").bad
    with (tmp_path / "problem.py").open("wb") as file:
        file.truncate(MAX_SOURCE_BYTES + 1)
    assert "more than 1,000,000 bytes" in read_source(tmp_path / "problem.py").reason
