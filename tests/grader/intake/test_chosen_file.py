"""The file for a problem is chosen by a fixed order of places, and never by a guess."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from grader.author.notebooks import NOTEBOOK
from grader.course import Course
from grader.intake.submissions import find_submissions
from tests.grader.intake.uploads import (
    COURSE,
    FILE,
    ID,
    OTHER,
    RIGHT,
    WRONG,
    Files,
    Take,
    source,
    write,
    zip_file,
)

STUB = b"the stub"
"""A placeholder for the stub of the course."""

TESTS = b"def test_it(problem):\n    assert problem.double(1) == 2\n"


class Case(NamedTuple):
    """The files of a submission, the chosen source, and the notes or the reason for a refusal."""

    files: Files
    source: bytes | None
    texts: tuple[str, ...] = ()


def ambiguous(*names: str) -> str:
    listed = ", ".join(map(repr, names))
    return f"Several files may be for {ID}: {listed}. Keep only one of them."


def in_folder(place: str) -> tuple[str]:
    return (f"The files are in the folder '{place}'.",)


def not_read(*names: str) -> tuple[str]:
    return (f"Not read: {', '.join(map(repr, names))}.",)


def for_other(name: str) -> tuple[str]:
    missing = f"There is no problem.py and no folder {ID} in the submission."
    return (f"{missing} {name!r} is for {OTHER}, which is not graded now.",)


ANY = [
    # Folders around the problem's folder
    Case({f"hw/{FILE}": RIGHT, "notes.txt": b""}, RIGHT, in_folder("hw")),
    Case({f"hw/problems/{FILE}": RIGHT, "docs/notes.txt": b""}, RIGHT, in_folder("hw")),
    Case({f"x/y/{FILE}": RIGHT}, RIGHT, in_folder("x/y")),
    Case({f"x/y/problems/{FILE}": RIGHT}, RIGHT, in_folder("x/y")),
    Case({f"x/x/x/x/{FILE}": RIGHT}, RIGHT, in_folder("x/x/x/x")),
    # Several files
    Case(
        {f"first/{FILE}": RIGHT, f"second/problems/{FILE}": WRONG},
        None,
        (ambiguous(f"first/{FILE}", f"second/problems/{FILE}"),),
    ),
    Case(
        {FILE: RIGHT, f"problems/{FILE}": WRONG, f"backup/{FILE}": WRONG},
        RIGHT,
        not_read(f"backup/{FILE}", f"problems/{FILE}"),
    ),
    Case(
        {FILE: RIGHT, "01-doubling/helper.py": b"x", "old/doubling.py": WRONG, "scratch.py": b"y"}
        | {f"{ID}/test_x.py": TESTS, f"{ID}/explore.py": b"z"},
        RIGHT,
        not_read(f"{ID}/helper.py", "old/doubling.py", "scratch.py"),
    ),
    Case(
        {f"{ID}/problem (1).py": RIGHT, f"{ID}/problem-1.py": RIGHT},
        RIGHT,
        (f"'{ID}/problem-1.py' was read as {ID}.",),
    ),
    Case(
        {"hw.zip": zip_file({FILE: WRONG}), "01.py": RIGHT}, RIGHT, (f"'01.py' was read as {ID}.",)
    ),
    Case(
        {"hw.zip": zip_file({FILE: RIGHT}), "hw2.zip": zip_file({FILE: WRONG})},
        None,
        (ambiguous(f"hw.zip/{FILE}", f"hw2.zip/{FILE}"),),
    ),
    Case(
        {"hw.zip": zip_file(COURSE | {"problem_01.py": WRONG})},
        RIGHT,
        not_read("hw.zip/problem_01.py"),
    ),
    # Stubs
    Case({FILE: STUB}, STUB),
    Case({FILE: STUB, "01.py": RIGHT}, RIGHT),
    Case({FILE: b" \n", "doubling.py": RIGHT}, RIGHT),
    Case({f"att/{FILE}": STUB, "01.py": RIGHT}, RIGHT),
    Case({f"att/problems/{FILE}": STUB, "att/problems/doubling.py": RIGHT}, RIGHT),
    Case({FILE: WRONG, "doubling.py": RIGHT}, WRONG, not_read("doubling.py")),
    Case({FILE: STUB, f"{ID}/my.py": RIGHT}, RIGHT, (f"'{ID}/my.py' was read as {ID}.",)),
    # Files of the course and its tools
    Case({FILE: RIGHT, "test_mine.py": TESTS, f"{ID}/test_mine (1).py": TESTS}, RIGHT),
    Case({f"{ID}/test_mine.py": TESTS}, None, (f"There is no problem.py in {ID}.",)),
    Case({f"problems/{FILE}": STUB, "problems/shared/a.py": WRONG, "grader/b.py": WRONG}, STUB),
]

A_NOTEBOOK = "A notebook is not graded. Copy the code from its cells to problem.py."
NO_FILE = f"There is no problem.py in {ID}."

ANY += [
    *(
        Case({f"{ID}/{name}": RIGHT}, None, (NO_FILE, f"Not read: '{ID}/{name}'. {A_NOTEBOOK}"))
        for name in ("problem.ipynb", "My Notebook.ipynb")
    ),
    *(
        Case({f"{ID}/{name}": RIGHT}, None, (NO_FILE, *not_read(f"{ID}/{name}")))
        for name in ("problem.py.txt", "problem.docx")
    ),
    Case({f"{ID}/{NOTEBOOK}": RIGHT}, None),
    Case({"doubling.ipynb": b""}, None, (f"Not read: 'doubling.ipynb'. {A_NOTEBOOK}",)),
]

WITHOUT_THE_OPTION = [
    Case({FILE: STUB, f"{OTHER}/problem.py": STUB, "w.py": RIGHT}, STUB, not_read("w.py")),
    Case(
        {f"{OTHER}/problem.py": WRONG, "mine/01.py": RIGHT, "old/notes.py": b"", "x.py": b""},
        RIGHT,
        (f"'mine/01.py' was read as {ID}.", *not_read("old/notes.py", "x.py")),
    ),
    Case(
        {"x/y/1-doubling/z/problem.py": RIGHT},
        None,
        ("There is a folder '1-doubling'; did you mean 01-doubling?",),
    ),
    Case({f"{ID}/Problem.py": RIGHT}, RIGHT, (f"'{ID}/Problem.py' was read as {ID}.",)),
]

WITH_THE_OPTION = [
    Case({"x/y/problem.py": RIGHT}, RIGHT, in_folder("x/y")),
    Case({"docs/a.txt": b"", "src/problem.py": RIGHT}, RIGHT, in_folder("src")),
    Case({"1-doubling/problem.py": RIGHT}, RIGHT, in_folder("1-doubling")),
    Case({"problem.py/problem.py": RIGHT, "notes.txt": b""}, RIGHT, in_folder("problem.py")),
    Case({FILE: RIGHT, "problem.py": WRONG}, RIGHT, not_read("problem.py")),
    Case({FILE: RIGHT, f"{OTHER}/problem.py": WRONG}, RIGHT),
    Case(
        {"problem.py": RIGHT, "problem-1.py": WRONG, "final/problem.py": WRONG, "notes.txt": b""}
        | {f"{OTHER}/problem.py": WRONG},
        RIGHT,
        not_read("final/problem.py", "problem-1.py"),
    ),
    Case(
        {"problem (1).py": RIGHT, "problem-1.py": RIGHT},
        RIGHT,
        (f"'problem-1.py' was read as {ID}.",),
    ),
    Case({FILE: STUB, "hw1.py": RIGHT}, RIGHT, (f"'hw1.py' was read as {ID}.",)),
    Case({f"problems/{FILE}": STUB, "problems/mine.py": RIGHT, "grader/b.py": WRONG}, RIGHT),
    Case({"problem (1).py": RIGHT, "hw1.py": WRONG}, RIGHT, not_read("hw1.py")),
    Case({"problem.py": b""}, b""),
    Case({"test_mine.py": TESTS}, None),
    Case({"2026-11-02.py": RIGHT}, RIGHT),
    Case({"hw 02-11-2026.py": RIGHT}, RIGHT),
    *(
        Case({one: RIGHT, two: WRONG}, None, (ambiguous(one, two),))
        for one, two in [
            ("hw1.py", "hw2.py"),
            ("problem (1).py", "problem-1.py"),
            (f"{ID}/problem (1).py", f"{ID}/problem copy.py"),
            ("first/problem.py", "second/problem.py"),
            ("first/01.py", "second/problem.py"),
            ("problem.py", "problems/problem.py"),
        ]
    ),
    *(
        Case({name: RIGHT}, None, for_other(name))
        for name in [
            *("02.py", "tripling.py", "problem_02 (1).py", "lab-02.py", "tripling_final.py"),
            *(
                "triping.py",
                "2-tripling.py",
                f"{OTHER}/problem.py",
                f"problems/{OTHER}/problem.py",
            ),
            *("tripling/problem.py", "2-tripling/problem.py", "02/problem.py"),
        ]
    ),
    Case({"02.zip": zip_file({"problem.py": RIGHT})}, None, for_other("02.zip/problem.py")),
    Case({"a.zip": zip_file({"02/problem.py": RIGHT})}, None, for_other("a.zip/02/problem.py")),
]

CASES = [
    *((case, problem) for case in ANY for problem in ("", "01")),
    *((case, "") for case in WITHOUT_THE_OPTION),
    *((case, "01") for case in WITH_THE_OPTION),
]


IDS = [f"{', '.join(case.files)}{' given' if problem else ''}" for case, problem in CASES]


@pytest.mark.parametrize(("case", "problem"), CASES, ids=IDS)
def test_the_expected_file_is_read(
    take: Take, two_problems: Course, stub: bytes, case: Case, problem: str
) -> None:
    files = {f"ada/{name}": stub if file == STUB else file for name, file in case.files.items()}
    files[f"bea/{FILE}"] = RIGHT
    ada, bea = take(files, problem=problem, course=two_problems).submissions
    assert source(ada) == (stub if case.source == STUB else case.source)
    assert source(bea) == RIGHT
    for text in case.texts:
        assert text in [*ada.notes, ada.files[ID].reason]
    if not case.texts:
        assert not any("Not read" in note for note in ada.notes)


def test_skipped_folders_are_reported(tmp_path: Path, small_course: Course) -> None:
    """The message names the skipped folder, as its name may be the student's."""
    folder = write(tmp_path / "week", {f"export/ada/{FILE}": RIGHT})
    (submission,) = find_submissions(folder, small_course)
    assert (submission.name, submission.notes) == ("export", ["The files are in the folder 'ada'."])


