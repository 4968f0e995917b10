"""Represent and rank the evidence about the cause of a wrong answer.

Evidence results from tests of a module's layers, from the numbers of an answer, and from the
catalogue of known mistakes. Several pieces of evidence may describe the same mistake. A student
reads the most certain sentence first. Redundant sentences are omitted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum, StrEnum

from grader.diagnose.probe import owner


class Certainty(IntEnum):
    """The certainty of a sentence about a wrong answer."""

    SOME = 1
    """The sentence describes some numbers of an answer. Such numbers may have many causes."""
    ALL = 2
    """The sentence explains every number of an answer."""
    SEEN = 3
    """The sentence reports that a layer of a module is missing, or has the wrong type or size."""


class Source(StrEnum):
    """The kind of observation that a sentence of the diagnosis describes."""

    MISSING = "missing"
    """A module has no layer with the required name."""
    PARTS = "parts"
    """A layer of a module has the wrong type or size."""
    NUMBERS = "numbers"
    """The numbers of an answer show a pattern, such as a factor or a wrong sum."""
    DIGITS = "digits"
    """The numbers of an answer are right except for their last digits."""
    RELATION = "relation"
    """The numbers of an answer are the right numbers, but moved, shifted or rounded."""
    CATALOGUE = "catalogue"
    """The student's code gives the same wrong answers as a known mistake."""


@dataclass(frozen=True)
class Evidence:
    """An observation about a wrong answer.

    Attributes:
        sentence: the text for the student.
        certainty: the certainty of the sentence.
        source: the kind of observation that the sentence describes.
        parts: the parts of the probe that the evidence is about, such as `"softmax"` or
            `"Model: loss"`. Empty if the evidence is only about one answer.
        names: the names of the known mistakes. If there are several names, the mistakes cannot be
            distinguished.
        tests: the ids of tests that are known to fail for these mistakes.
        changes_numbers: whether the mistakes change numbers for ordinary inputs.
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
    """The evidence about one wrong answer, and properties of the answer.

    Attributes:
        evidence: the ranked evidence.
        call: the call as a student would write it; empty if the call is irrelevant.
        where: a short description of the wrong rows.
        is_finite: whether the answer contains neither NaN nor infinity.
        factor: the ratio of a single wrong number to the right number; 0 if the ratio is unknown.
        only: the name of the problem's only function or class; empty if the problem has several.
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
        evidence: the evidence to rank. Sentences of equal certainty keep their order.
    """
    kept: list[Evidence] = []
    for each in sorted(evidence, key=lambda one: -one.certainty):
        if not any(_is_redundant(each, earlier) for earlier in kept):
            kept.append(each)
    return kept


def _is_redundant(each: Evidence, earlier: Evidence) -> bool:
    """Return whether the sentence of `each` adds nothing to the sentence of `earlier`.

    If a sentence explains every number of an answer, other patterns in the numbers add nothing. If
    a layer of a class is missing, other evidence about the class adds nothing. If a layer has the
    wrong type or size, other evidence about the layers of the class adds nothing.
    """
    if each.sentence == earlier.sentence:
        return True
    of_one_answer = (Source.NUMBERS, Source.RELATION)
    if each.source in of_one_answer and earlier.source in of_one_answer:
        return earlier.certainty is Certainty.ALL
    if earlier.certainty is not Certainty.SEEN or not each.owners <= earlier.owners:
        return False
    return each.certainty is Certainty.SEEN or earlier.source is Source.MISSING
