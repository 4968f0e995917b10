"""Wrong answers are explained by known mistakes, separately for each function and class."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from grader.code.loading import load_module
from grader.course import Course, Problem, own_course
from grader.diagnose.answers import Answer, alike, answer_of, attempt, same
from grader.diagnose.fingerprints import Fingerprints, KnownMistake, Text
from grader.diagnose.naming import diagnose, unnamed
from grader.diagnose.probe import Answers, Part, ask, load_probe, owner

X = torch.arange(6.0).reshape(2, 3)


def value(number: float) -> Answer:
    return answer_of(torch.tensor([number, 2.0]))


STOPS = Answer(instead="RuntimeError")
LOST = answer_of(torch.tensor([math.nan, 2.0]))


def known(**mistakes: Mapping[str, Answers]) -> Fingerprints:
    """Return fingerprints with these mistakes in the parts f and g. All right answers are 1."""
    right = Answers({"a": value(1), "b": value(1)}, {"large": value(1), "small": value(1)})
    reference = {"f": right, "g": right}
    texts = {name: Text(f"it is {name}", "Look again.") for name in mistakes}
    return Fingerprints(
        reference, tuple(KnownMistake(name, answers) for name, answers in mistakes.items()), texts
    )


def student(
    f: Mapping[str, Answer] = {}, g: Mapping[str, Answer] = {}, **edges: Answer
) -> dict[str, Answers]:
    """Return a student's answers for f and g. Answers that are not given are right."""
    right = {"a": value(1), "b": value(1)}
    at_edges = {"large": value(1), "small": value(1)}
    return {
        "f": Answers({**right, **f}, {**at_edges, **edges}),
        "g": Answers({**right, **g}, at_edges),
    }


def names(catalogue: Fingerprints, answers: Mapping[str, Answers]) -> list[tuple[str, ...]]:
    return [diagnosis.names for diagnosis in diagnose(catalogue, answers)]


EDGE = {"large": value(1)}
DOUBLED = Answers({"a": value(2), "b": value(2)}, {})
TRIPLED = Answers({"a": value(3), "b": value(3)}, {})


def test_answers_whose_size_overflows_are_compared_by_their_sums() -> None:
    large = answer_of(torch.tensor([1e300, -2e300, 3e299], dtype=torch.float64))
    other = answer_of(torch.tensor([-2e300, 1e300, 3e299], dtype=torch.float64))
    assert same(large, large)
    assert same(large, Answer.read(large.write()))
    assert not same(large, other)


def test_a_mistake_of_two_functions_is_reported_for_the_wrong_functions() -> None:
    catalogue = known(doubled={"f": DOUBLED, "g": DOUBLED})
    in_g, in_both = student(g=DOUBLED.main), student(DOUBLED.main, DOUBLED.main)
    (only,) = diagnose(catalogue, in_g)
    assert (only.names, only.parts) == (("doubled",), ("g",))
    assert only.sentence == "In g, it looks as if it is doubled. Look again."
    (only,) = diagnose(catalogue, in_both)
    assert only.parts == ("f", "g")
    about_f = replace(catalogue, texts={"doubled": Text("f is doubled")})
    assert not diagnose(about_f, in_g)
    assert diagnose(about_f, in_both)
    caught = replace(catalogue, mistakes=(replace(catalogue.mistakes[0], caught_by="test_f"),))
    assert diagnose(caught, in_g, {"test_f"})  # test_f checks f, but g contains the mistake


def test_two_equal_mistakes_share_a_nudge_and_a_single_function_is_not_named() -> None:
    catalogue = known(doubled={"f": DOUBLED}, added={"f": DOUBLED})
    (only,) = diagnose(catalogue, student(DOUBLED.main))
    assert only.sentence == "In f, it looks as if it is doubled.\nOr as if it is added. Look again."
    mistakes, of_f = catalogue.mistakes, {"f": catalogue.reference["f"]}
    alone = replace(catalogue, reference=of_f, mistakes=mistakes[:1])
    (only,) = diagnose(alone, student(DOUBLED.main))
    assert only.sentence == "It looks as if it is doubled. Look again."


