"""In a download for one problem, a file of any name belongs to that problem.

But a file with the name of a different problem belongs to the different problem.
"""

from __future__ import annotations

import pytest

from grader.course import Course
from tests.grader.intake.uploads import (
    FILE,
    ID,
    OTHER,
    RIGHT,
    WRONG,
    Files,
    Take,
    by_name,
    source,
    zip_file,
)

LAYOUTS = {
    "folders": {"ada/problem.py": RIGHT, "bea/hw/problem.py": RIGHT},
    "below problems": {"ada/problems/problem.py": RIGHT, "bea/problem.py": RIGHT},
    "archives": {
        "ada.zip": zip_file({"problem.py": RIGHT}),
        "bea.zip": zip_file({"hw/problem.py": RIGHT}),
    },
    "in a folder": {"hw/ada/problem.py": RIGHT, "hw/bea/problem.py": RIGHT},
    "numbered": {"02/problem.py": RIGHT, "07/problem.py": RIGHT},
    "Canvas": {
        "ada_12_98_problem.py": RIGHT,
        "bea_LATE_13_99_hw.zip": zip_file({"problem.py": RIGHT}),
    },
    "Moodle": {
        "Ada_7_assignsubmission_file_/problem.py": RIGHT,
        "Bea_8_assignsubmission_file_/hw.zip": zip_file({"problem.py": RIGHT}),
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
    "Classroom 50": {
        "hw_submissions_2026_11_24_T_09_05_00/hw-ada/problem.py": RIGHT,
        "hw_submissions_2026_11_24_T_09_05_00/hw-bea/problems/problem.py": RIGHT,
    },
}


@pytest.mark.parametrize("files", LAYOUTS.values(), ids=LAYOUTS)
def test_a_bare_file_is_read_as_the_given_problem(take_one: Take, files: Files) -> None:
    intake = take_one(files)
    assert [(s.files.keys(), source(s)) for s in intake.submissions] == [({ID}, RIGHT)] * 2
    assert not any("problem.py" in note for s in intake.submissions for note in s.notes)
    assert intake.unmatched == []


@pytest.mark.parametrize("files", LAYOUTS.values(), ids=LAYOUTS)
def test_a_bare_file_requires_the_option(take: Take, two_problems: Course, files: Files) -> None:
    intake = take(files, course=two_problems)
    assert all(list(s.files) == [ID, OTHER] for s in intake.submissions)
    assert not any(file.source for s in intake.submissions for file in s.files.values())
    have = "1 submission has" if "hw/ada/problem.py" in files else "2 submissions have"
    assert intake.unmatched[-1] == (
        f"{have} a Python file of an unknown problem. If the submission is for only one problem, "
        f"name the problem, for example with --problem {ID}."
    )


def test_a_folder_with_one_file_is_one_submission(take: Take, two_problems: Course) -> None:
    (submission,) = take({"problem.py": RIGHT}, problem="01", course=two_problems).submissions
    assert (submission.name, source(submission)) == ("download", RIGHT)


def test_only_the_given_problem_is_read(take_one: Take) -> None:
    """Submissions may contain files of other problems, which are ignored."""
    whole = {f"{ID}/problem.py": WRONG, f"{OTHER}/problem.py": RIGHT}
    files = {f"ada/{name}": content for name, content in whole.items()}
    files |= {f"bea/repo/problems/{name}": content for name, content in whole.items()}
    files["cho/tripling.py"] = RIGHT
    files["cho/doubling.py"] = WRONG
    for problem, wanted in ((ID, WRONG), (OTHER, RIGHT)):
        submissions = by_name(take_one(files, problem=problem, name=problem))
        assert [list(s.files) for s in submissions.values()] == [[problem]] * 3
        assert [s.files[problem].source for s in submissions.values()] == [wanted] * 3
        assert submissions["ada"].notes == []
    assert submissions["cho"].notes == [
        f"'tripling.py' was read as {OTHER}.",
        "Not read: 'doubling.py'.",
    ]
    assert submissions["cho"].unused == ("doubling.py",)


def unused_file_message(name: str) -> str:
    return (
        f"'{name}' was not used: it matches no student. If it is from a student, move it "
        "to a folder with the student's name."
    )


@pytest.mark.parametrize("place", ["", "spring/"])
def test_a_file_next_to_students_folders_is_reported(
    take: Take, take_one: Take, place: str
) -> None:
    """The file may be a submission."""
    files = {f"{place}{name}/{FILE}": RIGHT for name in ("ada", "bea")}
    code = ["Cem.PY", "dora.py.txt", "eva.ipynb"]
    beside = [f"{place}{name}" for name in [*code, "grades.csv", "test_doubling.py"]]
    for taken in (take, take_one):
        intake = taken(files | dict.fromkeys(beside, RIGHT))
        assert [source(s) for s in intake.submissions] == [RIGHT, RIGHT]
        assert intake.unmatched == [unused_file_message(name) for name in code]


def test_a_stray_bare_file_does_not_hide_a_download(take_one: Take) -> None:
    intake = take_one({"ada_12_98_problem.py": RIGHT, "problem.py": WRONG, "bea_3_4_x.zip": b""})
    assert [(s.full_name, source(s)) for s in intake.submissions] == [("ada", RIGHT), ("bea", None)]
    assert "'problem.py' was not used: it matches no student." in intake.unmatched
