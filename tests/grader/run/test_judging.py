"""Code that passes its checks at home passes them in grading, and a record can't be forged."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path

import pytest
import torch

from grader.course import Course
from grader.errors import InternalError
from grader.result import Status
from grader.run.checks import Expected, Mode, running
from grader.run.collecting import CollectedTest
from grader.run.encoding import Decoder, Encoder
from grader.run.judging import Expectation, answer, expect, verdict
from grader.run.local_files import LocalFiles
from grader.run.runner import run_test
from grader.run.session import Session
from grader.run.suite import Suite
from grader.run.unknown import UNKNOWN, without_oracles

HEAD = '''"""Tests."""

import pytest
import torch

from grader.run.checks import (
    check, check_form, check_gradients, check_layer, check_same, check_that, gradients,
    may_be_skipped, parts, prepared, require, set_weights,
)
from shared import oracles


@pytest.mark.points(1)
def test_it(problem, solution, rng):
    """It works"""
'''
ORACLES = '''"""Right answers."""

import torch

from grader.run.compare import check_number, require

RIGHT = torch.tensor([2.0, 4.0])


def doubled(x):
    """Twice x."""
    return 2 * x


def both(x):
    """Twice x and x."""
    return 2 * x, x


def near_two(value, call, low):
    """A number near 2."""
    check_number(value, low, 2.5, call, "about 2")
'''
REFERENCE = """
import torch
from torch import nn

def double(x):
    return x + x

def number():
    return 2.0

class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 2)

    def forward(self, x):
        return self.linear(x)
"""


class Graded:
    """A test of a course, with methods that run it at home and in grading."""

    def __init__(self, course: Course, body: str) -> None:
        (problem,) = course.problems()
        lines = "".join(f"    {line}\n" for line in body.strip("\n").splitlines())
        marker = "# --- hidden tests ---\n\n\n"
        text = HEAD.replace("@pytest", marker + "@pytest", 1) + lines
        problem.test_file.write_text(text, encoding="utf-8")
        self.root = course.root
        self.test, self.in_worker = self._collected(problem), None
        with without_oracles():
            self.in_worker = self._collected(problem)
        self.in_worker.tests.__dict__["solution"] = UNKNOWN

    @cached_property
    def expected(self) -> Expectation:
        """The expectation that the test records with the reference."""
        return expect(self.test, self.session(REFERENCE))

    def _collected(self, problem: object) -> CollectedTest:
        (test,) = Suite([problem], self.root).tests
        return test

    def session(self, source: str) -> Session:
        path = self.root / "problem.py"
        path.write_text(source, encoding="utf-8")
        return Session(LocalFiles(lambda _: path), hidden=True, diagnose=False)

    def home(self, source: str = REFERENCE) -> tuple[Status, str]:
        result = run_test(self.test, self.session(source)).result
        return result.status, result.message

    def graded(self, source: str = REFERENCE) -> tuple[Status, str]:
        inputs = self.expected.inputs
        message = answer(self.in_worker, self.session(source), inputs)
        judged = verdict(self.test, self.expected, message)
        return judged.status, judged.message

    def judged(self, message: bytes) -> Status:
        return verdict(self.test, self.expected, message).status


@pytest.fixture
def graded(tmp_path: Path, new_course: Callable[[Path], Course]) -> Callable[[str], Graded]:
    """Return a function that writes a test with the given body into a course."""
    course = new_course(tmp_path / "course")
    oracles = course.root / "problems/shared/oracles/__init__.py"
    oracles.write_text(ORACLES, encoding="utf-8")
    course.solution(course.problems()[0]).write_text(REFERENCE, encoding="utf-8")
    return lambda body: Graded(course, body)


def wrong(old: str, new: str) -> str:
    assert old in REFERENCE
    return REFERENCE.replace(old, new)


TRIPLED = wrong("return x + x", "return 3 * x")

BODIES = {
    "check": """
x = rng.normal(3)
expected = oracles.doubled(x)
check(problem.double(x), expected, "double(x)")
""",
    "solution": """
x = rng.normal(3)
check(problem.double(x), solution.double(x), "double(x)", atol=1e-3)
""",
    "table": """
