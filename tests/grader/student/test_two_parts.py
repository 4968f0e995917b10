"""Part two is optional: no command requires a problem of part two before it is begun."""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable
from contextlib import nullcontext, redirect_stdout
from pathlib import Path
from threading import Thread

import pytest
from rich.console import Console
from syrupy.assertion import SnapshotAssertion
from typer.testing import CliRunner

from grader import cli
from grader.code.course_modules import modules_of_course
from grader.course import Course, Problem, own_course
from grader.student.testing import open_tasks
from grader.student.watch import Key, Watch
from tests.processes import wait_until

RIGHT = "def double(x):\n    return x + x\n"
WRONG = "def double(x):\n    return 3 * x\n"
INVITATION = "If you like, go on to part two, more of it: "
HINT = "## double\n\n<details>\n<summary>Nudge</summary>\n\nWhat is x + x?\n\n</details>\n"


@pytest.fixture
def problems(two_parts: Course, monkeypatch: pytest.MonkeyPatch) -> list[Problem]:
    """Make commands use a course of stubs, and return its problems."""
    monkeypatch.setattr(cli, "own_course", lambda: two_parts)
    monkeypatch.chdir(two_parts.root)
    return two_parts.problems()


# check


STATES: dict[str, list[str]] = {
    "nothing begun": [],
    "part one done": [RIGHT],
    "part one wrong, part two begun": [WRONG, WRONG],
    "part one done, part two begun": [RIGHT, WRONG],
    "part one done, part two partly done": [RIGHT, RIGHT],
    "part one skipped, part two begun": ["", WRONG],
    "part one skipped, part two partly done": ["", RIGHT],
}
"""Maps each state to the texts of the first problems' files. An empty text means the stub."""


@pytest.mark.parametrize("state", STATES)
def test_check_invites_to_part_two_without_requiring_it(
    problems: list[Problem], snapshot: SnapshotAssertion, state: str
) -> None:
    for problem, source in zip(problems, STATES[state], strict=False):
        if source:
            problem.stub.write_text(source, encoding="utf-8")
    assert check() == snapshot


def test_check_tests_part_two_on_request(
    problems: list[Problem], snapshot: SnapshotAssertion
) -> None:
    assert check("06") == snapshot


def check(*arguments: str) -> str:
    """Run `grader check`, and return its output and exit status."""
    done = CliRunner().invoke(cli.app, ["check", *arguments], terminal_width=200)
    return f"{done.output}exit status {done.exit_code}"


def test_changed_line_ends_do_not_begin_a_problem(problems: list[Problem]) -> None:
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
    tasks = [open_tasks(two_parts, Path("/"))]
    problems[0].stub.write_text(RIGHT, encoding="utf-8")
    tasks.append(open_tasks(two_parts, Path("/")))
    problems[0].stub.write_bytes(problems[0].original.read_bytes())
    problems[1].stub.write_text(WRONG, encoding="utf-8")
    tasks.append(open_tasks(two_parts, Path("/")))
    assert [task[0].id for task in tasks if task] == ["01-doubling", "06-doubling", "06-doubling"]


# pytest from the root


@pytest.fixture
def from_root(
    two_parts: Course, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, list[str]]]:
    """Return a function that runs pytest in the course's folder."""
    shutil.copy(own_course().root / "pyproject.toml", two_parts.root)
    monkeypatch.chdir(two_parts.root)
    monkeypatch.setenv("COLUMNS", "120")

    def run(*arguments: str) -> tuple[int, list[str]]:
        options = ["--capture=sys", "-pno:unraisableexception", *arguments]
        with modules_of_course(two_parts.root), redirect_stdout(io.StringIO()) as out:
            status = pytest.main(options)
        return int(status), [line.strip() for line in out.getvalue().splitlines()]

    return run


def test_from_the_root_problems_not_begun_are_not_run(
    problems: list[Problem], from_root: Callable[..., tuple[int, list[str]]]
) -> None:
    problems[0].stub.write_text(RIGHT, encoding="utf-8")
    status, lines = from_root()
    assert status == 0
    assert "All of these tests pass. Well done!" in lines
    problems[1].stub.write_text(WRONG, encoding="utf-8")
    status, lines = from_root()
    assert status == 1
    assert lines.index("2 of 2 points in the visible tests.") + 1 == lines.index(
        "Part two: 0 of 2 points in the visible tests."
    )
    assert not any(line.startswith("07-doubling") for line in lines)


def test_a_stub_of_part_two_is_run_in_its_folder(
    problems: list[Problem], from_root: Callable[..., tuple[int, list[str]]]
) -> None:
    _, lines = from_root("problems/06-doubling")
    assert "Next: double (line 2) in problem.py." in lines


# watch


@pytest.mark.slow
def test_watch_shows_part_two_after_part_one(
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
        wait_until(lambda: f"{INVITATION}press n." in screen.getvalue())
        assert "06-doubling" not in screen.getvalue()
        seen = len(screen.getvalue())
        watch.events.put(Key("n"))
        wait_until(lambda: "06-doubling: 0 of 2 points" in screen.getvalue()[seen:])
        assert "07-doubling" not in screen.getvalue()
    finally:
        watch.events.put(Key("q"))
        thread.join(60)
    assert not thread.is_alive()
