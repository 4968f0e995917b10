"""The clones of GitHub Classroom and of Classroom 50, and their rosters."""

from __future__ import annotations

import pytest

from tests.grader.intake.uploads import COURSE, ID, RIGHT, Take, by_name, source, zip_file


def test_github_classroom(take: Take) -> None:
    name = "attention-submissions"
    intake = take(
        {
            f"{name}/attention-ada/problems/{ID}/problem.py": RIGHT,
            f"{name}/attention-ada/.git/config": b"",
            f"{name}/attention-bea-b/hw/{ID}/problem.py": RIGHT,
            f"{name}/other/notes.txt": b"",
        }
    )
    assert [s.full_name for s in intake.submissions] == ["ada", "bea-b", "other"]
    assert [source(s) for s in intake.submissions] == [RIGHT, RIGHT, None]
    assert intake.submissions[2].notes[0] == "Its name fits no student."
    assert intake.recognised == ["GitHub Classroom clones: 3 students, 1 file not used."]


COLUMNS = (
    "assignment_name,assignment_url,starter_code_url,github_username,roster_identifier,"
    "student_repository_name,student_repository_url,submission_timestamp,points_awarded,"
    "points_available"
)


def roster(*lines: tuple[str, str, str], end: str = "\n", time: str = "") -> bytes:
    """Return grades.csv, of user names, roster identifiers and repositories."""
    rows = (
        f"Attention,https://x,,{user},{who},{repo},https://x,{time},0,100"
        for user, who, repo in lines
    )
    return end.join([COLUMNS, *rows, ""]).encode()


@pytest.mark.parametrize("place", ["attention-submissions/", ""])
def test_github_classroom_with_its_roster(take: Take, place: str) -> None:
    """The list may lie in the folder or beside it."""
    name = "attention-submissions"
    lines = [
        ("ada", "ada@example.edu", "attention-ada"),
        ("Bea-B", '"Hopper, Bea"', "attention-bea-b"),
        ("cho", "=1+1", "attention-cho"),
        ("dan", "dan@example.edu", "attention-crew"),
        ("eli", "eli@example.edu", "attention-crew"),
        ("fay", "", "attention-fay"),
        ("gus", "gus@example.edu", ""),
    ]
    users = ("ada", "Bea-B", "crew", "fay", "gus", "gusto")
    files = {f"{name}/attention-{user}/{ID}/problem.py": RIGHT for user in users}
    intake = take(files | {f"{place}grades.csv": b"\xef\xbb\xbf" + roster(*lines, end="\r\n")})
    found = by_name(intake)
    group = "dan@example.edu + eli@example.edu"
    assert [(s.full_name, s.members, bool(source(s))) for s in intake.submissions] == [
        ("Hopper, Bea", ("Hopper, Bea",), True),
        ("ada@example.edu", ("ada@example.edu",), True),
        (group, ("dan@example.edu", "eli@example.edu"), True),
        ("fay", ("fay",), True),
        ("gus@example.edu", ("gus@example.edu",), True),
        ("gusto", ("gusto",), True),
        ("=1+1", ("=1+1",), False),
    ]
    assert found[group].notes == ["A group of 2: 'dan@example.edu', 'eli@example.edu'."]
    assert found["fay"].notes == ["'attention-fay' has no roster identifier in grades.csv."]
    assert found["gusto"].notes == ["'attention-gusto' is not in grades.csv."]
    assert "'attention-cho' is in grades.csv, but there is no such folder." in found["=1+1"].notes
    assert intake.recognised == ["GitHub Classroom clones: 8 students in 7 submissions."]
    assert intake.unmatched == []


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "has no column 'roster_identifier'"),
        (b"name;roster_identifier\n", "has no column 'roster_identifier'"),
        (b"roster_identifier\nada\n", "has no column 'github_username' or"),
        (COLUMNS.encode() + b"\nA,https://x,,ada\n", "has 4 columns in line 2, not 10"),
        (COLUMNS.encode() + b'\n"A,https://x,,ada,b,c,d,e,f,g\n', "is not a CSV file"),
        (b"\xff\xfe", "is not a CSV file"),
        (roster(("ada", "1", "a-ada"), ("ada", "2", "a-ada")), "gives 'ada' as '1' and as '2'"),
        (roster(("ada", "1", "a-ada")) * 30_000, "has more than"),
    ],
)
def test_a_broken_roster(take: Take, content: bytes, why: str) -> None:
    name = "a-submissions"
    files = {f"{name}/a-ada/{ID}/problem.py": RIGHT, f"{name}/grades.csv": content}
    intake = take(files)
    assert [(s.full_name, s.members, source(s)) for s in intake.submissions] == [
        ("ada", ("ada",), RIGHT)
    ]
    assert f"grades.csv {why}" in intake.unmatched[0]
    assert intake.unmatched[0].endswith("Submissions go by their user names.")