check(problem.double(torch.tensor([1.0, 2.0])), oracles.RIGHT, "double([1, 2])")
""",
    "parts": """
x = rng.normal(3)
twice, once = parts(oracles.both(x), 2)
check(problem.double(x) - x, once, "double(x) - x")
check(problem.double(x), twice, "double(x)")
""",
    "relation": """
x = rng.normal(3)
check_same(problem.double(x) + x - x, 2 * problem.double(x / 2), "double(x)")
require(problem.double(x).equal(x + x), "double(x)\\nIt is not twice x.")
""",
    "property": """
check_that(problem.double(torch.ones(1)).item(), oracles.near_two, "double(1)", 1.5)
""",
    "form": """
check_form(problem.double(torch.ones(2)), torch.ones(2), "double(x)")
require((problem.double(torch.ones(2)) < 2.5).all(), "double(x)\\nIt is too large.")
""",
    "gradients": """
x, g = rng.normal(3).requires_grad_(), rng.normal(3)
call = "double(x)"
found = gradients(problem.double(x), {"x": x}, g, call)
check_gradients(found, {"x": oracles.doubled(g)}, call)
""",
    "prepared": """
x = prepared(lambda own: oracles.doubled(own.normal(3)), rng)
check(problem.double(x), oracles.doubled(x), "double(x)")
""",
    "skipped": """
with may_be_skipped("double(x), slowly") as skip:
    if not (problem.number() == 2 and skip()):
        check(problem.double(torch.ones(1)), oracles.doubled(torch.ones(1)), "double(1)")
check(problem.double(torch.ones(2)), oracles.doubled(torch.ones(2)), "double([1, 1])")
""",
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_grading_and_home_give_the_same_verdict(graded: Callable[[str], Graded], body: str) -> None:
    test = graded(body)
    assert test.home() == test.graded() == (Status.PASSED, "")
    sources = {
        "wrong": TRIPLED,
        "shape": wrong("return x + x", "return (x + x)[None]"),
        "dtype": wrong("return x + x", "return (x + x).half()"),
        "list": wrong("return x + x", "return (x + x).tolist()"),
        "none": wrong("return x + x", "x + x"),
        "nan": wrong("return x + x", "return 0 / 0 * (x + x)"),
        "detached": wrong("return x + x", "return (x + x).detach()"),
        "raises": wrong("return x + x", "raise ValueError('no')"),
        "exits": wrong("return x + x", "raise SystemExit"),
        "stub": wrong("return x + x", "raise NotImplementedError"),
        "missing": wrong("def double", "def doubles"),
        "no Python": "def",
        "large": wrong("return x + x", "return (x + x).sum().expand(1 << 40)"),
    }
    for name, source in sources.items():
        assert test.graded(source) == test.home(source), name
    assert test.graded(TRIPLED)[0] is Status.FAILED


def test_layers_and_weights(graded: Callable[[str], Graded]) -> None:
    test = graded("""
