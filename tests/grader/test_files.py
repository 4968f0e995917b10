"""A lock is released when its process ends. A path that can't be written is reported."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from grader.cli_instructor import app
from grader.errors import CannotWrite, InUse
from grader.files import (
    is_avoidable,
    locked,
    os_error_sentence,
    require_writable,
    write_together,
    write_whole,
)

HOLD = """
import sys
from pathlib import Path
from grader.files import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("how", ["its end", "being killed"])
def test_a_lock_ends_with_its_process(tmp_path: Path, how: str) -> None:
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        with pytest.raises(InUse, match="Another run"), locked(tmp_path):
            raise AssertionError("two have the lock")
        if how == "being killed":
            process.kill()
    assert (process.returncode == 0) is (how == "its end")
    with locked(tmp_path):
        pass


# Paths that can't be written


def test_a_writable_folder_is_unchanged(tmp_path: Path) -> None:
    require_writable(tmp_path / "new" / "out", ["results"], ["gradebook.csv"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("place", "why"),
    [
        ("file/x.csv", "file is not a folder"),
        ("file/new/folder/x.csv", "file is not a folder"),
        ("folder", "it is a folder"),
        ("fifo", "it is not a regular file"),
        ("n" * 300, "File name too long"),
    ],
)
def test_an_unwritable_path_is_reported_with_the_reason(
    tmp_path: Path, place: str, why: str
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "fifo")
    before = {*tmp_path.rglob("*")}
    with pytest.raises(CannotWrite) as raised:
        write_together({tmp_path / "first": "1", tmp_path / place: "2"})
    text = os_error_sentence(raised.value)
    assert text.startswith(f"{tmp_path / place} can't be written: ")
    assert text.endswith(f"{why}. Correct this, or choose another path.")
    assert {*tmp_path.rglob("*")} == before


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        ("grade", "class", "--out"),
        ("author", "audit", "01", "--out"),
        ("author", "gradescope"),
        ("author", "release"),
    ],
    ids=" ".join,
)
def test_every_command_refuses_to_write_below_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "class/ada/01-softmax").mkdir(parents=True)
    (tmp_path / "class/ada/01-softmax/problem.py").touch()
    (tmp_path / "file").touch()
    run = CliRunner().invoke(app, [*command, "file/out"])
    assert run.exit_code == 2
    assert "can't be written" in run.output
    assert "Errno" not in run.output


def test_an_unreadable_file_is_not_an_internal_error() -> None:
    refused = PermissionError(errno.EACCES, "Permission denied", "marks.csv")
    assert is_avoidable(refused)
    assert os_error_sentence(refused).startswith("marks.csv: Permission denied.")
    assert not is_avoidable(OSError(errno.EMFILE, "Too many open files"))


def test_a_full_disk_is_reported_with_advice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Path, data: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(CannotWrite, match="No space left") as raised:
        write_whole(tmp_path / "x.json", "{}")
    text = os_error_sentence(raised.value)
    assert text.startswith(f"There is no room left on the disk for {tmp_path / 'x.json'}.")
    assert "run the same command again" in text
