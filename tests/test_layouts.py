"""Downloads of learning platforms: who handed in what, as a folder and as a zip file."""

from __future__ import annotations

import csv
import io
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from grader.cli import app
from grader.course import Course
from grader.errors import SubmissionError
from grader.intake import archives
from grader.intake.layouts import Ids, nearest_problem, problem_of
from grader.intake.submissions import Intake, Submission, take_in
from grader.reports.gradebook import write_gradebook
from grader.result import SubmissionResult

ID = "01-doubling"
RIGHT = b"def double(x):\n    return x + x\n"
WRONG = b"def double(x):\n    return x\n"
IDS = Ids(["01-softmax", "02-basic-attention", "10-multi-head-attention"])

Files = dict[str, bytes]
Take = Callable[..., Intake]


def zipped(files: Files) -> bytes:
    """Return a zip file of `files`, whose names are paths."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return made.getvalue()


def write(folder: Path, files: Files) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


@pytest.fixture(params=["folder", "zip"])
def take(request: pytest.FixtureRequest, tmp_path: Path, small_course: Course) -> Take:
    """Take in files as a folder, and as a zip file of the same name."""

    def take_files(
        files: Files, name: str = "download", problem: str = "", course: Course = small_course
    ) -> Intake:
        chosen = course.select([problem])[0] if problem else None
        path = tmp_path / name
        if request.param == "folder":
            return take_in([write(path, files)], course, chosen)
        path = path.with_name(f"{name}.zip")
        path.write_bytes(zipped(files))
        before = sorted(tmp_path.rglob("*"))
        found = take_in([path], course, chosen)
        assert sorted(tmp_path.rglob("*")) == before
        return found

    return take_files


def by_name(intake: Intake) -> dict[str, Submission]:
    return {submission.name: submission for submission in intake.submissions}


def source(submission: Submission) -> bytes | None:
    return submission.files[ID].source


COURSE = {f"{ID}/problem.py": RIGHT, "README.md": b"hello"}


# Names of single files


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("01-softmax.py", "01-softmax"),
        ("01_softmax_problem.py", "01-softmax"),
        ("problem_01.py", "01-softmax"),
        ("problem01.py", "01-softmax"),
        ("Problem 10.PY", "10-multi-head-attention"),
        ("multi_head_attention.py", "10-multi-head-attention"),
        ("problem.py", None),
        ("problem-1.py", None),
        ("problem (1).py", None),
        ("01-softmax (1).py", None),
        ("test_softmax.py", None),
        ("softmax_final.py", None),
        ("01-basic-attention.py", None),
        ("softmax.txt", None),
        ("softmax", None),
        (".py", None),
    ],
)
def test_what_the_name_of_a_file_tells(name: str, problem: str | None) -> None:
    assert problem_of(name, IDS) == problem


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("softmax_final.py", "01-softmax"),
        ("softmaks.py", "01-softmax"),
        ("02-attention.py", "02-basic-attention"),
        ("problem-1.py", None),
        ("problem.py", None),
        ("notes.txt", None),
    ],
)
def test_what_the_name_of_a_file_may_mean(name: str, problem: str | None) -> None:
    assert nearest_problem(name, IDS) == problem


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("problem.py", "02-basic-attention"),
        ("Problem.py", "02-basic-attention"),
        ("problem-1.py", None),
        ("problem (1).py", None),
        ("problem-10.py", "10-multi-head-attention"),
        ("softmax.py", "01-softmax"),
        ("solution.py", None),
        (".py", None),
    ],
)
def test_what_a_name_tells_when_the_problem_is_given(name: str, problem: str | None) -> None:
    """Only the name problem.py is empty; what tells another problem goes on telling it."""
    given = IDS.given("02-basic-attention")
    assert problem_of(name, given) == problem_of(name, given.sought()) == problem


# Gradescope

METADATA = b"""---
submission_1:
  :submitters:
  - :name: Ada Lovelace
    :sid: '0012'
    :email: ada@example.edu
  :created_at: 2024-01-31 12:00:00.000000000 Z
  :score: 7.0
  :results:
    tests:
    - output: |-

        :submitters:
        - :name: Eve
submission_2:
  :submitters:
  - :name: Grace Hopper
    :sid: '13'
    :email: grace@example.edu
  - :name: "Hugo Mart\\u00edn"
    :sid: '14'
    :email:
  :created_at: 2024-01-31 12:00:00.000000000 Z
submission_30:
  :submitters:
  - :name: Imani
    :email: imani@example.edu
