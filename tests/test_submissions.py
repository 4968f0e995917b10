"""What comes in: every odd file is a sentence, and nothing is followed, waited for or guessed."""

from __future__ import annotations

import os
import shutil
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest

from grader.course import Course
from grader.errors import SubmissionError
from grader.intake import archives
from grader.intake.submissions import MAX_SOURCE_BYTES, find_submissions, read_source


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


@pytest.mark.parametrize("below", ["hw", "hw/problems"])
def test_work_one_level_down_is_found_and_said(
    class_folder: Path, small_course: Course, below: str
) -> None:
    submission(class_folder, "ada", below=below)
    (found,) = find_submissions([class_folder], small_course)
    assert found.files["01-doubling"].source
    assert found.notes == ["The work is one level down, in 'hw'."]


def test_which_of_two_folders_counts_is_not_guessed(
    class_folder: Path, small_course: Course
) -> None:
    for below in ("first", "second/problems"):
        submission(class_folder, "ada", below=below)
    submission(class_folder, "grace")
    ada, grace = find_submissions([class_folder], small_course)
    assert ada.files["01-doubling"].bad
    assert "'ada' has work in 'first' and 'second'" in ada.files["01-doubling"].reason
    assert grace.files["01-doubling"].source


def test_the_work_at_the_top_counts(class_folder: Path, small_course: Course) -> None:
    folder = submission(class_folder, "ada")
    for below in ("problems", "backup"):
        submission(class_folder, "ada", below=below)
        (folder / below / "01-doubling" / "problem.py").write_text("x = 2\n")
    (found,) = find_submissions([folder], small_course)
    assert found.files["01-doubling"].source == b"x = 1\n"
    assert found.notes == ["What is in 'backup' and 'problems' was not read."]


def test_a_folder_around_the_class_is_looked_through(
    class_folder: Path, small_course: Course
) -> None:
    for name in ("ada", "grace"):
        submission(class_folder / "spring", name)
    assert [s.name for s in find_submissions([class_folder], small_course)] == ["ada", "grace"]


def test_a_file_in_no_problems_folder_is_told(class_folder: Path, small_course: Course) -> None:
    (class_folder / "ada").mkdir()
    (class_folder / "ada" / "problem.py").write_text("x = 1\n")
    (found,) = find_submissions([class_folder], small_course)
    reason = found.files["01-doubling"].reason
    assert "has 'problem.py', which stands in no folder such as 01-doubling" in reason


@pytest.mark.parametrize("kind", ["file", "link", "pipe", "folder", "huge"])
def test_a_bare_file_of_the_given_problem_is_read_like_any(
    class_folder: Path, small_course: Course, kind: str
) -> None:
    """The same care is taken with it as with one in a problem's folder."""
    path = class_folder / "ada" / "problem.py"
    path.parent.mkdir()
    if kind == "link":
        path.symlink_to(small_course.root / "solutions/01-doubling/problem.py")
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.write_bytes(b"x = 1\n" if kind == "file" else bytes(MAX_SOURCE_BYTES + 1))
    (found,) = find_submissions([class_folder], small_course, small_course.problems()[0])
    file = found.files["01-doubling"]
    assert (file.source == b"x = 1\n") is (kind == "file")
    assert bool(file.reason) is (kind != "file")


