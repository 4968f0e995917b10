"""Collect remarks for the instructor. A remark on many submissions is listed only once."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from grader.reports.display_names import Person, by_name, people
from grader.reports.wording import adjustment_line
from grader.result import ProblemResult, Status, SubmissionResult

MANY = 5
SHARE = 0.1
"""A shared remark applies to at least `MANY` submissions and at least this share of the class."""

_NAMED = {
    Status.TIMEOUT: "does not end",
    Status.CRASH: "crashes",
    Status.MEMORY: "out of memory",
    Status.FORBIDDEN: "forbidden function",
    Status.BAD_OUTPUT: "unreadable answer",
    Status.INTERNAL: "grader's fault",
}


_BYTES = re.compile(r"null byte|'utf-8' codec can't decode|Non-UTF-8|missing encoding declaration")
"""Matches Python's messages about files that are not in UTF-8, such as files in UTF-16."""


@dataclass(frozen=True)
class Remark:
    """A sentence about a submission.

    Attributes:
        text: the sentence.
        lacking: the number of a problem, such as "03", if the sentence explains why the problem's
            file is missing; otherwise empty.
    """

    text: str
    lacking: str = ""


@dataclass(frozen=True)
class SharedRemark:
    """A remark on many submissions.

    Attributes:
        text: the number of submissions and the sentence.
        people: the students. Empty if the remark applies to the whole class.
    """

    text: str
    people: Sequence[Person]


@dataclass(frozen=True)
class ClassRemarks:
    """All remarks on a class.

    Attributes:
        shared: the remarks on many submissions.
        single: maps the name of a submission to one text with its other remarks.
    """

    shared: list[SharedRemark]
    single: dict[str, str]


def class_remarks(results: Sequence[SubmissionResult]) -> ClassRemarks:
    """Return all remarks on a class."""
    names = people(results)
    by_submission = {result.submission: remarks_on(result) for result in by_name(results)}
    of: defaultdict[Remark, list[Person]] = defaultdict(list)
    for submission, remarks in by_submission.items():
        for remark in remarks:
            of[remark].append(names[submission])
    enough = max(MANY, SHARE * len(by_submission))
    many = {remark: who for remark, who in of.items() if len(who) >= enough}
    unshared = {
        name: " ".join(each.text for each in remarks if each not in many)
        for name, remarks in by_submission.items()
    }
    return ClassRemarks([_shared(*each, len(by_submission)) for each in many.items()], unshared)


def _shared(remark: Remark, who: list[Person], all: int) -> SharedRemark:
    lacking = f" have no {remark.lacking}" if remark.lacking else ""
    text = f"{len(who)} of {all}{lacking}: {remark.text}"
    return SharedRemark(text, who if len(who) < all else ())


def remarks_on(result: SubmissionResult) -> list[Remark]:
    """Return the remarks on a submission."""
    untouched = result.status == "not_attempted" and result.counted
    remarks = [Remark("not attempted.")] if untouched else []
    remarks += [Remark(note) for note in result.notes]
    stubs = [p.id[:2] for p in result.problems if p.is_stub and not untouched]
    remarks += [Remark(f"{', '.join(stubs)}: unchanged stub.")] if stubs else []
    for problem in result.problems:
        remarks += _on_problem(problem)
    return list(dict.fromkeys(remarks))


def _on_problem(problem: ProblemResult) -> Iterable[Remark]:
    number = problem.id[:2]
    yield from (Remark(note, number if problem.absent else "") for note in problem.notes)
    if not problem.notes:
        yield from map(Remark, _standing_out(problem))
    yield from (Remark(f"{number}: {adjustment_line(each)}") for each in problem.adjustments)


def _standing_out(problem: ProblemResult) -> list[str]:
    failed = [t for t in problem.tests if t.status != Status.PASSED]
    if failed and failed[0].message and problem.ended_alike and not problem.untouched:
        return [f"{problem.id[:2]}: {_in_a_line(failed[0].message)}"]
    names = dict.fromkeys(_NAMED[t.status] for t in failed if t.status in _NAMED)
    return [f"{problem.id[:2]}: {', '.join(names)}."] if names else []


def _in_a_line(message: str) -> str:
    """Return the first line of a message. If a file is not in UTF-8, return advice instead."""
    first = message.splitlines()[0]
    file, said, why = first.partition(" can't be read as Python: ")
    return f"{file} is not UTF-8 text; save it as UTF-8." if said and _BYTES.search(why) else first
