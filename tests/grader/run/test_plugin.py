"""A student's pytest gives the same verdicts as the grader, and pytest's options work."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from grader.code.course_modules import modules_of_course
from grader.course import Course
from grader.result import ProblemResult
from tests.warm import WarmPython

Run = Callable[..., ProblemResult]
StudentPytest = Callable[..., Any]
Debug = Callable[..., Any]

SOURCES = [
    ("def double(x): return x + x", "passed", ""),
    ("def double(x): raise NotImplementedError", "not_implemented", "not written yet: double"),
    ("def double(x): return 3 * x", "failed", "got      [3.0000]"),
    ("def double(x): return x.nothing", "error", "problem.py:1, in double"),
    ("def doubel(x): return x + x", "missing", "Is `doubel` misspelled?"),
    ("x = 1", "missing", "has no `double`"),
    ("def double(x) return x", "error", "line 1: def double(x) return x"),
    ("import no_such_module", "error", "can't import no_such_module"),
    ("1 / 0", "error", "problem.py:1: 1 / 0"),
    ("import sys; sys.exit(0)", "error", "SystemExit"),
    ("def double(x): raise SystemExit(0)", "error", "SystemExit"),
    ("class Stop(BaseException): pass\ndef double(x): raise Stop", "error", "Stop"),
    ("import sys\ndef double(x): sys.modules['pytest'].skip()", "error", "can't be skipped"),
    ("import sys\ndef double(x): sys.modules['pytest'].xfail('no')", "error", "can't be skipped"),
    ("import unittest\ndef double(x): raise unittest.SkipTest", "error", "can't be skipped"),
    (
        "import sys\ndef double(x): sys.modules['pytest'].exit('done')",
        "error",
        "can't be skipped or ended",
    ),
    ("def double(x): return double(x)", "error", "RecursionError"),
    ("def double(x): return bytearray(10**15)", "memory", "out of memory"),
    ("def double(x): return x.softmax(-1)", "forbidden", "calls PyTorch's softmax"),
    (
        "def double(x):\n    try: x.softmax(-1)\n    except Exception: return x + x",
        "forbidden",
        "calls PyTorch's softmax",
    ),
    ("import warnings\ndef double(x): warnings.simplefilter('error'); return x + x", "passed", ""),
    ("def double(x): return None", "failed", "is a `return` missing?"),
    (
        "from torch import nn\nclass M(nn.Module):\n    def foward(self, x): return 2 * x\n"
        "def double(x): return M()(x)",
        "error",
        'missing the required "forward" function\n'
        "  problem.py:4, in double: def double(x): return M()(x)\n"
        "  x is (1,) float32\nLook for the method in the class: is its name spelled like",
    ),
    (
        "import torch\ndef double(x): return torch.nn.Module()(x=x)",
        "error",
        "Look for the method in the class",
    ),
    (
        "class M:\n    def f(x): return x\ndef double(x): return M().f(x)",
        "error",
        "is self its first",
    ),
    ("class M: pass\ndef f(self, x): x\ndef double(x): return M().f(x)", "error", "indented"),
    (
        "class M:\n    def f(self, x): return self.two * x\ndef double(x): return M().f(x)",
        "error",
        "Does __init__ set self.two",
    ),
]
"""Tuples of a file's text, the status of its tests, and a part of the expected message."""


def verdicts(result: ProblemResult) -> list[tuple[object, ...]]:
    return [(t.id, t.title, t.hidden, t.max, t.status, t.message) for t in result.tests]


@pytest.mark.parametrize(("source", "status", "words"), SOURCES)
def test_messages_at_home_and_in_grading_are_the_same(
    run: Run, student_pytest: StudentPytest, source: str, status: str, words: str
) -> None:
    graded, at_home = run(source), student_pytest(source, "--hidden")
    assert {test.status.value for test in graded.tests} == {status}
    assert graded.points == (4 if status == "passed" else 0)
    assert words in graded.tests[0].message
    assert verdicts(at_home.result) == verdicts(graded)
    assert at_home.result.diagnoses == graded.diagnoses
    assert at_home.status == (0 if graded.passed else 1)


@pytest.mark.parametrize("source", ["def double(x): return x.nothing", "1 / 0"])
def test_a_traceback_changes_no_message(student_pytest: StudentPytest, source: str) -> None:
    plain, long = student_pytest(source), student_pytest(source, "--tb=long")
    assert verdicts(plain.result) == verdicts(long.result)


