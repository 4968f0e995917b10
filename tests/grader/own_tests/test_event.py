"""Break it as an event: core and bonus, copies of visible tests, a single right file refused."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Sequence

import pytest

from grader.author.findings import wrongly_marked
from grader.course import own_course
from grader.grade.own_tests_job import job_data, run_in_worker
from grader.result import BreakResult
from grader.run.own_tests import Ended, OwnTest, as_problem, run_own_tests
from grader.run.repeats import repeated
from grader.run.worth_of_tests import Target, judge_own_tests, targets
from grader.student.write_tests import break_problem

COURSE = own_course()
(SOFTMAX,) = COURSE.select(["01"])
(SCALED,) = COURSE.select(["03"])

AS_TORCH = """
import pytest
import torch
from torch.nn import functional as F

@pytest.mark.parametrize("scale", [1.0, 30.0, 1e4])
def test_as_torch(problem, scale):
    q, k, v = (scale * torch.randn(2, n, d) for n, d in [(3, 4), (5, 4), (5, 6)])
    want = F.scaled_dot_product_attention(q, k, v)
    torch.testing.assert_close(problem.scaled_dot_product_attention(q, k, v), want)
"""


@pytest.mark.slow
def test_a_comparison_with_torch_is_refused_by_no_right_file(tmp_path):
    path = tmp_path / "test_mine.py"
    path.write_text(AS_TORCH, encoding="utf-8")
    result = break_problem(COURSE, SCALED, path)
    assert result.accepts_all, result.refusals
    less_exact = COURSE.right_files(SCALED)["log_sum_exp"]
    ended = run_own_tests(AS_TORCH.encode(), as_problem(less_exact.read_bytes()))
    assert any(test.ended is Ended.FAILED for test in ended)
    assert "log_sum_exp" not in {target.name for target in targets(COURSE, SCALED)}


def test_the_audit_says_which_right_file_is_less_exact():
    solution = COURSE.solution(SCALED)
    marked = COURSE.right_files(SCALED)["log_sum_exp"].read_bytes()
    silent = marked.replace(b"Less exact", b"Otherwise")
    (finding,) = wrongly_marked(solution, [("variant log_sum_exp", silent)])
    assert 'docstring should say "Less exact"' in finding
    assert not [*wrongly_marked(solution, [("variant log_sum_exp", marked)])]
    exact = solution.read_bytes()
    assert not [*wrongly_marked(solution, [("solution", exact)])]
    wrongly = b'"""Less exact."""\n' + exact.partition(b"\n")[2]
    (finding,) = wrongly_marked(solution, [("solution", wrongly)])
    assert "passes oracle.py" in finding


# A small catalogue of numbers: what is right is even, the core is odd, all else is negative


def catalogue(right: int = 5, core: int = 4, others: int = 2) -> list[Target]:
    found = [Target(b"n = %d\n" % (2 * n), None, "right", name=f"right_{n}") for n in range(right)]
    for n in range(core):
        found.append(Target(b"n = %d\n" % (2 * n + 1), n, f"odd {n}", name=f"odd_{n}", core=True))
    for n in range(1, others + 1):
        found.append(Target(b"n = %d\n" % -n, 100 + n, f"below {n}", name=f"below_{n}"))
    return found


def judged(asserted: str, files: Sequence[Target] | None = None) -> BreakResult:
    tests = f"def test_n(problem):\n    n = problem.n\n    assert {asserted}\n".encode()

    def run(source: bytes, without: Sequence[str], first: Sequence[str]) -> list[OwnTest]:
        return run_own_tests(tests, as_problem(source), without=without, first=first)

    result = judge_own_tests(SOFTMAX, tests, catalogue() if files is None else [*files], run)
    result.max, result.bonus, result.full = 10, 2, 0.75
    return result


def test_a_share_of_the_core_gives_all_points():
    assert judged("n % 2 == 0 or n < 0").points == 10  # all of the core, nothing else
    assert judged("n not in (1, 3)").points == pytest.approx(10 * 2 / 4 / 0.75)
    assert judged("True").points == 0


def test_other_mistakes_are_tried_once_the_core_is_caught():
    result = judged("n in (0, 2, 4, 6, 8, -1)")
    assert (result.core, result.core_caught) == (4, 4)
    assert (result.mistakes, result.caught, result.missed) == (2, 1, ["below_1"])
    assert result.points == 11
    result = judged("n not in (1, 3)")
    assert (result.mistakes, result.core_missed) == (0, {"odd_2": "odd 2", "odd_3": "odd 3"})
    assert "Not caught: odd 3." in result.lines()


def test_without_a_core_all_mistakes_are_alike():
    files = [t for t in catalogue() if not t.core]
    result = judged("n != -1", files)
    assert (result.core, result.caught, result.mistakes) == (0, 1, 2)
    assert result.points == pytest.approx(10 * 0.5 / 0.75)


def test_one_right_file_that_refuses_leaves_the_points_open():
    result = judged("n % 2 == 0 and n != 4")
    assert result.refused == ["right_2"]
    assert result.is_open
    assert result.points > 10
    assert "one right file is refused (right_2): look at it" in result.about_refusals()
    assert any("Somebody will look" in line for line in result.lines())


@pytest.mark.parametrize(
    ("asserted", "right"), [("n % 2 == 0 and n not in (2, 4)", 5), ("n % 2 == 0 and n != 4", 4)]
)
def test_two_that_refuse_or_one_of_few_cost_all_points(asserted, right):
    result = judged(asserted, catalogue(right=right))
    assert not result.is_open
    assert result.points == 0
    assert "right files are refused" in result.about_refusals()


def test_a_result_with_all_of_this_comes_back_from_a_file():
    assert judged("n % 2 == 0 and n != 4").is_sound()


# Copies of visible tests

VISIBLE = SOFTMAX.test_file.read_text(encoding="utf-8")
COPIED = textwrap.dedent("""
    def test_softmax_along_every_dim(problem, rng, dim):
        x = rng.normal(3, 4, 5)
        expected = softmax_along(x, dim)
        call = f"softmax(x, dim={dim}) with x of shape (3, 4, 5)"
        check(problem.softmax(x=x, dim=dim), expected, call)