"""


@pytest.mark.parametrize("place", ["", "assignment_5_export/"])
def test_gradescope(take: Take, place: str) -> None:
    files = {
        "submission_metadata.yml": METADATA,
        f"submission_1/{ID}/problem.py": RIGHT,
        f"submission_2/hw/problems/{ID}/problem.py": RIGHT,
        f"submission_3/{ID}/problem.py": RIGHT,
        "submission_31.csv": b"",
    }
    intake = take({place + name: content for name, content in files.items()})
    found = by_name(intake)
    assert list(found) == ["Ada Lovelace", "Grace Hopper + Hugo Martin", "submission_3", "Imani"]
    assert found["Ada Lovelace"].members == ("ada@example.edu",)
    group = found["Grace Hopper + Hugo Martin"]
    assert group.members == ("grace@example.edu", "14")
    assert "A group of 2: 'grace@example.edu', '14'." in group.notes
    assert [source(s) for s in found.values()] == [RIGHT, RIGHT, RIGHT, None]
    assert found["submission_3"].notes == [
        "'submission_3' is not in submission_metadata.yml. Did you mean 'submission_30'?"
    ]
    assert "there is no such folder" in found["Imani"].notes[0]
    assert intake.recognised == ["Gradescope export: 5 students in 4 submissions, 1 file not used."]
    assert intake.unmatched == [
        "'submission_31.csv' was not used; it fits no student. Did you mean 'submission_30'?"
    ]


@pytest.mark.parametrize(
    "metadata", [b"", b"a: [", b"- 1", b"\xff", b"[" * 600, b"a: &x\n :submitters: *y"]
)
def test_a_broken_list_of_students(take: Take, metadata: bytes) -> None:
    files = {"submission_metadata.yml": metadata}
    intake = take(files | {f"submission_1/{ID}/problem.py": RIGHT})
    assert [s.name for s in intake.submissions] == ["submission_1"]
    assert source(intake.submissions[0]) == RIGHT
    assert "Submissions go by their folders' names" in intake.unmatched[0]


def test_the_list_of_students_makes_no_objects(take: Take, tmp_path: Path) -> None:
    target = tmp_path / "made"
    evil = (
        f"submission_1:\n  :submitters:\n  - :name: !!python/object/apply:os.mkdir ['{target}']\n"
    )
    (found,) = take(
        {"submission_metadata.yml": evil.encode(), f"submission_1/{ID}/problem.py": RIGHT}
    ).submissions
    assert source(found) == RIGHT
    assert not target.exists()


# Canvas


def test_canvas(take: Take) -> None:
    intake = take(
        {
            "hopperada_LATE_12_100_hw.zip": zipped({f"hw/{n}": c for n, c in COURSE.items()}),
            "lovelace_13_101_01_doubling.py": RIGHT,
            "novak_14_102_problem.py": RIGHT,
            "ortega_15_text.html": b"<p>see below</p>",
            "ortega_15_link.html": b"",
            "anon_aB3dE_103_problem_01.py": RIGHT,
            "lovelace_notes.txt": b"",
        }
    )
    found = by_name(intake)
    assert list(found) == ["anon aB3dE", "hopperada", "lovelace", "novak", "ortega"]
    assert found["hopperada"].late
    assert found["hopperada"].notes == ["It was handed in late."]
    assert [s.name for s in intake.submissions if source(s)] == [
        *("anon aB3dE", "hopperada", "lovelace")
    ]
    assert {name: s.members for name, s in found.items()}["lovelace"] == ("13",)
    assert found["lovelace"].notes == [f"Read by their names: '01_doubling.py' as {ID}."]
    assert "'problem.py', which stands in no folder such as" in found["novak"].files[ID].reason
    assert "A link was handed in; it is not graded." in found["ortega"].notes
    assert intake.recognised == ["Canvas download: 5 students, 1 late, 4 files not used."]
    assert intake.unmatched == [
        "'lovelace_notes.txt' was not used; it fits no student. Did you mean 'lovelace'?",
        "1 submission has a problem.py that tells no problem. If this was handed in for one "
        f"problem only, name it, such as --problem {ID}.",
    ]


def test_canvas_uploads_again(take: Take) -> None:
    """The newest counts, by the attachment's number; what tells no problem is never chosen."""
    found = by_name(
        take(
            {
                "ada_12_98_problem_01-1.py": RIGHT,
                "ada_12_99_problem_01-2.py": WRONG,
                "ada_12_97_problem_01.py": b"",
                "bea_13_96_problem.py": RIGHT,
                "bea_13_95_problem-1.py": WRONG,
                "cho_14_94_problem_01-3.py": RIGHT,
                "dan_15_92_hw.zip": zipped({f"{ID}/problem.py": WRONG}),
                "dan_15_93_hw-1.zip": zipped(COURSE),
                "eli_16_90_part-1.zip": zipped(COURSE),
                "eli_16_91_part-2.zip": zipped({}),
            }
        )
    )
    assert source(found["ada"]) == WRONG
    assert found["ada"].notes[0] == (
        "'problem_01-2.py' was read, the newest upload of 'problem_01.py', "
        "but not 'problem_01.py' and 'problem_01-1.py'."
    )
    assert "'problem-1.py' and 'problem.py', which stand in no folder" in (
        found["bea"].files[ID].reason
    )
    assert source(found["cho"]) == RIGHT
    assert "'problem_01-3.py' was read as 'problem_01.py'" in found["cho"].notes[0]
    assert source(found["dan"]) == RIGHT
    assert "has the archives 'part-1.zip' and 'part-2.zip'" in found["eli"].files[ID].reason


