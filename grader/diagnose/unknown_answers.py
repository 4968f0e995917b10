"""Group the students of a class by wrong answers that match no known mistake.

A probe calls each function or class of a problem with small inputs. The wrong answers are stored as
short texts (`grader.diagnose.kept_answer`). The students of a group have the same wrong numbers for
ordinary inputs. So files with different mistakes are in different groups, and most files with the
same mistake are in the same group.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from grader.diagnose.kept_answer import EDGE, Answer, same
from grader.result import ProblemResult, Status, SubmissionResult, WrongAnswers

_MOST_EDGES = 0.8


@dataclass(frozen=True)
class Group:
    """Students with the same wrong answers, which match no known mistake.

    Attributes:
        problem: the problem's id.
        parts: the parts with the same wrong answers.
        submissions: the names of the submissions, sorted.
        failed: the titles of the tests that all submissions of the group fail.
    """

    problem: str
    parts: tuple[str, ...]
    submissions: tuple[str, ...]
    failed: tuple[str, ...] = ()

    @property
    def owners(self) -> list[str]:
        """The names of the functions and classes that the parts belong to."""
        return list(dict.fromkeys(part.partition(":")[0] for part in self.parts))


def groups(results: Iterable[SubmissionResult]) -> list[Group]:
    """Return the groups of students, the largest group first.

    A student whose wrong answers are unique is a group of one.
    """
    results = sorted(results, key=lambda result: result.submission)
    of_problem: dict[str, dict[str, ProblemResult]] = {}
    for result in results:
        for problem in result.problems:
            if problem.unknown:
                of_problem.setdefault(problem.id, {})[result.submission] = problem
    unsorted = [group for id, members in of_problem.items() for group in _of_problem(id, members)]
    return sorted(
        unsorted, key=lambda group: (-len(group.submissions), group.problem, group.submissions)
    )


def _of_problem(id: str, members: Mapping[str, ProblemResult]) -> Iterator[Group]:
    """Yield the groups of one problem. Merge groups that have the same students."""
    parts_of: dict[tuple[str, ...], list[str]] = {}
    parts = sorted({part for problem in members.values() for part in problem.unknown})
    for part in parts:
        answers = {name: p.unknown[part] for name, p in members.items() if part in p.unknown}
        for names in _grouped(answers):
            parts_of.setdefault(names, []).append(part)
    for names, shared in parts_of.items():
        failed = [_failed(members[name]) for name in names]
        titles = tuple(title for title in failed[0] if all(title in other for other in failed))
        yield Group(id, tuple(shared), names, titles)


def _failed(problem: ProblemResult) -> list[str]:
    """Return the titles of the tests that did not pass, without duplicates."""
    failed = (test.title for test in problem.tests if test.status is not Status.PASSED)
    return list(dict.fromkeys(failed))


def _grouped(answers: Mapping[str, WrongAnswers]) -> list[tuple[str, ...]]:
    """Group the names of submissions by their wrong answers about one part."""
    same_answers: list[list[str]] = []
    for name, wrong in answers.items():
        for members in same_answers:
            if same_cause(answers[members[0]], wrong):
                members.append(name)
                break
        else:
            same_answers.append([name])
    return [tuple(members) for members in same_answers]


def same_cause(one: WrongAnswers, other: WrongAnswers) -> bool:
    """Return whether the wrong answers of two submissions seem to have the same cause.

    The wrong answers to all main questions must be the same. If these answers contain no number,
    most wrong answers to the edge questions must also be the same.
    """
    if _share_same(_main(one), _main(other)) < 1:
        return False
    has_numbers = any(map(_has_number, _main(one).values()))
    return has_numbers or _share_same(_edges(one), _edges(other)) >= _MOST_EDGES


def _main(answers: WrongAnswers) -> dict[str, str]:
    return {question: text for question, text in answers.items() if not question.startswith(EDGE)}


def _edges(answers: WrongAnswers) -> dict[str, str]:
    return {question: text for question, text in answers.items() if question.startswith(EDGE)}


def _has_number(text: str) -> bool:
    return any(Answer.read(text).numbers)


def _share_same(one: Mapping[str, str], other: Mapping[str, str]) -> float:
    """Return the share of questions whose answers in `one` and `other` are the same.

    A question that has only one answer counts as a difference.
    """
    questions = one.keys() | other.keys()
    alike = sum(_same(one[q], other[q]) for q in one.keys() & other.keys())
    return alike / len(questions) if questions else 1.0


def _same(one: str, other: str) -> bool:
    """Return whether two answers are the same. All exceptions count as the same answer."""
    a, b = Answer.read(one), Answer.read(other)
    if a.instead or b.instead:
        return bool(a.instead and b.instead)
    return same(a, b, dtype=False)
