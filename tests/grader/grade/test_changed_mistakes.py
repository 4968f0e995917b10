"""Changes to the known mistakes or to their sentences cause no new grading."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from grader.course import own_course
from grader.diagnose.fingerprints import Fingerprints, KnownMistake, Text, with_deviations
from grader.diagnose.naming import diagnose, unnamed
from grader.grade.previous import load_previous, save_result
from grader.result import ProblemResult, Status
from tests.results import doubles

ID = "01-doubling"


@pytest.fixture(scope="module")
def known() -> Fingerprints:
    return Fingerprints.load(own_course().select(["03"])[0].fingerprints)


def diagnosed_result(mistake: KnownMistake, known: Fingerprints) -> ProblemResult:
    """Return the result of code with `mistake`, diagnosed with the mistakes in `known`."""
    answers = with_deviations(known.reference, mistake.deviations)
    found = diagnose(known, answers)
    return ProblemResult(
        ID,
        "abc",
        [doubles(Status.FAILED, "wrong")],
        diagnoses=[each.sentence for each in found],
        mistakes=[[*each.names] for each in found],
        unknown=unnamed(known, answers, found),
    )


def store_mistakes(school: Any, problem: ProblemResult) -> None:
    """Replace the mistakes in bob's stored result by those in another result."""
    result = load_previous(school.out / "results").results["bob"]
    (own,) = result.problems
    own.diagnoses, own.mistakes = problem.diagnoses, problem.mistakes
    own.unknown = problem.unknown
    save_result(result, school.out / "results")


def bobs_problem(school: Any) -> ProblemResult:
    return load_previous(school.out / "results").results["bob"].problems[0]


def some_mistake(known: Fingerprints) -> KnownMistake:
    """Return a mistake whose answers match only its own fingerprint in `known`."""
    return next(
        mistake
        for mistake in known.mistakes
        if diagnosed_result(mistake, known).mistakes == [[mistake.name]]
        and not diagnosed_result(mistake, known_without(known, mistake)).mistakes
        and diagnosed_result(mistake, known_without(known, mistake)).unknown
    )


def known_without(known: Fingerprints, mistake: KnownMistake) -> Fingerprints:
    mistakes = tuple(each for each in known.mistakes if each is not mistake)
    texts = {name: text for name, text in known.texts.items() if name != mistake.name}
    return replace(known, mistakes=mistakes, texts=texts)


def test_a_changed_sentence_causes_no_new_grading(school: Any, known: Fingerprints) -> None:
    (problem,) = school.course.problems()
    mistake = some_mistake(known)
    known.save(problem.fingerprints)
    school.grade()
    store_mistakes(school, diagnosed_result(mistake, known))
    before = bobs_problem(school).diagnoses
    texts = {**known.texts, mistake.name: Text("the cat sat on the scores", "Which cat?")}
    replace(known, texts=texts).save(problem.fingerprints)
    run = school.grade()
    assert (school.names(), run.graded, run.outdated) == ([], 0, {})
    assert bobs_problem(school).diagnoses == before
    stamp = (school.out / "results/bob.json").stat().st_mtime_ns
    school.grade()
    assert (school.out / "results/bob.json").stat().st_mtime_ns == stamp


def test_a_new_mistake_is_named_without_new_grading(school: Any, known: Fingerprints) -> None:
    (problem,) = school.course.problems()
    mistake = some_mistake(known)
    less = known_without(known, mistake)
    less.save(problem.fingerprints)
    school.grade()
    store_mistakes(school, diagnosed_result(mistake, less))
    school.grade()
    page = school.out / "index.html"
    assert "Mistakes without a name" in page.read_text()
    new = replace(mistake, name="sat_on_by_a_cat")
    texts = {**less.texts, new.name: Text("a cat sat there")}
    replace(less, mistakes=(*less.mistakes, new), texts=texts).save(problem.fingerprints)
    school.grade(school.folder / "ada")  # without bob
    assert school.names() == []
    assert "Mistakes without a name" not in page.read_text()
    own = bobs_problem(school)
    assert own.mistakes == [["sat_on_by_a_cat"]]
    assert own.diagnoses[0].endswith("looks as if a cat sat there.")
    assert "a cat sat there" in (school.out / "feedback/bob.html").read_text()
    assert not own.unknown
    assert own.tests[0].diagnosis == ("sat_on_by_a_cat",)


def test_removed_mistakes_keep_their_sentences(school: Any, known: Fingerprints) -> None:
    (problem,) = school.course.problems()
    mistake = some_mistake(known)
    school.grade()
    store_mistakes(school, diagnosed_result(mistake, known))
    before = bobs_problem(school).diagnoses
    known_without(known, mistake).save(problem.fingerprints)
    school.grade()
    assert school.names() == []
    assert bobs_problem(school).diagnoses == before
