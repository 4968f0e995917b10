"""What tests that a student wrote are worth: five files from naive to thorough, and odd ones."""

from __future__ import annotations

import random
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType

import pytest

from grader.course import own_course
from grader.diagnose.edits import mistakes_of
from grader.errors import UsageError
from grader.result import BreakResult
from grader.run.own_tests import Ended, OwnTest, Unusable, as_problem, run_own_tests
from grader.run.shaking import shaken
from grader.run.worth_of_tests import (
    RunTests,
    Target,
    judge_own_tests,
    opened,
    seal,
    sealed_file,
    stripped,
    targets,
)
from grader.student.write_tests import break_problem

FILES = sorted((Path(__file__).parent / "files").glob("*.py"))
COURSE = own_course()
(SOFTMAX,) = COURSE.select(["01"])
(SCALED,) = COURSE.select(["03"])


@pytest.mark.slow
def test_files_from_naive_to_thorough_get_higher_scores(tmp_path):
    """Two of them catch the same of the core, which is all that counts until it is earned."""
    thorough = tmp_path / "test_mine.py"
    thorough.write_bytes(b"".join(path.read_bytes() for path in FILES[-2:]))
    found = [break_problem(COURSE, SCALED, path) for path in [*FILES[:-1], thorough]]
    assert all(result.accepts_all for result in found)
    caught = [
        (result.core_caught + result.caught) / (result.core + result.mistakes) for result in found
    ]
    steps = [later - earlier for earlier, later in zip(caught, caught[1:], strict=False)]
    assert min(steps) >= 0, caught
    assert sum(step > 0.1 for step in steps) == len(steps) - 1, caught
    assert caught[0] < 0.1
    assert caught[-1] > 0.75


def judged(text: str) -> BreakResult:
    """What a few files say of tests of `double`."""
    right = Target(b"def double(x):\n    return 2 * x\n", None, "a product", name="reference")
    other = Target(
        b"def double(x, scale=2):\n    return x * scale\n", None, "a scale", name="other"
    )
    wrong = {b"x": 0, b"3 * x": 1, b"0 * x": 2, b"x ** 2": 3}
    files = [right, other] + [
        Target(b"def double(x):\n    return %s\n" % code, family, code.decode())
        for code, family in wrong.items()
    ]
    tests = textwrap.dedent(text).encode()

    return judge_own_tests(SOFTMAX, tests, files, running(tests))


def running(tests: bytes, *, stops: bool = False) -> RunTests:
    """What runs tests on a file."""

    def run(source: bytes, without: Sequence[str], first: Sequence[str]) -> list[OwnTest]:
        given = first if stops else None
        return run_own_tests(tests, as_problem(source), without=without, first=given)

    return run


def test_what_fails_on_wrong_code_alone_counts():
    result = judged("""
        def test_two(problem):
            assert problem.double(2) == 4
        def test_nothing(problem):
            pass
    """)
    assert (result.refused, result.right) == ([], 2)
    assert (result.caught, result.mistakes) == (3, 4)
    assert result.tests == {"test_nothing": 0, "test_two": 3}
    assert result.example == "x ** 2"
    assert any("test_nothing" in line for line in result.lines())


def test_a_rule_of_ones_own_is_told_by_the_line_that_asks_for_it():
    result = judged("""
        import inspect
        def test_no_more_arguments(problem):
            assert problem.double(2) == 4
            assert len(inspect.signature(problem.double).parameters) == 1
    """)
    assert result.refused == ["other"]
    result.max = 10
    assert result.points == 0
    (refusal,) = result.refusals
    assert "len(inspect.signature(problem.double).parameters) == 1" in refusal
    assert "a scale" in refusal


def test_half_of_a_family_is_half_a_mistake():
    files = [Target(b"n = 0\n", None, "right")]
    files += [Target(b"n = %d\n" % n, 0, "wrong") for n in (1, 2)]
    tests = b"def test_n(problem):\n    assert problem.n != 1\n"
    result = judge_own_tests(SOFTMAX, tests, files, running(tests))
    assert (result.caught, result.mistakes) == (0.5, 1)


def ended(text: str) -> list[Ended]:
    source = "import pytest, unittest, random, torch, numpy as np\n" + textwrap.dedent(text)
    return [test.ended for test in run_own_tests(source.encode(), ModuleType("problem_"))]