def test_canvas_students_of_one_name(take: Take) -> None:
    found = take({"ada_12_98_problem_01.py": RIGHT, "ada_13_99_problem_01.py": WRONG})
    assert [(s.name, source(s)) for s in found.submissions] == [
        *(("ada 12", RIGHT), ("ada 13", WRONG))
    ]


def test_numbers_that_are_not_of_canvas(tmp_path: Path, small_course: Course) -> None:
    """A class of archives with a date in each name is a class of archives."""
    names = ["ada_2024_12_hw.zip", "bea_2024_12_hw.zip"]
    intake = take_in([write(tmp_path / "class", {n: zipped(COURSE) for n in names})], small_course)
    assert intake.recognised == []
    assert [s.name for s in intake.submissions] == ["ada_2024_12_hw", "bea_2024_12_hw"]
    assert all(source(s) == RIGHT for s in intake.submissions)


# Moodle


@pytest.mark.parametrize("end", ["", "_"])
def test_moodle(take: Take, end: str) -> None:
    intake = take(
        {
            f"Ada Lovelace_7_assignsubmission_file{end}/{ID}/problem.py": RIGHT,
            f"Bea M\u00fcller_8_assignsubmission_file{end}/hw.zip": zipped(COURSE),
            f"Bea M\u00fcller_8_assignsubmission_onlinetext{end}/onlinetext.html": b"",
            f"Group_5_assignsubmission_file{end}/hw/problem_01.py": RIGHT,
            f"Group_5_assignsubmission_file{end}/notes.txt": b"",
            f"Participant_6_assignsubmission_file{end}/softmax.py": b"",
            "grades.csv": b"",
        }
    )
    found = by_name(intake)
    assert list(found) == ["Ada Lovelace", "Bea Muller", "Group 5", "Participant 6"]
    assert [source(s) for s in found.values()] == [RIGHT, RIGHT, RIGHT, None]
    assert [s.members for s in found.values()] == [(f"Participant {n}",) for n in (7, 8, 5, 6)]
    assert "A text typed online was handed in; it is not graded." in found["Bea Muller"].notes
    assert found["Group 5"].notes == [
        "The work is one level down, in 'hw'.",
        f"Read by their names: 'problem_01.py' as {ID}.",
        "Not used: 'notes.txt'.",
    ]
    assert intake.recognised == ["Moodle download: 4 students, 4 files not used."]


def test_moodle_without_folders(take: Take) -> None:
    name = "Ada Lovelace_7_assignsubmission_file_"
    (found,) = take({f"{name}01-doubling.py": RIGHT, f"{name}problem_01.py": WRONG}).submissions
    assert source(found) is None
    assert found.files[ID].bad
    assert "01-doubling could be '01-doubling.py' and 'problem_01.py'" in found.files[ID].reason


# nbgrader and GitHub Classroom


@pytest.mark.parametrize("place", ["submitted", "course/submitted", "elsewhere"])
def test_nbgrader(take: Take, place: str) -> None:
    intake = take(
        {
            f"{place}/ada/attention/{ID}/problem.py": RIGHT,
            f"{place}/ada/attention/timestamp.txt": b"2024-01-31",
            f"{place}/bea/{ID}/problem.py": RIGHT,
            f"{place}/bea/{ID}/timestamp.txt": b"2024-01-31",
            f"{place}/cho/attention/problem_01.py": RIGHT,
            f"{place}/cho/intro/notes.txt": b"",
        }
    )
    assert [(s.name, s.members, source(s)) for s in intake.submissions][:2] == [
        *(("ada", ("ada",), RIGHT), ("bea", ("bea",), RIGHT))
    ]
    assert intake.submissions[0].notes == []
    assert intake.recognised == ["nbgrader course: 3 students."]


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
    assert [s.name for s in intake.submissions] == ["ada", "bea-b", "other"]
    assert [source(s) for s in intake.submissions] == [RIGHT, RIGHT, None]
    assert intake.submissions[2].notes[0] == "Its name fits no student."
    assert intake.recognised == ["GitHub Classroom clones: 3 students, 1 file not used."]