@pytest.fixture
def stub(two_problems: Course) -> bytes:
    return (two_problems.root / "problems" / FILE).read_bytes()


@pytest.mark.parametrize(
    ("before", "after"),
    [(b"", b"\xef\xbb\xbf"), (b"\n", b"\n\n"), (b"\n", b"  \n"), (b"\n", b"\r\n")],
)
def test_a_stub_changed_only_by_an_editor_is_a_stub(
    take_one: Take, stub: bytes, before: bytes, after: bytes
) -> None:
    files = {f"ada/{FILE}": stub.replace(before, after, 1 if not before else -1)}
    ada, _ = take_one(files | {"ada/doubling.py": RIGHT, "bea/problem.py": RIGHT}).submissions
    assert source(ada) == RIGHT


@pytest.mark.parametrize("name", [f"problems/{ID}/Untitled.ipynb", "problems/Untitled.ipynb"])
def test_a_notebook_next_to_a_stub_is_reported(take_one: Take, stub: bytes, name: str) -> None:
    files = {f"ada/{name}": RIGHT, f"ada/problems/{FILE}": stub, "bea/problem.py": RIGHT}
    ada, _ = take_one(files).submissions
    assert source(ada) == stub
    assert ada.notes[0].startswith(f"Not read: '{name}'. A notebook is not graded. ")