USUAL = {
    "approx and testing": """
        def test_it(problem):
            assert [0.1 + 0.2] == pytest.approx([0.3])
            np.testing.assert_allclose(np.ones(2), [1, 1])
            torch.testing.assert_close(torch.ones(2), torch.ones(2))
            with pytest.raises(ValueError, match="no"):
                raise ValueError("no")
    """,
    "cases": """
        @pytest.mark.parametrize("n", [1, pytest.param(2, id="two")])
        @pytest.mark.parametrize(("a", "b"), [(1, 2)])
        def test_it(problem, n, a, b): assert (a, b) == (1, 2)
    """,
    "no problem": "def test_it(): pass",
    "random numbers": """
        def test_it(problem):
            got = torch.rand(1).item(), np.random.rand(), random.random()
            torch.manual_seed(20), np.random.seed(20), random.seed(20)
            assert got == (torch.rand(1).item(), np.random.rand(), random.random())
    """,
    "a function and a class to help": """
        class Model:
            size = 2
        def set_up_model(): return Model()
        def test_it(problem): assert set_up_model().size == 2
    """,
    "a class of unittest's in use": """
        from unittest import TestCase, mock
        def test_it(problem):
            TestCase().assertEqual(1, 1)
    """,
}


@pytest.mark.parametrize("name", USUAL)
def test_usual_ways_to_write_tests(name):
    assert {*ended(USUAL[name])} == {Ended.PASSED}


ODD = {
    "a skip": ("import pytest\ndef test_it(problem):\n    pytest.skip()", Ended.STOPPED),
    "fail": ("import pytest\ndef test_it(problem):\n    pytest.fail('no')", Ended.FAILED),
    "exit": ("import pytest\ndef test_it(problem):\n    pytest.exit('no')", Ended.STOPPED),
    "SystemExit": ("def test_it(problem):\n    raise SystemExit", Ended.STOPPED),
    "xfail in words": ("import pytest\ndef test_it(problem):\n    pytest.xfail()", Ended.STOPPED),
    "a case": (
        "import pytest\n@pytest.mark.parametrize('a, b', [(1, 2), pytest.param(1, 2)])\n"
        "def test_it(problem, a, b):\n    assert (a, b) == (1, 2)",
        Ended.PASSED,
    ),
}


@pytest.mark.parametrize("name", ODD)
def test_how_a_test_ends(name):
    text, ended = ODD[name]
    assert {test.ended for test in run_own_tests(text.encode(), ModuleType("problem_"))} == {ended}


