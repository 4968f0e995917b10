"""A Moodle group's mark goes only to its members."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path

from grader.grade.same_person import as_on_roster
from grader.gradebook.roster import read_roster
from grader.intake.handed_in import Submission
from grader.result import SubmissionResult
from tests.grader.gradebook.built import result
from tests.grader.gradebook.test_export import exported

HEADER = 'Identifier,"Full name",Email address,Grade,"Maximum Grade","Grade can be changed"\n'
NAMED = (
    f"{HEADER}Participant 301,Ada Lovelace,a@x,,25.00,Yes\n"
    "Participant 302,Kurt Gödel,k@x,3.00,25.00,Yes\nParticipant 303,Emmy Noether,e@x,,25.00,Yes\n"
)
BLIND = (
    'Identifier,Grade,"Maximum Grade","Grade can be changed"\n'
    "Participant 301,,25.00,Yes\nParticipant 302,,25.00,Yes\n"
)
ROSTER = (
    '"First name","Last name","ID number","Email address",Groups\n'
    'Ada,Lovelace,0001,a@x,"Group One"\nKurt,Gödel,0002,k@x,"Group One, Lab 3"\n'
    'Emmy,Noether,0003,e@x,"Group Two"\nKim,Lee,0004,l@x,\n'
)


def group(name: str, number: int) -> Submission:
    return Submission(
        name, {}, members=(f"Participant {number}",), identity=f"moodle:{number}", full_name=name
    )


def grades(path: Path) -> list[str]:
    text = path.with_stem(f"{path.stem}-filled").read_text(encoding="utf-8-sig")
    return [row["Grade"] for row in csv.DictReader(io.StringIO(text))]


def worksheet(folder: Path, text: str) -> Path:
    path = folder / "Grades.csv"
    path.write_text(text, encoding="utf-8-sig")
    return path


def of(submission: Submission) -> SubmissionResult:
    """Return a result with 20 of 25 points."""
    return result(
        submission.name,
        identity=submission.identity,
        full_name=submission.full_name,
        members=submission.members,
    )


def test_members_are_those_of_the_list_of_participants(tmp_path: Path) -> None:
    (tmp_path / "roster.csv").write_text(ROSTER, encoding="utf-8")
    roster = read_roster(tmp_path / "roster.csv")
    one, two, kim, other = as_on_roster(
        [group("Group One", 77), group("Group Two", 78), group("Kim Lee", 5), group("Lab 9", 9)],
        roster,
    )
    assert (one.identity, one.members) == ("moodle:a@x+k@x", ("a@x", "k@x"))
    assert (two.identity, two.members) == ("moodle:e@x", ("e@x",))
    assert (kim.identity, kim.members) == ("moodle:5", ("Participant 5",))
    assert (other.identity, other.members) == ("moodle:9", ("Participant 9",))


def test_a_groups_number_is_no_participants(tmp_path: Path, saved: Callable[..., Path]) -> None:
    reports = saved(of(group("Group One", 301)), of(group("Group 302", 302)))
    for text in (BLIND, NAMED):
        file = worksheet(tmp_path, text)
        told = " ".join(exported("moodle", file, reports))
        assert grades(file) == (["", ""] if text == BLIND else ["", "3.00", ""])
        assert "0 marks filled in" in told
        assert "a group's number is no participant's" in told
