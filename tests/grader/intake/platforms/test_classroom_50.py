"""Clones of Classroom 50 are read with the list of submissions next to them."""

from __future__ import annotations

import pytest

from tests.grader.intake.uploads import ID, RIGHT, Take, by_name, source

CLASSROOM_50 = "cs-attention_submissions_2026_11_24_T_09_05_00"
SCORES = (
    "username,first_name,last_name,email,section,score,max_score,datetime,submission_tag,"
    "submitted_by,review_url,late,override"
)


def scores(*lines: tuple[str, str, str, str]) -> bytes:
    """Return the content of scores.csv. A line is a user name, a time, a tag and a link."""
    rows = (
        f"{user},A,B,,Lab 1,1,2,{time},{tag},{user},{url},false," for user, time, tag, url in lines
    )
    return "\n".join([SCORES, *rows, ""]).encode()


def test_clones_of_classroom_50_are_read(take: Take) -> None:
    """The identity of a group contains the assignment, as each assignment may have a group 1."""
    users = ("ada-l", "bea", "cho", "group-1")
    files = {f"{CLASSROOM_50}/cs-attention-{user}/{ID}/problem.py": RIGHT for user in users}
    lines = [
        ("Ada-L", "2026-11-25T08:00:00Z", "submit/manual-2026-11-25", "submit/manual-2026-11-25"),
        ("Ada-L", "2026-11-20T10:00:00Z", "submit/2", "https://x/o/cs-attention-ada-l/compare/a"),
        ("Ada-L", "2026-11-19T10:00:00Z", "submit/1", ""),
        ("bea", "2026-11-21T10:00:00Z", "submit/3", "https://x/o/cs-attention-ada-l/compare/a"),
        ("dan", "", "", ""),
    ]
    intake = take(files | {f"{CLASSROOM_50}/scores.csv": scores(*lines)})
    assert [(s.identity, s.members, s.files[ID].handed_in[:10]) for s in intake.submissions] == [
        ("github:ada-l", ("Ada-L",), "2026-11-20"),
        ("github:bea", ("bea",), "2026-11-21"),
        ("github:cho", ("cho",), ""),
        ("github:cs-attention-group-1", ("cs-attention-group-1",), ""),
        ("github:dan", ("dan",), ""),
    ]
    submissions = by_name(intake)
    assert [bool(source(submissions[user])) for user in ("Ada-L", "bea", "dan")] == [
        True,
        True,
        False,
    ]
    assert submissions["cho"].notes == ["'cs-attention-cho' is not in scores.csv."]
    assert intake.recognised == ["Classroom 50 clones: 5 students."]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "is not a CSV file"),
        (b"username,score\nada,1\n", "has no column 'datetime', unlike files that"),
        (
            SCORES.encode() + b"\nada,A,B\n",
            "is not a CSV file in UTF-8 with the same number of cells in",
        ),
        (SCORES.encode() + b'\n"ada,A,B\n', "is not a CSV file"),
        (b"\xff", "is not a CSV file"),
        (scores(("ada", "", "", "")) * 200_000, "has more than"),
    ],
)
def test_without_a_readable_list_user_names_are_used(take: Take, content: bytes, why: str) -> None:
    files = {f"{CLASSROOM_50}/cs-attention-Ada/{ID}/problem.py": RIGHT}
    intake = take(files | {f"{CLASSROOM_50}/scores.csv": content})
    assert [(s.identity, s.members, source(s)) for s in intake.submissions] == [
        ("github:ada", ("Ada",), RIGHT)
    ]
    assert f"scores.csv {why}" in intake.unmatched[0]
    assert "the names of folders are used" in intake.unmatched[0]


def test_unreadable_times_are_listed(take: Take) -> None:
    files = {f"{CLASSROOM_50}/cs-attention-{u}/{ID}/problem.py": RIGHT for u in ("ada", "bea")}
    lines = [
        ("ada", "2026-11-02 23:30:00 EDT", "submit/1", ""),
        ("bea", "2026-11-02T23:30:00Z", "submit/1", ""),
    ]
    content = b"\xef\xbb\xbf" + scores(*lines)
    intake = take(files | {f"{CLASSROOM_50}/scores.csv": content})
    assert [s.files[ID].handed_in for s in intake.submissions] == ["", "2026-11-02T23:30:00+00:00"]
    assert intake.unmatched == [
        "The time of 1 submission could not be read, so lateness is unknown: "
        "ada (2026-11-02 23:30:00 EDT)."
    ]


def test_a_list_inside_a_clone_is_not_read(take: Take) -> None:
    """With the list, a student could change the times of other students."""
    files = {f"{CLASSROOM_50}/cs-attention-{user}/{ID}/problem.py": RIGHT for user in ("ada", "b")}
    evil = scores(("ada", "2026-11-20T10:00:00Z", "submit/1", ""))
    intake = take(files | {f"{CLASSROOM_50}/cs-attention-b/scores.csv": evil})
    assert [s.files[ID].handed_in for s in intake.submissions] == ["", ""]
