"""The message about a file with two mistakes is true, and changes when one mistake is repaired."""

from __future__ import annotations

import random
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from grader.course import own_course
from grader.diagnose.edits import Mistake, apply, mistakes_of
from grader.diagnose.fingerprints import Fingerprints, KnownMistake, Text, deviations
from grader.diagnose.naming import diagnose
from grader.diagnose.probe import Answers, ask, load_probe
from grader.errors import CourseError
from grader.result import Status
from grader.run.local_files import LocalFiles
from grader.run.session import Session
from grader.run.suite import Suite
from grader.student.report import failure_report
from grader.student.seen import reading

COURSE = own_course()
PROBLEMS = {problem.id[:2]: problem for problem in COURSE.problems()}
FREQUENT = tomllib.loads(Path(__file__).with_name("frequent_mistakes.toml").read_text())
IN_EACH_RUN = 4
"""The number of pairs that are not marked as slow."""

SAME_AS = {
    ("global_maximum", "sum_of_everything"): "dim_everything",
    ("no_maximum", "sum_of_everything"): "dim_everything",
    ("softmax_over_queries", "query_and_key_swapped"): "weights_transposed",
    ("bounds_k_of_zero_is_none", "bounds_p_of_zero_is_none"): "sample_zero_means_none",
    ("block_bias_mlp_for_dropout", "block_returns_two"): "mlp_bias_ignored",
    ("residual_from_norm", "block_bias_mlp_for_dropout"): "mlp_bias_ignored",
    ("mask_not_cut", "batch_is_measured"): "too_long_fails_by_chance",
    ("mask_top_left", "new_before_past"): "past_not_seen",
}
"""Maps pairs of mistakes to a third mistake that gives the same answers to the probe."""


@cache
def mistakes(number: str) -> dict[str, Mistake]:
    return {mistake.edit.name: mistake for mistake in mistakes_of(COURSE, PROBLEMS[number])}


def source_with(number: str, *names: str) -> str | None:
    """Return the source of a file with these mistakes.

    Return None if the edits of the mistakes overlap, or if they fit no correct file.
    """
    edits = [mistakes(number)[name] for name in names]
    blocks = tuple(block for each in edits for block in each.edit.blocks)
    for each in edits:
        try:
            return apply(replace(each.edit, blocks=blocks), each.right)
        except CourseError:
            continue
    return None


def pairs() -> Iterator[tuple[str, str, str]]:
    """Yield (problem number, mistake, mistake) for frequent mistakes that can be combined."""
    for number, functions in FREQUENT.items():
        for names in functions.values():
            for one, other in combinations(names, 2):
                if source_with(number, one, other):
                    yield number, one, other


@dataclass(frozen=True)
class Screen:
    """The screen that a student sees after a run.

    Attributes:
        text: the text of the screen.
        named: the groups of mistakes that the screen names or asks about. The mistakes of a group
            can't be distinguished.
        observes: whether the screen shows more than the returned and expected numbers.
    """

    text: str
    named: tuple[frozenset[str], ...]
    observes: bool


@cache
def suite(number: str) -> Suite:
    return Suite([PROBLEMS[number]], COURSE.root)


@cache
def screen(number: str, *names: str) -> Screen:
    problem = PROBLEMS[number]
    source = source_with(number, *names)
    assert source is not None
    with TemporaryDirectory() as folder:
        path = Path(folder, "problem.py")
        path.write_text(source, encoding="utf-8")
        session = Session(LocalFiles(lambda _: path))
        suite(number).run(session)
    result = session.results[problem.id]
    read = reading(result, [])
    first = next((test for test in result.tests if test.is_wrong and test.is_judged), None)
    if first is None:  # only hidden tests fail
        return Screen("", (), observes=False)
    shown = session.shown[problem.id].get(first.id)
    says_more = "shape" in first.message or "dtype" in first.message
    numbers_alone = " expected " in first.message and not says_more
    observes = first.status is not Status.FAILED or bool(shown and shown.evidence)
    named = tuple(map(frozenset, read.seen))
    text = failure_report(result, reading=read).replace(folder, "")
    return Screen(text, named, observes or not numbers_alone or " times what " in first.message)