def test_a_mistake_is_not_named_if_its_test_passes() -> None:
    catalogue = known(doubled={"f": DOUBLED})
    caught = replace(catalogue, mistakes=(replace(catalogue.mistakes[0], caught_by="test_f[1]"),))
    answers = student(f=DOUBLED.main)
    assert [each.tests for each in diagnose(caught, answers, {"test_g"})] == [("test_f[1]",)]
    assert not diagnose(caught, answers, {"test_f[1]"})


def test_a_question_about_a_part_belongs_to_its_class() -> None:
    right = Answers({"a": value(1)}, {})
    parts = ("f", "G: defaults", "G: layers")
    mistake = KnownMistake("doubled", {part: Answers({"a": value(2)}, {}) for part in parts[1:]})
    catalogue = Fingerprints(
        dict.fromkeys(parts, right), (mistake,), {"doubled": Text("G is doubled")}
    )
    (only,) = diagnose(catalogue, {"f": right, **mistake.deviations})
    assert only.parts == ("G: defaults", "G: layers")
    assert only.sentence == "It looks as if G is doubled."


def test_a_mistake_that_a_different_part_contradicts_is_not_named() -> None:
    right = Answers({"a": value(1)}, {})
    parts = ("G: layers", "G: text")
    wrong = Answers({"a": value(2)}, {})
    mistake = KnownMistake("one layer more", dict.fromkeys(parts, wrong))
    catalogue = Fingerprints(
        dict.fromkeys(parts, right), (mistake,), {"one layer more": Text("it is")}
    )
    assert names(catalogue, dict.fromkeys(parts, wrong)) == [("one layer more",)]
    assert names(catalogue, {"G: layers": right, "G: text": wrong}) == []
    assert names(catalogue, {"G: text": wrong}) == [("one layer more",)]  # only one part
    stops = {"G: layers": Answers({"a": STOPS}, {}), "G: text": wrong}
    assert names(catalogue, stops) == [("one layer more",)]


def test_a_function_is_not_named_twice_in_a_sentence() -> None:
    catalogue = Fingerprints(
        known().reference, (KnownMistake("loud", {"f": DOUBLED}),), {"loud": Text("f adds a 0")}
    )
    (only,) = diagnose(catalogue, student(DOUBLED.main))
    assert only.sentence == "It looks as if f adds a 0."
    in_both = replace(catalogue, mistakes=(KnownMistake("loud", {"f": DOUBLED, "g": DOUBLED}),))
    (only,) = diagnose(in_both, student(DOUBLED.main, DOUBLED.main))
    assert only.sentence == "It looks as if f (seen in g, too) adds a 0."


AT_A, AT_B = Answers({"a": value(2)}, {}), Answers({"b": value(3)}, {})
FORBIDDEN = Answer(instead="ForbiddenCall")
NOWHERE = answer_of(torch.tensor([math.nan, math.nan]))

IN_BOTH = known(doubled={"f": DOUBLED, "g": DOUBLED}, tripled={"f": TRIPLED, "g": TRIPLED})
IN_F = known(doubled={"f": DOUBLED}, overflows={"f": Answers({}, {"large": LOST})})
AT_TWO_PLACES = known(of_a={"f": AT_A}, of_b={"f": AT_B}, of_both={"f": DOUBLED})
AS_ONE = known(
    of_a={"f": AT_A}, of_b={"f": AT_B}, of_both={"f": Answers(AT_A.main | AT_B.main, {})}
)
CRASHES = known(crashes={"f": Answers({"a": STOPS, "b": STOPS}, {"large": STOPS})})
STOPS_AT_B = known(one_shape_only={"f": Answers({"b": STOPS}, {})})
CALLS = known(all_done={"f": Answers({"a": FORBIDDEN, "b": value(3)}, {})})
AT_EDGES = known(
    short={"f": Answers({}, {"large": STOPS})}, torchs={"f": Answers({}, {"large": FORBIDDEN})}
)
LOSES_ALL = known(overflows={"f": Answers(dict.fromkeys("ab", NOWHERE), {"small": NOWHERE})})
NEAR = known(near={"f": Answers({"a": value(1.00025)}, {})})

