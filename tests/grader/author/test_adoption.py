"""A class teaches the catalogue: wrong answers are grouped, named once, and told to all."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from grader.author.adoption import adopt_group, code_alone
from grader.author.making_edits import meaning
from grader.course import Course
from grader.diagnose.edits import apply, mistakes_of
from grader.diagnose.fingerprints import Fingerprints, Text
from grader.diagnose.kept_answer import EDGE
from grader.diagnose.unknown_answers import groups, same_fault
from grader.errors import CourseError, UsageError
from grader.grade.class_run import grade_class
from grader.grade.settings import Settings
from grader.intake.submissions import find_submissions
from grader.result import Policy, ProblemResult, Status, SubmissionResult, TestResult
from tests.conftest import copy_with_one_problem
from tests.results import result_of

SCALED = "03-scaled-attention"


def result(name: str, **unknown: dict[str, str]) -> SubmissionResult:
    tests = [TestResult("test_a", "It is scaled", False, 1.0, Status.FAILED)]
    return result_of(name, ProblemResult(SCALED, tests=tests, unknown=unknown))


def test_who_answers_alike_is_of_one_group():
    near, other = "float64 2x3 0 1.00001 2 3 4", "float64 2x3 0 1.1 2 3 4"
    found = groups(
        [
            result("ada", f={"a": "float64 2x3 0 1 2 3 4"}, g={"a": "!TypeError"}),
            result("bob", f={"a": near}, g={"a": "!ValueError"}),
            result("cyd", f={"a": other}),
            result("dan"),
        ]
    )
    assert [(group.submissions, group.parts) for group in found] == [
        (("ada", "bob"), ("f", "g")),
        (("cyd",), ("f",)),
    ]
    assert found[0].failed == ("It is scaled",)
    assert found[0].name != found[1].name
    assert found[0].name.startswith("03-")


def test_without_a_number_the_edges_tell():
    stops = {"a": "!TypeError", EDGE + "b": "float32 2 0 1 1 1 1"}
    assert same_fault(stops, {**stops, "a": "!ValueError"})
    assert not same_fault(stops, {**stops, EDGE + "b": "float32 2 0 2 2 2 2"})
    assert not same_fault(stops, {**stops, "b": "!TypeError"})


def test_a_result_with_unknown_answers_is_read_back():
    written = result("ada", f={"a": "!TypeError"})
    assert SubmissionResult.from_json(json.loads(json.dumps(written.to_json()))) == written


def test_a_file_that_is_taken_in_holds_no_words_of_the_students():
    source = b'''
"""Ada Lovelace"""
# by Ada
__author__ = "Ada"
UNIT = "m"
def double(x):
    """Ada's"""
    "Ada"
    return 2 * x, UNIT
def nothing():
    "Ada"
'''
    text = code_alone(source)
    assert "Ada" not in text
    names: dict[str, object] = {}
    exec(text, names)
    assert names["double"](1) == (2, "m")
    for odd in (b"def (", b"\0", b"(" * 10000 + b")" * 10000):
        with pytest.raises(UsageError, match="Python"):
            code_alone(odd)


ONE_TEST = '''
import pytest
from grader.run.compare import check
# --- hidden tests ---
@pytest.mark.points(25)
def test_all(problem, solution, rng):
    """All is right"""
    q, k, v = rng.normal(2, 3), rng.normal(4, 3), rng.normal(4, 3)
    right = solution.scaled_dot_product_attention(q, k, v)
    check(problem.scaled_dot_product_attention(q, k, v), right, "attention")
    module, x = problem.ScaledAttention(4), rng.normal(2, 3, 4)
    want = solution.scaled_dot_product_attention(module.query(x), module.key(x), module.value(x))
    check(module(x), want, "module(x)")
    assert problem.dot_product_variance(4, 1000, True) < 2
'''
"""In place of all of the problem's, which take longer and tell no more of what is asked here."""


# A class with faults that the catalogue was made to forget


FAULTS = (
    "module_without_scale",
    "module_softmax_over_queries",
    "layers_kvq",
    "values_not_projected",
)
"""Mistakes that fit right solutions of several styles."""


@pytest.fixture(scope="module")
def planted(tmp_path_factory) -> tuple[Course, Path, dict[str, str]]:
    """A course that knows a few faults only, a class, and which fault each student has.

    Each fault is put into four right solutions, each in another style.
    """
    root = tmp_path_factory.mktemp("taught")
    course = copy_with_one_problem(root / "course", "03")
    (problem,) = course.problems()
    known = Fingerprints.load(problem.fingerprints)
    Fingerprints(known.reference).save(problem.fingerprints)
    folder, faults = root / "class", {}
    edits = {mistake.edit.name: mistake.edit for mistake in mistakes_of(course, problem)}
    for fault in FAULTS:
        for style in course.right_files(problem).values():
            with suppress(CourseError):  # most styles have other lines
                wrong = apply(edits[fault], style.read_text(encoding="utf-8"))
                name = f"student{len(faults):02}"
                faults[name] = fault
                place = folder / name / SCALED / "problem.py"
                place.parent.mkdir(parents=True)
                place.write_text(wrong, encoding="utf-8")
    problem.test_file.write_text(ONE_TEST, encoding="utf-8")
    assert len(faults) == 16
    return course, folder, faults


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the sandbox exists on Linux only")
@pytest.mark.usefixtures("lent")
def test_a_class_teaches_the_catalogue(planted, tmp_path):
    course, folder, faults = planted
    (problem,) = course.problems()

    def graded() -> dict[str, SubmissionResult]:
        run = grade_class(
            find_submissions([folder], course),
            course,
            Settings(),
            tmp_path,
            jobs=1,
            policy=Policy.TITLES,
        )
        return {each.submission: each for each in run.results}

    before = graded()
    found = groups(before.values())
    mixed = [group for group in found if len({faults[name] for name in group.submissions}) > 1]
    assert not mixed
    chosen = max(found, key=lambda group: len(group.submissions))
    assert len(chosen.submissions) >= 4
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert chosen.name in page

    text = Text("the moon is made of cheese", "Look up.")
    told = adopt_group(chosen.name, "cheese", text, tmp_path, course)
    assert f"{len(chosen.submissions)} students" in told[-1]
    with pytest.raises(UsageError, match="already"):
        adopt_group(chosen.name, "cheese", text, tmp_path, course)
    with pytest.raises(UsageError, match="no group"):
        adopt_group("03-000000", "other", text, tmp_path, course)
    with pytest.raises(UsageError, match="Say what is wrong"):
        adopt_group(chosen.name, "other", Text(" . "), tmp_path, course)

    after = graded()
    for name in faults:
        feedback = (tmp_path / "feedback" / f"{name}.md").read_text(encoding="utf-8")
        assert ("made of cheese" in feedback) == (name in chosen.submissions), name
    assert {n: r.points for n, r in after.items()} == {n: r.points for n, r in before.items()}

    (other,) = [g for g in groups(after.values()) if g.submissions == found[1].submissions][:1]
    told = adopt_group(
        other.name, "taken", Text("it is taken"), tmp_path, course, other.submissions[0]
    )
    taken = next(m for m in mistakes_of(course, problem) if m.edit.name == "taken")
    student = folder / other.submissions[0] / SCALED / "problem.py"
    assert meaning(taken.source) == meaning(student.read_text(encoding="utf-8"))
    assert taken.edit.when == "it is taken"
    assert "--write-fingerprints" in told[-1]
