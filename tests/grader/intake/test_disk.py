"""Files on disk: links are not followed, pipes do not block, and both are reported."""

from __future__ import annotations

import os
import socket
import stat
import sys
from pathlib import Path

import pytest

from grader.course import Course
from grader.intake.limits import MAX_SOURCE_BYTES
from grader.intake.submissions import find_submissions
from tests.grader.intake.uploads import (
    FILE,
    RIGHT,
    as_ordinary_user,
    assert_bad,
    class_of,
    open_to_all,
    submission,
    zipped,
)


def test_a_linked_folder_is_not_followed(class_folder: Path, small_course: Course) -> None:
    submission(class_folder, "ada")
    (class_folder / "eve").mkdir()
    (class_folder / "eve" / "01-doubling").symlink_to(class_folder / "ada" / "01-doubling")
    eve = find_submissions(class_folder, small_course)[1]
    assert eve.files["01-doubling"].source is None


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
    (found,) = find_submissions(class_folder, small_course, small_course.problems()[0])
    file = found.files["01-doubling"]
    assert (file.source == b"x = 1\n") is (kind == "file")
    assert bool(file.reason) is (kind != "file")


def test_what_may_not_be_opened(tmp_path: Path, small_course: Course) -> None:
    folder = tmp_path / "class"
    folder.mkdir()
    (folder / "grace.zip").write_bytes(zipped((FILE, RIGHT)))
    (folder / "ada.zip").symlink_to(folder / "grace.zip")
    (folder / "eve.tar").symlink_to("nowhere")
    ada, eve, grace = find_submissions(folder, small_course)
    assert_bad(ada, "'ada.zip' is a link")
    assert_bad(eve, "'eve.tar' is a link")
    assert grace.files["01-doubling"].source == RIGHT


# Objects at the path of the file


def local_socket(path):
    here = os.getcwd()
    os.chdir(path.parent)  # the path of a socket may have 100 characters only
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(path.name)
    os.chdir(here)


def link_in_a_circle(path):
    path.with_name("other.py").symlink_to(path)
    path.symlink_to(path.with_name("other.py"))


THINGS = {
    "folder": Path.mkdir,
    "pipe": os.mkfifo,
    "socket": local_socket,
    "link to a file": lambda path: path.symlink_to("/etc/passwd"),
    "link to a device": lambda path: path.symlink_to("/dev/zero"),
    "link to nothing": lambda path: path.symlink_to("nowhere"),
    "link in a circle": link_in_a_circle,
    "device": lambda path: os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 5)),
    "a terabyte of nothing": lambda path: os.truncate(
        os.open(path, os.O_CREAT | os.O_RDWR), 10**12
    ),
}


WHY = {"pipe": "is not a regular file", "a terabyte of nothing": "has more than 1,000,000 bytes"}


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such files")
@pytest.mark.parametrize("name", THINGS)
def test_what_is_no_file_is_refused_and_named(hand_in, small_course, name):
    folder = hand_in(None)
    try:
        THINGS[name](folder / "problem.py")
    except PermissionError:
        pytest.skip("only root may make one here")
    file = class_of(folder, small_course)["ada"].files["01-doubling"]
    assert file.source is None
    assert file.bad
    assert file.reason.startswith(f"problem.py in 01-doubling {WHY.get(name, '')}")


def test_a_hard_link_is_a_file(hand_in, small_course):
    """It looks like a file, and the student can read the content anyway."""
    folder = hand_in(None)
    (folder / "other").write_bytes(RIGHT)
    os.link(folder / "other", folder / "problem.py")
    assert class_of(folder, small_course)["ada"].files["01-doubling"].source == RIGHT


def test_huge_files_beside_it_are_not_read(hand_in, small_course):
    folder = hand_in()
    for place in (folder, folder.parent):
        with (place / "data.bin").open("wb") as file:
            file.truncate(5 * 10**9)
        for number in range(300):
            (place / f"extra{number}.py").touch()
    assert class_of(folder, small_course)["ada"].files["01-doubling"].source == RIGHT


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


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
def test_a_folder_that_is_a_link_is_named(hand_in, small_course):
    folder = hand_in(name="ada")
    (folder.parents[1] / "eve").symlink_to(folder.parent)
    submissions = class_of(folder, small_course)
    assert "eve" in submissions, "who hands in a link vanishes from the class"
    assert submissions["eve"].files["01-doubling"].source is None
    assert (
        "'eve' is a link; a link is not followed" in submissions["eve"].files["01-doubling"].reason
    )


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
