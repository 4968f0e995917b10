"""The clones of Classroom 50 and their list of students."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.course import Course
from grader.intake.submissions import take_in
from tests.grader.intake.uploads import COURSE, ID, RIGHT, Take, by_name, source, write, zip_file

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
    """Numbered groups differ between assignments."""
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


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "is not a CSV file"),
        (b"username,score\nada,1\n", "has no column 'datetime', as `gh teacher"),
        (SCORES.encode() + b"\nada,A,B\n", "is not a CSV file in UTF-8 with as many cells in"),
        (SCORES.encode() + b'\n"ada,A,B\n', "is not a CSV file"),
        (b"\xff", "is not a CSV file"),
        (scores(("ada", "", "", "")) * 200_000, "has more than"),
    ],
)
def test_without_a_list_that_can_be_read_people_go_by_user_names(
    take: Take, content: bytes, why: str
) -> None:
    files = {f"{CLASSROOM_50}/cs-attention-Ada/{ID}/problem.py": RIGHT}
    intake = take(files | {f"{CLASSROOM_50}/scores.csv": content})
    assert [(s.identity, s.members, source(s)) for s in intake.submissions] == [
        ("github:ada", ("Ada",), RIGHT)
    ]
    assert f"scores.csv {why}" in intake.unmatched[0]
    assert intake.unmatched[0].endswith(
        "Submissions go by the names of their folders, without times."
    )


def test_times_that_are_not_understood_are_listed(take: Take) -> None:
    files = {f"{CLASSROOM_50}/cs-attention-{u}/{ID}/problem.py": RIGHT for u in ("ada", "bea")}
    lines = [
        ("ada", "2026-11-02 23:30:00 EDT", "submit/1", ""),
        ("bea", "2026-11-02T23:30:00Z", "submit/1", ""),
    ]
    content = b"\xef\xbb\xbf" + scores(*lines)
    intake = take(files | {f"{CLASSROOM_50}/scores.csv": content})
    assert [s.files[ID].handed_in for s in intake.submissions] == ["", "2026-11-02T23:30:00+00:00"]
    assert intake.unmatched == [
        "The time of 1 submission could not be read: ada (2026-11-02 23:30:00 EDT). Whether these "
        "are late is not known."
    ]


def test_two_folders_of_one_user_have_the_same_line(tmp_path: Path, small_course: Course) -> None:
    files = {f"{CLASSROOM_50}/cs-attention-{u}/{ID}/problem.py": RIGHT for u in ("ada", "Ada")}
    content = scores(("ada", "2026-11-02T23:30:00Z", "submit/1", ""))
    folder = write(tmp_path / "class", files | {f"{CLASSROOM_50}/scores.csv": content})
    intake = take_in(folder, small_course)
    assert {s.files[ID].handed_in for s in intake.submissions} == {"2026-11-02T23:30:00+00:00"}


def test_a_students_list_is_not_read(take: Take) -> None:
    """Otherwise a student could move the time of others."""
    files = {f"{CLASSROOM_50}/cs-attention-{user}/{ID}/problem.py": RIGHT for user in ("ada", "b")}
    evil = scores(("ada", "2026-11-20T10:00:00Z", "submit/1", ""))
    intake = take(files | {f"{CLASSROOM_50}/cs-attention-b/scores.csv": evil})
    assert [s.files[ID].handed_in for s in intake.submissions] == ["", ""]


@pytest.mark.parametrize(
    ("time", "is_read"),
    [
        ("2023-09-05T10:22:33Z", "2023-09-05T10:22:33+00:00"),
        ("2023-09-05 10:22:33.5 -0700", "2023-09-05T10:22:33.500000-07:00"),
        ("2023-13-05 10:22", ""),
        ("yesterday", ""),
        ("", ""),
    ],
)
def test_when_it_was_submitted(take: Take, time: str, is_read: str) -> None:
    files = {
        f"{CLASSROOM_50}/cs-attention-ada/{ID}/problem.py": RIGHT,
        f"{CLASSROOM_50}/cs-attention-bea/notes.txt": b"",
        f"{CLASSROOM_50}/scores.csv": scores(("ada", time, "s/1", ""), ("bea", time, "s/2", "")),
    }
    ada, bea = sorted(take(files).submissions, key=lambda s: s.identity)
    assert ada.files[ID].handed_in == is_read
    assert bea.files[ID].handed_in == ""  # nothing came


def test_what_classroom_50_packs_in_the_browser_is_a_folder_of_archives(take: Take) -> None:
    """Nothing in it shows that the names are GitHub's."""
    own = zip_file({f"org-cs-attention-ada-0a1b2c3/{name}": data for name, data in COURSE.items()})
    intake = take(
        {"cs-attention-submissions/ada.zip": own, "cs-attention-submissions/Bea.zip": own}
    )
    assert [(s.identity, source(s)) for s in intake.submissions] == [("Bea", RIGHT), ("ada", RIGHT)]
