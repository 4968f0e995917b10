"""Apply the book to the results of a class: corrections, points by hand, lateness."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from grader.errors import UsageError
from grader.gradebook import corrections, criteria, late_policy
from grader.gradebook.corrections import (
    correction_line,
    follow,
    read_corrections,
)
from grader.gradebook.criteria import ByHand, given_by_hand, lacking, read_criteria
from grader.gradebook.folder import GradebookFolder
from grader.gradebook.late_policy import NO_POLICY, Extensions, read_late_policy
from grader.gradebook.lines import EVERYBODY, BookLine
from grader.gradebook.people import NO_ALIASES, Aliases, NotOne, People, nearly
from grader.gradebook.roster import Known, Matched
from grader.result import ProblemResult, Status, SubmissionResult, shown, total
from grader.text import counted, quoted, some

LineOfBook = TypeVar("LineOfBook", bound=BookLine)

_TESTS_ALIKE = 0.5
"""The similarity of a renamed test, which keeps some of its words."""

_NAMED = 8
"""The number of tests to list if none is similar."""


class ClassBook:
    """The results of a class and the book.

    Args:
        results: the known results of the class.
        book: the folder with corrections, points by hand, the late policy and the roster.
        also: by the name of a submission, other names of the student.
        problems: the ids of all problems of the course; empty if unknown.
        is_whole: whether these are all results; otherwise an unknown student may be elsewhere.

    Attributes:
        results: with the real names of the roster.
        wrong: messages about lines that match nothing or contradict each other.
        open: messages about missing submissions or marks.

    Raises:
        UsageError: a file can't be read, or is invalid.
    """

    def __init__(
        self,
        results: Iterable[SubmissionResult],
        book: GradebookFolder,
        also: Aliases = NO_ALIASES,
        problems: Collection[str] = (),
        *,
        is_whole: bool = True,
    ) -> None:
        matched = match_roster(results := list(results), book)
        self.results = [replace(r, full_name=matched.name(r.who) or r.full_name) for r in results]
        self.wrong: dict[str, None] = {}
        self.open: dict[str, None] = {}
        self._path = book.path(corrections.FILE)
        self._people = People(self.results, matched, also)
        self._problems = problems
        self._is_whole = is_whole
        self._policy = read_late_policy(book.path(late_policy.FILE)) or NO_POLICY
        self._lines = read_corrections(self._path)
        self._corrections = self._by_person(self._lines)
        self._by_hand = self._by_person(read_criteria(book.path(criteria.FILE)))
        self._own_extensions = self._extended()

    def adjusted(self) -> list[SubmissionResult]:
        """Return the results with new adjustments.

        Old adjustments are dropped, so that a second call changes nothing.
        """
        found = []
        unclear: list[str] = []
        for result in self.results:
            problems = [self._adjusted(result, problem) for problem in result.problems]
            found.append(replace(result, problems=problems))
            unclear += [
                f"{result.shown_name} ({problem.id[:2]})"
                for problem in problems
                if self._is_unclear(result, problem)
            ]
        if unclear:
            self.open[_unclear(unclear)] = None
        self.open |= dict.fromkeys(_lacking(found, self._by_hand))
        return found

    def is_late(self, result: SubmissionResult, problem: ProblemResult) -> bool:
        """Return whether a problem was late, by the late policy or the platform's flag."""
        return self._policy.is_late(problem, self._extensions(result))

    def of_earlier_files(self, before: Mapping[str, SubmissionResult]) -> list[str]:
        """Return a question about each correction for a student with a new file.

        Args:
            before: the results of the last run, by submission.
        """
        return [
            f"{corrections.FILE}, line {line.line}: {result.shown_name} has handed in a new file "
            f"for {problem.id} since the last run. Does the line still hold?"
            for line in self._lines
            if len(meant := self._people.meant(line.submission)) == 1
            for result in meant
            for problem in _handed_in_anew(result, before.get(result.submission))
            if line.concerns(problem)
        ]

    def _adjusted(self, result: SubmissionResult, problem: ProblemResult) -> ProblemResult:
        if any(test.status is Status.INTERNAL for test in problem.tests):
            return replace(problem, adjustments=[])
        lines = [line for line in self._of(self._corrections, result) if line.concerns(problem)]
        lines = [line for line in lines if line.tests(problem)]
        changes, is_final = follow(problem, lines, self.wrong)
        by_hand = (line for line in self._of(self._by_hand, result) if line.concerns(problem))
        if not is_final:
            points = max(0.0, total([problem.earned, *(a.points for a in changes)]))
            late = self._policy.deduction(problem, points, self._extensions(result))
            changes += [late] if late else []
        return replace(problem, adjustments=[*changes, *given_by_hand(by_hand, self.wrong)])

    def _is_unclear(self, result: SubmissionResult, problem: ProblemResult) -> bool:
        """Return whether lateness would cost points, but its length is unknown."""
        lines = [line for line in self._of(self._corrections, result) if line.concerns(problem)]
        is_final = any(not line.test for line in lines)
        by_hand = total(each.points for each in problem.adjustments if each.max > 0)
        return (
            problem.points > by_hand
            and not is_final
            and self._policy.is_unclear(problem, self._extensions(result))
        )

    def _extensions(self, result: SubmissionResult) -> Extensions:
        return self._policy.extended(self._own_extensions.get(result.submission, {}))

    def _of(
        self, lines: Mapping[str, Sequence[LineOfBook]], result: SubmissionResult
    ) -> list[LineOfBook]:
        """Return the lines for a submission, then the lines for the whole class."""
        return [*lines.get(result.submission, ()), *lines.get(EVERYBODY, ())]

    def _by_person(self, lines: Iterable[LineOfBook]) -> dict[str, list[LineOfBook]]:
        """Return lines by the name of the submission; lines for the class under `*`."""
        found: dict[str, list[LineOfBook]] = defaultdict(list)
        for line in lines:
            try:
                meant = [] if line.for_everybody else [self._people.one(line.submission)]
            except NotOne as error:
                is_known = self._is_whole or self._people.meant(line.submission)
                if error.is_awaited or not is_known:
                    self.open[line.not_followed(str(error))] = None
                else:
                    text = line.corrected(str(error), line.submission, error.instead)
                    self.wrong[text] = None
            else:
                if self._is_of_something(line, meant or self.results):
                    found[meant[0].submission if meant else EVERYBODY].append(line)
        return found

    def _is_of_something(self, line: BookLine, meant: Iterable[SubmissionResult]) -> bool:
        """Return whether a line applies to a graded problem or test; else add a message."""
        problems = [p for result in meant for p in result.problems if line.concerns(p)]
        if any(line.tests(problem) for problem in problems):
            return True
        if problems:
            names = dict.fromkeys(name for t in problems[0].tests for name in (t.name, t.id))
            near = nearly(line.test, names, _TESTS_ALIKE)
            there = "" if near else f"; there are {some([*names], _NAMED)}"
            why = f"{problems[0].id} has no test {quoted(line.test)}{there}"
            self.wrong[line.corrected(why, line.test, near)] = None
        elif self._problems and not any(line.concerns(ProblemResult(p)) for p in self._problems):
            why = f"there is no problem {quoted(line.problem)}"
            near = nearly(line.problem, self._problems)
            self.wrong[line.corrected(why, line.problem, near)] = None
        else:
            whose = "nobody has" if line.for_everybody else f"{quoted(line.submission)} has not"
            why = f"{whose} been graded in {quoted(line.problem)}"
            self.open[line.not_followed(why)] = None
        return False

    def _extended(self) -> dict[str, Extensions]:
        """Return the extensions by the name of the submission."""
        found: dict[str, Extensions] = {}
        for name, extensions in self._policy.extensions.items():
            if name == late_policy.ALL:
                continue
            try:
                found[self._people.one(name).submission] = extensions
            except NotOne as error:
                if error.is_awaited:  # the submission may come later
                    continue
                near = " or ".join(map(quoted, error.instead))
                why = f"{error}{f', did you mean {near}' if near else ''}"
                told = self.wrong if self._people.meant(name) else self.open
                told[f"{late_policy.FILE}: this extension does not count: {why}."] = None
        return found