NAMED: dict[str, tuple[Fingerprints, Mapping[str, Answers], list[str]]] = {
    "nothing is wrong": (IN_F, student(), []),
    "two parts": (IN_BOTH, student(DOUBLED.main, TRIPLED.main), ["doubled", "tripled"]),
    "two numbers": (AT_TWO_PLACES, student({"a": value(2), "b": value(3)}), ["of_a", "of_b"]),
    "one of two numbers": (AT_TWO_PLACES, student({"a": value(2), "b": value(4)}), []),
    "one mistake instead of two": (AS_ONE, student(AT_A.main | AT_B.main), ["of_both"]),
    "exception for a number": (IN_F, student({"a": value(2), "b": STOPS}), ["doubled"]),
    "another number": (IN_F, student({"a": value(2), "b": value(2.01)}), []),
    "a right number": (IN_F, student({"a": value(2)}), []),
    "nearly the right number": (NEAR, student({"a": value(1.00012)}, large=value(7)), []),
    "exceptions everywhere": (CRASHES, student({"a": STOPS, "b": STOPS}, large=STOPS), []),
    "the same exception": (STOPS_AT_B, student({"b": STOPS}), ["one_shape_only"]),
    "another exception": (STOPS_AT_B, student({"b": Answer(instead="AnotherError")}), []),
    "forbidden call": (CALLS, student({"a": FORBIDDEN, "b": value(3)}), ["all_done"]),
    "exception for a forbidden call": (CALLS, student({"a": STOPS, "b": value(3)}), []),
    "number for a forbidden call": (CALLS, student({"a": value(2), "b": value(3)}), []),
    "exception at an edge": (AT_EDGES, student(large=STOPS), ["short"]),
    "forbidden call at an edge": (AT_EDGES, student(large=FORBIDDEN), ["torchs"]),
    "other entries are NaN": (IN_F, student(large=NOWHERE), ["overflows"]),
    "another number at an edge": (IN_F, student(large=value(8)), []),
    "numbers and an edge": (IN_F, student(DOUBLED.main, large=LOST), ["doubled", "overflows"]),
    "all numbers are NaN": (
        LOSES_ALL,
        student(dict.fromkeys("ab", NOWHERE), large=NOWHERE, small=NOWHERE),
        [],
    ),
    "all numbers but one are NaN": (
        known(overflows={"f": Answers(dict.fromkeys("ab", NOWHERE), {"large": value(7)})}),
        student(dict.fromkeys("ab", NOWHERE), large=value(7)),
        ["overflows"],
    ),
}


@pytest.mark.parametrize("case", NAMED)
def test_a_mistake_is_named_by_its_numbers_and_exceptions(case: str) -> None:
    catalogue, answers, expected = NAMED[case]
    assert names(catalogue, answers) == [(name,) for name in expected]


def test_a_number_that_two_mistakes_change_may_be_any() -> None:
    right = Answers(dict.fromkeys("abc", value(1)), {})
    one = Answers({"a": value(2), "b": value(2)}, {})
    other = Answers({"b": value(3), "c": value(3)}, {})
    mistakes = KnownMistake("one", {"f": one}), KnownMistake("other", {"f": other})
    texts = {mistake.name: Text(f"it is {mistake.name}", "Look again.") for mistake in mistakes}
    catalogue = Fingerprints({"f": right}, mistakes, texts)
    answers = {"a": value(2), "b": value(6), "c": value(3)}
    assert names(catalogue, {"f": Answers(answers, {})}) == [("one",), ("other",)]
    assert names(catalogue, {"f": Answers({**answers, "a": value(1)}, {})}) == []


def test_a_known_mistake_next_to_an_unknown_one_is_one_of_two() -> None:
    right = Answers({"a": value(1), "b": value(1)}, {})
    mistake = KnownMistake("layers", {"C: layers": DOUBLED})
    catalogue = Fingerprints(
        {"C": right, "C: layers": right}, (mistake,), {"layers": Text("it has no layers", "Look.")}
    )
    unknown = Answers({"a": value(7)}, {})
    (only,) = diagnose(catalogue, {"C": unknown, "C: layers": DOUBLED})
    assert only.sentence == ("One of at least two mistakes: it looks as if it has no layers. Look.")