def test_copies_beside_the_file_are_told(class_folder: Path, small_course: Course) -> None:
    folder = submission(class_folder, "ada") / "01-doubling"
    for name in ("problem-1.py", "._problem.py", "test_problem.py", "final/problem.py"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("x = 2\n")
    (found,) = find_submissions([class_folder], small_course)
    assert found.files["01-doubling"].source == b"x = 1\n"
    assert found.notes == [
        "01-doubling: problem.py was read, but not 'final/problem.py' and 'problem-1.py'."
    ]


def test_a_copy_one_folder_too_deep_is_named(class_folder: Path, small_course: Course) -> None:
    submission(class_folder, "ada", below="01-doubling/final").joinpath("x").touch()
    folder = class_folder / "ada" / "01-doubling" / "final"
    (folder / "problem.py").write_text("x = 1\n")
    (found,) = find_submissions([class_folder], small_course)
    reason = found.files["01-doubling"].reason
    assert "There is 'final/problem.py'" in reason
    assert "stand in 01-doubling itself" in reason


def test_folders_and_archives_mixed(class_folder: Path, small_course: Course) -> None:
    """Whoever handed in, one row each; two of one name stay apart."""
    submission(class_folder, "ada")
    shutil.make_archive(str(class_folder / "ada"), "zip", class_folder / "ada")
    shutil.make_archive(str(class_folder / "grace"), "gztar", class_folder, "ada")
    (class_folder / "hugo.zip").write_bytes(b"no archive")
    (class_folder / "imani.rar").write_bytes(b"Rar!")
    (class_folder / "grades.csv").write_text("not a submission\n")
    found = {s.name: s for s in find_submissions([class_folder], small_course)}
    assert list(found) == ["ada", "ada-2", "grace", "hugo", "imani"]
    assert all(found[n].files["01-doubling"].source for n in ("ada", "ada-2", "grace"))
    assert found["ada-2"].notes == ["It was handed in as 'ada'."]
    assert found["grace"].notes == []
    for name in ("hugo", "imani"):
        assert found[name].files["01-doubling"].bad
        assert found[name].files["01-doubling"].reason.startswith(f"bad archive: '{name}.")


def test_the_only_archive_in_a_students_folder_is_read(
    class_folder: Path, small_course: Course, tmp_path: Path
) -> None:
    """Some learning platforms pack what was handed in into a folder of the student's name."""
    work = submission(tmp_path, "work")
    (class_folder / "ada").mkdir()
    shutil.make_archive(str(class_folder / "ada" / "hw"), "zip", work)
    (found,) = find_submissions([class_folder], small_course)
    assert found.files["01-doubling"].source
    assert found.notes == ["The work is in the archive 'hw.zip'."]
    shutil.make_archive(str(class_folder / "ada" / "hw2"), "zip", work)
    submission(class_folder, "grace")
    ada, _ = find_submissions([class_folder], small_course)
    assert "has the archives 'hw.zip' and 'hw2.zip'" in ada.files["01-doubling"].reason


def test_a_misspelt_file_is_named_and_not_guessed(class_folder: Path, small_course: Course) -> None:
    submission(class_folder, "ada", file="problem (1).py")
    (found,) = find_submissions([class_folder], small_course)
    file = found.files["01-doubling"]
    assert file.source is None
    assert "'problem (1).py': it has to be called problem.py" in file.reason


@pytest.mark.parametrize(
    "name", ["a b", "ü", "-x", "=1+1", "x" * 255, "a;rm -rf", "a\nb", "é\u202e"]
)
def test_odd_names_are_data(class_folder: Path, small_course: Course, name: str) -> None:
    submission(class_folder, name)
    (found,) = find_submissions([class_folder], small_course)
    assert found.files["01-doubling"].source
    assert found.name.isascii()
    assert "/" not in found.name
    assert "\n" not in found.name
    if found.name != name:
        assert found.notes == [f"It was handed in as {name!a}."]


def test_names_that_become_the_same_stay_apart(class_folder: Path, small_course: Course) -> None:
    decomposed = unicodedata.normalize("NFD", "é")
    different = ["é", decomposed, "è", "A_", "a_"]
    for name in different:
        submission(class_folder, name)
    found = find_submissions([class_folder], small_course)
    assert len({s.name.lower() for s in found}) == 5
    assert sum(bool(s.notes) for s in found) >= 4


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


def test_a_class_that_may_not_be_read_is_the_instructors_to_mend(
    class_folder: Path, small_course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    submission(class_folder, "ada")

    def refuse(path: Path, scandir: Callable[[Path], object] = os.scandir) -> object:
        if path == class_folder:
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(SubmissionError, match="can't be read .Permission denied.; give a"):
        find_submissions([class_folder], small_course)


def test_a_folder_of_too_many_things(
    class_folder: Path, small_course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archives, "MAX_ENTRIES", 5)
    folder = submission(class_folder, "ada")
    submission(class_folder, "grace")
    for number in range(6):
        (folder / f"extra{number}").touch()
    ada, grace = find_submissions([class_folder], small_course)
    assert "'ada' holds more than 5 files" in ada.files["01-doubling"].reason
    assert grace.files["01-doubling"].source


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