COLUMNS = (
    "assignment_name,assignment_url,starter_code_url,github_username,roster_identifier,"
    "student_repository_name,student_repository_url,submission_timestamp,points_awarded,"
    "points_available"
)


def roster(*lines: tuple[str, str, str], end: str = "\n") -> bytes:
    """Return grades.csv, of user names, roster identifiers and repositories."""
    rows = (
        f"Attention,https://x,,{user},{who},{repo},https://x,,0,100" for user, who, repo in lines
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
    assert [(s.name, s.members, bool(source(s))) for s in intake.submissions] == [
        ("Hopper_ Bea", ("Hopper, Bea",), True),
        ("ada@example.edu", ("ada@example.edu",), True),
        (group, ("dan@example.edu", "eli@example.edu"), True),
        ("fay", ("fay",), True),
        ("gus@example.edu", ("gus@example.edu",), True),
        ("gusto", ("gusto",), True),
        ("_1+1", ("=1+1",), False),
    ]
    assert found[group].notes == ["A group of 2: 'dan@example.edu', 'eli@example.edu'."]
    assert found["fay"].notes == ["'attention-fay' has no roster identifier in grades.csv."]
    assert found["gusto"].notes == ["'attention-gusto' is not in grades.csv."]
    assert "'attention-cho' is in grades.csv, but there is no such folder." in found["_1+1"].notes
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
    assert [(s.name, s.members, source(s)) for s in intake.submissions] == [
        ("ada", ("ada",), RIGHT)
    ]
    assert f"grades.csv {why}" in intake.unmatched[0]
    assert intake.unmatched[0].endswith("Submissions go by their user names.")


def test_two_rosters_are_not_chosen_between(take: Take) -> None:
    name = "a-submissions"
    files = {f"{name}/grades.csv": roster(("ada", "1", "a-ada")), "grades.csv": roster()}
    intake = take(files | {f"{name}/a-ada/{ID}/problem.py": RIGHT})
    assert [s.name for s in intake.submissions] == ["ada"]
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
    assert [s.name for s in intake.submissions] == ["1 ada", "1 bea"]
    assert "'1' is a member of 1 ada and 1 bea" in intake.unmatched[0]


# What they share


def test_work_in_folders_counts_before_single_files(take: Take) -> None:
    one = "ada_12_98_hw.zip"
    two = "bea_13_99_hw.zip"
    files = {
        one: zipped(COURSE | {"problem_01.py": WRONG}),
        two: zipped({"a.py": b"", "b.py": b""}),
    }
    ada, bea = take(files).submissions
    assert source(ada) == RIGHT
    assert ada.notes == ["What is in 'problem_01.py' was not read."]
    assert "'a.py' and 'b.py', which stand in no folder" in bea.files[ID].reason


def test_an_archive_and_single_files_are_not_chosen_between(take: Take) -> None:
    files = {"ada_12_98_hw.zip": zipped(COURSE), "ada_12_99_problem_01.py": RIGHT}
    (ada,) = take(files).submissions
    assert "has work in 'hw.zip' and 'problem_01.py'; which one counts" in ada.files[ID].reason
    assert ada.unused == ("hw.zip", "problem_01.py")


def test_whoever_fits_nothing_is_graded_all_the_same(take: Take) -> None:
    files = {"hopperada_12_98_hw.zip": zipped(COURSE), "lovelace_13_99_problem_01.py": RIGHT}
    intake = take(files | {"late-hopper.zip": zipped(COURSE)})
    assert [(s.name, source(s)) for s in intake.submissions] == [
        *(("hopperada", RIGHT), ("lovelace", RIGHT), ("late-hopper", RIGHT))
    ]
    assert intake.submissions[2].notes[0] == "Its name fits no student."


def test_one_student_cannot_make_a_class_a_platforms(take: Take) -> None:
    files = {f"ada/hw/{name}": content for name, content in COURSE.items()}
    files |= {"ada/hw/timestamp.txt": b"", "ada/submission_metadata.yml": METADATA}
    intake = take(files | {"bea.zip": zipped(COURSE), "cho.zip": zipped(COURSE)})
    assert [(s.name, source(s)) for s in intake.submissions] == [
        *(("ada", RIGHT), ("bea", RIGHT), ("cho", RIGHT))
    ]
    assert intake.recognised == []


def test_what_a_student_packs_is_no_platform(take: Take) -> None:
    """Otherwise a student could hand in for others."""
    evil = {"submission_metadata.yml": METADATA, f"submission_1/{ID}/problem.py": WRONG}
    files = {"ada_12_98_hw.zip": zipped(evil), "bea_13_99_hw.zip": zipped(COURSE)}
    assert [s.name for s in take(files).submissions] == ["ada", "bea"]


def test_one_students_archive_harms_nobody_else(
    tmp_path: Path, small_course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bombs, names that lead out and archives deeper down, all inside the class's zip file."""
    monkeypatch.setattr(archives, "MAX_NESTED_BYTES", 100_000)
    monkeypatch.setattr(archives, "MAX_TOTAL_BYTES", 300_000)
    bad = {
        "ada_1_91_hw.zip": bytes(110_000),
        "bea_2_92_hw.zip": zipped({f"{ID}/problem.py": b"#" * 600_000}),
        "cho_3_93_hw.zip": zipped({f"../{ID}/problem.py": RIGHT, f"{ID}/problem.py": RIGHT}),
        "dan_4_94_hw.zip": zipped({"hw.zip": zipped(COURSE)}),
        "eli_5_95_hw.rar": b"Rar!",
        "fay_6_96_hw.zip": b"nothing of that kind",
    }
    path = tmp_path / "submissions.zip"
    path.write_bytes(zipped(bad | {"zoe_7_99_hw.zip": zipped(COURSE)}))
    found = by_name(take_in([path], small_course))
    reasons = {name: s.files[ID].reason for name, s in found.items()}
    assert "has more than 100,000 bytes" in reasons["ada"]
    assert "unpacks to more than 300,000 bytes" in reasons["bea"]
    assert "leads out of its folder" in reasons["cho"]
    assert "archive inside an archive" in reasons["dan"]
    assert "is of a kind that is not read" in reasons["eli"]
    assert "is not a zip or tar archive" in reasons["fay"]
    assert source(found["zoe"]) == RIGHT
    assert all(s.files[ID].bad for name, s in found.items() if name != "zoe")


def test_links_in_a_download_are_not_followed(tmp_path: Path, small_course: Course) -> None:
    folder = write(tmp_path / "download", {"bea_2_9_problem_01.py": RIGHT, "../secret.py": RIGHT})
    (folder / "ada_1_8_problem_01.py").symlink_to(tmp_path / "secret.py")
    ada, bea = take_in([folder], small_course).submissions
    assert source(ada) is None
    assert "is a link" in ada.files[ID].reason
    assert source(bea) == RIGHT


# A download for one problem

OTHER = "02-tripling"


@pytest.fixture
def two_problems(small_course: Course) -> Course:
    """The small course with a second problem, whose tests are those of the first."""
    for place in ("problems", "solutions"):
        shutil.copytree(small_course.root / place / ID, small_course.root / place / OTHER)
    folder = small_course.root / "problems" / OTHER
    (folder / "test_doubling.py").rename(folder / "test_tripling.py")
    return small_course


@pytest.fixture
def take_one(take: Take, two_problems: Course) -> Take:
    """Take in what was handed in for the first problem of two."""

    def take_files(files: Files, problem: str = "01", **options: str) -> Intake:
        return take(files, problem=problem, course=two_problems, **options)

    return take_files


LAYOUTS = {
    "folders": {"ada/problem.py": RIGHT, "bea/hw/problem.py": RIGHT},
    "below problems": {"ada/problems/problem.py": RIGHT, "bea/problem.py": RIGHT},
    "archives": {
        "ada.zip": zipped({"problem.py": RIGHT}),
        "bea.zip": zipped({"hw/problem.py": RIGHT}),
    },
    "in a folder": {"hw/ada/problem.py": RIGHT, "hw/bea/problem.py": RIGHT},
    "numbered": {"02/problem.py": RIGHT, "07/problem.py": RIGHT},
    "Canvas": {
        "ada_12_98_problem.py": RIGHT,
        "bea_LATE_13_99_hw.zip": zipped({"problem.py": RIGHT}),
    },
    "Moodle": {
        "Ada_7_assignsubmission_file_/problem.py": RIGHT,
        "Bea_8_assignsubmission_file_/hw.zip": zipped({"problem.py": RIGHT}),
    },
    "Moodle's files": {
        "Ada_7_assignsubmission_file_problem.py": RIGHT,
        "Bea_8_assignsubmission_file_problem.py": RIGHT,
    },
    "Gradescope": {
        "submission_metadata.yml": b"submission_1:\n  :submitters:\n  - :name: Ada\n",
        "submission_1/problem.py": RIGHT,
        "submission_2/hw/problem.py": RIGHT,
    },
    "nbgrader": {
        "submitted/ada/attention/problem.py": RIGHT,
        "submitted/ada/attention/timestamp.txt": b"",
        "submitted/bea/attention/problem.py": RIGHT,
    },
    "GitHub": {
        "hw-submissions/hw-ada/problem.py": RIGHT,
        "hw-submissions/hw-bea/problems/problem.py": RIGHT,
    },
}


@pytest.mark.parametrize("files", LAYOUTS.values(), ids=LAYOUTS)
def test_a_bare_file_is_the_given_problems(take_one: Take, files: Files) -> None:
    intake = take_one(files)
    assert [(s.files.keys(), source(s)) for s in intake.submissions] == [({ID}, RIGHT)] * 2
    assert not any("problem.py" in note for s in intake.submissions for note in s.notes)
    assert intake.unmatched == []


@pytest.mark.parametrize("files", LAYOUTS.values(), ids=LAYOUTS)
def test_a_bare_file_asks_for_the_option(take: Take, two_problems: Course, files: Files) -> None:
    intake = take(files, course=two_problems)
    assert all(list(s.files) == [ID, OTHER] for s in intake.submissions)
    assert not any(file.source for s in intake.submissions for file in s.files.values())
    assert intake.unmatched == [
        "2 submissions have a problem.py that tells no problem. If this was handed in for one "
        f"problem only, name it, such as --problem {ID}."
    ]


def test_one_submission_of_one_file(take: Take, two_problems: Course) -> None:
    (found,) = take({"problem.py": RIGHT}, problem="01", course=two_problems).submissions
    assert (found.name, source(found)) == ("download", RIGHT)


def test_one_file_without_the_option(tmp_path: Path, small_course: Course) -> None:
    with pytest.raises(SubmissionError, match=f"holds no submissions.*such as --problem {ID}"):
        take_in([write(tmp_path / "ada", {"problem.py": RIGHT})], small_course)


def test_only_the_given_problem_is_looked_for(take_one: Take) -> None:
    """Whole courses may be given too; what else is in them is not looked at."""
    whole = {f"{ID}/problem.py": WRONG, f"{OTHER}/problem.py": RIGHT}
    files = {f"ada/{name}": content for name, content in whole.items()}
    files |= {f"bea/repo/problems/{name}": content for name, content in whole.items()}
    files["cho/tripling.py"] = RIGHT
    files["cho/doubling.py"] = WRONG
    for problem, wanted in ((ID, WRONG), (OTHER, RIGHT)):
        found = by_name(take_one(files, problem=problem, name=problem))
        assert [list(s.files) for s in found.values()] == [[problem]] * 3
        assert [s.files[problem].source for s in found.values()] == [wanted] * 3
        assert found["ada"].notes == []
    assert found["cho"].notes == [
        f"Read by their names: 'tripling.py' as {OTHER}.",
        f"Not used: 'doubling.py'. 'doubling.py' is for {ID}, which is not graded now.",
    ]
    assert found["cho"].unused == ("doubling.py",)


@pytest.mark.parametrize(
    "files",
    [
        {"02-tripling.py": RIGHT},
        {"problem_02.py": RIGHT},
        {"tripling.zip": zipped({"problem.py": RIGHT})},
        {"02.zip": zipped({"hw/problem.py": RIGHT})},
        {f"{OTHER}/problem.py": RIGHT},
        {f"problems/{OTHER}/problem.py": RIGHT},
        {"hw/tripling/problem.py": RIGHT},
        {"2-tripling/problem.py": RIGHT},
        {"02/problem.py": RIGHT},
        {"hw.zip": zipped({f"{OTHER}/problem.py": RIGHT})},
        {"problem-1.py": RIGHT},
    ],
    ids=lambda files: next(iter(files)),
)
def test_what_is_anothers_is_never_taken(take_one: Take, files: Files) -> None:
    (ada, bea) = take_one(
        {f"ada/{name}": content for name, content in files.items()} | {"bea/problem.py": RIGHT}
    ).submissions
    assert source(ada) is None
    name = next(iter(files))
    told = name if name == "problem-1.py" else f"for {OTHER}, which is not graded now"
    assert told in ada.files[ID].reason
    assert source(bea) == RIGHT


def test_a_path_that_is_another_problems_folder(tmp_path: Path, two_problems: Course) -> None:
    path = write(tmp_path / "work" / OTHER, {"problem.py": RIGHT})
    (found,) = take_in([path], two_problems, two_problems.select(["01"])[0]).submissions
    assert source(found) is None
    assert f"is for {OTHER}, which is not graded now" in found.files[ID].reason


def test_canvas_uploads_for_one_problem_again(take_one: Take) -> None:
    found = by_name(
        take_one(
            {
                "ada_12_98_problem.py": WRONG,
                "ada_12_99_problem-1.py": RIGHT,
                "bea_13_97_problem-2.py": RIGHT,
                "cho_14_96_problem.py": RIGHT,
                "cho_14_95_tripling.py": WRONG,
                "dan_15_94_problem.py": RIGHT,
                "dan_15_93_doubling.py": RIGHT,
                "eli_16_92_tripling.py": RIGHT,
                "eli_16_91_tripling-1.py": RIGHT,
            }
        )
    )
    assert [source(s) for s in found.values()] == [RIGHT, RIGHT, RIGHT, None, None]
    assert found["ada"].notes == [
        "'problem-1.py' was read, the newest upload of 'problem.py', but not 'problem.py'."
    ]
    assert found["bea"].notes == ["'problem-2.py' was read as 'problem.py', uploaded again."]
    assert f"'tripling.py' is for {OTHER}" in found["cho"].notes[0]
    assert "could be 'doubling.py' and 'problem.py'; which one counts" in (
        found["dan"].files[ID].reason
    )
    assert f"'tripling.py' is for {OTHER}" in found["eli"].files[ID].reason


def test_what_lies_beside_a_bare_file_is_told(take_one: Take) -> None:
    """As in a problem's folder: problem.py counts, and what else could be meant is named."""
    beside = ["problem-1.py", "final/problem.py", f"{OTHER}/problem.py", "notes.txt"]
    files = {f"ada/{name}": WRONG for name in beside} | {"ada/problem.py": RIGHT}
    (ada, bea) = take_one(files | {"bea/notes.txt": b""}).submissions
    assert source(ada) == RIGHT
    assert ada.notes == [
        "Not used: 'notes.txt' and 'problem-1.py'.",
        f"{ID}: problem.py was read, but not '{OTHER}/problem.py' and 'final/problem.py'.",
    ]
    assert bea.files[ID].reason == f"There is no problem.py and no folder {ID} in the submission."
    assert not bea.files[ID].bad


def test_the_problems_folder_counts_before_a_bare_file(take_one: Take) -> None:
    files = {f"ada/{ID}/problem.py": RIGHT, "ada/problem.py": WRONG}
    (ada, bea) = take_one(files | {"bea/problem.py": RIGHT}).submissions
    assert source(ada) == RIGHT
    assert ada.notes == ["What is in 'problem.py' was not read."]


def test_a_bare_file_in_a_folder_nearly_called_so(take_one: Take) -> None:
    files = {"ada/1-doubling/problem.py": RIGHT, "bea/problem.py": RIGHT}
    ada, _ = take_one(files).submissions
    assert source(ada) == RIGHT
    assert ada.notes == ["The work is one level down, in '1-doubling'."]


def test_folders_nearly_called_as_problems_are_no_students(take_one: Take) -> None:
    names = ("1-doubling", "2-tripling")
    (found,) = take_one({f"ada/{name}/problem.py": RIGHT for name in names}).submissions
    assert found.name not in names
    assert "'1-doubling'" in found.notes[0]


def test_a_bare_file_beside_a_class_is_told(take_one: Take) -> None:
    files = {f"{name}/problem.py": RIGHT for name in ("ada", "bea")}
    intake = take_one(files | {"problem.py": WRONG})
    assert [source(s) for s in intake.submissions] == [RIGHT, RIGHT]
    assert intake.unmatched == ["'problem.py' was not used; it fits no student."]


def test_a_stray_bare_file_does_not_hide_a_download(take_one: Take) -> None:
    intake = take_one({"ada_12_98_problem.py": RIGHT, "problem.py": WRONG, "bea_3_4_x.zip": b""})
    assert [(s.name, source(s)) for s in intake.submissions] == [("ada", RIGHT), ("bea", None)]
    assert "'problem.py' was not used; it fits no student." in intake.unmatched


# Several paths


def test_each_students_folder_as_a_path(tmp_path: Path, small_course: Course) -> None:
    """As the shell makes of class/*; the class folder gives the same."""
    folder = write(
        tmp_path / "class",
        {
            f"ada/{ID}/problem.py": RIGHT,
            f"bea/hw/{ID}/problem.py": RIGHT,
            "cho/1-doubling/problem.py": RIGHT,
            "dan/notes.txt": b"",
        },
    )
    (folder / "eli").mkdir()
    together = take_in([folder], small_course)
    alone = take_in(sorted(folder.iterdir()), small_course)
    assert alone.submissions == together.submissions
    assert [s.name for s in alone.submissions] == ["ada", "bea", "cho", "dan", "eli"]
    assert alone.unmatched == []


def test_one_name_at_two_paths(tmp_path: Path, small_course: Course) -> None:
    spring, fall = (
        write(tmp_path / term, {f"{name}/{ID}/problem.py": RIGHT for name in ("ada", other)})
        for term, other in (("spring", "bea"), ("fall", "cho"))
    )
    intake = take_in([spring, fall], small_course)
    assert [s.name for s in intake.submissions] == ["ada", "bea", "ada-2", "cho"]
    assert intake.unmatched == [f"ada is in '{spring}' and in '{fall}': graded as ada and ada-2."]


def test_one_person_in_two_submissions(take: Take) -> None:
    twice = (
        METADATA + b"submission_4:\n  :submitters:\n  - :name: Ada\n    :email: ada@example.edu\n"
    )
    intake = take({"submission_metadata.yml": twice, f"submission_4/{ID}/problem.py": RIGHT})
    assert "'ada@example.edu' is a member of Ada and Ada Lovelace" in intake.unmatched[-1]


# Reports


def test_the_gradebook_has_a_row_for_each_member(tmp_path: Path) -> None:
    group = SubmissionResult("a + b", 0, "", "", members=("a@x", "=b"), late=True)
    alone = SubmissionResult("cho", 0, "", "")
    write_gradebook([alone, group], [], tmp_path / "gradebook.csv")
    rows = list(csv.DictReader((tmp_path / "gradebook.csv").open(encoding="utf-8")))
    assert [(r["submission"], r["member"], r["late"]) for r in rows] == [
        *(("a + b", "a@x", "late"), ("a + b", "'=b", "late"), ("cho", "", ""))
    ]
    write_gradebook([alone], [], tmp_path / "gradebook.csv")
    assert "member" not in (tmp_path / "gradebook.csv").read_text(encoding="utf-8")


RUN = """
from pathlib import Path

from grader import cli
from grader.course import Course

cli.own_course = lambda: Course(Path({root!r}))
if __name__ == "__main__":
    cli.app()
"""


def test_the_command_grades_a_download(tmp_path: Path, small_course: Course) -> None:
    run = tmp_path / "run.py"
    run.write_text(RUN.format(root=str(small_course.root)), encoding="utf-8")
    path = tmp_path / "submissions.zip"
    path.write_bytes(
        zipped({"ada_LATE_12_98_problem_01.py": RIGHT, "bea_13_99_hw.zip": zipped(COURSE)})
    )
    command = [sys.executable, str(run), "grade", str(path), "--out", str(tmp_path / "out")]
    done = subprocess.run([*command, "--jobs", "1"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Canvas download: 2 students, 1 late." in done.stdout
    assert "ada: It was handed in late." in done.stdout
    rows = list(csv.DictReader((tmp_path / "out/gradebook.csv").open(encoding="utf-8")))
    assert [(r["submission"], r["total"], r["member"], r["late"]) for r in rows] == [
        *(("ada", "4", "12", "late"), ("bea", "4", "13", ""))
    ]


@pytest.fixture
def grade(
    tmp_path: Path, two_problems: Course, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Result]:
    """Run `grader grade` on the course of two problems; give it files to grade."""
    monkeypatch.setattr("grader.cli.own_course", lambda: two_problems)

    def run(files: Files, *options: str) -> Result:
        folder = write(tmp_path / f"class{len(list(tmp_path.iterdir()))}", files)
        command = ["grade", str(folder), "--out", str(tmp_path / "out"), "--jobs", "1", *options]
        return CliRunner().invoke(app, command, env={"COLUMNS": "200"})

    return run


def test_the_command_grades_one_problem_after_the_other(
    grade: Callable[..., Result], tmp_path: Path
) -> None:
    first = grade({"ada_12_98_problem.py": RIGHT, "bea_13_99_problem.py": WRONG}, "--problem", "1")
    assert first.exit_code == 0, first.output
    assert "Canvas download: 2 students." in first.output
    second = grade(
        {"ada_12_101_problem.py": WRONG, "ada_12_102_problem-1.py": RIGHT}, "--problem", "tripling"
    )
    assert second.exit_code == 0, second.output
    assert "ada: 'problem-1.py' was read, the newest upload" in second.output
    assert "Handed in nothing for this problem, so as they were: bea." in second.output
    rows = list(csv.DictReader((tmp_path / "out/gradebook.csv").open(encoding="utf-8")))
    assert [tuple(row.values()) for row in rows] == [
        ("ada", "graded", "4", "4", "8", "8", "12", ""),
        ("bea", "graded", "0", "", "0", "4", "13", ""),
    ]


def test_the_command_suggests_the_option(grade: Callable[..., Result], tmp_path: Path) -> None:
    done = grade({"problem.py": RIGHT})
    assert (done.exit_code, (tmp_path / "out").exists()) == (2, False)
    assert f"such as --problem {ID}" in done.output


def test_the_command_refuses_a_problem_that_there_is_not(
    grade: Callable[..., Result], tmp_path: Path
) -> None:
    for name, why in (("03", "is not a problem"), ("ling", "fits more than one"), ("", "fits")):
        done = grade({"ada/problem.py": RIGHT}, "--problem", name)
        assert (done.exit_code, (tmp_path / "out").exists()) == (2, False)
        assert f"'{name}' {why}" in done.output
