"""Write a submission's result as Gradescope's `results.json`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from grader.reports.feedback import FeedbackLine, Section, sections
from grader.reports.wording import for_students, total_lines
from grader.result import Policy, SubmissionResult, shown, total
from grader.text import plain

# The time when students see hidden tests. Students may submit many times, and each score that they
# see before the deadline reveals something about the hidden tests.
_HIDDEN = {
    Policy.POINTS: "after_published",
    Policy.TITLES: "after_published",
    Policy.FULL: "visible",
}


def results_json(result: SubmissionResult, policy: Policy) -> str:
    """Return the text of `results.json`, with the score of the gradebook.

    The score is the total of the required problems. Optional parts are shown but do not change the
    score. If only an optional part was graded, the score is the total of this part.

    The points of tests are rounded separately, so their sum may differ from the score by 0.01.

    Args:
        result: the result. It must not contain an internal error, because Gradescope would count
            the error as 0 points.
        policy: how much of the hidden tests is shown.
    """
    tests = [test for part in sections(result, policy) for test in _tests(part, policy)]
    optional = result.optional.values()
    lines = [
        *result.notes,
        *(total_lines(result) if result.counted and optional else []),
        *([] if policy is Policy.FULL else [_visible_points(result)]),
        for_students(result),
    ]
    score = result.points if result.counted else total(part.points for part in optional)
    data = {
        "score": _rounded(score),
        "output": "\n".join(plain(text) for text in lines if text),
        "output_format": "text",
        "test_output_format": "text",
        "test_name_format": "text",
        "tests": tests,
    }
    return json.dumps(data, indent=2, ensure_ascii=True) + "\n"


def refused_json(reason: str) -> str:
    """Return the text of `results.json` for an upload that can't be graded.

    Args:
        reason: the message to the student.
    """
    data = {"score": 0, "output": plain(reason), "output_format": "text", "tests": []}
    return json.dumps(data, indent=2, ensure_ascii=True) + "\n"


def _visible_points(result: SubmissionResult) -> str:
    """Return a line with the points of the visible tests, because Gradescope hides the total."""
    visible = [test for problem in result.problems for test in problem.tests if not test.hidden]
    points, most = total(test.points for test in visible), total(test.max for test in visible)
    return f"Visible tests: {shown(points)} of {shown(most)} points"


def _tests(section: Section, policy: Policy) -> Iterator[dict[str, Any]]:
    about = "\n".join(section.sentences)
    failed = [line for line in section.visible if not line.passed]
    with_mistakes = (failed or section.visible)[:1]  # show mistakes below the first failed test
    for line in section.visible:
        yield _test(section, line, "visible", about if line in with_mistakes else "")
    for line in section.hidden:
        yield _test(section, line, _HIDDEN[policy])
    if section.hidden_max and not section.hidden:
        passed = section.hidden_points == section.hidden_max
        points, most = section.hidden_points, section.hidden_max
        yield _test(
            section, FeedbackLine("hidden tests", "", passed, points, most), _HIDDEN[policy]
        )


def _test(section: Section, line: FeedbackLine, visibility: str, about: str = "") -> dict[str, Any]:
    texts = [about, line.outcome, line.message]
    return {
        "name": plain(f"{section.id}: {line.title}"),
        "score": _rounded(line.points),
        "max_score": _rounded(line.max),
        "status": "passed" if line.passed else "failed",
        "output": plain("\n\n".join(text for text in texts if text)),
        "visibility": visibility,
    }


def _rounded(points: float) -> float:
    """Return points, rounded as in other reports."""
    return float(shown(points))