def adjusted(
    results: Iterable[SubmissionResult], book: GradebookFolder, also: Aliases = NO_ALIASES
) -> tuple[list[SubmissionResult], list[str]]:
    """Return results with adjustments, and messages about the book.

    Arguments and errors are those of `ClassBook`.
    """
    made = ClassBook(results, book, also)
    rows = made.adjusted()
    return rows, [*made.wrong, *made.open] if rows else []


def require_followed(
    results: Iterable[SubmissionResult],
    book: GradebookFolder,
    also: Aliases = NO_ALIASES,
    problems: Collection[str] = (),
    *,
    is_whole: bool = True,
) -> None:
    """Check that each line of the book has an effect; arguments are those of `ClassBook`.

    Raises:
        UsageError: some lines have none; the text contains lines to write instead.
    """
    made = ClassBook(results, book, also, problems, is_whole=is_whole)
    made.adjusted()
    if made.wrong:
        raise UsageError("\n".join(made.wrong))


def lower_than_before(
    results: Iterable[SubmissionResult],
    before: Mapping[str, SubmissionResult],
    book: GradebookFolder,
    also: Aliases = NO_ALIASES,
) -> list[str]:
    """Return a message for each mark below an earlier one in time, and the line that keeps it.

    Args:
        results: of the whole class, adjusted.
        before: the results of the last run, by submission.
        book: the instructor's own files.
        also: by the name of a submission, other names of the student.

    Raises:
        UsageError: a file of the book can't be read.
    """
    path, earlier = book.path(corrections.FILE), ClassBook(before.values(), book, also)
    told = []
    for result in results:
        old = before.get(result.submission)
        files = {problem.id: problem for problem in old.problems} if old else {}
        for new in result.problems:
            kept = files.get(new.id, new)
            is_lower = kept.sha256 != new.sha256 and kept.points > new.points
            if is_lower and not earlier.is_late(result, kept):
                points, reason = shown(kept.points), "The earlier file counts."
                told += [
                    f"{result.shown_name}: {new.id} has {shown(new.points)} points now, and the "
                    f"earlier file, which was in time, had {points}. To keep that mark, put this "
                    f"line into {path}:",
                    correction_line(path, result.who, new.id[:2], kept.points, reason),
                ]
    return told


