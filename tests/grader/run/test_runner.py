"""Each kind of student code gets the expected status, points and message."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from grader.course import Course
from grader.errors import CourseError, Mismatch
from grader.grade.settings import Settings
from grader.result import ProblemResult, Status
from grader.run.calls import answers
from grader.run.local_files import LocalFiles
from grader.run.session import Session
from grader.run.suite import Suite

Run = Callable[..., ProblemResult]


def statuses(result: ProblemResult) -> set[str]:
    return {test.status.value for test in result.tests}


@pytest.mark.parametrize(
    "source",
    [
        "import torch\ndef double(x): torch.set_grad_enabled(False); return 2 * x",
        "import torch\ntorch.set_grad_enabled(False)\ndef double(x): return 3 * x",
    ],
    ids=["in a call", "at import, and diagnosed"],
)
def test_gradients_that_code_leaves_switched_off_are_on_again(run: Run, source: str) -> None:
    run(source)
    assert torch.is_grad_enabled()


def test_a_files_default_dtype_does_not_affect_tests(run: Run) -> None:
    """A file cannot change the dtype of the tensors that a test creates."""
    result = run(
        """
        import torch
        torch.set_default_dtype(torch.float64)
        def double(x):
            return 2 * x if torch.ones(1).dtype == torch.float32 else x
        """
    )
    torch.set_default_dtype(torch.float32)
    assert (result.points, statuses(result)) == (4, {"passed"})


def test_cases_share_the_points_of_their_test(run: Run) -> None:
    result = run("import torch\ndef double(x): return torch.full((1,), 2.0)")
    assert (result.points, [t.max for t in result.tests]) == (1, [1, 1, 2])


def test_the_hidden_half_runs_only_on_request(run: Run) -> None:
    assert {t.name for t in run("def double(x): return x", hidden=False).tests} == {"test_doubles"}


KEPT = [
    "asked = []\ndef double(x): asked.append(x); return 2 * asked[0]",
    "def double(x, known={}): return known.setdefault('it', 2 * x)",
]


@pytest.mark.parametrize("source", KEPT)
def test_data_kept_between_calls_is_reported(run: Run, source: str) -> None:
    result = run(source)
    assert result.points < 4
    (output,) = result.diagnoses
    assert output.startswith("It looks as if something is kept from one call to the next")
    assert result.mistakes == [["kept_between_calls"]]


@pytest.mark.slow
@pytest.mark.parametrize(
    "source",
    ["def double(x): return 3 * x", "def double(x): return x.new_full(x.shape, 2)"],
    ids=["always wrong", "right for some"],
)
def test_a_wrong_function_is_not_reported_as_keeping_data(run: Run, source: str) -> None:
    assert run(source).diagnoses == []


LOOKING = """

@pytest.mark.points(1)
@pytest.mark.inspection_only
def test_looks(problem):
    'double is written by hand'
    check(problem.double(torch.ones(1)), torch.full((1,), 2.0), 'double(x)')