def test_a_mistake_of_a_caller_may_be_in_a_wrong_function_that_it_calls() -> None:
    catalogue = known(doubled={"f": DOUBLED, "g": DOUBLED})
    (only,) = diagnose(catalogue, student(g=DOUBLED.main, large=value(7)))
    assert only.sentence == "In g, or in what it calls, it looks as if it is doubled. Look again."
    not_written = dict.fromkeys("ab", Answer(instead="NotImplementedError"))
    (only,) = diagnose(catalogue, student(not_written, DOUBLED.main))
    assert only.sentence.startswith("In g, it looks")
    unrelated = known(doubled={"g": DOUBLED}, tripled={"f": TRIPLED})
    (only,) = diagnose(unrelated, student(g=DOUBLED.main, large=value(7)))
    assert only.sentence.startswith("In g, it looks")


def test_an_exception_alone_names_no_mistake() -> None:
    """For example, the class may raise an exception for some of the sizes in the questions."""
    right = {"G": Answers({"a": value(1), "b": value(1)}, {}), "G: training": Answers({}, EDGE)}
    mistake = KnownMistake("in_place", {"G: training": Answers({}, {"large": STOPS})})
    catalogue = Fingerprints(right, (mistake,), {"in_place": Text("it is in place", "Look again.")})
    stopped = {"G: training": Answers({}, {"large": STOPS})}
    assert names(catalogue, {"G": right["G"], **stopped}) == [("in_place",)]
    somewhere = Answers({"a": value(1), "b": STOPS}, {})
    assert names(catalogue, {"G": somewhere, **stopped}) == []


def test_answers_at_the_edges_are_compared_with_the_reference() -> None:
    """The right answer contains one NaN, and an answer with a second NaN is a mistake."""
    other = answer_of(torch.tensor([math.nan, math.nan]))
    right = Answers({"a": value(1)}, {"large": LOST, "small": value(1)})
    mistake = KnownMistake("loses", {"f": Answers({}, {"large": other})})
    catalogue = Fingerprints({"f": right}, (mistake,), {"loses": Text("one more number is NaN")})
    wrong = Answers({"a": value(1)}, {"large": other, "small": value(1)})
    assert names(catalogue, {"f": wrong}) == [("loses",)]
    assert names(catalogue, {"f": right}) == []


def test_two_mistakes_at_the_edges_are_both_named_if_they_explain_all() -> None:
    at_large, at_small = (Answers({}, {question: LOST}) for question in ("large", "small"))
    catalogue = known(overflows={"f": at_large}, underflows={"f": at_small})
    assert names(catalogue, student(large=LOST, small=LOST)) == [("overflows",), ("underflows",)]
    assert names(catalogue, student(large=LOST, small=value(7))) == []


def test_at_the_edges_the_mistake_that_changes_the_least_is_named() -> None:
    catalogue = known(
        doubled={"f": Answers(DOUBLED.main, {"large": LOST})},
        loses_both={"f": Answers({}, {"large": LOST, "small": LOST})},
        underflows={"f": Answers({}, {"small": LOST})},
    )
    answers = student(DOUBLED.main, large=LOST, small=LOST)
    assert names(catalogue, answers) == [("doubled",), ("underflows",)]


def test_one_number_among_many_exceptions_names_no_mistake() -> None:
    questions = [*map(str, range(12))]
    catalogue = Fingerprints(
        {"f": Answers(dict.fromkeys(questions, value(1)), {})},
        (KnownMistake("doubled", {"f": Answers(dict.fromkeys(questions, value(2)), {})}),),
        {"doubled": Text("it is doubled")},
    )
    stops = dict.fromkeys(questions, STOPS)
    assert names(catalogue, {"f": Answers(stops | {"0": value(2)}, {})}) == []
    assert names(catalogue, {"f": Answers(stops | {"0": value(2), "1": value(2)}, {})}) == [
        ("doubled",)
    ]


