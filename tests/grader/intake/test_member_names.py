"""Names of archives' members: where they say that they stand, and those that lead elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.course import Course
from grader.intake.submissions import find_submissions
from tests.grader.intake.uploads import BOTH, FILE, RIGHT, Pack, Read, assert_bad, tarred, zipped

OUTSIDE = {
    "../../01-doubling/problem.py": "leads out",
    "../ada2/problem.py": "leads out",
    "01-doubling/../../problem.py": "leads out",
    "/etc/passwd": "is absolute",
    "C:/01-doubling/problem.py": "is absolute",
    "c:\\problem.py": "is absolute",
    "x" * 300: "is too long",
}


@BOTH
@pytest.mark.parametrize("name", OUTSIDE)
def test_names_that_lead_elsewhere(read: Read, ending: str, pack: Pack, name: str) -> None:
    assert_bad(read(pack((FILE, RIGHT), (name, b"planted")), ending), OUTSIDE[name])


BACKSLASHES = {
    "..\\..\\01-doubling\\problem.py": "leads out",
    "01-doubling\\..\\..\\problem.py": "leads out",
    "01-doubling/..\\../problem.py": "leads out",
    "\\01-doubling\\problem.py": "is absolute",
    "\\\\server\\share\\problem.py": "is absolute",
    "C:\\01-doubling\\problem.py": "is absolute",
    "x\\" + "x" * 300: "is too long",
}


@pytest.mark.parametrize("name", BACKSLASHES)
def test_names_that_lead_elsewhere_by_backslashes(read: Read, name: str) -> None:
    assert_bad(read(zipped((FILE, RIGHT), (name, b"planted"))), BACKSLASHES[name])


@pytest.mark.parametrize("name", ["01-doubling\\problem.py", "\\\\server\\share\\problem.py"])
def test_a_backslash_in_a_tar_is_no_separator(read: Read, name: str) -> None:
    assert_bad(read(tarred((FILE, RIGHT), (name, b"planted")), ".tar"), "has a backslash")


@pytest.mark.parametrize("place", ["", "hw\\", "hw\\problems\\", ".\\"])
def test_a_zip_made_on_windows(read: Read, place: str) -> None:
    """Some programs there write backslashes between folders, and after a folder's name."""
    found = read(
        zipped(
            (f"{place}01-doubling\\", b""),
            (f"{place}01-doubling\\problem.py", RIGHT),
            (f"{place}.git\\config", b""),
            (f"{place}README.md", b"hello"),
        )
    )
    assert found.files["01-doubling"].source == RIGHT
    assert found.notes == []


def test_a_class_made_on_windows(tmp_path: Path, small_course: Course) -> None:
    path = tmp_path / "class.zip"
    work = zipped(("01-doubling\\problem.py", RIGHT))
    members = [("ada\\01-doubling\\problem.py", RIGHT), ("spring\\..\\..\\x", b"")]
    path.write_bytes(zipped(*members, ("bea\\hw.zip", work), ("cho.zip", work)))
    ada, bea, cho, spring = find_submissions(path, small_course)
    assert [s.files["01-doubling"].source for s in (ada, bea, cho)] == [RIGHT] * 3
    assert_bad(spring, "leads out of its folder")


def test_one_member_by_two_separators_is_there_twice(read: Read) -> None:
    packed = zipped((FILE, RIGHT), (FILE.replace("/", "\\"), b""))
    assert_bad(read(packed), "is in the archive more than once")


def test_a_zero_byte_in_a_name(read: Read) -> None:
    packed = zipped((FILE, RIGHT), ("01-doubling/x_y", b"")).replace(b"x_y", b"x\0y")
    assert_bad(read(packed), "has a zero byte")


def test_in_a_class_they_are_one_students(tmp_path: Path, small_course: Course) -> None:
    path = tmp_path / "class.tar"
    names = ("ada", "grace")
    members = [(f"{name}/{FILE}", RIGHT) for name in names]
    path.write_bytes(tarred(*members, ("ada/../grace/01-doubling/problem.py", b"x"), ("/x", b"")))
    odd, ada, grace = find_submissions(path, small_course)
    assert_bad(odd, "is absolute")
    assert_bad(ada, "leads out of its folder")
    assert grace.files["01-doubling"].source == RIGHT


def test_paths_without_end(read: Read) -> None:
    found = read(zipped(("a/" * 30_000, b""), (FILE, RIGHT)))
    assert found.files["01-doubling"].source == RIGHT