@pytest.mark.parametrize(
    ("time", "is_read"),
    [
        ("2023-09-05 10:22:33 UTC", "2023-09-05T10:22:33+00:00"),
        ("2018-11-12 01:02", "2018-11-12T01:02:00+00:00"),
        ("2023-09-05T10:22:33Z", "2023-09-05T10:22:33+00:00"),
        ("2023-09-05 10:22:33.5 -0700", "2023-09-05T10:22:33.500000-07:00"),
        ("2023-09-05 10:22:33 Middle/Earth", ""),
        ("2023-13-05 10:22", ""),
        ("yesterday", ""),
        ("", ""),
    ],
)
def test_when_it_was_pushed(take: Take, time: str, is_read: str) -> None:
    name = "a-submissions"
    files = {f"{name}/a-ada/{ID}/problem.py": RIGHT, f"{name}/a-Bea/notes.txt": b""}
    lists = {f"{name}/grades.csv": roster(("ada", "1", "a-ada"), ("Bea", "2", "a-Bea"), time=time)}
    ada, bea = sorted(take(files | lists).submissions, key=lambda s: s.identity)
    assert [s.identity for s in (ada, bea)] == ["github:ada", "github:bea"]
    assert ada.files[ID].handed_in == is_read
    assert bea.files[ID].handed_in == ""  # nothing came


def test_two_rosters_are_not_chosen_between(take: Take) -> None:
    name = "a-submissions"
    files = {f"{name}/grades.csv": roster(("ada", "1", "a-ada")), "grades.csv": roster()}
    intake = take(files | {f"{name}/a-ada/{ID}/problem.py": RIGHT})
    assert [s.full_name for s in intake.submissions] == ["ada"]
    assert "which one counts can't be known" in intake.unmatched[0]


def test_a_students_roster_is_not_read(take: Take) -> None:
    """Otherwise a student could hand in for others."""
    files = {f"a-submissions/a-{user}/{ID}/problem.py": RIGHT for user in ("ada", "bea")}
    evil = {"a-submissions/a-bea/grades.csv": roster(("bea", "ada@example.edu", "a-bea"))}
    assert [s.members for s in take(files | evil).submissions] == [("ada",), ("bea",)]


def test_students_of_one_roster_identifier_are_told(take: Take) -> None:
    files = {f"a-submissions/a-{user}/{ID}/problem.py": RIGHT for user in ("ada", "bea")}
    lines = roster(("ada", "1", "a-ada"), ("bea", "1", "a-bea"))
    intake = take(files | {"a-submissions/grades.csv": lines})
    assert [s.identity for s in intake.submissions] == ["github:ada", "github:bea"]
    called, member = intake.unmatched
    assert called.startswith("2 are called '1': ")
    assert member.startswith("'1' is a member of '1' and '1';")


CLASSROOM_50 = "cs-attention_submissions_2026_11_24_T_09_05_00"
SCORES = (
    "username,first_name,last_name,email,section,score,max_score,datetime,submission_tag,"
    "submitted_by,review_url,late,override"
)


def scores(*lines: tuple[str, str, str, str]) -> bytes:
    """Return scores.csv, of user names, times, tags and links."""
    rows = (
        f"{user},A,B,,Lab 1,1,2,{time},{tag},{user},{url},false," for user, time, tag, url in lines
    )
    return "\n".join([SCORES, *rows, ""]).encode()


def test_classroom_50(take: Take) -> None:
    """A class that moves keeps its rows; numbered groups are others in each assignment."""
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
    found = by_name(intake)
    assert [bool(source(found[user])) for user in ("Ada-L", "bea", "dan")] == [True, True, False]
    assert found["cho"].notes == ["'cs-attention-cho' is not in scores.csv."]
    assert intake.recognised == ["Classroom 50 clones: 5 students."]


def test_a_team_of_github_classroom_is_the_same_in_each_assignment(take: Take) -> None:
    intake = take({f"a-submissions/a-group-1/{ID}/problem.py": RIGHT})
    assert [s.identity for s in intake.submissions] == ["github:group-1"]


def test_classroom_50_without_a_list_that_can_be_read(take: Take) -> None:
    files = {f"{CLASSROOM_50}/cs-attention-ada/{ID}/problem.py": RIGHT}
    broken = take(files | {f"{CLASSROOM_50}/scores.csv": b"username,score\nada,1\n"})
    assert [s.identity for s in take(files).submissions] == ["github:ada"]
    assert [s.identity for s in broken.submissions] == ["github:ada"]
    assert "scores.csv has no column 'datetime', as `gh teacher" in broken.unmatched[0]


def test_what_classroom_50_packs_in_the_browser_is_a_folder_of_archives(take: Take) -> None:
    """Nothing in it says that the names are GitHub's."""
    own = zip_file({f"org-cs-attention-ada-0a1b2c3/{name}": data for name, data in COURSE.items()})
    intake = take(
        {"cs-attention-submissions/ada.zip": own, "cs-attention-submissions/Bea.zip": own}
    )
    assert [(s.identity, source(s)) for s in intake.submissions] == [("Bea", RIGHT), ("ada", RIGHT)]