def test_of_equal_mistakes_the_one_that_explains_more_is_named() -> None:
    catalogue = known(module_only={"g": DOUBLED}, everywhere={"f": DOUBLED, "g": DOUBLED})
    (only,) = diagnose(catalogue, student(DOUBLED.main, DOUBLED.main))
    assert "everywhere" in only.sentence
    assert "module_only" not in only.sentence
    (only,) = diagnose(catalogue, student(g=DOUBLED.main))
    assert "module_only" in only.sentence


# Description and comparison of answers


@pytest.mark.parametrize(
    "other",
    [X + 1e-3, X.T, X.reshape(3, 2), X.flip(0), X[:, [1, 0, 2]], X.flatten(), -X, X[:1]],
    ids=["a little more", "transposed", "reshaped", "rows swapped", "columns swapped", "flat",
         "negative", "part"],
)  # fmt: skip
def test_different_numbers_are_different_answers(other: torch.Tensor) -> None:
    assert not same(answer_of(X), answer_of(other))


def test_equal_answers_and_answers_that_fail_in_the_same_way() -> None:
    fine, lost = X.double() / 7, X.clone()
    lost[0, 0] = math.nan
    assert same(answer_of(fine), answer_of(fine * (1 + 1e-7)))
    assert not same(answer_of(fine), answer_of(fine.float()))
    assert same(answer_of(fine), answer_of(fine.float()), dtype=False)
    assert not same(answer_of(X), answer_of(lost))
    assert alike(answer_of(lost), answer_of(lost * math.inf))
    assert not alike(answer_of(X), answer_of(lost))
    assert alike(answer_of(None), answer_of(None))
    assert alike(STOPS, Answer(instead="AnotherError"))
    assert not alike(answer_of(None), STOPS)


def test_any_exception_of_student_code_is_an_answer() -> None:
    def leave() -> None:
        raise SystemExit(0)

    assert attempt(leave).instead == "SystemExit"


def test_endless_code_gets_no_more_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    def never() -> None:
        while True:
            try:
                math.sqrt(2)
            except Exception:
                continue

    def probe(problem: SimpleNamespace) -> dict[str, Part]:
        return {"f": Part(main={"a": lambda: 1.0, "b": never, "c": never})}

    monkeypatch.setattr("grader.diagnose.probe.PROBE_SECONDS", 0.2)
    assert ask(probe, SimpleNamespace()) == {}


# Probes and files


def test_fingerprints_are_read_unchanged(tmp_path: Path) -> None:
    catalogue = known(doubled={"f": DOUBLED}, größer={"g": Answers({}, {"large": LOST})})
    catalogue.save(tmp_path / "fingerprints.json")
    assert Fingerprints.load(tmp_path / "fingerprints.json") == catalogue
    lines = (tmp_path / "fingerprints.json").read_text(encoding="utf-8").splitlines()
    assert sum('["doubled"]' in line for line in lines) == 1  # one mistake per line


def test_a_problem_without_a_probe_has_no_questions(small_course: Course) -> None:
    problem = small_course.problems()[0]
    assert load_probe(problem) is not None
    problem.probe_file.unlink()
    assert load_probe(problem) is None


def test_a_failing_probe_names_nothing() -> None:
    def probe(problem: SimpleNamespace) -> dict[str, Part]:
        raise KeyError("an error of the author")

    assert ask(probe, SimpleNamespace()) == {}


def test_a_probe_imports_modules_of_its_course(
    new_course: Callable[[Path], Course], tmp_path: Path
) -> None:
    problems = []
    for number in (1, 2):
        (problem,) = new_course(tmp_path / str(number)).problems()
        (problem.folder.parent / "shared_numbers.py").write_text(f"NUMBER = {number}\n")
        problem.probe_file.write_text(
            "from shared_numbers import NUMBER\n"
            "from grader.diagnose.probe import Part\n"
            "def probe(problem): return {'f': Part({'number': lambda: NUMBER})}\n"
        )
        problems.append(problem)
    for problem in [*problems, *problems]:
        probe = load_probe(problem)
        assert probe is not None
        number = float(problem.folder.parents[1].name)
        assert ask(probe, SimpleNamespace())["f"].main["number"] == answer_of(number)


