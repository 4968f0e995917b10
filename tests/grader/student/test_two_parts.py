"""Part two is an invitation: what a student has not begun of it is asked for nowhere."""

from __future__ import annotations

import io
import shutil
import time
from collections.abc import Callable
from contextlib import nullcontext, redirect_stdout
from pathlib import Path
from threading import Thread

import pytest
from rich.console import Console
from typer.testing import CliRunner

from grader import cli
from grader.code.course_modules import modules_of_course
from grader.course import Course, Problem, own_course
from grader.student.position import open_task
from grader.student.watch import Key, Watch

RIGHT = "def double(x):\n    return x + x\n"
WRONG = "def double(x):\n    return 3 * x\n"
INVITATION = "If you like, go on to part two, more of it: "
HINT = "## double\n\n<details>\n<summary>Nudge</summary>\n\nWhat is x + x?\n\n</details>\n"


@pytest.fixture
def problems(two_parts: Course, monkeypatch: pytest.MonkeyPatch) -> list[Problem]:
    """The problems of a course whose stubs are untouched; commands act on it."""
    monkeypatch.setattr(cli, "own_course", lambda: two_parts)
    return two_parts.problems()


def check(*arguments: str) -> tuple[int, list[str]]:
    done = CliRunner().invoke(cli.app, ["check", *arguments], terminal_width=200)
    return done.exit_code, [line.strip() for line in done.output.splitlines()]


def told(lines: list[str]) -> str:
    return " ".join(" ".join(lines).split())


# check


def test_before_part_one_is_done_nothing_is_said_of_part_two(problems: list[Problem]) -> None:
    status, lines = check()
    assert status == 1
    assert "0 of 2 points." in lines
    assert "01-doubling: Next: double (line 2) in problem.py." in lines
    assert not any(word in told(lines) for word in ("06-", "07-", "art two"))


def test_after_part_one_part_two_is_an_invitation(problems: list[Problem]) -> None:
    problems[0].stub.write_text(RIGHT, encoding="utf-8")
    status, lines = check()
    assert status == 0
    assert "2 of 2 points." in lines
    assert f"Well done! {INVITATION}problems/06-doubling/README.md" in told(lines)
    assert not any(line.startswith(("06-", "07-")) for line in lines)


def test_what_was_begun_of_part_two_has_a_total_of_its_own(problems: list[Problem]) -> None:
    problems[0].stub.write_text(RIGHT, encoding="utf-8")
    problems[1].stub.write_text(WRONG, encoding="utf-8")
    status, lines = check()
    assert status == 1
    points = lines.index("2 of 2 points.")
    assert lines[points + 1] == "Part two: 0 of 2 points."
    assert lines[points + 2].startswith("06-doubling: Look at this first: ")
    problems[1].stub.write_text(RIGHT, encoding="utf-8")
    status, lines = check()
    assert status == 0
    assert "If you like, part two goes on: problems/07-doubling/README.md" in told(lines)


def test_the_first_open_problem_is_one_of_part_one(problems: list[Problem]) -> None:
    problems[0].stub.write_text(WRONG, encoding="utf-8")
    problems[1].stub.write_text(WRONG, encoding="utf-8")
    assert any(line.startswith("01-doubling: Look at this first: ") for line in check()[1])


def test_who_skips_part_one_is_helped_in_part_two(problems: list[Problem]) -> None:
    problems[1].stub.write_text(WRONG, encoding="utf-8")
    assert any(line.startswith("06-doubling: Look at this first: ") for line in check()[1])
    problems[1].stub.write_text(RIGHT, encoding="utf-8")
    status, lines = check()
    assert status == 1
    assert "What you have begun passes. Well done! If you like, part two goes on:" in told(lines)


def test_part_two_is_tested_when_it_is_asked_for(problems: list[Problem]) -> None:
    status, lines = check("06")
    assert status == 1
    assert "0 of 2 points." in lines
    assert "06-doubling: Next: double (line 2) in problem.py." in lines


