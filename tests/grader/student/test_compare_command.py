"""`grader compare` shows correct files in different styles, their costs and two questions."""

from __future__ import annotations

import io
import re
import shutil
import sys
from collections.abc import Callable

import pytest
from rich.console import Console
from typer.testing import CliRunner

from grader import cli
from grader.author.release import release
from grader.course import Course, Problem, own_course
from grader.errors import UsageError
from grader.result import ProblemResult, Status, TestResult
from grader.student.seen import SeenMistakes
from grader.student.solved.comparison import comparison_of
from grader.student.solved.right_files import answer, compare, shown_source

COURSE = own_course()
PROBLEMS = COURSE.problems()
each_problem = pytest.mark.parametrize("problem", PROBLEMS, ids=[p.id for p in PROBLEMS])


# Output for students


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Course:
    """Release a copy with solutions."""
    folder = tmp_path_factory.mktemp("for students") / "a course"
    release(COURSE, folder, solutions=True)
    return Course(folder)


@pytest.fixture
def use_course(monkeypatch: pytest.MonkeyPatch) -> Callable[[Course], None]:
    """Return a function that makes commands use a course."""
    return lambda course: monkeypatch.setattr(cli, "own_course", lambda: course)


def run_grader(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(cli.app, arguments)
    return done.exit_code, done.output


def solve(problem: Problem) -> None:
    """Write the reference into the student's file, and record that the problem is solved."""
    (own,) = COURSE.select([problem.id])
    problem.stub.write_bytes(COURSE.solution(own).read_bytes())
    record_solved(problem)


def record_solved(problem: Problem) -> None:
    """Record that a problem is solved with its current file."""
    passed = TestResult("all", "all", False, 1, Status.PASSED)
    SeenMistakes(problem.folder.parents[1]).save_passed(
        problem, ProblemResult(problem.id, tests=[passed])
    )
    assert SeenMistakes(problem.folder.parents[1]).passes(problem)


def comparison_text(course: Course, problem: Problem, **options: object) -> str:
    screen = io.StringIO()
    assert compare(course, problem, Console(file=screen, width=80, **options))  # type: ignore[arg-type]
    return screen.getvalue()


@pytest.mark.slow
def test_compare_works_once_all_visible_tests_pass(
    copy: Course, use_course: Callable[[Course], None]
) -> None:
    use_course(copy)
    (problem,) = copy.select(["01"])
    problem.stub.write_bytes(problem.original.read_bytes())  # other tests may have solved it
    status, output = run_grader("compare", "01")
    said = " ".join(output.split())
    assert status == 1
    assert "Problem 01 has 0 of 6 points so far." in said
    assert "Next: dot_product_similarity" in said
    assert len(output.splitlines()) <= 3
    (own,) = COURSE.select(["01"])
    right = COURSE.solution(own).read_text(encoding="utf-8")
    problem.stub.write_text(right.replace("return q @ k.mT", "return k @ q.mT"), encoding="utf-8")
    assert run_grader("compare", "01")[0] == 1
    problem.stub.write_text(right, encoding="utf-8")
    status, output = run_grader("compare", "01")
    assert status == 0
    assert "── yours" in output


@pytest.mark.slow
@each_problem
def test_compare_works_in_a_released_copy(problem: Problem, copy: Course) -> None:
    (theirs,) = copy.select([problem.id])
    solve(theirs)
    text = comparison_text(copy, theirs)
    found = comparison_of(copy, theirs)
    titles = re.findall(r"^── (.*?) ─", text, re.M)
    assert titles == ["yours", "the course's", *(style.name for style in found.files[1:])]
    for title in titles:
        assert re.search(rf"^{re.escape(title)} +[\d,]+ +[\d,]+ +[\d,]+$", text, re.M), title
    said = " ".join(text.split())
    for style in found.files[1:]:
        assert style.when in said
    assert "Question 2 of 2." in text
    assert "stops here" not in text
    files = [theirs.stub.read_text(encoding="utf-8"), *(style.source for style in found.files)]
    code = {line for file in files for line in file.splitlines()}
    assert max(len(line) for line in text.splitlines() if line not in code) <= 80


def test_an_answer_waits_for_enter_in_a_terminal(
    copy: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    (problem,) = copy.select(["04"])
    solve(problem)
    screen = io.StringIO()
    terminal = Console(file=screen, width=80, force_terminal=True, highlight=False)
    seen: list[str] = []

    def enter() -> str:
        seen.append(screen.getvalue())
        return ""

    monkeypatch.setattr("builtins.input", enter)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    assert compare(copy, problem, terminal)
    assert len(seen) == 8
    with_first = next(text for text in seen if "Question 1" in text)
    assert "Token 0 attends" not in with_first
    with_second = next(text for text in seen if "Question 2" in text)
    assert "Token 0 attends" in with_second
    assert "Row 5" not in with_second
    assert "Row 5" in screen.getvalue()


def test_failing_student_code_is_reported() -> None:
    def stops() -> str:
        raise ValueError("no")

    assert (
        answer(stops)
        == "Your code raises an exception in a call that no test makes: ValueError: no"
    )


@pytest.mark.parametrize("command", ["compare", "break"])
def test_a_copy_without_solutions_is_reported(
    command: str, small_course: Course, use_course: Callable[[Course], None]
) -> None:
    shutil.rmtree(small_course.root / "solutions")
    use_course(small_course)
    status, output = run_grader(command, "01")
    assert status == 2
    assert "This copy of the course has no solutions/, which this command needs." in " ".join(
        output.split()
    )


def test_a_problem_without_a_script_is_reported(small_course: Course) -> None:
    (problem,) = small_course.problems()
    with pytest.raises(UsageError, match=r"The solutions of 01-doubling have no compare\.py"):
        comparison_of(small_course, problem)


def test_compare_uses_the_current_folder(
    copy: Course, use_course: Callable[[Course], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    use_course(copy)
    monkeypatch.chdir(copy.root)
    assert run_grader("compare")[0] == 2
    (problem,) = copy.select(["03"])
    monkeypatch.chdir(problem.folder)
    solve(problem)
    assert run_grader("compare")[0] == 0


# Sources


STUB = '''
class Given:
    """It is there."""


def double(x):
    """Twice x."""
    raise NotImplementedError
'''


def test_a_source_is_shown_without_parts_of_the_stub() -> None:
    source = '''"""Mine."""

import torch


class Given:
    """It is there."""


@torch.no_grad()
def double(x):
    """Twice x.

    Args:
        x: any.
    """
    return x + x  # twice


class More:
    """A class."""

    def one(self): "in one line"; return 1
'''
    assert shown_source(source, STUB) == (
        "import torch\n\n\n@torch.no_grad()\ndef double(x):\n    return x + x  # twice\n\n\n"
        'class More:\n    def one(self): "in one line"; return 1'
    )
