"""Files in a problem's folder that are read, and files that are only listed."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.author.notebooks import NOTEBOOK
from grader.course import Course
from grader.intake.limits import MAX_SOURCE_BYTES
from grader.intake.submissions import find_submissions, read_source
from tests.grader.intake.uploads import RIGHT, class_of, submission


def test_copies_beside_the_file_are_told(class_folder: Path, small_course: Course) -> None:
    folder = submission(class_folder, "ada") / "01-doubling"
    given = ("probe.py", "explore.py", "test_problem.py", NOTEBOOK)
    for name in ("problem-1.py", "._problem.py", *given, "final/problem.py"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("x = 2\n")
    (found,) = find_submissions(class_folder, small_course)
    assert found.files["01-doubling"].source == b"x = 1\n"
    names = ("01-doubling/final/problem.py", "01-doubling/problem-1.py")
    assert found.notes == [f"Not read: '{names[0]}', '{names[1]}'."]


@pytest.mark.parametrize("name", ["problem.ipynb", "My Notebook.ipynb", NOTEBOOK])
def test_a_notebook_is_named_as_one(class_folder: Path, small_course: Course, name: str) -> None:
    submission(class_folder, "ada", file=name)
    (found,) = find_submissions(class_folder, small_course)
    assert found.files["01-doubling"].reason == "There is no problem.py in 01-doubling."
    is_handed_out = name == NOTEBOOK
    told = f"Not read: '01-doubling/{name}'. A notebook is not graded: "
    assert any(note.startswith(told) for note in found.notes) != is_handed_out


def test_a_notebook_in_no_problems_folder_is_named_as_one(
    class_folder: Path, small_course: Course
) -> None:
    (class_folder / "ada").mkdir()
    (class_folder / "ada/doubling.ipynb").touch()
    (found,) = find_submissions(class_folder, small_course)
    assert found.notes[0].startswith("Not read: 'doubling.ipynb'. A notebook is not graded: ")


@pytest.mark.parametrize("name", ["problem.py.txt", "problem.py ", "problem.docx"])
def test_a_file_that_is_not_called_as_python_is_named(hand_in, small_course, name):
    folder = hand_in(None)
    (folder / name).write_bytes(RIGHT)
    if (folder / "problem.py").exists():
        pytest.skip("this file system takes the two names for one")
    found = class_of(folder, small_course)["ada"]
    assert found.files["01-doubling"].source is None
    assert found.files["01-doubling"].reason == "There is no problem.py in 01-doubling."
    assert found.notes == [f"Not read: '01-doubling/{name}'."]


def test_a_file_of_the_largest_size_is_read(tmp_path):
    (tmp_path / "problem.py").write_bytes(b"#" * MAX_SOURCE_BYTES)
    assert len(read_source(tmp_path / "problem.py").source) == MAX_SOURCE_BYTES
