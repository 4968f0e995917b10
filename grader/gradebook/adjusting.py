"""What counts in the end: the marks that tests gave, with all that the book says about them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from grader.errors import UsageError
from grader.gradebook import corrections, criteria, late_policy
from grader.gradebook.corrections import (
    Correction,
    Followed,
    correction_line,
    follow,
    read_corrections,
)
from grader.gradebook.criteria import ByHand, given_by_hand, lacking, read_criteria
from grader.gradebook.folder import GradebookFolder
from grader.gradebook.late_policy import NO_POLICY, Extensions, LatePolicy, read_late_policy
from grader.gradebook.lines import EVERYBODY, BookLine
from grader.gradebook.roster import Known, Matched
from grader.gradebook.who_is_meant import NO_ALIASES, Aliases, NotOne, People, nearly
from grader.result import ProblemResult, Status, SubmissionResult, shown, total
from grader.text import counted, quoted

LineOfBook = TypeVar("LineOfBook", bound=BookLine)


@dataclass
class _Told:
    """Sentences about the book, each once.

    Attributes:
        wrong: about lines that match nothing, or contradict each other.
        open: about what is still to come, or lacking.
    """

    wrong: dict[str, None] = field(default_factory=dict)
    open: dict[str, None] = field(default_factory=dict)


def require_followed(
    results: Iterable[SubmissionResult],
    book: GradebookFolder,
    also: Aliases = NO_ALIASES,
    problems: Collection[str] = (),
) -> None:
    """Make sure that each line of the book can be followed; arguments are those of `adjusted`.

    Args:
        results: of the whole class, as far as they are known.
        book: the instructor's own files.
        also: by the name of a submission, what else its person is called.
        problems: the ids of the course's problems; others can't be graded later.

    Raises:
        UsageError: lines can't be; the text says which, and what to write instead.
    """
    _, told = _adjusted_class(results, book, also, problems)
    if told.wrong:
        raise UsageError("\n".join(told.wrong))


def adjusted(
    results: Iterable[SubmissionResult], book: GradebookFolder, also: Aliases = NO_ALIASES
) -> tuple[list[SubmissionResult], list[str]]:
    """Return results with what the book changes in them, and what it says that does nothing.

    Real names come from the roster. Adjustments are made anew: what stood there goes, so that the
    same call changes nothing more. What tests gave is as it was. The results that are given are
    left alone.

    Args:
        results: of the whole class.
        book: where corrections, points by hand, the late policy and the roster may be.
        also: by the name of a submission, what else its person is called.

    Raises:
        UsageError: one of the files can't be read or understood.
    """
    found, told = _adjusted_class(results, book, also)
    return found, [*told.wrong, *told.open] if found else []


def _adjusted_class(
    results: Iterable[SubmissionResult],
    book: GradebookFolder,
    also: Aliases,
    known: Collection[str] = (),
) -> tuple[list[SubmissionResult], _Told]:
    matched = match_roster(results := list(results), book)
    results = [replace(r, full_name=matched.name(r.who) or r.full_name) for r in results]
    lines = read_corrections(book.path(corrections.FILE))
    by_hand = read_criteria(book.path(criteria.FILE))
    policy = read_late_policy(book.path(late_policy.FILE)) or NO_POLICY
    people, told = People(results, matched, also), _Told()
    matching = _Matching(results, people, known, told)
    given = _GivenPoints(
        matching.by_person(lines),
        matching.by_person(by_hand),
        policy,
        _extended(policy, people, told),
    )
    found = []
    unclear: list[str] = []
    for result in results:
        problems = []
        for problem in result.problems:
            new, is_unclear = _adjusted(problem, given.to(result), told.wrong)
            unclear += [f"{result.shown_name} ({problem.id[:2]})"] * is_unclear
            problems.append(new)
        found.append(replace(result, problems=problems))
    if unclear:
        told.open[_unclear(unclear)] = None
    told.open |= dict.fromkeys(_lacking(found, given.by_hand))
    return found, told


def of_earlier_files(
    results: Iterable[SubmissionResult],
    before: Mapping[str, SubmissionResult],
    book: GradebookFolder,
    also: Aliases = NO_ALIASES,
) -> list[str]:
    """Return a question about each correction for a student who has handed in a new file since.

    What is for everybody holds whatever somebody hands in.

    Args:
        results: of the whole class.
        before: the results of the last run, by submission.
        book: where the corrections may be.
        also: by the name of a submission, what else its person is called.

    Raises:
        UsageError: they, or the roster, can't be read.
    """
    lines = read_corrections(book.path(corrections.FILE))
    own = [line for line in lines if not line.for_everybody]
    if not own:
        return []
    results = list(results)
    people = People(results, match_roster(results, book), also)
    return [
        f"{corrections.FILE}, line {line.line}: {result.shown_name} has handed in a new file "
        f"for {problem.id} since the last run. Does the line still hold?"
        for line in own
        if len(meant := people.meant(line.submission)) == 1
        for result in meant
        for problem in _handed_in_anew(result, before.get(result.submission))
        if line.concerns(problem)
    ]


def _handed_in_anew(
    result: SubmissionResult, before: SubmissionResult | None
) -> list[ProblemResult]:
    """Return the problems for which there was another file before, or none that could be read."""
    old = {problem.id: problem.sha256 for problem in before.problems} if before else {}
    return [p for p in result.problems if p.sha256 and old.get(p.id, p.sha256) != p.sha256]


def lower_than_before(
    results: Iterable[SubmissionResult],
    before: Mapping[str, SubmissionResult],
    book: GradebookFolder,
    also: Aliases = NO_ALIASES,
) -> list[str]:
    """Return each mark that is lower than an earlier one in time, and the line that keeps that.

    Args:
        results: of the whole class, adjusted.
        before: the results of the last run, by submission.
        book: the instructor's own files.
        also: by the name of a submission, what else its person is called.

    Raises:
        UsageError: a file of the book can't be read.
    """
    results = list(results)
    late = {(row.submission, p.id) for row, p in late_ones(before.values(), book, also)}
    path = book.path(corrections.FILE)
    told = []
    for result in results:
        old = before.get(result.submission)
        earlier = {problem.id: problem for problem in old.problems} if old else {}
        for new in result.problems:
            kept = earlier.get(new.id, new)
            is_late = (result.submission, new.id) in late
            if kept.sha256 != new.sha256 and kept.points > new.points and not is_late:
                points = shown(kept.points)
                told += [
                    f"{result.shown_name}: {new.id} has {shown(new.points)} points now, and the "
                    f"earlier file, which was in time, had {points}. To keep that mark, put this "
                    f"line into {path}:",
                    correction_line(
                        path, result.who, new.id[:2], kept.points, "The earlier file counts."
                    ),
                ]
    return told


def late_ones(
    results: Iterable[SubmissionResult], book: GradebookFolder, also: Aliases = NO_ALIASES
) -> list[tuple[SubmissionResult, ProblemResult]]:
    """Return what came late, by the late policy where it can tell, else by what a platform says.

    Raises:
        UsageError: a file of the book can't be read.
    """
    results = list(results)
    policy = read_late_policy(book.path(late_policy.FILE)) or NO_POLICY
    extended = _extended(policy, People(results, match_roster(results, book), also), _Told())
    return [
        (result, problem)
        for result in results
        for problem in result.problems
        if policy.is_late(problem, policy.extended(extended.get(result.submission, {})))
    ]


def match_roster(results: Iterable[SubmissionResult], book: GradebookFolder) -> Matched:
    """Return a class beside the roster of its book.

    Raises:
        UsageError: the roster can't be read.
    """
    return book.roster.match(Known(r.who, r.full_name, r.members) for r in results)


@dataclass(frozen=True)
class _GivenPoints:
    """What the book gives and takes, by the names of submissions.

    Attributes:
        corrections: the lines about each, and those about everybody under `*`.
        by_hand: points given by hand, in the same way.
        policy: what lateness costs.
        extensions: of each, by problem.
    """

    corrections: Mapping[str, Sequence[Correction]]
    by_hand: Mapping[str, Sequence[ByHand]]
    policy: LatePolicy
    extensions: Mapping[str, Extensions]

    def to(self, result: SubmissionResult) -> _Own:
        """Return what is about one submission."""
        name = result.submission
        return _Own(
            [*self.corrections.get(name, ()), *self.corrections.get(EVERYBODY, ())],
            [*self.by_hand.get(name, ()), *self.by_hand.get(EVERYBODY, ())],
            self.policy,
            self.policy.extended(self.extensions.get(name, {})),
        )


@dataclass(frozen=True)
class _Own:
    """The same for one submission."""

    corrections: Sequence[Correction]
    by_hand: Sequence[ByHand]
    policy: LatePolicy
    extensions: Extensions


def _adjusted(
    problem: ProblemResult, own: _Own, wrong: dict[str, None]
) -> tuple[ProblemResult, bool]:
    """Return a problem with its adjustments, and whether it is unclear what lateness costs."""
    if any(test.status is Status.INTERNAL for test in problem.tests):
        return replace(problem, adjustments=[]), False
    concerned = [line for line in own.corrections if line.concerns(problem) and line.tests(problem)]
    followed = follow(problem, concerned, wrong) if concerned else Followed()
    by_hand = given_by_hand((line for line in own.by_hand if line.concerns(problem)), wrong)
    found = [*followed.adjustments]
    if followed.final:
        return replace(problem, adjustments=[*found, *by_hand]), False
    points = max(0.0, total([problem.earned, *(a.points for a in found)]))
    late = own.policy.deduction(problem, points, own.extensions)
    is_unclear = points > 0 and own.policy.is_unclear(problem, own.extensions)
    late_too = [*found, *([late] if late else [])]
    return replace(problem, adjustments=[*late_too, *by_hand]), is_unclear


@dataclass(frozen=True)
class _Matching:
    """What matches lines with submissions.

    Attributes:
        results: of the whole class.
        people: the same by name.
        known: the ids of the problems that can be graded later; empty for all.
        told: takes sentences about lines that match nothing.
    """

    results: Sequence[SubmissionResult]
    people: People
    known: Collection[str]
    told: _Told

    def by_person(self, lines: Iterable[LineOfBook]) -> dict[str, list[LineOfBook]]:
        """Return lines by the name of the submission that is meant; `*` stays as it is."""
        found: dict[str, list[LineOfBook]] = defaultdict(list)
        for line in lines:
            try:
                meant = [] if line.for_everybody else [self.people.one(line.submission)]
            except NotOne as error:
                if error.is_awaited:
                    self.told.open[line.not_followed(str(error))] = None
                else:
                    text = line.corrected(str(error), line.submission, error.instead)
                    self.told.wrong[text] = None
            else:
                if self._is_of_something(line, meant or self.results):
                    found[meant[0].submission if meant else EVERYBODY].append(line)
        return found

    def _is_of_something(self, line: BookLine, meant: Iterable[SubmissionResult]) -> bool:
        """Tell whether a line is about something that somebody was graded in; say so if not."""
        problems = [p for result in meant for p in result.problems if line.concerns(p)]
        if any(line.tests(problem) for problem in problems):
            return True
        if problems:
            names = dict.fromkeys(name for t in problems[0].tests for name in (t.name, t.id))
            why = f"{problems[0].id} has no test {quoted(line.test)}"
            self.told.wrong[line.corrected(why, line.test, nearly(line.test, names))] = None
        elif self.known and not any(line.concerns(ProblemResult(id)) for id in self.known):
            why = f"there is no problem {quoted(line.problem)}"
            near = nearly(line.problem, self.known)
            self.told.wrong[line.corrected(why, line.problem, near)] = None
        else:
            whose = "nobody has" if line.for_everybody else f"{quoted(line.submission)} has not"
            why = f"{whose} been graded in {quoted(line.problem)}"
            self.told.open[line.not_followed(why)] = None
        return False


def _lacking(
    results: Iterable[SubmissionResult], by_hand: Mapping[str, Sequence[ByHand]]
) -> list[str]:
    """Return who has no points by hand for a criterion by which others have some."""
    of_problem: dict[str, list[tuple[str, Sequence[ByHand]]]] = {}
    for result in results if by_hand else ():
        own = by_hand.get(result.submission, ())
        for problem in result.problems:
            about = [line for line in own if line.concerns(problem)]
            if about or not problem.untouched:
                of_problem.setdefault(problem.id, []).append((result.shown_name, about))
    return [text for id, people in of_problem.items() for text in lacking(people, id)]


def _extended(policy: LatePolicy, people: People, told: _Told) -> dict[str, Extensions]:
    """Return extensions by the name of the submission that is meant."""
    found: dict[str, Extensions] = {}
    for name, extensions in policy.extensions.items():
        if name == late_policy.ALL:
            continue
        try:
            found[people.one(name).submission] = extensions
        except NotOne as error:
            if error.is_awaited:  # the extension is there before the work is
                continue
            one_of = f", did you mean {' or '.join(map(quoted, error.instead))}"
            why = f"{error}{one_of if error.instead else ''}"
            is_several = people.meant(name)
            where = told.wrong if is_several else told.open
            where[f"{late_policy.FILE}: this extension does not count: {why}."] = None
    return found


def _unclear(names: Sequence[str]) -> str:
    number = counted(len(names), "file")
    return (
        f"{number} came late, and nothing is taken for it: it isn't known how late, and "
        f"{late_policy.FILE} says no share ('flagged') that is right for this: {', '.join(names)}."
    )
