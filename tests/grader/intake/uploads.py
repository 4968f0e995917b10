"""Write files into folders, and pack them into zip and tar files."""

from __future__ import annotations

import codecs
import gzip
import io
import os
import tarfile
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import pytest

from grader.intake.handed_in import Intake, Submission
from tests.processes import NOBODY

ID = "01-doubling"
OTHER = "02-tripling"
FILE = f"{ID}/problem.py"
RIGHT = b"def double(x):\n    return x + x\n"
WRONG = b"def double(x):\n    return x\n"
COURSE = {FILE: RIGHT, "README.md": b"hello"}

Files = dict[str, bytes]
Member = tuple[str, bytes]
Pack = Callable[..., bytes]
Read = Callable[..., Submission]
Take = Callable[..., Intake]
Result = TypeVar("Result")


def write(folder: Path, files: Mapping[str, bytes] | Mapping[str, str]) -> Path:
    """Write files with relative paths into a folder, and return the folder."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


def zip_file(files: Files) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return made.getvalue()


def zipped(*members: Member, mode: int = 0) -> bytes:
    """Return a zip file whose members have the file type `mode`."""
    made = io.BytesIO()
    with warnings.catch_warnings(action="ignore"), zipfile.ZipFile(made, "w") as archive:
        for name, content in members:
            info = zipfile.ZipInfo("x")
            info.filename = name  # ZipInfo(name) would cut the name at a null byte
            info.external_attr = mode << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, content)
    return made.getvalue()


def tarred(*members: Member, kind: bytes = tarfile.REGTYPE, target: str = "") -> bytes:
    """Return a tar file whose members have the type `kind` and the link target `target`."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, target
            info.size = len(content) if kind == tarfile.REGTYPE else 0
            archive.addfile(info, io.BytesIO(content))
    return made.getvalue()


def tar_gz(*members: Member) -> bytes:
    return gzip.compress(tarred(*members))


PACKERS = {".zip": zipped, ".tar": tarred, ".tar.gz": tar_gz, ".tgz": tar_gz}
BOTH = pytest.mark.parametrize(("ending", "pack"), [(".zip", zipped), (".tar", tarred)])


def by_name(intake: Intake) -> dict[str, Submission]:
    return {submission.full_name: submission for submission in intake.submissions}


def source(submission: Submission) -> bytes | None:
    return submission.files[ID].source


def assert_bad(submission: Submission, words: str) -> None:
    file = submission.files["01-doubling"]
    assert file.source is None
    assert file.bad
    assert words in file.reason
    assert file.reason.isprintable()


def open_to_all(folder: Path) -> None:
    """Let all users enter a temporary folder and its parents, which pytest makes private."""
    for parent in (folder, *folder.parents):
        if parent == Path(tempfile.gettempdir()).resolve() or parent.owner() != folder.owner():
            return
        parent.chmod(0o755)


def as_ordinary_user(action: Callable[[], Result]) -> Result:
    """Run a function as an ordinary user, as root may read every file."""
    if os.geteuid() != 0:
        return action()
    codecs.lookup("utf-8-sig")  # an ordinary user may not read Python's library
    os.setegid(NOBODY)
    os.seteuid(NOBODY)
    try:
        return action()
    finally:
        os.seteuid(0)
        os.setegid(0)
