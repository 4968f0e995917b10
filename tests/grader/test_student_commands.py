"""The students' commands `check`, `hint` and `reset` work."""

from __future__ import annotations

import ast
import io
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

import grader as grader_package
from grader import cli
from grader.course import STUB_LINE, Course, Problem, own_course
from grader.result import Status, TestResult
from grader.student import hints
from grader.student.testing import check, tasks_to_do

PROBLEMS = own_course().problems()
HINTS = """
## double

<details>
<summary>Nudge</summary>

What is x + x?

</details>

<details>
<summary>Idea</summary>

Add.

</details>

<details>
<summary>Plan</summary>

`(n,)` and `(n,)` give `(n,)`.

</details>
"""


@pytest.fixture
def problem(small_course: Course, monkeypatch: pytest.MonkeyPatch) -> Problem:
    """Return the small course's problem with hints and a stub. Commands use this course."""
    monkeypatch.setattr(cli, "own_course", lambda: small_course)
    problem = small_course.problems()[0]
    problem.kept_stub.parent.mkdir(parents=True)
    problem.kept_stub.write_bytes(problem.stub.read_bytes())
    (problem.folder / "hints.md").write_text(HINTS, encoding="utf-8")
    return problem


def run_grader(*arguments: str, answer: str = "") -> tuple[int, str]:
    done = CliRunner().invoke(cli.app, arguments, input=answer)
    return done.exit_code, done.output


# check


def test_check_shows_points_and_the_next_step(problem: Problem) -> None:
    status, output = run_grader("check")
    assert status == 1
    assert "0 of 2 points in the visible tests." in output
    assert "Next: double (line 2) in problem.py." in output
    problem.stub.write_text("def double(x): return x + x\n", encoding="utf-8")
    status, output = run_grader("check", "01")
    assert status == 0
    assert "2 of 2 points in the visible tests." in output
    assert "Well done" in output


def test_check_shows_why_a_file_cannot_be_tested(problem: Problem) -> None:
    problem.stub.write_text("def double(x): return x + x\n1 / 0\n", encoding="utf-8")
    status, output = run_grader("check")
    assert status == 1
    assert "01-doubling: problem.py stops while it is being imported." in output


