"""What is read of a problem's folder, and what is only named."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.author.notebooks import NOTEBOOK
from grader.course import Course
from grader.intake.limits import MAX_SOURCE_BYTES
from grader.intake.reading import read_source
from grader.intake.submissions import find_submissions
from tests.grader.intake.uploads import RIGHT, class_of, submission


def test_copies_beside_the_file_are_told(class_folder: Path, small_course: Course) -> None:
    folder = submission(class_folder, "ada") / "01-doubling"
    given = ("probe.py", "explore.py", "test_problem.py", NOTEBOOK)
    for name in ("problem-1.py", "._problem.py", *given, "final/problem.py"):
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


def test_a_misspelt_file_is_named_and_not_guessed(class_folder: Path, small_course: Course) -> None:
    submission(class_folder, "ada", file="problem (1).py")
    (found,) = find_submissions([class_folder], small_course)
    file = found.files["01-doubling"]
    assert file.source is None
    assert "'problem (1).py': it has to be called problem.py" in file.reason


@pytest.mark.parametrize("name", ["problem.ipynb", "My Notebook.ipynb", NOTEBOOK])
def test_a_notebook_is_named_as_one(class_folder: Path, small_course: Course, name: str) -> None:
    submission(class_folder, "ada", file=name)
    (found,) = find_submissions([class_folder], small_course)
    reason = found.files["01-doubling"].reason
    assert f"There is '{name}'. A notebook is not graded: " in reason


def test_a_notebook_in_no_problems_folder_is_named_as_one(
    class_folder: Path, small_course: Course
) -> None:
    (class_folder / "ada").mkdir()
    (class_folder / "ada/doubling.ipynb").touch()
    (found,) = find_submissions([class_folder], small_course)
    assert found.notes[0].startswith("Not used: 'doubling.ipynb'. A notebook is not graded: ")


@pytest.mark.parametrize("name", ["Problem.py", "problem.py.txt", "problem.py ", "problen.py"])
def test_a_name_that_is_nearly_right_is_named(hand_in, small_course, name):
    folder = hand_in(None)
    (folder / name).write_bytes(RIGHT)
    if (folder / "problem.py").exists():
        pytest.skip("this file system takes the two names for one")
    file = class_of(folder, small_course)["ada"].files["01-doubling"]
    assert file.source is None
    assert "There is no problem.py in 01-doubling." in file.reason


def test_a_file_of_the_largest_size_is_read(tmp_path):
    (tmp_path / "problem.py").write_bytes(b"#" * MAX_SOURCE_BYTES)
    assert len(read_source(tmp_path / "problem.py").source) == MAX_SOURCE_BYTES