def test_line_ends_of_another_system_begin_nothing(problems: list[Problem]) -> None:
    stub = problems[1].stub
    stub.write_bytes(stub.read_bytes().replace(b"\n", b"\r\n"))
    assert not problems[1].is_begun
    stub.unlink()
    assert not problems[1].is_begun


# hint


def test_a_hint_is_for_part_one_until_it_is_done(
    problems: list[Problem], two_parts: Course
) -> None:
    for problem in problems:
        (problem.folder / "hints.md").write_text(HINT, encoding="utf-8")
    tasks = [open_task(two_parts, Path("/"))]
    problems[0].stub.write_text(RIGHT, encoding="utf-8")
    tasks.append(open_task(two_parts, Path("/")))
    problems[0].stub.write_bytes(problems[0].original.read_bytes())
    problems[1].stub.write_text(WRONG, encoding="utf-8")
    tasks.append(open_task(two_parts, Path("/")))
    assert [task[0].id for task in tasks if task] == ["01-doubling", "06-doubling", "06-doubling"]


# pytest from the root


@pytest.fixture
def from_root(
    two_parts: Course, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, list[str]]]:
    """Run pytest in the course's folder and return its status and lines."""
    shutil.copy(own_course().root / "pyproject.toml", two_parts.root)
    monkeypatch.chdir(two_parts.root)
    monkeypatch.setenv("COLUMNS", "120")

    def run(*arguments: str) -> tuple[int, list[str]]:
        options = ["--capture=sys", "-pno:unraisableexception", *arguments]
        with modules_of_course(two_parts.root), redirect_stdout(io.StringIO()) as out:
            status = pytest.main(options)
        return int(status), [line.strip() for line in out.getvalue().splitlines()]

    return run


def test_from_the_root_what_was_not_begun_is_not_run(
    problems: list[Problem], from_root: Callable[..., tuple[int, list[str]]]
) -> None:
    problems[0].stub.write_text(RIGHT, encoding="utf-8")
    status, lines = from_root()
    assert status == 0
    assert "All of these tests pass. Well done!" in lines
    problems[1].stub.write_text(WRONG, encoding="utf-8")
    status, lines = from_root()
    assert status == 1
    assert lines.index("2 of 2 points.") + 1 == lines.index("Part two: 0 of 2 points.")
    assert not any(line.startswith("07-doubling") for line in lines)


def test_in_its_folder_a_stub_of_part_two_is_run(
    problems: list[Problem], from_root: Callable[..., tuple[int, list[str]]]
) -> None:
    _, lines = from_root("problems/06-doubling")
    assert "Next: double (line 2) in problem.py." in lines


# watch


@pytest.mark.slow
def test_watch_shows_part_two_to_who_goes_on(
    problems: list[Problem], two_parts: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("grader.student.watch.keys_of_terminal", lambda put: nullcontext())
    problems[0].stub.write_text(RIGHT, encoding="utf-8")
    screen = io.StringIO()
    console = Console(file=screen, width=100, force_terminal=True, color_system=None)
    watch = Watch(two_parts, console)
    thread = Thread(target=watch.run)
    thread.start()
    try:
        shows(screen, 0, f"{INVITATION}press n.")
        assert "06-doubling" not in screen.getvalue()
        seen = len(screen.getvalue())
        watch.events.put(Key("n"))
        shows(screen, seen, "06-doubling: 0 of 2 points")
        assert "07-doubling" not in screen.getvalue()
    finally:
        watch.events.put(Key("q"))
        thread.join(60)
    assert not thread.is_alive()


def shows(screen: io.StringIO, seen: int, words: str) -> None:
    for _ in range(1200):
        if words in screen.getvalue()[seen:]:
            return
        time.sleep(0.05)
    raise AssertionError(screen.getvalue())