ALL = [*pairs()]
QUICK = [pair for pair in ALL if pair[0] in {"02", "03"}]
"""The pairs of only two problems, as collecting the tests of a problem takes long."""
EARLY = {*random.Random(5).sample(QUICK, IN_EACH_RUN)}


@pytest.mark.parametrize(
    ("number", "one", "other"),
    [
        pytest.param(*pair, marks=[] if pair in EARLY else [pytest.mark.slow], id=" ".join(pair))
        for pair in ALL
    ],
)
def test_two_mistakes_get_a_true_message_that_a_repair_changes(
    number: str, one: str, other: str
) -> None:
    both = screen(number, one, other)
    assert both.named or both.observes, both.text
    true = {one, other, SAME_AS.get((one, other), one)}
    assert all(group & true for group in both.named), both.named
    alone = {screen(number, one).text, screen(number, other).text}
    assert alone != {both.text}
    for repaired, left in ((one, other), (other, one)):
        if all(group & {one, other} == {repaired} for group in both.named) and both.named:
            assert screen(number, left).text != both.text


@cache
def answers_with(number: str, *names: str) -> dict[str, Answers]:
    """Return the answers that a file with these mistakes gives to the probe."""
    problem = PROBLEMS[number]
    source = source_with(number, *names) if names else COURSE.solution(problem).read_text()
    probe = load_probe(problem)
    assert source is not None
    assert probe is not None
    with TemporaryDirectory() as folder:
        path = Path(folder, "problem.py")
        path.write_text(source, encoding="utf-8")
        return ask(probe, LocalFiles(lambda _: path)(problem))


def diagnosed(number: str, among: list[str], *names: str) -> set[str]:
    """Diagnose a file with the mistakes `names`, and return the reported mistakes.

    The diagnosis knows only the mistakes in `among`.
    """
    reference = answers_with(number)
    those = tuple(KnownMistake(n, deviations(answers_with(number, n), reference)) for n in among)
    texts = {name: Text(mistakes(number)[name].edit.when) for name in among}
    known = Fingerprints(reference, those, texts)
    suggestions = diagnose(known, answers_with(number, *names))
    return {name for each in suggestions for name in each.names}


def test_three_mistakes_of_adamw_are_named() -> None:
    three = {"adamw_l2", "adamw_eps_inside_the_root", "adamw_correction_missing"}
    among = [*{*FREQUENT["10"]["AdamW"], *three}]
    assert diagnosed("10", among, *three) == three


@pytest.mark.parametrize(
    ("number", "one", "other"),
    [
        # One mistake creates wrong layers, the other computes a wrong result.
        ("02", "weights_transposed", "made_bias_never"),
        ("02", "softmax_largest", "made_value_bias_always"),
        # One mistake concerns the dropout layers, the other the heads.
        ("05", "rates_opposite", "heads_first_keys"),
        ("05", "rates_no_resid", "heads_one_with_its_width"),
    ],
)
def test_mistakes_in_two_parts_of_a_class_are_both_named(number: str, one: str, other: str) -> None:
    known = Fingerprints.load(PROBLEMS[number].fingerprints)
    suggestions = diagnose(known, answers_with(number, one, other))
    assert {name for each in suggestions for name in each.names} == {one, other}


def test_a_wrong_scale_is_recognized_with_more_columns_than_keys() -> None:
    """With 5 keys and 7 columns, the last two columns of the returned weights are 0."""
    shown = screen("03", "module_scaled_twice").text
    assert "The scores behind these weights are 1/√n_embd" in shown


def test_after_an_observation_there_is_one_question() -> None:
    shown = screen("02", "softmax_over_queries").text
    assert "Each column sums to 1; each row should sum to 1 instead." in shown
    assert shown.count("?") == 1