""")
OWN = textwrap.dedent("""
    def test_rows(problem):
        x = torch.randn(3, 4)
        assert torch.allclose(problem.softmax(x), torch.softmax(x, -1), atol=1e-6)
""")


def test_a_visible_test_is_known_again_by_other_names():
    renamed = (
        COPIED.replace("test_softmax_along_every_dim", "test_it")
        .replace("softmax_along", "along")
        .replace("expected", "want")
        .replace("x = rng", "x   =   rng")
        .replace("check(", "compare(")
    )
    assert repeated(SOFTMAX, (renamed + OWN).encode()) == ["test_it"]


def test_who_calls_a_copy_is_one():
    helper = COPIED.replace("def test_softmax_along_every_dim", "def body")
    tests = (
        f"{helper}\ndef test_it(problem):\n    for dim in (0, 1):\n        body(problem, r, dim)\n"
    )
    assert repeated(SOFTMAX, (tests + OWN).encode()) == ["test_it"]


def test_a_copy_beside_what_is_nested_too_deeply_is_one():
    """A helper at which Python's own parser stops short hid all copies once."""
    deep = f"def unused(a):\n    return {' + '.join(['a'] * 400)}\n"
    copied = COPIED.replace("test_softmax_along_every_dim", "test_it")
    assert repeated(SOFTMAX, (copied + deep + OWN).encode()) == ["test_it"]


def test_copies_are_found_in_a_moment():
    """Functions that call each other in a long row, and `match` in `match`: each took minutes."""
    row = "".join(f"def c{n + 1}():\n    c{n}()\n" for n in range(3000))
    first = COPIED.replace("test_softmax_along_every_dim", "c0")
    nested = "".join(f"{' ' * 2 * n} match a:\n{' ' * 2 * n}  case 1:\n" for n in range(48))
    nested = f"def helper(a):\n{nested}{' ' * 97}x = [{'a, ' * 15000}]\n"
    started = time.process_time()
    for tests in (first + row, nested + OWN):
        assert repeated(SOFTMAX, tests.encode()) == []
    assert time.process_time() - started < 20


@pytest.mark.parametrize(
    "text",
    ["def f(:", "\0", "x = " + "(" * 5000, "x = " + "-" * 100_000 + "1", "x = 1" + ".a" * 50_000]
    + ["def test_a(problem):\n    return " + "f(" * 90 + ")" * 90, "x = " + "1+" * 50_000 + "1"],
)
def test_what_can_hardly_be_read_is_no_copy(text):
    assert repeated(SOFTMAX, text.encode()) == []


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted((SOFTMAX.folder.parent).glob("*/test_*.py")), ids=str)
def test_every_visible_test_is_known_again(path):
    (problem,) = (p for p in COURSE.problems() if p.folder == path.parent)
    visible = path.read_text(encoding="utf-8").partition("# --- hidden tests ---")[0]
    names = {line[4:].partition("(")[0] for line in visible.splitlines() if "def test" in line[:8]}
    assert {*repeated(problem, visible.encode())} == names
    others = [p for p in (SCALED, SOFTMAX) if p != problem]
    assert not repeated(others[0], OWN.encode())


def test_copies_are_left_out_and_count_for_nothing():
    tests = (COPIED + OWN).replace("(problem, rng, dim)", "(problem)").encode()
    copy = "test_softmax_along_every_dim"
    found = run_in_worker(job_data(tests, [copy], []), as_problem(b""))
    assert [ended for _, ended, _ in found.tests] == [Ended.NOT_RUN, Ended.FAILED]
    only = run_in_worker(job_data(tests, [copy, "test_rows"], []), as_problem(b""))
    assert only.unusable is not None
    assert "repeat visible tests" in only.unusable[0]


def test_what_caught_most_comes_first_and_one_failure_is_enough():
    tests = b"".join(b"def test_%d(problem):\n    assert %d\n" % (n, n % 2) for n in range(4))
    ended = [t.ended for t in run_own_tests(tests, as_problem(b""), first=["test_3", "test_2"])]
    assert ended == [Ended.NOT_RUN, Ended.NOT_RUN, Ended.FAILED, Ended.PASSED]


def test_a_right_file_that_uses_torch_jit_can_be_loaded():
    (block,) = COURSE.select(["06"])
    for path in COURSE.right_files(block).values():
        as_problem(path.read_bytes())