def test_the_hidden_half_is_left_out(student_pytest: StudentPytest) -> None:
    done = student_pytest("def double(x): return x + x")
    assert [test.id for test in done.result.tests] == ["test_doubles[1]", "test_doubles[2]"]
    assert "1 deselected" in done.text


def test_the_user_chooses_the_seed(run: Run, student_pytest: StudentPytest) -> None:
    source = "def double(x): raise ValueError(x.tolist())"
    messages = {
        seed: student_pytest(source, "--hidden", f"--seed={seed}").result.tests[2].message
        for seed in (0, 1)
    }
    assert messages[0] != messages[1]
    assert messages[1] == run(source, seed=1).tests[2].message


def test_some_tests_can_be_selected(student_pytest: StudentPytest) -> None:
    source = "def double(x): return 3 * x"
    assert [test.id for test in student_pytest(source, "-k", "2").result.tests] == [
        "test_doubles[2]"
    ]
    assert len(student_pytest(source, "-x").result.tests) == 1


def ids(done: Any) -> list[str]:
    return [test.id for test in done.result.tests]


def test_the_last_failures_can_be_selected(student_pytest: StudentPytest) -> None:
    source = "def double(x): return x + x if len(x) == 1 else x"
    assert {*ids(student_pytest(source))} == {"test_doubles[1]", "test_doubles[2]"}
    assert ids(student_pytest(source, "--ff")) == ["test_doubles[2]", "test_doubles[1]"]
    assert ids(student_pytest(source, "--lf")) == ["test_doubles[2]"]
    assert ids(student_pytest("def double(x): return x + x", "--lf")) == ["test_doubles[2]"]
    assert len(ids(student_pytest(source, "--sw", "--cache-clear"))) == 2


def test_a_part_of_the_tests_has_no_points(student_pytest: StudentPytest) -> None:
    wrong = "def double(x): return x + x if len(x) == 1 else x"
    assert "of 2 points" in student_pytest(wrong).text
    assert "points" not in student_pytest(wrong, "--lf").text
    assert "points" not in student_pytest(wrong, "test_doubling.py::test_doubles[2]").text
    right = "def double(x): return x + x"
    assert "points" not in student_pytest(right, "--lf").text
    assert "2 of 2 points" in student_pytest(right, "--lf").text


@pytest.mark.parametrize("file", ["problem.py", "explore.py"])
def test_a_file_without_tests_prints_the_command_to_run(
    student_pytest: StudentPytest,
    small_course: Course,
    monkeypatch: pytest.MonkeyPatch,
    file: str,
) -> None:
    (problem,) = small_course.problems()
    (problem.folder / "explore.py").write_text("x = 1\n")
    source = "def double(x): return x + x"
    output = student_pytest(source, file)
    assert f"{file} contains no tests. To test your work, run: uv run pytest\n" in output.text
    monkeypatch.chdir(small_course.root)
    output = student_pytest(source, f"problems/01-doubling/{file}")
    command = "cd problems/01-doubling && uv run pytest"
    assert f"{file} contains no tests. To test your work, run: {command}\n" in output.text


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ["test_doubling.py"],
        ["-m", "test_doubling"],
    ],
)
def test_tests_of_a_different_folder_report_how_to_run_them(
    small_course: Course, words: list[str]
) -> None:
    (problem,) = small_course.problems()
    command = [sys.executable, *words]
    done = subprocess.run(command, cwd=problem.folder, capture_output=True, text=True)
    assert done.stdout == ""
    assert done.stderr == "Test files are run by pytest. To test your work, run: uv run pytest\n"
    assert done.returncode == 2


def test_tracebacks_can_be_requested(student_pytest: StudentPytest) -> None:
    source = "def double(x):\n    return helper(x)\n\ndef helper(x):\n    return x.nothing"
    text = student_pytest(source, "--tb=long").text
    assert "return x.nothing" in text
    assert "test_doubling.py" in text
    assert "has no attribute 'nothing'" in text


def test_an_unreadable_file_has_no_traceback(student_pytest: StudentPytest) -> None:
    text = student_pytest("def double(x) return x", "--tb=long").text
    assert "problem.py can't be read as Python" in text
    assert "Traceback" not in text
    assert "grader" not in text


def test_a_damaged_file_of_the_course_hides_no_result(
    student_pytest: StudentPytest, small_course: Course
) -> None:
    small_course.problems()[0].fingerprints.write_text("<<<<<<< HEAD\n")
    output = student_pytest("def double(x): return 3 * x")
    assert "fingerprints.json is damaged" in output.text
    assert "✗ double returns twice its argument" in output.text
    assert output.status == 1


