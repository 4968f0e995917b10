"""Create the feedback for one student, as data and as a page."""

from __future__ import annotations

from dataclasses import dataclass, replace

from grader.reports.page import render
from grader.reports.wording import adjustment_lines, for_students, total_lines
from grader.result import Policy, ProblemResult, Status, SubmissionResult, TestResult, total

# The text about a hidden test if the policy is `titles`. It contains no text from the student's
# code, because that text could contain hidden inputs.
_FIXED = {
    Status.PASSED: "passed",
    Status.FAILED: "the answer is wrong",
    Status.ERROR: "your code raised an exception",
    Status.NOT_IMPLEMENTED: "not written yet",
    Status.MISSING: "not found in your file",
    Status.FORBIDDEN: "a forbidden function was called",
    Status.TIMEOUT: "your code exceeded the time limit",
    Status.MEMORY: "your code ran out of memory",
    Status.CRASH: "your code ended its process",
    Status.BAD_OUTPUT: "the result could not be read",
    Status.INTERNAL: "the grader failed; your code is not the reason",
}


_NO_FILE = "your file could not be read"


@dataclass(frozen=True)
class FeedbackLine:
    """The outcome of one test. A test has one or more parametrized cases.

    Attributes:
        title: the test's sentence.
        outcome: the outcome as a fixed text.
        passed: whether all cases passed.
        points: the points of all cases.
        max: the maximum points of all cases.
        message: the message of the first failed case; may be empty.
        mistake: the sentence about the known mistake; may be empty.
    """

    title: str
    outcome: str
    passed: bool
    points: float
    max: float
    message: str = ""
    mistake: str = ""


@dataclass(frozen=True)
class Section:
    """The feedback for one problem.

    Attributes:
        id: the problem's id.
        points: the points.
        max: the maximum.
        sentences: sentences about the file, known mistakes and adjustments.
        visible: a line for each visible test.
        hidden: a line for each hidden test that the policy shows.
        hidden_points: the points of the hidden tests.
        hidden_max: the maximum points of the hidden tests; 0 if there are none.
        absent: whether no file was submitted.
    """

    id: str
    points: float
    max: float
    sentences: list[str]
    visible: list[FeedbackLine]
    hidden: list[FeedbackLine]
    hidden_points: float
    hidden_max: float
    absent: bool

    @property
    def failures(self) -> list[list[FeedbackLine]]:
        """The failed visible tests, grouped by mistake or message."""
        groups: dict[str, list[FeedbackLine]] = {}
        for line in self.visible:
            if not line.passed:
                groups.setdefault(line.mistake or line.message, []).append(line)
        return list(groups.values())

    @property
    def unshown(self) -> list[str]:
        """The entries of `sentences` that are not shown with a failed test."""
        shown = {line.mistake for line in self.visible}
        return [sentence for sentence in self.sentences if sentence not in shown]


def sections(result: SubmissionResult, policy: Policy) -> list[Section]:
    """Return the feedback on each problem, in the order of the result.

    Args:
        result: the result.
        policy: how much of the hidden tests is shown.
    """
    return [_section(problem, policy) for problem in result.problems]


def _section(problem: ProblemResult, policy: Policy) -> Section:
    tests = problem.with_cases
    hidden = [cases for cases in tests if cases[0].hidden]
    with_messages = policy is Policy.FULL
    visible = [_line(cases, problem, True) for cases in tests if not cases[0].hidden]
    if problem.ended_alike:  # the tests have the same message, so show it only once
        visible[1:] = [replace(each, message="") for each in visible[1:]]
        with_messages = with_messages and not visible
    return Section(
        problem.id,
        problem.points,
        problem.max,
        [
            *problem.notes,
            *problem.diagnoses,
            *adjustment_lines(problem),
        ],
        visible,
        [_line(c, problem, with_messages) for c in hidden if policy is not Policy.POINTS],
        total(test.points for cases in hidden for test in cases),
        total(test.max for cases in hidden for test in cases),
        problem.absent,
    )


def _line(cases: list[TestResult], problem: ProblemResult, with_message: bool) -> FeedbackLine:
    failed = [test for test in cases if test.status is not Status.PASSED]
    worst = failed[0] if failed else cases[0]
    # If a file is missing or can't be used, there are notes but no hash.
    unread = worst.status is Status.ERROR and problem.notes and not problem.sha256
    message = failed[0].message if failed and with_message else ""
    return FeedbackLine(
        cases[0].title,
        _NO_FILE if unread else _FIXED[worst.status],
        not failed,
        total(test.points for test in cases),
        total(test.max for test in cases),
        "" if message in (*problem.notes, *problem.diagnoses) else message,  # already in sentences
        _mistake(worst, problem) if with_message else "",
    )


def _mistake(test: TestResult, problem: ProblemResult) -> str:
    """Return the sentence about the known mistake that explains a test's failure, or ""."""
    pairs = zip(problem.mistakes, problem.diagnoses, strict=False)
    return next((text for names, text in pairs if {*names} & {*test.diagnosis}), "")


def feedback_page(result: SubmissionResult, policy: Policy, date: str = "") -> str:
    """Return the HTML page for the student.

    Args:
        result: the result.
        policy: how much of the hidden tests is shown.
        date: the date of the run.
    """
    contents = sections(result, policy)
    order = {problem.id: problem.order for problem in result.problems}
    return render(
        "feedback.html.j2",
        result=result,
        contents=contents,
        sections=sorted(contents, key=lambda section: order[section.id]),
        date=date,
        totals=total_lines(result),
        isolation=for_students(result),
    )
