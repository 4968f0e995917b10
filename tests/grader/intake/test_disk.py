"""Links on disk are not followed, pipes do not block, and both are reported."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import pytest

from grader.course import Course
from grader.intake.submissions import find_submissions
from tests.grader.intake.uploads import (
    FILE,
    ID,
    RIGHT,
    as_ordinary_user,
    class_of,
    open_to_all,
    source,
    submission,
    zipped,
)

LINKS = {
    "eve/01-doubling": ("ada/01-doubling", "01-doubling is a link; a link is not followed."),
    "eve": ("ada", "'eve' is a link; a link is not followed."),
    "eve.zip": ("grace.zip", "'eve.zip' is a link; a link is not followed."),
    "eve.tar": ("nowhere", "'eve.tar' is a link; a link is not followed."),
}


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
@pytest.mark.parametrize("name", LINKS)
def test_a_link_in_a_class_is_not_followed_and_has_a_row(
    class_folder: Path, small_course: Course, name: str
) -> None:
    submission(class_folder, "ada")
    (class_folder / "grace.zip").write_bytes(zipped((FILE, RIGHT)))
    target, reason = LINKS[name]
    (class_folder / name).parent.mkdir(exist_ok=True)
    (class_folder / name).symlink_to(class_folder / target)
    ada, eve, grace = find_submissions(class_folder, small_course)
    assert (eve.full_name, source(eve), eve.files[ID].bad) == ("eve", None, True)
    assert eve.files[ID].reason == reason
    assert (source(ada), source(grace)) == (b"x = 1\n", RIGHT)


# Objects at the path of the file


THINGS = {
    "folder": Path.mkdir,
    "pipe": os.mkfifo,
    "link to a file": lambda path: path.symlink_to("/etc/passwd"),
    "link to a device": lambda path: path.symlink_to("/dev/zero"),
    "device": lambda path: os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 5)),
    "a terabyte of nothing": lambda path: os.truncate(
        os.open(path, os.O_CREAT | os.O_RDWR), 10**12
    ),
}


WHY = {"pipe": "is not a regular file", "a terabyte of nothing": "has more than 1,000,000 bytes"}


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such files")
@pytest.mark.parametrize("name", THINGS)
@pytest.mark.parametrize("is_given", [False, True])
def test_anything_but_a_file_is_refused_and_named(
    class_folder: Path, small_course: Course, name: str, is_given: bool
) -> None:
    """The refusal holds in a problem's folder, and for a single file if the problem is given."""
    path = class_folder / "ada" / ("problem.py" if is_given else FILE)
    path.parent.mkdir(parents=True)
    try:
        THINGS[name](path)
    except PermissionError:
        pytest.skip("only root may make one here")
    only = small_course.problems()[0] if is_given else None
    (ada,) = find_submissions(class_folder, small_course, only)
    is_empty = name == "folder"
    assert (source(ada), ada.files[ID].bad) == (None, not is_empty)
    reason = "There is no problem.py" if is_empty else "problem.py in 01-doubling"
    assert ada.files[ID].reason.startswith(f"{reason} {WHY.get(name, '')}")


def test_only_the_file_itself_is_opened(hand_in, small_course, monkeypatch):
    folder = hand_in()
    for name in ("conftest.py", "numpy.py", "torch/__init__.py", ".git/hooks/post-checkout"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("raise SystemExit\n")
    opened = []
    monkeypatch.setattr(
        os, "open", lambda path, *a, open=os.open: opened.append(path) or open(path, *a)
    )
    assert class_of(folder, small_course)["ada"].files["01-doubling"].source
    assert opened == [folder / "problem.py"]


@pytest.mark.skipif(sys.platform == "win32", reason="modes mean something else there")
@pytest.mark.parametrize("mode", [0o000, 0o444])
@pytest.mark.parametrize("what", ["ada", "ada/01-doubling", "ada/01-doubling/problem.py"])
def test_what_may_not_be_read_is_named_and_stops_nobody(tmp_path, what, mode, small_course):
    for name in ("ada", "grace"):
        folder = tmp_path / "class" / name / "01-doubling"
        folder.mkdir(parents=True)
        (folder / "problem.py").write_bytes(RIGHT)
    readable = what.endswith(".py") and mode == 0o444
    closed = tmp_path / "class" / what
    open_to_all(tmp_path)
    closed.chmod(mode)
    try:
        submissions = as_ordinary_user(lambda: class_of(folder, small_course))
    finally:
        closed.chmod(0o755)
    assert submissions["grace"].files["01-doubling"].source == RIGHT
    ada = submissions["ada"].files["01-doubling"]
    assert (ada.source is None) != readable
    assert ada.bad != readable, f"it is there, but the student reads: {ada.reason}"