@pytest.mark.slow
def test_check_shows_folders_relative_to_the_current_one(
    problem: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(problem.folder.parents[1])
    assert "For the details: cd problems/01-doubling && uv run pytest" in run_grader("check")[1]
    monkeypatch.chdir(problem.folder)
    assert "For the details: uv run pytest" in run_grader("check")[1]


def test_check_prints_ascii_in_a_terminal_without_symbols(small_course: Course) -> None:
    screen = io.BytesIO()
    console = Console(file=io.TextIOWrapper(screen, encoding="ascii"), width=90)
    small_course.problems()[0].stub.write_text("def double(x): return 3 * x\n", encoding="utf-8")
    check(small_course, small_course.problems(), console)
    console.file.flush()
    assert b"...................." in screen.getvalue()


def test_an_unknown_problem_is_a_usage_error(problem: Problem) -> None:
    for command in ("check", "hint", "reset", "watch"):
        assert run_grader(command, "9")[0] == 2


# hint


@pytest.mark.parametrize("problem", PROBLEMS, ids=[p.id for p in PROBLEMS])
def test_each_task_has_three_hints(problem: Problem) -> None:
    of_problem = hints.read_hints(problem)
    tasks = list(dict.fromkeys(hint.task for hint in of_problem))
    assert [(hint.task, hint.level) for hint in of_problem] == [
        (t, n) for t in tasks for n in (1, 2, 3)
    ]
    stub = problem.original.read_text(encoding="utf-8")
    defined = [node for node in ast.parse(stub).body if isinstance(node, ast.FunctionDef)]
    functions = {each.name for each in defined if STUB_LINE in ast.unparse(each)}
    assert functions <= set(tasks)
    if re.search(r"^class ", stub, re.MULTILINE):
        assert set(tasks) - functions


@pytest.mark.parametrize("problem", PROBLEMS, ids=[p.id for p in PROBLEMS])
def test_no_hint_contains_a_line_of_the_solution(problem: Problem) -> None:
    solution = own_course().solution(problem).read_text(encoding="utf-8")
    code = {line.strip() for line in solution.splitlines() if len(line.strip()) > 12}
    message_text = "\n".join(hint.text for hint in hints.read_hints(problem))
    answers = {line for line in code if "(" in line and line in message_text}
    assert not answers


def test_hint_shows_one_level(problem: Problem) -> None:
    status, output = run_grader("hint", "01")
    assert status == 0
    assert "What is x + x?" in output
    assert "Add." not in output
    assert "grader hint 01 2" in output
    assert "`(n,)` and `(n,)` give `(n,)`." in run_grader("hint", "01", "3", "--task", "double")[1]


def test_hint_without_a_problem_is_about_the_current_problem(problem: Problem) -> None:
    two = HINTS + HINTS.replace("double", "halve")
    (problem.folder / "hints.md").write_text(two, encoding="utf-8")
    status, output = run_grader("hint")
    assert status == 0
    assert output.count("What is x + x?") == 1
    assert "halve" not in output
    assert "For more: uv run grader hint 01 2 --task double" in output


def test_hint_omits_finished_tasks() -> None:
    problem = own_course().select(["05"])[0]
    result = problem.result()
    for number, (title, status) in enumerate(
        {
            "split_heads cuts each token into slices": Status.PASSED,
            "merge_heads is the inverse of split_heads": Status.PASSED,
            "split_heads and merge_heads keep the dtype": Status.PASSED,
            "In training, single weights are dropped": Status.FAILED,
        }.items()
    ):
        result.tests.append(TestResult(f"test_{number}", title, False, 1.0, status))
    assert tasks_to_do(problem, result) == ["The constructor", "forward"]


def test_hint_refuses_unknown_tasks(problem: Problem) -> None:
    assert run_grader("hint", "01", "4")[0] == 2
    status, output = run_grader("hint", "01", "--task", "halve")
    assert status == 2
    assert "there are: double" in output


# In a notebook


@pytest.mark.slow
def test_check_in_a_notebook_shows_the_next_step(capsys: pytest.CaptureFixture[str]) -> None:
    grader_package.check("01")
    printed = capsys.readouterr().out
    assert "01-softmax" in printed
    assert "Next: dot_product_similarity" in printed


def test_importing_the_package_does_not_load_torch() -> None:
    code = "import sys, grader; print({'torch', 'pytest', 'rich'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "set()\n"


# reset


@pytest.mark.parametrize("problem", PROBLEMS, ids=[p.id for p in PROBLEMS])
def test_the_kept_stub_equals_the_stub(problem: Problem) -> None:
    assert problem.original.read_bytes() == problem.stub.read_bytes()


def test_reset_keeps_the_students_file(problem: Problem) -> None:
    stub = problem.stub.read_bytes()
    for number, work in enumerate((b"# first\n", b"# second\xff\n"), 1):
        problem.stub.write_bytes(work)
        status, output = run_grader("reset", "01", "--yes")
        assert status == 0
        kept = Path(problem.folder / f"problem.py.bak-{number}")
        assert kept.name in output.replace("\n", "")
        assert kept.read_bytes() == work
        assert problem.stub.read_bytes() == stub
    assert (problem.folder / "problem.py.bak-1").read_bytes() == b"# first\n"


def test_reset_asks_first_and_uses_the_current_folder(
    problem: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(problem.folder)
    assert "is the stub already" in run_grader("reset")[1]
    assert list(problem.folder.glob("*.bak-*")) == []
    problem.stub.write_text("# work\n", encoding="utf-8")
    assert run_grader("reset", answer="n\n")[0] == 1
    assert problem.stub.read_text(encoding="utf-8") == "# work\n"
    assert run_grader("reset", answer="y\n")[0] == 0
    assert problem.stub.read_bytes() == problem.original.read_bytes()
    problem.stub.unlink()
    assert run_grader("reset", "--yes")[0] == 0
    assert problem.stub.read_bytes() == problem.original.read_bytes()


def test_reset_in_the_repository_shows_the_git_command(
    problem: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem.kept_stub.unlink()
    problem.stub.write_text("# work\n", encoding="utf-8")
    monkeypatch.chdir(problem.folder.parent)
    status, output = run_grader("reset", "01", "--yes")
    assert status == 2
    assert "new students' copy" not in output
    assert output.endswith("git checkout 01-doubling/problem.py\n")
    assert problem.stub.read_text(encoding="utf-8") == "# work\n"


def test_reset_without_a_stub_changes_nothing(problem: Problem, small_course: Course) -> None:
    shutil.rmtree(small_course.root / "solutions")  # as in a students' copy
    problem.kept_stub.unlink()
    problem.stub.write_text("# work\n", encoding="utf-8")
    status, output = run_grader("reset", "01", "--yes")
    assert status == 3
    assert "the stub can't be restored" in " ".join(output.split())
    assert problem.stub.read_text(encoding="utf-8") == "# work\n"