layer = problem.Layer()
check_layer(layer, "linear", 2, 2)
weights = {"linear.weight": rng.normal(2, 2), "linear.bias": rng.normal(2)}
set_weights(layer, weights)
x = rng.normal(2)
check(layer(x).detach(), oracles.torch.nn.functional.linear(x, *weights.values()), "Layer()(x)")
""")
    assert test.graded() == (Status.PASSED, "")
    for source in (
        wrong("nn.Linear(2, 2)", "nn.Linear(2, 2, bias=False)"),
        wrong("nn.Linear(2, 2)", "nn.Identity()"),
        REFERENCE.replace("self.linear", "self.layer"),
        wrong("return self.linear(x)", "return x"),
    ):
        assert test.graded(source) == test.home(source)
        assert test.graded(source)[0] is Status.FAILED


REFUSED = {
    "a known answer": 'check(problem.double(torch.ones(1)), torch.ones(1), "f")',
    "an answer of the student's": (
        "x = torch.ones(1)\ncheck(problem.double(x), problem.double(x), 'f')"
    ),
    "a known judge": 'check_that(2.0, lambda value, call: None, "f")',
    "an answer as the value": 'check(oracles.RIGHT, oracles.RIGHT, "f")',
    "an answer to the student's code": 'check(problem.double(oracles.RIGHT), oracles.RIGHT, "f")',
    "a part of the value": 'check_same(problem.number(), oracles.RIGHT, "f")',
    "a loop over answers": 'for right in oracles.RIGHT:\n    check(right, right, "f")',
    "a label with an answer": 'check(problem.number(), oracles.RIGHT, f"f is {oracles.RIGHT}")',
    "a required answer": 'require(oracles.RIGHT[0] == 2, "f")',
    "an answer as an input": 'x = torch.ones(2)\nx += oracles.RIGHT\ncheck(x, oracles.RIGHT, "f")',
    "weights of the solution": "set_weights(solution.Layer(), {})",
}

NO_STUDENT_VALUE = {
    "a layer of the solution": 'check_layer(solution.Layer(), "linear", 2, 2)',
    "gradients of an answer": "gradients(oracles.RIGHT, {}, torch.ones(2), 'f')",
}


@pytest.mark.parametrize("name", [*REFUSED, *NO_STUDENT_VALUE])
def test_a_test_that_contains_or_accepts_an_answer_does_not_pass(
    graded: Callable[[str], Graded], name: str
) -> None:
    test = graded((REFUSED | NO_STUDENT_VALUE)[name])
    with running(Mode("worker")):
        result = run_test(test.in_worker, test.session(REFERENCE)).result
    assert result.status is (Status.INTERNAL if name in REFUSED else Status.FAILED)
    assert name in NO_STUDENT_VALUE or "right" in result.message


def test_a_test_without_a_check_is_refused(graded: Callable[[str], Graded]) -> None:
    with pytest.raises(InternalError, match="makes no check"):
        graded("require(problem.number() == 2, 'f')").graded()


def test_a_test_that_the_reference_fails_is_refused(graded: Callable[[str], Graded]) -> None:
    with pytest.raises(InternalError, match="cannot run with the reference"):
        graded("require(problem.number() == 3, 'not 3')").graded()


def test_later_changes_of_an_answer_do_not_count(
    graded: Callable[[str], Graded],
) -> None:
    test = graded("""
x = torch.ones(2)
right = oracles.doubled(x)
check(problem.double(x), right, "double(x)")
right.zero_()
""")
    assert test.graded() == (Status.PASSED, "")


def test_a_changed_argument_is_an_error(graded: Callable[[str], Graded]) -> None:
    """The expected value belongs to the argument before `double` changes it."""
    test = graded(BODIES["check"])
    assert test.graded(wrong("return x + x", "x *= 2; return x"))[0] is Status.PASSED
    assert test.graded(wrong("return x + x", "x *= 2; return x + x"))[0] is Status.FAILED


def test_a_prepared_input_has_the_same_numbers_everywhere(
    graded: Callable[[str], Graded],
) -> None:
    test = graded("""
first = prepared(lambda own: own.normal(2), rng)
second = rng.normal(2)
check(problem.double(first), oracles.doubled(first), "double(first)")
check(problem.double(second), oracles.doubled(second), "double(second)")
""")
    assert test.graded() == (Status.PASSED, "")
    decoder = Decoder(test.expected.inputs)
    assert len(decoder.decode(decoder.content)) == 1


# Forged records


TWO = """
check(problem.double(torch.ones(2)), oracles.doubled(torch.ones(2)), "first")
with may_be_skipped("block") as skip:
    if not skip():
        check(problem.double(torch.ones(3)), oracles.doubled(torch.ones(3)), "second")
