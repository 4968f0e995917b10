"""What is known of a wrong answer, whoever says it: one list, ranked here and nowhere else.

The tests see of which parts a module is made, the numbers of an answer show what became of them,
and the catalogue knows who else answers so. All of them speak of the same mistake. A student reads
what is certain first, and nothing that follows from what stands above it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum, StrEnum

from grader.diagnose.probe import owner


class Certainty(IntEnum):
    """How much a sentence rests on."""

    SOME = 1
    """It is true of some numbers of an answer, and may have many reasons."""
    ALL = 2
    """It gives every number."""
    SEEN = 3
    """It is read off the module itself: a part is missing, or is of another kind."""


class Source(StrEnum):
    """Who says it."""

    MISSING = "missing"
    """A test that finds no part of a name in a module."""
    PARTS = "parts"
    """A test that looks at the parts of a module."""
    NUMBERS = "numbers"
    """What the numbers of an answer show: a factor, a sum, places."""
    RELATION = "relation"
    """How the answer is made of the right one: moved, shifted, rounded."""
    CATALOGUE = "catalogue"
    """A known mistake answers so."""


@dataclass(frozen=True)
class Evidence:
    """One thing that is known of a wrong answer.

    Attributes:
        sentence: what a student reads.
        certainty: how much it rests on.
        source: who says it.
        parts: the functions and classes that it speaks of, and which side of them, as a probe has
            it: `"Model: loss"`. There are none when it speaks of one answer only.
        names: what the mistake is called in tables; several when they answer alike.
        tests: ids of tests that are known to fail where one of these mistakes is made.
        changes_numbers: whether it gives wrong numbers for ordinary inputs.
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
        """The functions and classes that it speaks of."""
        return {owner(part) for part in self.parts}


@dataclass(frozen=True)
class Shown:
    """What a wrong answer shows.

    Attributes:
        evidence: what is known of it, ranked.
        call: what was called, as a student would write it; empty when that doesn't matter.
        where: which of its rows are wrong, in a few words.
        is_finite: whether it has no NaN and no infinity.
        factor: how many times the right number a single wrong one is; 0 where that isn't known.
    """

    evidence: tuple[Evidence, ...]
    call: str = ""
    where: str = ""
    is_finite: bool = True
    factor: float = 0.0


def ranked(evidence: Iterable[Evidence]) -> list[Evidence]:
    """Return what is worth telling: certain first, and nothing twice.

    Args:
        evidence: of what is as certain, the simplest comes first.
    """
    told: list[Evidence] = []
    for each in sorted(evidence, key=lambda one: -one.certainty):
        if not any(_follows(each, first) for first in told):
            told.append(each)
    return told


def _follows(each: Evidence, first: Evidence) -> bool:
    """Tell whether a sentence says nothing more beside one that stands above it.

    What gives every number of an answer gives its sums and places, too. Where a class lacks a part,
    one sentence says it: what else the class answers comes of that.
    """
    if each.sentence == first.sentence:
        return True
    of_one_answer = (Source.NUMBERS, Source.RELATION)
    if each.source in of_one_answer and first.source in of_one_answer:
        return first.certainty is Certainty.ALL
    if first.certainty is not Certainty.SEEN or not each.owners <= first.owners:
        return False
    return each.certainty is Certainty.SEEN or first.source is Source.MISSING
