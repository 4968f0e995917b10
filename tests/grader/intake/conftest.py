"""Fixtures that read submissions."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.course import Course
from grader.intake.handed_in import Intake, Submission
from grader.intake.submissions import find_submissions, read_submissions
from tests.conftest import add_problem
from tests.grader.intake.uploads import (
    FILE,
    OTHER,
    RIGHT,
    Files,
    Read,
    Take,
    write,
    zip_file,
    zipped,
)


@pytest.fixture
def class_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "class"
    folder.mkdir()
    return folder


@pytest.fixture(params=["folder", "zip"])
def take(request: pytest.FixtureRequest, tmp_path: Path, small_course: Course) -> Take:
    """Return a function that reads files from a folder, or from a zip file with the same name."""

    def take_files(
        files: Files, name: str = "download", problem: str = "", course: Course = small_course
    ) -> Intake:
        chosen = course.select([problem])[0] if problem else None
        path = tmp_path / name
        if request.param == "folder":
            return read_submissions(write(path, files), course, chosen)
        path = path.with_name(f"{name}.zip")
        path.write_bytes(zip_file(files))
        before = sorted(tmp_path.rglob("*"))
        found = read_submissions(path, course, chosen)
        assert sorted(tmp_path.rglob("*")) == before
        return found

    return take_files


@pytest.fixture
def two_problems(small_course: Course) -> Course:
    """Return the small course with a second problem, which has the same tests."""
    add_problem(small_course.root, OTHER)
    return small_course


@pytest.fixture
def take_one(take: Take, two_problems: Course) -> Take:
    """Return a function that reads submissions to the first of two problems."""

    def take_files(files: Files, problem: str = "01", **options: str) -> Intake:
        return take(files, problem=problem, course=two_problems, **options)

    return take_files


@pytest.fixture
def read(tmp_path: Path, small_course: Course) -> Read:
    """Return a function that reads an archive of `ada` in a class with a correct one of `grace`."""

    def read_it(content: bytes, ending: str = ".zip") -> Submission:
        folder = tmp_path / "class"
        folder.mkdir(exist_ok=True)
        (folder / f"ada{ending}").write_bytes(content)
        (folder / "grace.zip").write_bytes(zipped((FILE, RIGHT)))
        before = sorted(tmp_path.rglob("*"))
        ada, grace = find_submissions(folder, small_course)
        assert (ada.name, grace.name, grace.notes) == ("ada", "grace", [])
        assert grace.files["01-doubling"].source == RIGHT
        assert sorted(tmp_path.rglob("*")) == before
        return ada

    return read_it
