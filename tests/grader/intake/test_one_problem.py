"""A download for one problem: a bare file is that problem's, and another's is never taken."""

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

TESTS = b"def test_it(problem):\n    assert problem.double(1) == 2\n"
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
    have = "1 submission has" if "hw/ada/problem.py" in files else "2 submissions have"
    assert intake.unmatched[-1] == (
        f"{have} a Python file of an unknown problem. If this was handed in for one problem only, "
        f"name it, such as --problem {ID}."
    )


def test_a_folder_called_as_the_file_is_a_folder(take_one: Take) -> None:
    files = {"problem.py/problem.py": RIGHT, "ada/problem.py/problem.py": RIGHT}
    others = {"problem.py/notes.txt": b"", "ada/notes.txt": b""}
    intake = take_one({**files, **others})
    assert {s.name: source(s) for s in intake.submissions} == {"ada": RIGHT, "problem.py": RIGHT}


def test_one_submission_of_one_file(take: Take, two_problems: Course) -> None:
    (found,) = take({"problem.py": RIGHT}, problem="01", course=two_problems).submissions
    assert (found.name, source(found)) == ("download", RIGHT)


@pytest.mark.parametrize(
    "files",
    [
        {"problem.py": RIGHT, "test_mine.py": TESTS},
        {"hw.zip": zip_file({"hw/problem.py": RIGHT, "hw/test_mine (1).py": TESTS})},
        {f"hw/problems/{FILE}": RIGHT, "hw/test_mine.py": TESTS},
        {"hw/doubling.py": RIGHT, "test_mine.py": TESTS},
        {FILE: RIGHT, f"{ID}/test_mine.py": TESTS, f"{OTHER}/test_mine.py": b""},
    ],
    ids=lambda files: next(iter(files)),
)
def test_tests_beside_a_file_change_nothing(take_one: Take, files: Files) -> None:
    uploads = {f"{name}/{path}": files[path] for name in ("ada", "bea") for path in files}
    for found in take_one(uploads).submissions:
        assert source(found) == RIGHT
        assert not any("test_mine" in note for note in found.notes)


def test_tests_alone_are_no_file(take_one: Take) -> None:
    ada, _ = take_one({"ada/test_mine.py": TESTS, "bea/problem.py": RIGHT}).submissions
    assert source(ada) is None


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
        f"'tripling.py' was read as {OTHER}.",
        "Not read: 'doubling.py'.",
    ]
    assert found["cho"].unused == ("doubling.py",)


@pytest.mark.parametrize(
    "files",
    [
        {"02-tripling.py": RIGHT},
        {"problem_02.py": RIGHT},
        {"tripling.zip": zip_file({"problem.py": RIGHT})},
        {"02.zip": zip_file({"hw/problem.py": RIGHT})},
        {f"{OTHER}/problem.py": RIGHT},
        {f"problems/{OTHER}/problem.py": RIGHT},
        {"hw/tripling/problem.py": RIGHT},
        {"2-tripling/problem.py": RIGHT},
        {"02/problem.py": RIGHT},
        {"hw.zip": zip_file({f"{OTHER}/problem.py": RIGHT})},
    ],
    ids=lambda files: next(iter(files)),
)
def test_what_is_anothers_is_never_taken(take_one: Take, files: Files) -> None:
    (ada, bea) = take_one(
        {f"ada/{name}": content for name, content in files.items()} | {"bea/problem.py": RIGHT}
    ).submissions
    assert source(ada) is None
    assert f"for {OTHER}, which is not graded now" in ada.files[ID].reason
    assert source(bea) == RIGHT


def test_what_lies_beside_a_bare_file_is_told(take_one: Take) -> None:
    """As in a problem's folder: problem.py counts, and what else could be meant is named."""
    beside = ["problem-1.py", "final/problem.py", f"{OTHER}/problem.py", "notes.txt"]
    files = {f"ada/{name}": WRONG for name in beside} | {"ada/problem.py": RIGHT}
    (ada, bea) = take_one(files | {"bea/notes.txt": b""}).submissions
    assert source(ada) == RIGHT
    assert ada.notes == ["Not read: 'final/problem.py', 'problem-1.py'."]
    assert bea.files[ID].reason == f"There is no problem.py and no folder {ID} in the submission."
    assert not bea.files[ID].bad


def test_the_problems_folder_counts_before_a_bare_file(take_one: Take) -> None:
    files = {f"ada/{ID}/problem.py": RIGHT, "ada/problem.py": WRONG}
    (ada, bea) = take_one(files | {"bea/problem.py": RIGHT}).submissions
    assert source(ada) == RIGHT
    assert ada.notes == ["Not read: 'problem.py'."]


def test_a_bare_file_in_a_folder_nearly_called_so(take_one: Take) -> None:
    files = {"ada/1-doubling/problem.py": RIGHT, "bea/problem.py": RIGHT}
    ada, _ = take_one(files).submissions
    assert source(ada) == RIGHT
    assert ada.notes == ["The work is in the folder '1-doubling'."]


def loose(name: str) -> str:
    return (
        f"'{name}' was not used; it fits no student. If it is a student's, put it into a folder "
        "with the student's name."
    )


def test_a_bare_file_beside_a_class_is_told(take_one: Take) -> None:
    files = {f"{name}/problem.py": RIGHT for name in ("ada", "bea")}
    intake = take_one(files | {"problem.py": WRONG})
    assert [source(s) for s in intake.submissions] == [RIGHT, RIGHT]
    assert intake.unmatched == [loose("problem.py")]


@pytest.mark.parametrize("place", ["", "spring/"])
def test_code_that_lies_beside_students_folders_is_told(
    take: Take, take_one: Take, place: str
) -> None:
    """It may be a submission without a folder of the student's name."""
    files = {f"{place}{name}/{FILE}": RIGHT for name in ("ada", "bea")}
    code = ["Cem.PY", "dora.py.txt", "eva.ipynb"]
    beside = [f"{place}{name}" for name in [*code, "grades.csv", "test_doubling.py"]]
    for taken in (take, take_one):
        intake = taken(files | dict.fromkeys(beside, RIGHT))
        assert [source(s) for s in intake.submissions] == [RIGHT, RIGHT]
        assert intake.unmatched == [loose(name) for name in code]


def test_a_stray_bare_file_does_not_hide_a_download(take_one: Take) -> None:
    intake = take_one({"ada_12_98_problem.py": RIGHT, "problem.py": WRONG, "bea_3_4_x.zip": b""})
    assert [(s.full_name, source(s)) for s in intake.submissions] == [("ada", RIGHT), ("bea", None)]
    assert "'problem.py' was not used; it fits no student." in intake.unmatched