"""


def add_visible(course: Course, test: str) -> Path:
    """Add a test at the end of the visible half, and return the path of the test file."""
    file = course.problems()[0].test_file
    file.write_text(file.read_text().replace("\n\n# --- hidden", f"{test}\n\n# --- hidden"))
    return file


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "status", "message"),
    [
        ("def double(x): return 2 * y", "error", "NameError: name 'y' is not defined"),
        ("def double(x): return 3 * x", "failed", "double(x) isn't right"),
        ("def double(x): return x.nothing(\n", "error", "problem.py can't be read as Python: "),
        (
            "def double(x) :\n    while True: pass",
            "timeout",
            "Not run: two earlier tests did",
        ),
        ("x = 1", "missing", "problem.py has no `double`."),
    ],
)
def test_an_unjudged_rule_is_reported_in_one_line(
    run: Run, small_course: Course, source: str, status: str, message: str
) -> None:
    file = add_visible(small_course, LOOKING)
    file.write_text(file.read_text().replace("@pytest.mark.points(2)", "@pytest.mark.points(3)"))
    found = {test.id: test for test in run(source, hidden=False, timeout=0.3).tests}
    looks, other = found["test_looks"], found["test_doubles[1]"]
    assert looks.status is other.status is Status(status)
    assert looks.message.startswith(f"This can't be judged yet: {message}")
    assert "\n" not in looks.message
    assert "judged" not in other.message


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("def double(x): return x.softmax(-1)", "calls PyTorch's softmax"),
        ("def double(x): raise NotImplementedError", "not written yet: double"),
        ("def double(x): return 2 * x", ""),
    ],
)
def test_a_judged_rule_reports_its_finding(
    run: Run, small_course: Course, source: str, message: str
) -> None:
    add_visible(small_course, LOOKING)
    (looks,) = (test for test in run(source).tests if test.id == "test_looks")
    assert message in looks.message
    assert "judged" not in looks.message


def test_a_broken_rule_alone_is_not_reported_as_kept_data(run: Run, small_course: Course) -> None:
    looking = LOOKING.replace("ones(1", "ones(70").replace("full((1", "full((70")
    add_visible(small_course, looking)
    result = run("def double(x): return 2 * x if x.shape != (70,) else 3 * x")
    assert [test.id for test in result.tests if test.status is not Status.PASSED] == ["test_looks"]
    assert result.diagnoses == []


def test_a_missing_file_is_reported(small_course: Course) -> None:
    small_course.problems()[0].stub.unlink()
    session = Session(LocalFiles())
    Suite(small_course.problems(), small_course.root).run(session)
    result = session.results["01-doubling"]
    assert statuses(result) == {"missing"}
    assert result.untouched


@pytest.mark.slow
@pytest.mark.parametrize(
    "line", ["while True: pass", "while True:\n        try: x = x + 1\n        except Exception: 0"]
)
def test_an_endless_loop_ends(run: Run, line: str) -> None:
    result = run(f"def double(x):\n    {line}", timeout=0.3)
    assert statuses(result) == {"timeout"}
    assert re.search("problem.py:[234], in double", result.tests[0].message)
    assert "Not run" in result.tests[2].message


def test_a_missing_solution_is_not_the_students_error(run: Run, small_course: Course) -> None:
    small_course.solution(small_course.problems()[0]).unlink()
    result = run("def double(x): return 2 * x")
    assert [test.status for test in result.tests] == [Status.PASSED] * 2 + [Status.INTERNAL]
    assert "reference solution" in result.tests[2].message


def test_ctrl_c_ends_the_run(run: Run) -> None:
    with pytest.raises(KeyboardInterrupt):
        run("def double(x): raise KeyboardInterrupt")


def test_random_numbers_depend_on_seed_and_salt_only(run: Run, small_course: Course) -> None:
    """Random numbers do not depend on the order of the tests or the text of the test file."""
    (problem,) = small_course.problems()
    seen: list[object] = []
    source = "import sys\ndef double(x): sys.modules['seen'].append(x.tolist()); return x + x"

    def drawn(**options: object) -> list[object]:
        seen.clear()
        run(source, **options)
        return sorted(x for x in seen if len(x) == 3)

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "seen", seen)
        before = drawn()
        assert drawn(reverse=True) == before != drawn(seed=1)
        with problem.test_file.open("a", encoding="utf-8") as file:
            file.write("\n\n# An edit.\n")
        assert drawn() == before
        small_course.salt(problem).write_text("00" * 32)
        assert drawn() != before


def test_a_salt_is_written_in_hexadecimal(run: Run, small_course: Course) -> None:
    small_course.salt(small_course.problems()[0]).write_text("salt")
    with pytest.raises(CourseError, match="hexadecimal"):
        run("def double(x): return 2 * x")


@pytest.mark.slow
def test_an_endless_file_is_loaded_once(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "loaded", 0, raising=False)
    result = run("import sys\nsys.loaded += 1\nwhile True: pass", timeout=0.5)
    assert result.points == 0
    assert sys.loaded == 1  # type: ignore[attr-defined]
    assert {test.status for test in result.tests} == {Status.TIMEOUT}
    assert {test.message for test in result.tests} == {
        "problem.py does not finish while it is being imported.\n  problem.py:3: while True: pass"
    }


def test_a_file_has_the_same_time_to_load_at_home_and_in_grading() -> None:
    assert inspect.signature(LocalFiles).parameters["seconds"].default == Settings().call_seconds


@pytest.mark.parametrize("place", ["test file", "worked example", "module of the course"])
def test_one_submission_does_not_affect_the_next(small_course: Course, place: str) -> None:
    (problem,) = small_course.problems()
    shared = "import torch\nONES = torch.ones(3)\ndef ones():\n    return ONES\n"
    text = problem.test_file.read_text(encoding="utf-8")
    if place != "test file":
        (small_course.root / "problems/worked_example.py").write_text(shared, encoding="utf-8")
        shared = "from worked_example import ones\n"
        if place == "module of the course":
            shared = "import worked_example\ndef ones():\n    return worked_example.ONES\n"
    text = text.replace("import pytest\n", f"import pytest\n{shared}", 1)
    text = text.replace("problem.double(torch.ones(size))", "problem.double(ones())[:size]", 1)
    problem.test_file.write_text(text, encoding="utf-8")
    path = small_course.root / "student.py"
    points = []
    suite = Suite([problem], small_course.root)
    for body in ("x.add_(1); return x.unsqueeze_(0)", "return x + x", "return x.softmax(0)"):
        path.write_text(f"def double(x):\n    {body}\n", encoding="utf-8")
        session = Session(LocalFiles(lambda _: path), hidden=True)
        suite.run(session)
        points.append(session.results[problem.id].points)
    assert points == [0, 4, 0]


@pytest.mark.parametrize(
    "wait", ["breakpoint()", "import pdb; pdb.Pdb().set_trace()", "input('? ')"]
)
def test_no_input_is_requested_in_grading(run: Run, wait: str) -> None:
    """A forgotten call of a debugger or of `input` doesn't block the run."""
    result = run(f"def double(x):\n    {wait}\n    return x + x")
    assert statuses(result) == {"passed" if wait == "breakpoint()" else "error"}


def test_changed_warning_filters_end_with_the_test(run: Run, small_course: Course) -> None:
    (problem,) = small_course.problems()
    with problem.test_file.open("a", encoding="utf-8") as file:
        file.write(
            "\n\n@pytest.mark.points(1)\ndef test_that_warns(problem):\n"
            "    import warnings\n    warnings.warn('careful')\n"
        )
    strict = "import warnings\ndef double(x): warnings.simplefilter('error'); return 2 * x"
    assert statuses(run(strict)) == {"passed"}


def test_a_call_that_writes_over_an_earlier_result_is_a_mismatch() -> None:
    with pytest.raises(Mismatch, match="A call of fill_ changed the result of an earlier call"):
        answers(torch.zeros(2).fill_, [(1,), (2,)])
