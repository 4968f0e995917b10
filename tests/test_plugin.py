"""What each kind of student code gets: status, points, message. And what the terminal shows."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from grader.course import Course
from grader.errors import CannotLoad, CourseError
from grader.result import ProblemResult, Status
from grader.testing.plugin import LocalFiles, Session
from grader.testing.runner import Suite, run_tests

Run = Callable[..., ProblemResult]


def statuses(result: ProblemResult) -> set[str]:
    return {test.status.value for test in result.tests}


def test_right_code_gets_all_points(run: Run) -> None:
    result = run("def double(x): return 2 * x")
    assert (result.points, result.max, statuses(result)) == (4, 4, {"passed"})


def test_cases_share_the_points_of_their_test(run: Run) -> None:
    result = run("import torch\ndef double(x): return torch.full((1,), 2.0)")
    assert (result.points, [t.max for t in result.tests]) == (1, [1, 1, 2])


def test_the_hidden_half_runs_only_when_asked(run: Run) -> None:
    assert {t.name for t in run("def double(x): return x", hidden=False).tests} == {"test_doubles"}


@pytest.mark.parametrize(
    ("source", "status", "words"),
    [
        ("def double(x): raise NotImplementedError", "not_implemented", "not written yet: double"),
        ("def double(x): return 3 * x", "failed", "got      [3.0000]"),
        ("def double(x): return x.nothing", "error", "line 1, in double"),
        ("def doubel(x): return x + x", "missing", "Did you mean to call `doubel` so?"),
        ("x = 1", "missing", "has no `double`"),
        ("def double(x) return x", "error", "line 1: def double(x) return x"),
        ("import no_such_module", "error", "No module named 'no_such_module'"),
        ("1 / 0", "error", "line 1: 1 / 0"),
        ("import sys; sys.exit(0)", "error", "SystemExit"),
        ("def double(x): raise SystemExit(0)", "error", "SystemExit"),
        ("class Stop(BaseException): pass\ndef double(x): raise Stop", "error", "Stop"),
        ("import pytest\ndef double(x): pytest.skip()", "error", "can't be skipped"),
        ("import pytest\ndef double(x): pytest.xfail('no')", "error", "can't be skipped"),
        ("import unittest\ndef double(x): raise unittest.SkipTest", "error", "can't be skipped"),
        ("def double(x): return double(x)", "error", "RecursionError"),
        ("def double(x): return bytearray(10**15)", "memory", "out of memory"),
        ("import torch\ndef double(x): return x.softmax(-1)", "forbidden", "calls PyTorch's own"),
        ("def double(x): return None", "failed", "is a `return` missing?"),
    ],
)
def test_what_goes_wrong_is_named(run: Run, source: str, status: str, words: str) -> None:
    result = run(source)
    assert statuses(result) == {status}
    assert result.points == 0
    assert words in result.tests[0].message


def test_a_missing_file_is_named(small_course: Course) -> None:
    small_course.problems()[0].stub.unlink()
    session = Session(LocalFiles())
    run_tests(small_course.problems(), session, small_course.root)
    result = session.results["01-doubling"]
    assert statuses(result) == {"missing"}
    assert result.untouched


def test_an_endless_loop_ends(run: Run) -> None:
    result = run("def double(x):\n    while True: pass", timeout=0.3)
    assert statuses(result) == {"timeout"}
    assert "line 2, in double" in result.tests[0].message
    assert "Not run" in result.tests[2].message


def test_no_tests_is_an_error_and_not_full_marks(small_course: Course) -> None:
    small_course.problems()[0].test_file.write_text("# nothing\n")
    with pytest.raises(CourseError):
        run_tests(small_course.problems(), Session(LocalFiles()), small_course.root)


def test_a_broken_test_file_is_the_courses_fault(small_course: Course) -> None:
    small_course.problems()[0].test_file.write_text("def test_x(:\n")
    with pytest.raises(CourseError):
        run_tests(small_course.problems(), Session(LocalFiles()), small_course.root)


def test_ctrl_c_ends_the_run(run: Run) -> None:
    with pytest.raises(KeyboardInterrupt):
        run("def double(x): raise KeyboardInterrupt")


def test_draws_depend_on_the_seed_and_nothing_else(run: Run, small_course: Course) -> None:
    source = (
        "import sys\ndef double(x):\n    sys.modules['seen'].append(x.tolist())\n    return x + x"
    )
    seen: list[object] = []
    sys.modules["seen"] = seen  # type: ignore[assignment]
    runs = []
    for seed, reverse in [(0, False), (0, True), (1, False)]:
        seen.clear()
        run(source, seed=seed, reverse=reverse)
        runs.append([x for x in seen if len(x) == 3])
    del sys.modules["seen"]
    assert runs[0] == runs[1] != runs[2]


def terminal(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", *options]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, encoding="utf-8")


def test_a_stub_gets_one_line_for_each_test(course: Course) -> None:
    done = terminal(course.root / "problems/01-softmax")
    lines = done.stdout.splitlines()
    assert len(lines) < 40
    assert sum("not written yet: softmax" in line for line in lines) > 3
    assert any(line.startswith("Next: ") for line in lines)


def test_a_slip_is_shown_with_points_and_what_to_look_at(small_course: Course) -> None:
    folder = small_course.problems()[0].folder
    (small_course.root / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    (folder / "problem.py").write_text("def double(x):\n    return 3 * x\n")
    done = terminal(folder, "--hidden", "--import-mode=importlib")
    assert done.returncode == 1
    assert "0 of 4 points." in done.stdout
    assert "Look at this first: double returns twice its argument." in done.stdout
    assert "got      [3.0000]" in done.stdout


def test_other_tests_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "test_other.py").write_text("def test_other():\n    assert 1 == 2\n")
    done = terminal(tmp_path)
    assert "assert 1 == 2" in done.stdout
    assert "points" not in done.stdout


def test_a_file_that_never_ends_is_tried_once(run: Callable[..., ProblemResult]) -> None:
    result = run("while True: pass", timeout=0.5)
    assert result.points == 0
    assert {test.status for test in result.tests} <= {Status.TIMEOUT, Status.ERROR}


def test_a_missing_file_costs_no_more_each_time(small_course: Course) -> None:
    problem = small_course.problems()[0]
    problem.stub.unlink()
    files, frames = LocalFiles(), []
    for _ in range(3):
        with pytest.raises(CannotLoad) as raised:
            files(problem)
        frames.append(len(raised.traceback))
    assert len(set(frames)) == 1


def test_one_submission_leaves_nothing_to_the_next(small_course: Course) -> None:
    (problem,) = small_course.problems()
    text = problem.test_file.read_text(encoding="utf-8")
    text = text.replace("FORBIDDEN", "ONES = torch.ones(3)\nFORBIDDEN", 1)
    text = text.replace("problem.double(torch.ones(size))", "problem.double(ONES)[:size]", 1)
    problem.test_file.write_text(text, encoding="utf-8")
    path = small_course.root / "student.py"
    points = []
    with Suite([problem], small_course.root) as suite:
        for body in ("x.add_(1); return x.unsqueeze_(0)", "return x + x", "return x.softmax(0)"):
            path.write_text(f"def double(x):\n    {body}\n", encoding="utf-8")
            session = Session(LocalFiles(lambda _: path), hidden=True)
            suite.run(session)
            points.append(session.results[problem.id].points)
    assert points == [0, 4, 0]


def test_pytest_can_not_be_ended_by_a_submission(run: Run) -> None:
    result = run("import pytest\ndef double(x): pytest.exit('done')")
    assert statuses(result) == {"error"}
    assert "can't be skipped or ended" in result.tests[0].message


def test_a_test_that_needs_more_of_pytest_gets_it(run: Run, small_course: Course) -> None:
    (problem,) = small_course.problems()
    with problem.test_file.open("a", encoding="utf-8") as file:
        file.write(
            "\n\n@pytest.fixture(params=[1, 2])\ndef tenfold(request):\n"
            "    return 10 * request.param\n"
            "\n\ndef test_own_fixture(problem, tenfold, request, tmp_path):\n"
            "    assert problem.double(tenfold) in (20, 40) and tmp_path.is_dir()\n"
            "\n\n@pytest.mark.skip\ndef test_skipped(problem):\n    pass\n"
            "\n\nasync def test_awaited(problem):\n    pass\n"
        )
    found = {test.id: test.status for test in run("def double(x): return 2 * x").tests}
    assert found.pop("test_skipped") is not Status.PASSED
    assert found.pop("test_awaited") is not Status.PASSED
    assert [found[f"test_own_fixture[{n}]"] for n in (1, 2)] == [Status.PASSED] * 2
    assert len(found) == 5
    assert {*found.values()} == {Status.PASSED}


def test_what_a_test_does_to_warnings_ends_with_it(run: Run, small_course: Course) -> None:
    (problem,) = small_course.problems()
    with problem.test_file.open("a", encoding="utf-8") as file:
        file.write(
            "\n\ndef test_that_warns(problem):\n    import warnings\n    warnings.warn('careful')\n"
        )
    strict = "import warnings\ndef double(x): warnings.simplefilter('error'); return 2 * x"
    assert statuses(run(strict)) == {"passed"}
