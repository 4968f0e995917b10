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
    WRONG,
    as_ordinary_user,
    open_to_all,
    source,
    write,
    zipped,
)

LINKS = {
    "eve/01-doubling": ("ada/01-doubling", "01-doubling is a link, which is not followed."),
    "eve": ("ada", "'eve' is a link, which is not followed."),
    "eve.zip": ("grace.zip", "'eve.zip' is a link, which is not followed."),
    "eve.tar": ("nowhere", "'eve.tar' is a link, which is not followed."),
}


@pytest.mark.skipif(sys.platform == "win32", reason="links need special rights on Windows")
@pytest.mark.parametrize("name", LINKS)
def test_a_link_in_a_class_is_not_followed_and_has_a_row(
    class_folder: Path, small_course: Course, name: str
) -> None:
    write(class_folder, {f"ada/{FILE}": WRONG})
    (class_folder / "grace.zip").write_bytes(zipped((FILE, RIGHT)))
    target, reason = LINKS[name]
    (class_folder / name).parent.mkdir(exist_ok=True)
    (class_folder / name).symlink_to(class_folder / target)
    ada, eve, grace = find_submissions(class_folder, small_course)
    assert (eve.full_name, source(eve), eve.files[ID].bad) == ("eve", None, True)
    assert eve.files[ID].reason == reason
    assert (source(ada), source(grace)) == (WRONG, RIGHT)


# Other objects in place of problem.py


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
def test_anything_but_a_file_is_refused_and_reported(
    class_folder: Path, small_course: Course, name: str, is_given: bool
) -> None:
    """If `is_given`, the command names the problem, and the object is not in a problem's folder."""
    path = class_folder / "ada" / ("problem.py" if is_given else FILE)
    path.parent.mkdir(parents=True)
    try:
        THINGS[name](path)
    except PermissionError:
        pytest.skip("only root may create it here")
    only = small_course.problems()[0] if is_given else None
    (ada,) = find_submissions(class_folder, small_course, only)
    is_empty = name == "folder"
    assert (source(ada), ada.files[ID].bad) == (None, not is_empty)
    reason = "There is no problem.py" if is_empty else "problem.py in 01-doubling"
    assert ada.files[ID].reason.startswith(f"{reason} {WHY.get(name, '')}")


def test_only_the_file_itself_is_opened(
    tmp_path: Path, small_course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("conftest.py", "numpy.py", "torch/__init__.py", ".git/hooks/post-checkout")
    beside = {f"ada/{ID}/{name}": b"raise SystemExit\n" for name in names}
    folder = write(tmp_path / "class", {f"ada/{FILE}": RIGHT, **beside})
    opened = []
    monkeypatch.setattr(
        os, "open", lambda path, *a, open=os.open: opened.append(path) or open(path, *a)
    )
    (ada,) = find_submissions(folder, small_course)
    assert source(ada) == RIGHT
    assert opened == [folder / "ada" / FILE]


@pytest.mark.skipif(sys.platform == "win32", reason="file modes differ on Windows")
@pytest.mark.parametrize("what", ["ada", f"ada/{ID}", f"ada/{FILE}"])
def test_unreadable_files_are_reported_and_stop_nothing(
    tmp_path: Path, what: str, small_course: Course
) -> None:
    folder = write(tmp_path / "class", {f"{name}/{FILE}": RIGHT for name in ("ada", "grace")})
    open_to_all(tmp_path)
    (folder / what).chmod(0)
    try:
        ada, grace = as_ordinary_user(lambda: find_submissions(folder, small_course))
    finally:
        (folder / what).chmod(0o755)
    assert source(grace) == RIGHT
    assert (source(ada), ada.files[ID].bad) == (None, True)
