"""Apply the instructor's files to a class's results: corrections, points by hand and lateness."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from grader.errors import UsageError
from grader.gradebook import late_policy
from grader.gradebook.folder import GradebookFolder
from grader.gradebook.late_policy import Extensions, read_late_policy
from grader.gradebook.lines import (
    EVERYBODY,
    BookLine,
    ByHand,
    Correction,
    Line,
    corrected,
    correction_line,
    number_of,
    read_criteria,
    read_lines,
    without_contradictions,
)
from grader.gradebook.people import NO_ALIASES, Aliases, NotOne, People, author, closest
from grader.result import ProblemResult, Status, SubmissionResult, readable_names, shown, total
from grader.text import counted, quoted, some

_TESTS_ALIKE = 0.5
"""A known test name is suggested for an unknown name if their similarity is at least this."""

_MOST_LISTED = 8
"""The maximum number of tests or problems to list in a message."""


class ClassBook:
    """The results of a class, adjusted with the instructor's files.

    Args:
        results: the known results of the class.
        book: the folder with corrections, points by hand, the late policy and the roster.
        also: maps the name of a submission to other names of its student.
        problems: the ids of all problems of the course; empty if they are unknown.
        is_whole: whether `results` contains the whole class. If not, a line about an unknown
            student is not an error.

    Attributes:
        matched: the submissions of the class, matched with the roster.
        people: finds students by name.
        results: the results with the full names from the roster and with new adjustments.
        wrong: messages about lines that match nothing, are invalid or contradict each other.
        open: messages about missing submissions, missing marks and unknown submission times.
        ungraded: messages about lines for a problem that has not been graded.

    Raises:
        UsageError: a file can't be read or is invalid.
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
        results = list(results)
        self.matched = book.roster.match(map(author, results))
        self.results = [
            replace(r, full_name=self.matched.name(r.who) or r.full_name) for r in results
        ]
        self.people = People(self.results, self.matched, also)
        self.wrong: dict[str, None] = {}
        self.open: dict[str, None] = {}
        self.ungraded: dict[str, None] = {}
        self._path = book.path(Correction.file)
        self._problems = problems
        self._is_whole = is_whole
        self._policy = read_late_policy(book.path(late_policy.FILE))
        ids = {number_of(id) for id in problems}
        for id in self._policy.problems() if ids else ():
            if number_of(id) not in ids:
                there = some([*problems], _MOST_LISTED)
                why = f"there is no problem {quoted(id)}; the problems are {there}"
                self.wrong[f"{late_policy.FILE}: {why}."] = None
        self._lines = read_lines(book.folder, Correction)
        self._corrections = self._by_person(self._lines)
        self._by_hand = self._by_person(read_criteria(book.folder))
        self._own_extensions = self._extensions_by_person()
        self._of_unclear_lateness: list[str] = []
        self.results = [
            replace(r, problems=[self._adjusted(r, problem) for problem in r.problems])
            for r in self.results
        ]
        if files := self._of_unclear_lateness:
            self.open[
                f"{counted(len(files), 'file')} came late, but the time is unknown, so no "
                f"points were deducted: {', '.join(files)}. To deduct points, set 'flagged' in "
                f"{late_policy.FILE}."
            ] = None
        self.open |= dict.fromkeys(self._missing_points())

    @property
    def messages(self) -> list[str]:
        """All messages. If there are no results, there are no messages."""
        return [*self.wrong, *self.open, *self.ungraded] if self.results else []

    def require_effect(self) -> None:
        """Check that each line of the instructor's files has an effect.

        Raises:
            UsageError: some lines have no effect. The message suggests other lines if possible.
        """
        if self.wrong:
            raise UsageError("\n".join(self.wrong))

    def is_late(self, result: SubmissionResult, problem: ProblemResult) -> bool:
        """Return whether the file of a problem was submitted late.

        If the deadline or the submission time is unknown, return the platform's flag.
        """
        return self._policy.is_late(problem, self._extensions(result))

    def questions_about_new_files(self, before: Mapping[str, SubmissionResult]) -> list[str]:
        """Return a question about each correction of a file that has changed since the last run.

        Args:
            before: maps the name of each submission to its gradebook row in the last run.
        """
        return [
            f"{Correction.file}, line {line.number}: {result.shown_name} has submitted a new file "
            f"for {problem.id} since the last run. Is this line still right?"
            for line in self._lines
            for result, problem, _ in self._new_files(before)
            if problem.sha256 and line.concerns(problem.id)
            if [each.submission for each in self.people.matches(line.submission)]
            == [result.submission]
        ]

    def lower_than_before(self, before: Mapping[str, SubmissionResult]) -> list[str]:
        """Return messages about new files with lower marks than earlier files.

        A lower mark is reported only if the earlier file was not late. Each message is followed by
        a correction that restores the earlier mark.

        Args:
            before: maps the name of each submission to its gradebook row in the last run.
        """
        messages = []
        for result, new, old in self._new_files(before):
            now, earlier = (_without_by_hand(problem) for problem in (new, old))
            if earlier > now and not self.is_late(result, old):
                line = correction_line(
                    self._path, result.who, new.id[:2], earlier, "The earlier file counts."
                )
                messages += [
                    f"{result.shown_name}: {new.id} has {shown(now)} points now. The earlier file, "
                    f"which was in time, had {shown(earlier)}. To restore that mark, add this line "
                    f"to {self._path}:",
                    line,
                ]
        return messages

    def _new_files(
        self, before: Mapping[str, SubmissionResult]
    ) -> Iterator[tuple[SubmissionResult, ProblemResult, ProblemResult]]:
        """For each problem with a new file, yield the submission, the new and the old result."""
        for result in self.results:
            earlier = before.get(result.submission)
            of_problem = {problem.id: problem for problem in earlier.problems} if earlier else {}
            for new in result.problems:
                old = of_problem.get(new.id, new)
                if old.sha256 != new.sha256:
                    yield result, new, old

    def _adjusted(self, result: SubmissionResult, problem: ProblemResult) -> ProblemResult:
        if any(test.status is Status.INTERNAL for test in problem.tests):
            return replace(problem, adjustments=[])
        lines = [
            each for each in _lines_for(self._corrections, result, problem) if each.tests(problem)
        ]
        changes = corrected(problem, lines, self.wrong)
        points = max(0.0, total([problem.earned, *(each.points for each in changes)]))
        # Lateness does not reduce a mark that a correction sets for the whole problem.
        if points and all(line.test for line in lines):
            extensions = self._extensions(result)
            late = self._policy.deduction(problem, points, extensions)
            changes += [late] if late else []
            if self._policy.is_unclear(problem, extensions):
                self._of_unclear_lateness.append(f"{result.shown_name} ({problem.id[:2]})")
        by_hand = without_contradictions(
            _lines_for(self._by_hand, result, problem), problem, self.wrong
        )
        return replace(problem, adjustments=[*changes, *(line.value for line in by_hand)])

    def _extensions(self, result: SubmissionResult) -> Extensions:
        return self._policy.extended(self._own_extensions.get(result.submission, {}))

    def _by_person(self, lines: Iterable[Line]) -> dict[str, list[Line]]:
        """Map submission names to their valid lines, and `*` to the lines for the whole class."""
        by_person: dict[str, list[Line]] = defaultdict(list)
        for line in lines:
            try:
                meant = [] if line.for_everybody else [self.people.one(line.submission)]
            except NotOne as error:
                is_known = self._is_whole or self.people.matches(line.submission)
                if error.is_awaited or not is_known:
                    self.open[line.without_effect(str(error))] = None
                else:
                    advice = line.with_advice(str(error), "submission", error.instead)
                    self.wrong[advice] = None
            else:
                if self._applies(line, meant or self.results):
                    by_person[meant[0].submission if meant else EVERYBODY].append(line)
        return by_person

    def _applies(self, line: BookLine, results: Iterable[SubmissionResult]) -> bool:
        """Return whether a line applies to a graded problem or test. If not, add a message."""
        problems = [p for result in results for p in result.problems if line.concerns(p.id)]
        if any(line.parts(problem) for problem in problems):
            return True
        if problems:
            test = line.cells["test"]
            names = dict.fromkeys(name for t in problems[0].tests for name in (t.name, t.id))
            near = closest(test, names, _TESTS_ALIKE)
            there = "" if near else f"; there are {some([*names], _MOST_LISTED)}"
            why = f"{problems[0].id} has no test {quoted(test)}{there}"
            self.wrong[line.with_advice(why, "test", near)] = None
        elif self._problems and not any(map(line.concerns, self._problems)):
            why = f"there is no problem {quoted(line.problem)}"
            near = closest(line.problem, self._problems)
            self.wrong[line.with_advice(why, "problem", near)] = None
        else:
            who = "nobody has" if line.for_everybody else f"{quoted(line.submission)} has not"
            why = f"{who} been graded in {quoted(line.problem)}"
            self.ungraded[line.without_effect(why)] = None
        return False

    def _extensions_by_person(self) -> dict[str, Extensions]:
        """Map the name of each submission to the extensions of its student."""
        by_person: dict[str, Extensions] = {}
        for name in self._policy.extensions:
            if name == EVERYBODY:
                continue
            try:
                person = self.people.one(name).submission
                by_person[person] = self._policy.extensions_of(name)
            except NotOne as error:
                if error.is_awaited:  # the submission may arrive later
                    continue
                near = " or ".join(map(quoted, error.instead))
                why = f"{error}{f', did you mean {near}' if near else ''}"
                messages = self.wrong if self.people.matches(name) else self.open
                messages[f"{late_policy.FILE}: this extension has no effect: {why}."] = None
        return by_person

    def _missing_points(self) -> list[str]:
        """Return a message about each criterion for which only some students have points."""
        names = readable_names(self.results)
        of_problem: defaultdict[str, dict[str, list[ByHand]]] = defaultdict(dict)
        for result in self.results:
            for problem in result.problems:
                lines = _lines_for(self._by_hand, result, problem)
                if lines or not problem.untouched:
                    of_problem[problem.id][names[result.submission]] = lines
        messages = []
        for id, people in of_problem.items():
            for key, line in {
                line.key: line for lines_of_one in people.values() for line in lines_of_one
            }.items():
                without = [
                    name
                    for name, lines_of_one in people.items()
                    if key not in {o.key for o in lines_of_one}
                ]
                if without:
                    criterion = f"{quoted(line.cells['criterion'])} in {id}"
                    who = ", ".join(without)
                    messages.append(f"{ByHand.file}: no points yet for {criterion}: {who}.")
        return messages


def _lines_for(
    lines: Mapping[str, Sequence[Line]], result: SubmissionResult, problem: ProblemResult
) -> list[Line]:
    """Return the lines for a problem of a submission, followed by lines for the whole class."""
    both = [*lines.get(result.submission, ()), *lines.get(EVERYBODY, ())]
    return [line for line in both if line.concerns(problem.id)]


def _without_by_hand(problem: ProblemResult) -> float:
    """Return the points of a problem without the points from `criteria.csv`."""
    return total([problem.points, *(-each.points for each in problem.adjustments if each.max > 0)])
