"""What counts in the end: the marks that tests gave, with all that the book says about them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from grader.gradebook import corrections, criteria, late_policy
from grader.gradebook.corrections import Correction, Followed, follow, read_corrections
from grader.gradebook.criteria import ByHand, given_by_hand, lacking, read_criteria
from grader.gradebook.folder import GradebookFolder
from grader.gradebook.late_policy import NO_POLICY, Extensions, LatePolicy, read_late_policy
from grader.gradebook.roster import Known, Matched
from grader.gradebook.who_is_meant import NO_ALIASES, Aliases, People, nearly
from grader.result import ProblemResult, Status, SubmissionResult, total
from grader.text import counted, quoted


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
        UsageError: one of the files can't be read, or the late policy is not understood.
    """
    matched = match_roster(results := list(results), book)
    results = [replace(r, full_name=matched.name(r.who) or r.full_name) for r in results]
    lines, remarks = read_corrections(book.path(corrections.FILE))
    by_hand, remarks_by_hand = read_criteria(book.path(criteria.FILE))
    policy = read_late_policy(book.path(late_policy.FILE)) or NO_POLICY
    people = People(results, matched, also)
    messages: dict[str, None] = dict.fromkeys([*remarks, *remarks_by_hand])
    given = _GivenPoints(
        _by_person(lines, results, people, messages),
        _hand_by_person(by_hand, people, messages),
        policy,
        _extended(policy, people, messages),
    )
    found = []
    unclear: list[str] = []
    for result in results:
        problems = []
        for problem in result.problems:
            new, is_unclear = _adjusted(problem, given.to(result), messages)
            unclear += [f"{result.shown_name} ({problem.id[:2]})"] * is_unclear
            problems.append(new)
        found.append(replace(result, problems=problems))
    if unclear:
        messages[_unclear(unclear)] = None
    messages |= dict.fromkeys(_lacking(found, given.by_hand))
    return found, list(messages) if results else []


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
    lines, _ = read_corrections(book.path(corrections.FILE))
    own = [line for line in lines if not line.for_everybody]
    if not own:
        return []
    results = list(results)
    people = People(results, match_roster(results, book), also)
    return [
        f"{corrections.FILE}, line {line.line}: {result.shown_name} has handed in a new file "
        f"for {problem.id} since the last run. Does the line still hold?"
        for line in own
        if not people.why_nobody(line.submission)
        for result in people.meant(line.submission)
        for problem in _handed_in_anew(result, before.get(result.submission))
        if line.concerns(problem)
    ]


def _handed_in_anew(
    result: SubmissionResult, before: SubmissionResult | None
) -> list[ProblemResult]:
    """Return the problems for which there was another file before, or none that could be read."""
    old = {problem.id: problem.sha256 for problem in before.problems} if before else {}
    return [p for p in result.problems if p.sha256 and old.get(p.id, p.sha256) != p.sha256]


