"""Words are not part of marks: after a new sentence or name no result is graded again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from grader.course import own_course
from grader.diagnose.fingerprints import Fault, Fingerprints, Text, with_deviations
from grader.diagnose.naming import diagnose, unnamed
from grader.grade.previous import load_previous, save_result
from grader.result import ProblemResult, Status
from tests.results import doubles

ID = "01-doubling"


@pytest.fixture(scope="module")
def known() -> Fingerprints:
    return Fingerprints.load(own_course().select(["03"])[0].fingerprints)


def named(fault: Fault, known: Fingerprints) -> ProblemResult:
    """Return the kept result of code with a mistake, if these mistakes are known."""
    answers = with_deviations(known.reference, fault.deviations)
    found = diagnose(known, answers)
    return ProblemResult(
        ID,
        "abc",
        [doubles(Status.FAILED, "wrong")],
        diagnoses=[each.sentence for each in found],
        mistakes=[[*each.names] for each in found],
        unknown=unnamed(known, answers, found),
    )


def kept(school: Any, problem: ProblemResult) -> None:
    """Let what bob's result says of mistakes be that of a problem."""
    result = load_previous(school.out / "results").results["bob"]
    (own,) = result.problems
    own.diagnoses, own.mistakes = problem.diagnoses, problem.mistakes
    own.unknown = problem.unknown
    save_result(result, school.out / "results")


def of_bob(school: Any) -> ProblemResult:
    return load_previous(school.out / "results").results["bob"].problems[0]


def some_fault(known: Fingerprints) -> Fault:
    """Return a mistake that is named by itself, and that has no name where it isn't known."""
    return next(
        fault
        for fault in known.faults
        if named(fault, known).mistakes == [[fault.name]]
        and not named(fault, without(known, fault)).mistakes
        and named(fault, without(known, fault)).unknown
    )


def without(known: Fingerprints, fault: Fault) -> Fingerprints:
    faults = tuple(each for each in known.faults if each is not fault)
    texts = {name: text for name, text in known.texts.items() if name != fault.name}
    return replace(known, faults=faults, texts=texts)


def test_a_sentence_in_other_words_regrades_nobody(school: Any, known: Fingerprints) -> None:
    (problem,) = school.course.problems()
    fault = some_fault(known)
    known.save(problem.fingerprints)
    school.grade()
    kept(school, named(fault, known))
    before = of_bob(school).diagnoses
    texts = {**known.texts, fault.name: Text("the cat sat on the scores", "Which cat?")}
    replace(known, texts=texts).save(problem.fingerprints)
    run = school.grade()
    assert (school.names(), run.graded, run.outdated) == ([], 0, {})
    assert of_bob(school).diagnoses == before
    stamp = (school.out / "results/bob.json").stat().st_mtime_ns
    school.grade()
    assert (school.out / "results/bob.json").stat().st_mtime_ns == stamp


def test_a_new_mistake_is_named_and_nobody_graded_again(school: Any, known: Fingerprints) -> None:
    (problem,) = school.course.problems()
    fault = some_fault(known)
    less = without(known, fault)
    less.save(problem.fingerprints)
    school.grade()
    kept(school, named(fault, less))
    school.grade()
    page = school.out / "index.html"
    assert "Mistakes without a name" in page.read_text()
    new = replace(fault, name="sat_on_by_a_cat")
    texts = {**less.texts, new.name: Text("a cat sat there")}
    replace(less, faults=(*less.faults, new), texts=texts).save(problem.fingerprints)
    school.grade(school.folder / "ada")  # bob is not even given
    assert school.names() == []
    assert "Mistakes without a name" not in page.read_text()
    own = of_bob(school)
    assert own.mistakes == [["sat_on_by_a_cat"]]
    assert own.diagnoses[0].endswith("looks as if a cat sat there.")
    assert "a cat sat there" in (school.out / "feedback/bob.html").read_text()
    assert not own.unknown
    assert own.tests[0].diagnosis == ("sat_on_by_a_cat",)


def test_what_has_no_words_today_keeps_those_it_had(school: Any, known: Fingerprints) -> None:
    (problem,) = school.course.problems()
    fault = some_fault(known)
    school.grade()
    kept(school, named(fault, known))
    before = of_bob(school).diagnoses
    without(known, fault).save(problem.fingerprints)
    school.grade()
    assert school.names() == []
    assert of_bob(school).diagnoses == before
