"""A run that is stopped, or that fills the disk, leaves no incomplete file and no process."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from grader.cli_instructor import app
from grader.course import Course
from grader.errors import InUse
from grader.files import locked
from grader.result import SubmissionResult
from tests.grader.intake.uploads import FILE, write
from tests.processes import descendants_of, wait_until, wait_until_gone


def test_a_stopped_run_continues(school: Any) -> None:
    def stop(result: SubmissionResult) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        school.grade(on_result=stop)
    assert school.names() == ["ada"]
    assert not (school.out / "gradebook.csv").exists()
    school.grade()
    assert school.names() == ["bob"]
    assert school.gradebook() == {"ada": "4", "bob": "0"}


@pytest.mark.parametrize(
    ("graded", "told"),
    [
        (0, "Stopped."),
        (1, "Stopped. Finished results are kept; run the same command again to continue."),
    ],
)
def test_after_ctrl_c_kept_results_are_reported(
    school: Any, monkeypatch: pytest.MonkeyPatch, graded: int, told: str
) -> None:
    def grade_some(*args: Any, on_result: Any, **options: Any) -> None:
        for _ in range(graded):
            on_result(None)
        raise KeyboardInterrupt

    monkeypatch.setattr("grader.grade.class_run.grade_class", grade_some)
    assert school.command(status=130).endswith(told)


@pytest.mark.parametrize(
    ("place", "command"),
    [
        ("grader.student.testing.check", ["check"]),
        ("grader.author.audit.run_audit", ["author", "audit"]),
        ("grader.author.release.release", ["author", "release", "new"]),
    ],
    ids=["check", "audit", "release"],
)
def test_after_ctrl_c_other_commands_report_only_that_they_stopped(
    monkeypatch: pytest.MonkeyPatch, place: str, command: list[str]
) -> None:
    def stop(*args: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(place, stop)
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 130
    assert done.stderr.split() == ["Stopped."]


def test_a_full_disk_leaves_the_old_reports(school: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    school.grade()
    files = {path: path.read_bytes() for path in school.out.rglob("*.*") if path.is_file()}
    school.hand_in("bob", school.right)

    def full(self: Path, *args: object, **kwargs: object) -> None:
        self.touch()
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", full)
        with pytest.raises(OSError, match="No space left"):
            school.grade()
    assert files == {path: path.read_bytes() for path in school.out.rglob("*.*") if path.is_file()}


@pytest.mark.slow
@pytest.mark.parametrize("step", ["write_bytes", "replace"])
def test_a_run_interrupted_at_any_file_continues(
    school: Any, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """The disk becomes full after 0, 1, 2, ... files, in a first and in a second run."""
    take_step, left = getattr(Path, step), 1000

    def until_full(self: Path, *args: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            self.touch()
            raise OSError(errno.ENOSPC, "No space left on device")
        return take_step(self, *args)

    monkeypatch.setattr(Path, step, until_full)
    school.hand_in("eve", school.wrong)
    for room in range(100):
        shutil.rmtree(school.out, ignore_errors=True)
        interrupted = 0
        for source, points in ((school.wrong, "0"), (school.right, "4")):
            left = 1000
            school.hand_in("bob", source)
            school.write_book("corrections.csv", "submission,problem,mark,reason\neve,01,3,why\n")
            left = room
            try:
                school.grade()
            except OSError:
                interrupted += 1
                left = 1000
                school.grade()
            assert school.gradebook() == {"ada": "4", "bob": points, "eve": "3"}
            assert not list(school.out.rglob("*.part"))
            assert (school.out / "feedback/bob.html").is_file()
        if not interrupted:
            break
    assert 8 < room < 100


def test_a_folder_that_cannot_be_written_is_found_before_grading(school: Any) -> None:
    school.out.mkdir()
    (school.out / "feedback").write_text("in the way")
    assert "so nothing was run" in school.command(status=2)
    (school.out / "feedback").unlink()
    (school.out / "gradebook.csv").mkdir()
    assert "so nothing was run" in school.command(status=2)
    assert school.names() == []


def test_incomplete_files_are_removed(school: Any) -> None:
    school.grade()
    (school.out / "results/.ada.json.123.part").write_text("{")
    school.grade()
    assert not list(school.out.rglob("*.part"))


def test_two_runs_on_one_folder_are_refused(school: Any) -> None:
    with locked(school.out), pytest.raises(InUse, match="Another run"):
        school.grade()
    school.grade()


# A background job ignores Ctrl-C, and nohup ignores SIGHUP. Child processes inherit this, so the
# command restores the handlers of both signals.
RUN = """
import signal
import sys
from pathlib import Path
import grader.cli
import grader.cli_instructor
from grader.course import Course
if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    course = Course(Path(sys.argv.pop(1)))
    grader.cli.own_course = lambda: course
    grader.cli_instructor.app()
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(
    "how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL], ids=lambda s: s.name
)
def test_a_command_that_is_stopped_leaves_results_and_no_process(
    tmp_path: Path, small_course: Course, how: signal.Signals
) -> None:
    sources = {"ada": "def double(x): return x + x", "zoe": "def double(x):\n    while True: pass"}
    write(tmp_path / "class", {f"{name}/{FILE}": source for name, source in sources.items()})
    (tmp_path / "run.py").write_text(RUN)
    out = tmp_path / "out"
    command = [sys.executable, str(tmp_path / "run.py"), str(small_course.root), "grade"]
    command += [str(tmp_path / "class"), "--out", str(out), "--jobs", "1", "--timeout", "60"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        wait_until((out / "results/ada.json").is_file, 90)
        started = descendants_of(process.pid)
        os.killpg(process.pid, how)
        output, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    wait_until_gone(started, 30)
    assert list((out / "results").glob("*.json")) == [out / "results/ada.json"]
    if how is not signal.SIGKILL:
        assert process.returncode == 128 + how
        assert errors.strip().splitlines()[-1].startswith("Stopped.")
        assert "Traceback" not in output + errors