UNUSABLE = {
    "not Python": "def test_it(problem:\n",
    "nothing in it": "x = 1\n",
    "a fixture": "def test_it(problem, tmp_path):\n    pass\n",
    "monkeypatch": "def test_it(problem, monkeypatch):\n    pass\n",
    "a fixture of its own": (
        "import pytest\n@pytest.fixture(autouse=True)\ndef one(): pass\ndef test_it(problem): pass"
    ),
    "a class of tests": "class TestIt:\n    def test_it(self, problem): pass",
    "xfail": "import pytest\n@pytest.mark.xfail\ndef test_it(problem): pass",
    "a mark on all": (
        "import pytest\npytestmark = pytest.mark.skipif(True, reason='')\n"
        "def test_it(problem): pass"
    ),
    "a mark on a case": (
        "import pytest\n@pytest.mark.parametrize('a', [pytest.param(1, marks=pytest.mark.skip)])\n"
        "def test_it(problem, a): pass"
    ),
    "the problem as a module": "from problem import softmax\ndef test_it(problem): pass",
    "the grader": "from grader.run.compare import check\ndef test_it(problem): pass",
    "unittest": "import unittest\nclass TestIt(unittest.TestCase):\n    def test_it(self): pass",
    "a setup": "def setup_function(): pass\ndef test_it(problem): pass",
    "odd marks": "def test_it(problem): pass\ntest_it.pytestmark = [7]",
    "not at the top": "if True:\n    def test_it(problem): pass\n",
    "not written with def": "exec('def test_it(problem): pass')\n",
    "a decorator of its own": (
        "def twice(test):\n    return lambda problem: (test(problem), test(problem))\n"
        "@twice\ndef test_it(problem): pass\n"
    ),
    "another function": "def one(problem): pass\ndef test_it(problem): pass\ntest_it = one\n",
    "by another name": "def one(problem): pass\nglobals()['test_it'] = one\n",
    "a coroutine": "async def test_it(problem):\n    pass\n",
    "an exit": "raise SystemExit\n",
    "a skip of all": "import pytest\npytest.skip('x', allow_module_level=True)\n",
    "odd cases": (
        "import pytest\n@pytest.mark.parametrize('a, b', [1])\ndef test_it(problem, a, b): pass"
    ),
    "no end of cases": (
        "import itertools, pytest\n@pytest.mark.parametrize('a', range(10**6))\n"
        "@pytest.mark.parametrize('b', range(100))\ndef test_it(problem, a, b): pass"
    ),
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_what_is_no_file_of_tests_says_why(name):
    with pytest.raises(Unusable) as raised:
        run_own_tests(UNUSABLE[name].encode(), ModuleType("problem_"))
    assert str(raised.value).endswith(".")
    result = judged(UNUSABLE[name])
    assert result.reason == str(raised.value)
    assert result.points == 0


def test_a_file_of_tests_has_64_kilobytes_at_the_most():
    text = "def test_it(problem): pass\n# "
    assert judged(text.ljust(1 << 16, "-")).reason == ""
    assert judged(text.ljust((1 << 16) + 1, "-")).reason == "It is longer than 64 KB."


def test_what_is_not_supported_is_said_with_what_is():
    text = "import pytest\n\n@pytest.fixture\ndef one(): pass\n\ndef test_it(problem, one): pass"
    assert judged(text).reason == (
        "one is a fixture, line 4, which is not run here. Make what a test needs in the test, or "
        "in a function that it calls."
    )
    assert "has the mark skip. The only mark that is known here is parametrize." in (
        judged("import pytest\n@pytest.mark.skip\ndef test_it(problem): pass").reason
    )


def test_nobody_knows_which_file_comes_when():
    """An order that hangs on the tests tells them which file is right, by counting."""
    files = [Target(b"%d" % n, None if n < 4 else n, "") for n in range(12)]
    orders = set()
    for _ in range(3):
        seen: list[bytes] = []

        def run(source: bytes, *_: object, seen: list[bytes] = seen) -> list[OwnTest]:
            seen.append(source)
            return [OwnTest("test_it", Ended.PASSED)]

        judge_own_tests(SOFTMAX, b"def test_it(problem): pass", files, run)
        orders.add(tuple(seen))
    assert len(orders) > 1
    assert all(len(order) == 16 for order in orders)


def test_what_is_told_stands_in_the_file_and_is_short():
    tests = b"def test_one(problem): pass\n" + b"assert " + b"x" * 5000 + b"\n" * 40
    files = [Target(b"%d" % n, None, "") for n in range(40)] + [Target(b"", 0, "")]

    def run(*_: object) -> list[OwnTest]:
        return [OwnTest("test_hidden", Ended.FAILED, 2), OwnTest("test_one", Ended.FAILED, 1)]

    lines = judge_own_tests(SOFTMAX, tests, files, run).lines()
    assert not any("hidden" in line for line in lines)
    assert max(map(len, lines)) < 300
    differing = iter(range(100))
    result = judge_own_tests(
        SOFTMAX, tests, files, lambda *_: [OwnTest(f"test_{next(differing)}", Ended.PASSED)]
    )
    assert "not the same" in result.reason


def test_who_stops_a_run_is_not_a_test():
    text = b"def test_it(problem):\n    raise KeyboardInterrupt\n"
    with pytest.raises(KeyboardInterrupt):
        run_own_tests(text, ModuleType("problem_"), (KeyboardInterrupt,))


def test_a_program_is_written_otherwise_and_does_the_same():
    source = b"from math import e\ndef double(x):\n    return 2 * x\n"
    written = {shaken(source, random.Random(seed)) for seed in range(5)}
    assert len(written) == 5
    for text in written:
        names: dict[str, Callable[[int], int]] = {}
        exec(text, names)
        assert names["double"](4) == 8


@pytest.mark.slow
def test_right_solutions_stay_right_when_they_are_written_otherwise():
    for problem in COURSE.problems():
        for path in COURSE.right_files(problem).values():
            source = stripped(path.read_text(encoding="utf-8"))
            compile(shaken(source, random.Random(0)), "problem.py", "exec")


def test_files_tell_nothing_in_words():
    for target in targets(COURSE, SCALED):
        assert b'"""' not in target.source
        assert b"#" not in target.source
        assert target.text.encode() not in target.source


def test_what_only_a_look_at_the_code_tells_is_not_asked_for():
    sources = {m.edit.name: stripped(m.source) for m in mistakes_of(COURSE, SOFTMAX)}
    found = {target.source for target in targets(COURSE, SOFTMAX)}
    assert sources["softmax_of_torch"] not in found
    assert sources["mean_subtracted"] in found


@pytest.mark.slow
def test_students_practise_on_the_core_without_the_reference(tmp_path):
    problem = type(SCALED)(tmp_path / SCALED.id)
    problem.folder.mkdir()
    with pytest.raises(UsageError, match="judged when they are graded"):
        opened(problem)
    every = targets(COURSE, SCALED)
    sealed_file(problem).write_bytes(seal(every))
    practice = opened(problem)
    assert {t.name for t in practice if not t.is_right} == {t.name for t in every if t.core}
    assert 0.4 < sum(t.is_right for t in practice) / sum(t.is_right for t in every) < 0.6
    assert {t.source for t in practice} < {t.source for t in every}
    assert every[0].source not in {t.source for t in practice}
    sealed_file(problem).write_bytes(b"?")
    with pytest.raises(UsageError, match="can't be read"):
        opened(problem)


def test_no_file_of_tests_is_said_with_an_example(tmp_path):
    with pytest.raises(UsageError, match="def test_"):
        break_problem(COURSE, SCALED, tmp_path / "test_mine.py")