@pytest.mark.slow
def test_pytest_shows_printed_output(student_pytest: StudentPytest) -> None:
    source = "def double(x):\n    print('so far')\n    return 3 * x"
    assert "so far" in student_pytest(source, "-s").text
    assert "Captured stdout call" in student_pytest(source, "--tb=long").text


@pytest.fixture
def debug(small_course: Course, warm_python: WarmPython) -> Debug:
    """Return a function that runs pytest on a file and types commands into the debugger."""
    (problem,) = small_course.problems()
    settings = '[tool.pytest.ini_options]\npythonpath = ["problems"]\n'
    (small_course.root / "pyproject.toml").write_text(settings)

    def run(source: str, typed: str, *options: str) -> subprocess.CompletedProcess[str]:
        problem.stub.write_text(source)
        command = ("-m", "pytest", "--import-mode=importlib", *options)
        return warm_python.run(*command, cwd=problem.folder, typed=typed)

    return run


STOPS = "def double(x):\n    y = x + x\n    {stop}\n    return {answer}\n"


@pytest.mark.slow
def test_a_debugger_can_be_used(debug: Debug) -> None:
    source = STOPS.format(stop="breakpoint()", answer="y")
    done = debug(source, "p 'y is', y.tolist()\ncontinue\n" * 2)
    assert done.returncode == 0
    assert "('y is', [2.0, 2.0])" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("stop", ["breakpoint()", "import pdb; pdb.set_trace()"])
def test_quitting_the_debugger_ends_the_run(debug: Debug, stop: str) -> None:
    done = debug(STOPS.format(stop=stop, answer="3 * x"), "q\n" * 3)
    assert done.returncode == pytest.ExitCode.INTERRUPTED
    assert done.stdout.count("(Pdb)") == 1
    assert "can't be skipped" not in done.stdout
    assert "01-doubling" not in done.stdout.rpartition("(Pdb)")[2]


@pytest.mark.slow
def test_breakpoints_do_not_stop_the_diagnosis(debug: Debug) -> None:
    done = debug(STOPS.format(stop="breakpoint()", answer="3 * x"), "continue\n" * 2)
    assert done.stdout.count("(Pdb)") == 2
    assert "✗ double returns twice its argument" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "typed", "shown"),
    [
        ("return 3 * x", "p size", ["-> check(problem.double(torch.ones(size))", "(Pdb) 1"]),
        ("y = 5; return torch.stack(['a'])", "p y", ["return torch.stack(['a'])", "(Pdb) 5"]),
    ],
    ids=["at the call", "in the student's code"],
)
def test_with_pdb_the_debugger_stops_at_the_error(
    debug: Debug, line: str, typed: str, shown: list[str]
) -> None:
    done = debug(f"import torch\ndef double(x):\n    {line}\n", f"{typed}\nq\n", "--pdb")
    assert all(text in done.stdout for text in shown)


def test_other_tests_run_as_usual(student_pytest: StudentPytest) -> None:
    other = "def test_other():\n    assert 1 == 2\n\ndef test_fixture(problem):\n    pass\n"
    Path("test_other.py").write_text(other)
    text = student_pytest("def double(x): return x + x", "test_other.py").text
    assert "assert 1 == 2" in text
    assert "Only tests in a problem's test file can use this fixture." in text
    assert "points" not in text


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ("problem", "has no points above 0"),
        ("problem, tmp_path", "uses the unknown fixture tmp_path"),
    ],
)
def test_invalid_tests_are_refused_with_a_sentence(
    student_pytest: StudentPytest,
    small_course: Course,
    capsys: pytest.CaptureFixture[str],
    arguments: str,
    reason: str,
) -> None:
    with small_course.problems()[0].test_file.open("a", encoding="utf-8") as file:
        file.write(f"\n\ndef test_x({arguments}): pass\n")
    done = student_pytest("def double(x): return x + x")
    assert done.status == pytest.ExitCode.USAGE_ERROR
    assert not done.result.tests
    assert f"test_x {reason}" in done.text + capsys.readouterr().err


def test_tests_of_another_file_are_never_run(
    new_course: Callable[[Path], Course], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    statuses = []
    with modules_of_course(tmp_path):  # removes the modules that the test loads
        for root in (new_course(tmp_path / name).root for name in ("first", "second")):
            arguments = ["--import-mode=importlib", "--rootdir", str(root), "--capture=sys"]
            statuses.append(pytest.main([*arguments, str(root / "problems")]))
    assert statuses == [pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.USAGE_ERROR]
    assert "a module of the same name" in capsys.readouterr().err