def match_roster(results: Iterable[SubmissionResult], book: GradebookFolder) -> Matched:
    """Match a class with the roster of its book.

    Raises:
        UsageError: the roster can't be read.
    """
    return book.roster.match(Known(r.who, r.full_name, r.members) for r in results)


def _handed_in_anew(
    result: SubmissionResult, before: SubmissionResult | None
) -> list[ProblemResult]:
    """Return the problems with a new readable file."""
    old = {problem.id: problem.sha256 for problem in before.problems} if before else {}
    return [p for p in result.problems if p.sha256 and old.get(p.id, p.sha256) != p.sha256]


def _lacking(
    results: Iterable[SubmissionResult], by_hand: Mapping[str, Sequence[ByHand]]
) -> list[str]:
    """Return a message for each criterion with points for some students only."""
    of_problem: dict[str, list[tuple[str, Sequence[ByHand]]]] = {}
    for result in results if by_hand else ():
        own = by_hand.get(result.submission, ())
        for problem in result.problems:
            about = [line for line in own if line.concerns(problem)]
            if about or not problem.untouched:
                of_problem.setdefault(problem.id, []).append((result.shown_name, about))
    return [text for id, people in of_problem.items() for text in lacking(people, id)]


def _unclear(names: Sequence[str]) -> str:
    number = counted(len(names), "file")
    return (
        f"{number} came late, and nothing is taken for it: it isn't known how late, and "
        f"{late_policy.FILE} says no share ('flagged') that is right for this: {', '.join(names)}."
    )
