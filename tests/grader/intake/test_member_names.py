"""No member's name with slashes or backslashes leads out of its archive."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.course import Course
from grader.intake.submissions import find_submissions
from tests.grader.intake.uploads import (
    BOTH,
    FILE,
    RIGHT,
    Pack,
    Read,
    assert_bad,
    source,
    tarred,
    zipped,
)

SAME = [
    f"../../{FILE}",
    f"/{FILE}",
    f"//{FILE}",
    f"C:/{FILE}",
    f"hw/../{FILE}",
    "./01-doubling/./x/../problem.py",
]


@BOTH
@pytest.mark.parametrize("separator", ["/", "\\"])
@pytest.mark.parametrize("name", SAME)
def test_paths_are_relative_to_the_archive(
    read: Read, ending: str, pack: Pack, name: str, separator: str
) -> None:
    name = name.replace("/", separator)
    submission = read(pack((name, RIGHT), ("README.md", b"")), ending)
    assert (source(submission), submission.notes) == (RIGHT, [])
    assert_bad(read(pack((FILE, RIGHT), (name, b"")), ending), "in the archive more than once")


@pytest.mark.parametrize("place", ["", "hw\\", "hw\\problems\\", ".\\"])
def test_a_zip_made_on_windows_is_read(read: Read, place: str) -> None:
    """In the names of members, a backslash follows each folder."""
    submission = read(
        zipped(
            (f"{place}01-doubling\\", b""),
            (f"{place}01-doubling\\problem.py", RIGHT),
            (f"{place}.git\\config", b""),
            (f"{place}README.md", b"hello"),
        )
    )
    assert (source(submission), submission.notes) == (RIGHT, [])


def test_a_class_made_on_windows_is_read(tmp_path: Path, small_course: Course) -> None:
    path = tmp_path / "class.zip"
    work = zipped((FILE.replace("/", "\\"), RIGHT))
    members = [("ada\\01-doubling\\problem.py", RIGHT), ("bea\\hw.zip", work), ("cho.zip", work)]
    path.write_bytes(zipped(*members))
    assert [source(each) for each in find_submissions(path, small_course)] == [RIGHT] * 3


def test_a_members_name_is_not_used_as_a_path_on_disk(tmp_path: Path, small_course: Course) -> None:
    path = tmp_path / "class.tar"
    names = ["../ada", "/grace", "x" * 300]
    path.write_bytes(tarred(*((f"{name}/{FILE}", RIGHT) for name in names)))
    submissions = find_submissions(path, small_course)
    assert [(s.full_name, source(s)) for s in submissions] == [
        ("ada", RIGHT),
        ("grace", RIGHT),
        ("x" * 300, RIGHT),
    ]
    assert all("/" not in s.name and len(s.name) < 200 for s in submissions)


def test_a_name_ends_at_a_zero_byte(read: Read) -> None:
    packed = zipped((FILE, RIGHT), ("01-doubling/x_y.py", b"")).replace(b"x_y", b"x\0y")
    submission = read(packed)
    assert (source(submission), submission.unused) == (RIGHT, ("01-doubling/x",))


def test_a_very_long_path_is_ignored(read: Read) -> None:
    assert source(read(zipped(("a/" * 30_000, b""), (FILE, RIGHT)))) == RIGHT