@pytest.mark.slow
@pytest.mark.parametrize("problem", own_course().problems(), ids=lambda problem: problem.id)
def test_a_missing_function_does_not_stop_other_questions(problem: Problem) -> None:
    probe, known = load_probe(problem), Fingerprints.load(problem.fingerprints)
    assert probe is not None
    names = {owner(part) for part in known.reference}
    assert {owner(part) for part in ask(probe, SimpleNamespace())} == names


@pytest.mark.parametrize("problem", own_course().problems(), ids=lambda problem: problem.id)
def test_correct_code_answers_each_question(problem: Problem) -> None:
    reference = Fingerprints.load(problem.fingerprints).reference
    stops = [
        (part, question)
        for part, answers in reference.items()
        for question, answer in {**answers.main, **answers.edges}.items()
        if answer.instead
    ]
    assert stops == []


@pytest.mark.slow
@pytest.mark.parametrize("problem", own_course().problems(), ids=lambda problem: problem.id)
def test_exceptions_alone_get_no_name(problem: Problem) -> None:
    def stop(*_: object, **__: object) -> None:
        raise TypeError("not like this")

    probe, known = load_probe(problem), Fingerprints.load(problem.fingerprints)
    assert probe is not None
    for name in {owner(part) for part in known.reference}:
        for method in ("__init__", "forward"):
            code = load_module(own_course().solution(problem), "solution_that_stops")
            asked = getattr(code, name)
            is_class = isinstance(asked, type)
            setattr(asked if is_class else code, method if is_class else name, stop)
            assert diagnose(known, ask(probe, code)) == [], (name, method)
            if not is_class:
                break


@pytest.mark.parametrize(
    ("instead", "parts"), [("RuntimeError", {"f"}), ("ForbiddenCall", set()), (None, set())]
)
def test_only_unknown_mistakes_are_kept_as_unknown(instead: str | None, parts: set[str]) -> None:
    answers = student({"a": Answer(instead=instead)} if instead else {})
    assert unnamed(known(), answers, []).keys() == parts


def test_a_part_with_the_numbers_of_one_mistake_names_it() -> None:
    """Part "C: layers" has the numbers of the mistake. Part "C" has other wrong numbers."""
    right = Answers({"a": value(1), "b": value(1)}, {})
    made, used = Answers({"a": value(2)}, {}), Answers({"a": value(3), "b": value(3)}, {})
    mistakes = (KnownMistake("layers", {"C": used, "C: layers": made}),)
    catalogue = Fingerprints(
        {"C": right, "C: layers": right}, mistakes, {"layers": Text("it has no layers", "Look.")}
    )
    other = Answers({"a": value(7), "b": value(7)}, {})
    of_layers = Answers({"a": value(2), "b": value(1)}, {})
    assert names(catalogue, {"C": other, "C: layers": of_layers}) == [("layers",)]
    # If another number of part "C: layers" is wrong, the mistake is not named.
    of_two = Answers({"a": value(2), "b": value(9)}, {})
    assert names(catalogue, {"C": other, "C: layers": of_two}) == []


def test_a_correct_class_counts_once_between_equal_mistakes() -> None:
    right, doubled = Answers({"a": value(1)}, {}), Answers({"a": value(2)}, {})
    parts = ("f", "g", "C", "C: layers")
    mistakes = (
        KnownMistake("of f and C", dict.fromkeys(("f", "C", "C: layers"), doubled)),
        KnownMistake("of f and g", dict.fromkeys(("f", "g"), doubled)),
    )
    texts = {mistake.name: Text(f"it is {mistake.name}") for mistake in mistakes}
    catalogue = Fingerprints(dict.fromkeys(parts, right), mistakes, texts)
    result = names(catalogue, dict.fromkeys(parts, right) | {"f": doubled})
    assert result == [("of f and C", "of f and g")]