check(problem.number() * torch.ones(1), oracles.doubled(torch.ones(1)), "third")
"""


def forged(record: object, status: object = "passed", test: str = "test_it") -> bytes:
    return Encoder().message([test, record, status, "text"])


def values(*entries: tuple[str, object]) -> bytes:
    encoder = Encoder()
    record = [[call, encoder.encode(value)] for call, value in entries]
    return encoder.message(["test_it", record, "passed", ""])


RIGHT = [("first", torch.full((2,), 2.0)), ("second", torch.full((3,), 2.0))]
RIGHT += [("third", torch.full((1,), 2.0))]


def test_only_a_complete_right_record_passes(graded: Callable[[str], Graded]) -> None:
    test = graded(TWO)
    assert test.judged(values(*RIGHT)) is Status.PASSED
    first, second, third = RIGHT
    for forgery in (
        [],
        [first],
        [first, third],
        [first, second],
        [second, first, third],
        [first, first, second, third],
        [*RIGHT, third],
        [*RIGHT, ("fourth", None)],
        [first, second, ("Third", third[1])],
        [first, second, ("third", None)],
        [first, second, ("third", [third[1]])],
        [first, second, ("third", third[1].double().half())],
        [first, second, ("third", torch.nan * third[1])],
    ):
        assert test.judged(values(*forgery)) not in (Status.PASSED, Status.INTERNAL), forgery


def test_only_optional_checks_may_be_missing(graded: Callable[[str], Graded]) -> None:
    test = graded(TWO)
    assert test.graded()[0] is Status.PASSED
    first, third = RIGHT[0], RIGHT[2]
    for blocks, status in ((["block"], Status.PASSED), ([""], Status.FAILED)):
        encoder = Encoder()
        record = [[first[0], encoder.encode(first[1])], blocks, ["third", encoder.encode(third[1])]]
        message = encoder.message(["test_it", record, "passed", ""])
        assert test.judged(message) is status
    assert test.judged(forged([["block"], ["block"]])) is Status.FAILED


def test_a_hostile_message_is_judged(graded: Callable[[str], Graded]) -> None:
    test = graded(TWO)
    messages = [
        (forged([], "passed"), Status.FAILED),
        (forged([], "internal"), Status.ERROR),
        (forged([], "crash"), Status.CRASH),
        (forged([], "forbidden"), Status.FORBIDDEN),
        (forged([], "invented"), Status.BAD_OUTPUT),
        (forged([], 1), Status.BAD_OUTPUT),
        (forged({}), Status.BAD_OUTPUT),
        (forged([1]), Status.BAD_OUTPUT),
        (forged([[]]), Status.BAD_OUTPUT),
        (forged([[1, 2]]), Status.BAD_OUTPUT),
        (forged([["first", {"a": 1}]]), Status.BAD_OUTPUT),
        (forged([["first", ["tensor", "float32", [2]]]]), Status.BAD_OUTPUT),
        (forged([], test="test_other"), Status.BAD_OUTPUT),
        (b"", Status.BAD_OUTPUT),
        (b"\xff" * 100, Status.BAD_OUTPUT),
        (b'["test_it", [], "passed", ""]', Status.BAD_OUTPUT),
    ]
    for message, status in messages:
        assert test.judged(message) is status, message


def test_a_judge_without_memory_fails_only_its_test(
    graded: Callable[[str], Graded],
) -> None:
    def judge(value: object) -> None:
        raise MemoryError

    expected = Expectation((Expected("first", judge),), b"")
    judged = verdict(graded(TWO).test, expected, values(("first", 1.0)))
    assert judged.status is Status.BAD_OUTPUT


def test_two_values_of_the_student_are_compared_up_to_a_size(
    graded: Callable[[str], Graded],
) -> None:
    test = graded("check_same(problem.double(torch.ones(2)), problem.double(torch.ones(2)), 'f')")
    large = wrong("return x + x", "return torch.rand(1 << 19)")
    assert test.home(large) == test.graded(large)
    assert test.graded(large) == (Status.FAILED, "f\nIt returned more than 262,144 numbers.")


def test_the_worker_records_no_answer_and_no_judge(graded: Callable[[str], Graded]) -> None:
    test = graded(BODIES["check"])
    with running(Mode("worker")) as mode:
        run_test(test.in_worker, test.session(TRIPLED))
    assert mode.record == [["double(x)", ["tensor", "float32", [3]]]]


def test_a_false_class_does_not_change_how_a_value_is_read(graded: Callable[[str], Graded]) -> None:
    lying = wrong(
        "return x + x",
        "return type('Tensor', (), {'__class__': torch.Tensor, '__eq__': lambda *_: True})()",
    )
    assert graded(BODIES["check"]).graded(lying)[0] is not Status.PASSED
