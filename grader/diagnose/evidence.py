"""Represent and rank the evidence about a wrong answer; no other module ranks evidence.

Evidence results from tests of a module's parts, from the numbers of an answer, and from the
catalogue of known mistakes. Several sources may describe the same mistake. A student reads the most
certain sentence first. Sentences that follow from earlier sentences are omitted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum, StrEnum

from grader.diagnose.probe import owner


class Certainty(IntEnum):
    """The certainty of a sentence."""

    SOME = 1
    """The sentence describes some numbers of an answer, which may have many causes."""
    ALL = 2
    """The sentence explains every number of an answer."""
    SEEN = 3
    """A test inspected the module: a part is missing or has the wrong type."""


class Source(StrEnum):
    """The kind of observation from which a sentence results."""

    MISSING = "missing"
    """A test that finds no part with a required name in a module."""
    PARTS = "parts"
    """A test that inspects the parts of a module."""
    NUMBERS = "numbers"
    """A pattern in the numbers of an answer: a factor, a sum, places."""
    DIGITS = "digits"
    """Numbers that are right except for their last digits."""
    RELATION = "relation"
    """A relation to the right answer: moved, shifted, rounded."""
    CATALOGUE = "catalogue"
    """A known mistake that gives the same answer."""


@dataclass(frozen=True)
class Evidence:
    """An observation about a wrong answer.

    Attributes:
        sentence: the text for the student.
        certainty: the certainty of the sentence.
        source: the source of the sentence.
        parts: the functions and classes that the evidence is about, with the aspect that a probe
            adds, such as `"Model: loss"`. Empty if the evidence is only about one answer.
        names: names of the mistakes in tables; several if they cannot be distinguished.
        tests: ids of tests that are known to fail for these mistakes.
        changes_numbers: whether the mistake gives wrong numbers for ordinary inputs.
    """

    sentence: str
    certainty: Certainty
    source: Source
    parts: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    changes_numbers: bool = False

    @property
    def owners(self) -> set[str]:
        """The functions and classes that the evidence is about."""
        return {owner(part) for part in self.parts}


@dataclass(frozen=True)
class Shown:
    """The observations about one wrong answer.

    Attributes:
        evidence: the ranked evidence.
        call: the call as a student would write it; empty if the call is irrelevant.
        where: the wrong rows, in a few words.
        is_finite: whether the answer has no NaN and no infinity.
        factor: ratio of a single wrong number to the right number; 0 if the ratio is unknown.
        only: the only function or class of the problem, even if the call does not contain its
            name; empty if the problem has several.
    """

    evidence: tuple[Evidence, ...]
    call: str = ""
    where: str = ""
    is_finite: bool = True
    factor: float = 0.0
    only: str = ""


def ranked(evidence: Iterable[Evidence]) -> list[Evidence]:
    """Return the evidence without redundant sentences, the most certain sentence first.

    Args:
        evidence: the evidence, with simpler sentences first among sentences of equal certainty.
    """
    kept: list[Evidence] = []
    for each in sorted(evidence, key=lambda one: -one.certainty):
        if not any(_follows(each, first) for first in kept):
            kept.append(each)
    return kept


def _follows(each: Evidence, first: Evidence) -> bool:
    """Return whether a sentence adds nothing to an earlier sentence.

    A relation that explains every number also explains sums and places. If a class lacks a part,
    one sentence reports it, because other wrong answers of the class result from it.
    """
    if each.sentence == first.sentence:
        return True
    of_one_answer = (Source.NUMBERS, Source.RELATION)
    if each.source in of_one_answer and first.source in of_one_answer:
        return first.certainty is Certainty.ALL
    if first.certainty is not Certainty.SEEN or not each.owners <= first.owners:
        return False
    return each.certainty is Certainty.SEEN or first.source is Source.MISSING