def test_an_unchanged_notebook_of_the_course_is_no_submission(
    take: Take, two_problems: Course, stub: bytes
) -> None:
    files = {f"{id}/{name}": stub for id in (ID, OTHER) for name in ("problem.py", NOTEBOOK)}
    (untouched,) = take(files, course=two_problems).submissions
    (submission,) = take(files | {"doubling.py": RIGHT}, "more", course=two_problems).submissions
    assert (untouched.notes, source(submission)) == ([], RIGHT)


def test_problems_may_be_in_different_places(take: Take, two_problems: Course, stub: bytes) -> None:
    files = {FILE: stub, f"{OTHER}.py": RIGHT}
    (submission,) = take(files, course=two_problems).submissions
    assert (source(submission), submission.files[OTHER].source) == (stub, RIGHT)


def test_several_files_next_to_a_stub_are_refused(take_one: Take, stub: bytes) -> None:
    files = {f"{who}/{FILE}": stub for who in ("ada", "bea")}
    files |= {f"{who}/problem.py": RIGHT for who in ("ada", "bea")}
    files |= {"ada/doubling.py": WRONG, "bea/problems/problem.py": WRONG}
    ada, bea = take_one(files).submissions
    assert f"for {ID}: 'doubling.py', 'problem.py'. Keep only one" in ada.files[ID].reason
    assert ": 'problem.py', 'problems/problem.py'. Keep only one" in bea.files[ID].reason


def test_an_unnamed_file_replaces_an_optional_stub_only_with_the_option(
    take: Take, two_parts: Course
) -> None:
    stubs = {
        f"{problem.id}/problem.py": problem.stub.read_bytes() for problem in two_parts.problems()
    }
    files = {**stubs, FILE: RIGHT, "scratch.py": WRONG}
    (submission,) = take(files, course=two_parts).submissions
    assert (source(submission), submission.notes) == (RIGHT, ["Not read: 'scratch.py'."])
    (submission,) = take(files, "six", problem="06", course=two_parts).submissions
    assert "'scratch.py' was read as 06-doubling." in submission.notes


def test_a_file_of_unknown_problem_is_reported_once(
    class_folder: Path, two_problems: Course
) -> None:
    write(class_folder, {"ada/problem.py": RIGHT})
    (submission,) = find_submissions(class_folder, two_problems)
    assert submission.has_unknown_file
    (reason,) = {file.reason for file in submission.files.values()}
    assert "The problem of 'problem.py' is unknown. Submit a folder" in reason