def late_ones(
    results: Iterable[SubmissionResult], book: GradebookFolder, also: Aliases = NO_ALIASES
) -> list[tuple[SubmissionResult, ProblemResult]]:
    """Return what came late, by the late policy where it can tell, else by what a platform says.

    Raises:
        UsageError: a file of the book can't be read.
    """
    results = list(results)
    policy = read_late_policy(book.path(late_policy.FILE)) or NO_POLICY
    extended = _extended(policy, People(results, match_roster(results, book), also), {})
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
        by_hand: points given by hand.
        policy: what lateness costs.
        extensions: of each, by problem.
    """

    corrections: Mapping[str, Sequence[Correction]]
    by_hand: Mapping[str, Sequence[ByHand]]
    policy: LatePolicy
    extensions: Mapping[str, Extensions]

    def to(self, result: SubmissionResult) -> _Own:
        """Return what is about one submission."""
        name, nothing = result.submission, ()
        common = self.corrections.get(corrections.EVERYBODY, nothing)
        return _Own(
            [*self.corrections.get(name, nothing), *common],
            self.by_hand.get(name, nothing),
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
    problem: ProblemResult, own: _Own, messages: dict[str, None]
) -> tuple[ProblemResult, bool]:
    """Return a problem with its adjustments, and whether it is unclear what lateness costs."""
    if any(test.status is Status.INTERNAL for test in problem.tests):
        return replace(problem, adjustments=[]), False
    concerned = [line for line in own.corrections if line.concerns(problem) and line.tests(problem)]
    followed = follow(problem, concerned, messages) if concerned else Followed()
    by_hand = given_by_hand((line for line in own.by_hand if line.concerns(problem)), messages)
    found = [*followed.adjustments]
    if followed.final:
        return replace(problem, adjustments=[*found, *by_hand]), False
    points = max(0.0, total([problem.earned, *(a.points for a in found)]))
    late = own.policy.deduction(problem, points, own.extensions)
    is_unclear = points > 0 and own.policy.is_unclear(problem, own.extensions)
    late_too = [*found, *([late] if late else [])]
    return replace(problem, adjustments=[*late_too, *by_hand]), is_unclear


def _hand_by_person(
    lines: Iterable[ByHand], people: People, messages: dict[str, None]
) -> dict[str, list[ByHand]]:
    """Return points given by hand by the name of the submission that is meant."""
    found: dict[str, list[ByHand]] = defaultdict(list)
    for line in lines:
        meant, why = people.meant(line.submission), people.why_nobody(line.submission)
        if not why and not any(line.concerns(problem) for problem in meant[0].problems):
            why = f"{quoted(line.submission)} has not been graded in {quoted(line.problem)}"
        if why:
            messages[line.not_followed(why)] = None
        else:
            found[meant[0].submission].append(line)
    return found


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


def _by_person(
    lines: Iterable[Correction],
    results: Sequence[SubmissionResult],
    people: People,
    messages: dict[str, None],
) -> dict[str, list[Correction]]:
    """Return corrections by the name of the submission that is meant; `*` stays as it is."""
    found: dict[str, list[Correction]] = defaultdict(list)
    for line in lines:
        meant = results if line.for_everybody else people.meant(line.submission)
        why = "" if line.for_everybody else people.why_nobody(line.submission)
        why = why or _why_nothing(line, meant)
        if why:
            messages[line.not_followed(why)] = None
        else:
            key = corrections.EVERYBODY if line.for_everybody else meant[0].submission
            found[key].append(line)
    return found


def _why_nothing(line: Correction, meant: Iterable[SubmissionResult]) -> str:
    """Return why a line is about nothing that somebody was graded in; empty if it is."""
    problems = [p for result in meant for p in result.problems if line.concerns(p)]
    if not problems:
        whose = "nobody has" if line.for_everybody else f"{quoted(line.submission)} has not"
        return f"{whose} been graded in {quoted(line.problem)}"
    if any(line.tests(problem) for problem in problems):
        return ""
    names = dict.fromkeys(name for t in problems[0].tests for name in (t.name, t.id))
    return f"{problems[0].id} has no test {quoted(line.test)}{nearly(line.test, names)}"


def _extended(
    policy: LatePolicy, people: People, messages: dict[str, None]
) -> dict[str, Extensions]:
    """Return extensions by the name of the submission that is meant."""
    found: dict[str, Extensions] = {}
    for name, extensions in policy.extensions.items():
        if name == late_policy.ALL:
            continue
        why = people.why_nobody(name)
        if why and people.is_awaited(name):
            continue  # the extension is there before the work is
        if why:
            messages[f"{late_policy.FILE}: this extension does not count: {why}."] = None
        else:
            found[people.meant(name)[0].submission] = extensions
    return found


def _unclear(names: Sequence[str]) -> str:
    number = counted(len(names), "file")
    return (
        f"{number} came late, and nothing is taken for it: it isn't known how late, and "
        f"{late_policy.FILE} says no share ('flagged') that is right for this: {', '.join(names)}."
    )
