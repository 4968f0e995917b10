"""Without late.toml there is no late policy. Deductions are exact and explained."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.errors import UsageError
from grader.gradebook.folder import GradebookFolder
from grader.reports.wording import adjustment_lines
from grader.result import Adjustment, SubmissionResult
from tests.grader.gradebook.built import adjusted, problem, result

DAILY = """
per = "day"
share = 0.1
zone = "Europe/Berlin"
[deadlines]
03 = 2026-10-24T12:00:00
"""


def submitted(
    at: str = "", *, late: bool = False, points: float = 20, name: str = "ada"
) -> SubmissionResult:
    return result(name, problem("03-scaled-attention", points, 25, handed_in=at, late=late))


def deducted(folder: Path, policy: str, *results: SubmissionResult) -> list[float]:
    """Return the points that a policy subtracts from each result."""
    (folder / "late.toml").write_text(policy, encoding="utf-8")
    graded, _ = adjusted(results, GradebookFolder(folder))
    return [r.problems[0].earned - r.points for r in graded]


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        ("2026-10-24T12:00:00+02:00", 0),
        ("2026-10-24T10:00:00Z", 0),
        ("2026-10-24T12:00:00.000001+02:00", 2),
        ("2026-10-25T11:00:00Z", 2),  # noon on the next day, 25 hours later: the clocks changed
        ("2026-10-25T12:00:01+01:00", 4),
        ("2026-12-24T11:00:01+01:00", 20),
    ],
)
def test_each_started_day_costs_a_share(at: str, expected: float, folder: Path) -> None:
    assert deducted(folder, DAILY, submitted(at)) == [expected]


def test_without_a_policy_nothing_is_subtracted(folder: Path) -> None:
    before = [submitted("2030-01-01T00:00:00Z", late=True)]
    assert adjusted(before, GradebookFolder(folder)) == (before, [])


@pytest.mark.parametrize(
    ("policy", "at", "expected"),
    [
        ('grace = "15 minutes"\n' + DAILY, "2026-10-24T12:15:00+02:00", 0),
        ('grace = "15 minutes"\n' + DAILY, "2026-10-24T12:15:01+02:00", 2),
        ("floor = 0.5\n" + DAILY, "2026-12-24T12:00:00Z", 10),
        (DAILY.replace("day", "hour"), "2026-10-24T15:30:00+02:00", 8),
        ("flagged = 0.25\n" + DAILY, "", 5),
        ("flagged = 0.25\n" + DAILY, "2026-10-24T09:00:00Z", 0),
        ("flagged = 0.25", "2026-10-24T09:00:00Z", 5),
        ("flagged = 0", "", 0),
        ("flagged = { 03 = 0.5 }", "", 10),
        ('flagged = { "*" = 0.25 }', "", 5),
        ('flagged = { 03 = 0, "*" = 0.25 }', "", 0),
        ("flagged = { 04 = 1 }", "", 0),
    ],
)
def test_a_policy_subtracts_its_share_from_a_late_file(
    policy: str, at: str, expected: float, folder: Path
) -> None:
    assert deducted(folder, policy, submitted(at, late=True)) == [pytest.approx(expected)]


@pytest.mark.parametrize(("points", "expected"), [(0.15, 0.01), (0.16, 0.02), (0.04, 0), (0, 0)])
def test_half_a_hundredth_is_rounded_up(points: float, expected: float, folder: Path) -> None:
    result = submitted("2026-10-24T12:30:00+02:00", points=points)
    assert deducted(folder, DAILY, result) == [pytest.approx(expected)]


def test_unclear_lateness_costs_nothing_and_is_reported(folder: Path) -> None:
    assert deducted(folder, DAILY, submitted(late=True)) == [0]
    _, messages = adjusted([submitted(late=True), submitted(name="bob")], GradebookFolder(folder))
    assert messages == [
        "1 file came late, but the time is unknown, so no points were deducted: ada (03). To "
        "deduct points, set 'flagged' in late.toml."
    ]
    with_extension = 'flagged = 0.25\n[extensions]\nada = "2 days"\n'
    assert deducted(folder, with_extension, submitted(late=True)) == [0]
    _, again = adjusted([submitted(late=True)], GradebookFolder(folder))
    assert again == messages


@pytest.mark.parametrize(
    ("extensions", "expected"),
    [
        ('ada = "2 days"', [0, 4]),
        ('ada = "24 hours"', [2, 4]),
        ('ada = { 03 = "1 week" }', [0, 4]),
        ('ada = { 04 = "1 week" }', [4, 4]),
        ("ada = 2026-10-25T23:00:00", [0, 4]),
        ("ada = { 03 = 2026-10-25T10:00:00+01:00 }", [2, 4]),
        ('"*" = "2 days"', [0, 0]),
        ('"*" = { 03 = "2 days" }', [0, 0]),
        ('"*" = "1 day"\nada = "2 days"', [0, 2]),
        ('"*" = { 03 = "2 days" }\nada = "1 day"', [2, 0]),
        ('"*" = { 03 = "2 days" }\nada = { 04 = "1 day" }', [0, 0]),
    ],
)
def test_a_student_and_everyone_may_have_an_extension(
    extensions: str, expected: list[float], folder: Path
) -> None:
    late = "2026-10-25T12:30:00+01:00"
    policy = f"{DAILY}[extensions]\n{extensions}\n"
    assert deducted(folder, policy, submitted(late), submitted(late, name="bob")) == expected


@pytest.mark.parametrize(
    ("zone", "deadline", "extension", "in_time", "late"),
    [
        ("America/New_York", "2017-11-04T20:00:00", "1 day", "2017-11-06T01:00Z", "01:00:01Z"),
        ("America/New_York", "2017-11-04T20:00:00", "24 hours", "2017-11-06T00:00Z", "00:00:01Z"),
        ("America/New_York", "2018-03-10T20:00:00", "1 week", "2018-03-18T00:00Z", "00:00:01Z"),
        # The hour that the clocks skip: half past two on that day counts as half past three.
        ("Europe/Berlin", "2026-03-28T02:30:00", "1 day", "2026-03-29T01:30Z", "01:30:01Z"),
        # The hour that the clocks show twice: the second one counts.
        ("Europe/Berlin", "2026-10-24T02:30:00", "1 day", "2026-10-25T01:30Z", "01:30:01Z"),
        ("Europe/Berlin", "2026-10-24T00:30:00Z", "1 day", "2026-10-25T01:30Z", "01:30:01Z"),
    ],
)
def test_a_day_is_a_calendar_day_when_the_clocks_change(
    zone: str, deadline: str, extension: str, in_time: str, late: str, folder: Path
) -> None:
    policy = (
        f'per = "hour"\nshare = 0.1\nzone = "{zone}"\n[deadlines]\n03 = {deadline}\n'
        f'[extensions]\nada = "{extension}"\n'
    )
    too_late = f"{in_time[:11]}{late}"
    assert deducted(folder, policy, submitted(in_time), submitted(too_late)) == [0, 2]


def test_lateness_reduces_a_corrected_test_but_not_a_mark_for_the_problem(folder: Path) -> None:
    late = "2026-10-24T12:30:00+02:00"
    lines = "ada,03,test_cases,5,Right\nbob,03,,21,By hand\n"
    (folder / "corrections.csv").write_text(f"submission,problem,test,mark,reason\n{lines}")
    (folder / "late.toml").write_text(DAILY)
    graded, _ = adjusted([submitted(late), submitted(late, name="bob")], GradebookFolder(folder))
    assert [r.points for r in graded] == [22.5, 21]


def test_the_deduction_is_explained(folder: Path) -> None:
    (folder / "late.toml").write_text(DAILY)
    (graded,), _ = adjusted([submitted("2026-10-25T14:05:30+01:00")], GradebookFolder(folder))
    assert adjustment_lines(graded.problems[0]) == [
        "The tests gave 20 points.",
        "-4 points: Late: due 2026-10-24 12:00, handed in 2026-10-25 14:05:30; 10 % for each day "
        "begun",
    ]
    (folder / "late.toml").write_text("flagged = 0.125")
    (graded,), _ = adjusted([submitted(late=True)], GradebookFolder(folder))
    assert graded.problems[0].adjustments == [Adjustment(-2.5, "Handed in late; 12.5 %")]


@pytest.mark.parametrize(
    ("policy", "why"),
    [
        ("share = ", "Invalid value"),
        ("share = 10", "'share' must be a share from 0 to 1, such as 0.1"),
        ("shaer = 0.1", "'shaer' is unknown; valid keys are deadlines, extensions, flagged, floor"),
        ('per = "week"\nshare = 0.1', "'per' must be"),
        ("floor = 0.5", "lateness would cost nothing"),
        ('flagged = 0.1\ngrace = "15 minutes late"', "'grace' must be a length"),
        ('flagged = 0.1\nzone = "Europe/Berlim"', "'zone' must be the name of a zone, such as"),
        ('flagged = 0.1\nzone = "../x"', "'zone' must be the name of a zone, such as"),
        ("share = 0.1\n[deadlines]\n03 = 2026-10-24T12:00:00", "has no time zone"),
        ('share = 0.1\n[deadlines]\n03 = "tomorrow"', "such as 03 = 2026-11-02T23:59:00"),
        ("share = 0.1\n[deadlines]\nsoftmax = 2026-10-24T12:00:00Z", "lines such as 03 = 2026-1"),
        ("share = 0.1", "'share' needs the problems' deadlines"),
        ('flagged = 0.1\n[extensions]\nada = "some days"', "the extension of ada must be a time"),
        ('flagged = 0.1\n[extensions]\nada = { x = "1 day" }', "the extension of ada"),
        (
            "flagged = { softmax = 0.1 }",
            "'flagged' must be a share from 0 to 1, such as 0.2, or one",
        ),
    ],
)
def test_an_invalid_policy_ends_the_run_before_grading(policy: str, why: str, folder: Path) -> None:
    (folder / "late.toml").write_text(policy)
    with pytest.raises(UsageError) as error:
        adjusted([], GradebookFolder(folder))
    assert str(error.value).startswith(f"{folder / 'late.toml'} is invalid: ")
    assert why in str(error.value)


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16"])
def test_a_file_in_a_different_encoding_is_refused_with_advice(encoding: str, folder: Path) -> None:
    (folder / "late.toml").write_bytes("flagged = 0.1 # José".encode(encoding))
    with pytest.raises(UsageError, match="it is not text in UTF-8; save it as UTF-8"):
        adjusted([], GradebookFolder(folder))
