"""Where in an upload the work is: one order, and what could be meant twice is not chosen."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from grader.author.notebooks import NOTEBOOK
from grader.course import Course
from grader.intake.submissions import find_submissions
from tests.grader.intake.uploads import (
    COURSE,
    FILE,
    ID,
    OTHER,
    PACKERS,
    RIGHT,
    WRONG,
    Read,
    Take,
    source,
    submission,
    write,
    zip_file,
)


@pytest.mark.parametrize("below", ["hw", "hw/problems"])
@pytest.mark.parametrize("beside", ["notes.txt", "docs/notes.txt"])
def test_work_one_level_down_is_found_and_said(take: Take, below: str, beside: str) -> None:
    files = {f"ada/{below}/{FILE}": RIGHT, f"ada/{beside}": b"", f"bea/{FILE}": RIGHT}
    ada, _ = take(files).submissions
    assert (source(ada), ada.notes) == (RIGHT, ["The work is in the folder 'hw'."])


@pytest.mark.parametrize("place", ["x/y", "x/y/problems", "x/x/x/x"])
def test_folders_that_each_hold_just_one_folder_are_followed(
    take: Take, take_one: Take, place: str
) -> None:
    """As when Windows unpacks an archive into a folder of its name."""
    files = {f"ada/{place}/{FILE}": RIGHT, f"bea/{FILE}": RIGHT}
    for taken in (take, take_one):
        ada, bea = taken(files).submissions
        assert (source(ada), source(bea)) == (RIGHT, RIGHT)
        folder = place.removesuffix("/problems")
        assert ada.notes == [f"The work is in the folder '{folder}'."]
    bare = take_one({f"{name}/{place}/problem.py": RIGHT for name in ("ada", "bea")}, name="bare")
    assert [source(s) for s in bare.submissions] == [RIGHT, RIGHT]


def test_folders_passed_through_are_said_as_one_may_be_the_students(
    tmp_path: Path, small_course: Course
) -> None:
    """A class of one, two folders deep, is called after the outer one."""
    submission(tmp_path / "week", "export", below="ada")
    (found,) = find_submissions(tmp_path / "week", small_course)
    assert (found.name, found.notes) == ("export", ["The work is in the folder 'ada'."])


@pytest.mark.parametrize("file", ["1-doubling/x.txt", "x/y/1-doubling/z/problem.py"])
def test_a_folder_with_nearly_the_name_of_a_problem_is_asked_about(take: Take, file: str) -> None:
    ada, _ = take({f"ada/{file}": RIGHT, f"bea/{FILE}": RIGHT}).submissions
    assert source(ada) is None
    assert ada.notes[0] == "There is a folder '1-doubling'; did you mean 01-doubling?"


def test_of_folders_with_single_files_the_only_one_counts(take_one: Take) -> None:
    files = {"ada/new/problem.py": RIGHT, "ada/old/doubling.py": WRONG, "ada/x.txt": b""}
    ada, bea = take_one(files | {"bea/docs/a.txt": b"", "bea/src/problem.py": RIGHT}).submissions
    assert "could be 'new/problem.py', 'old/doubling.py'" in ada.files[ID].reason
    assert (source(bea), bea.notes) == (RIGHT, ["The work is in the folder 'src'."])


def test_which_of_two_folders_counts_is_not_guessed(
    class_folder: Path, small_course: Course
) -> None:
    for below in ("first", "second/problems"):
        submission(class_folder, "ada", below=below)
        (class_folder / "ada" / below / FILE).write_text(f"x = {below!r}\n")
    submission(class_folder, "grace")
    ada, grace = find_submissions(class_folder, small_course)
    assert ada.files["01-doubling"].bad
    places = f"'first/{FILE}', 'second/problems/{FILE}'"
    assert f"could be {places}; which one counts" in ada.files["01-doubling"].reason
    assert grace.files["01-doubling"].source


def test_the_work_at_the_top_counts(class_folder: Path, small_course: Course) -> None:
    folder = submission(class_folder, "ada")
    for below in ("problems", "backup"):
        submission(class_folder, "ada", below=below)
        (folder / below / "01-doubling" / "problem.py").write_text("x = 2\n")
    (found,) = find_submissions(folder, small_course)
    assert found.files["01-doubling"].source == b"x = 1\n"
    assert found.notes == [f"Not read: 'backup/{FILE}', 'problems/{FILE}'."]


@pytest.fixture
def stub(two_problems: Course) -> bytes:
    return (two_problems.root / "problems" / FILE).read_bytes()


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        (FILE, "problem.py"),
        (f"problems/{FILE}", "Doubling.py"),
        (f"att/{FILE}", "01.py"),
        (f"att/problems/{FILE}", "att/problem.py"),
        (f"att/problems/{FILE}", "att/problems/doubling.py"),
    ],
)
def test_a_file_that_tells_the_problem_goes_before_an_untouched_stub(
    take_one: Take, stub: bytes, folder: str, name: str
) -> None:
    """Many submit the whole course folder, and next to it their file."""
    ada, bea = take_one(
        {f"ada/{folder}": stub.replace(b"\n", b"\r\n"), f"ada/{name}": RIGHT}
        | {f"bea/{folder}": WRONG, f"bea/{name}": RIGHT}
    ).submissions
    assert (source(ada), source(bea)) == (RIGHT, WRONG)
    assert bea.notes[-1] in (f"Not read: {name!r}.", f"Not read: {name.removeprefix('att/')!r}.")


@pytest.mark.parametrize(
    ("before", "after"),
    [(b"", b"\xef\xbb\xbf"), (b"\n", b"\n\n"), (b"\n", b"  \n"), (b"\n", b"\r\n")],
)
def test_a_stub_is_one_whatever_an_editor_makes_of_it(
    take_one: Take, stub: bytes, before: bytes, after: bytes
) -> None:
    files = {f"ada/{FILE}": stub.replace(before, after, 1 if not before else -1)}
    ada, _ = take_one(files | {"ada/doubling.py": RIGHT, "bea/problem.py": RIGHT}).submissions
    assert source(ada) == RIGHT


@pytest.mark.parametrize("name", [f"problems/{ID}/Untitled.ipynb", "problems/Untitled.ipynb"])
def test_of_a_stub_a_notebook_is_named(take_one: Take, stub: bytes, name: str) -> None:
    files = {f"ada/{name}": RIGHT, f"ada/problems/{FILE}": stub, "bea/problem.py": RIGHT}
    ada, _ = take_one(files).submissions
    assert source(ada) == stub
    assert ada.notes[0].startswith(f"Not read: '{name}'. A notebook is not graded: ")


def test_the_notebook_that_is_handed_out_is_nobodys_work(
    take: Take, two_problems: Course, stub: bytes
) -> None:
    """A copy that was released with notebooks has one next to each stub."""
    files = {f"{id}/{name}": stub for id in (ID, OTHER) for name in ("problem.py", NOTEBOOK)}
    (untouched,) = take(files, course=two_problems).submissions
    (found,) = take(files | {"doubling.py": RIGHT}, "more", course=two_problems).submissions
    assert (untouched.notes, source(found)) == ([], RIGHT)


def test_beside_stubs_a_file_that_tells_no_problem_is_named(
    take: Take, two_problems: Course, stub: bytes
) -> None:
    files = {f"{id}/problem.py": stub for id in (ID, OTHER)} | {"work.py": RIGHT}
    (found,) = take(files, course=two_problems).submissions
    assert (source(found), found.notes) == (stub, ["Not read: 'work.py'."])


@pytest.mark.parametrize("name", ["old/Doubling.py", "mine/01.py"])
def test_work_in_folders_beside_problems_folders_is_read(
    take: Take, two_problems: Course, name: str
) -> None:
    files = {f"{OTHER}/problem.py": WRONG, name: RIGHT, "old/notes.py": b"", "x.py": b""}
    (found,) = take(files, course=two_problems).submissions
    assert source(found) == RIGHT
    assert found.notes == [f"'{name}' was read as {ID}.", "Not read: 'old/notes.py', 'x.py'."]


def test_each_problem_may_be_in_a_place_of_its_own(
    take: Take, two_problems: Course, stub: bytes
) -> None:
    files = {FILE: stub, f"{OTHER}.py": RIGHT}
    (found,) = take(files, course=two_problems).submissions
    assert (source(found), found.files[OTHER].source) == (stub, RIGHT)


def test_of_several_files_for_a_stub_one_has_to_be_chosen(take_one: Take, stub: bytes) -> None:
    files = {f"{who}/{FILE}": stub for who in ("ada", "bea")}
    files |= {f"{who}/problem.py": RIGHT for who in ("ada", "bea")}
    files |= {"ada/doubling.py": WRONG, "bea/problems/problem.py": WRONG}
    ada, bea = take_one(files).submissions
    assert f"{ID} could be 'doubling.py', 'problem.py'; which one" in ada.files[ID].reason
    assert "could be 'problem.py', 'problems/problem.py'; which" in bea.files[ID].reason


def test_beside_an_optional_stub_a_file_that_tells_no_problem_is_read_if_it_is_given(
    take: Take, two_parts: Course
) -> None:
    stubs = {
        f"{problem.id}/problem.py": problem.stub.read_bytes() for problem in two_parts.problems()
    }
    files = {**stubs, FILE: RIGHT, "scratch.py": WRONG}
    (found,) = take(files, course=two_parts).submissions
    assert (source(found), found.notes) == (RIGHT, ["Not read: 'scratch.py'."])
    (found,) = take(files, "six", problem="06", course=two_parts).submissions
    assert "'scratch.py' was read as 06-doubling." in found.notes


def test_a_file_of_unknown_problem_is_named_once(class_folder: Path, two_problems: Course) -> None:
    write(class_folder, {"ada/problem.py": RIGHT})
    (found,) = find_submissions(class_folder, two_problems)
    assert found.has_unknown_file
    (reason,) = {file.reason for file in found.files.values()}
    assert "It is not known which problem is in 'problem.py': no folder around it is" in reason


def test_the_only_archive_in_a_students_folder_is_read(
    class_folder: Path, small_course: Course, tmp_path: Path
) -> None:
    """Some learning platforms put submissions into a folder of the student's name."""
    work = submission(tmp_path, "work")
    (class_folder / "ada").mkdir()
    shutil.make_archive(str(class_folder / "ada" / "hw"), "zip", work)
    (found,) = find_submissions(class_folder, small_course)
    assert found.files["01-doubling"].source
    assert found.notes == ["The work is in the archive 'hw.zip'."]
    (work / FILE).write_text("x = 2\n")
    shutil.make_archive(str(class_folder / "ada" / "hw2"), "zip", work)
    submission(class_folder, "grace")
    ada, _ = find_submissions(class_folder, small_course)
    assert f"could be 'hw.zip/{FILE}', 'hw2.zip/{FILE}'" in ada.files["01-doubling"].reason


@pytest.mark.parametrize("ending", PACKERS)
@pytest.mark.parametrize("place", ["", "./", "problems/", "hw/", "hw/problems/"])
def test_a_submission_is_read(read: Read, ending: str, place: str) -> None:
    packed = PACKERS[ending]((f"{place}{FILE}", RIGHT), (f"{place}README.md", b"hello"))
    found = read(packed, ending)
    assert found.files["01-doubling"].source == RIGHT
    assert found.notes == []


def test_work_in_folders_counts_before_single_files(take: Take) -> None:
    one = "ada_12_98_hw.zip"
    two = "bea_13_99_hw.zip"
    files = {
        one: zip_file(COURSE | {"problem_01.py": WRONG}),
        two: zip_file({"a.py": b"", "b.py": b""}),
    }
    ada, bea = take(files).submissions
    assert source(ada) == RIGHT
    assert ada.notes == ["Not read: 'problem_01.py'."]
    assert "which problem is in 'a.py', 'b.py'" in bea.files[ID].reason


def test_a_file_goes_before_an_archive(take: Take) -> None:
    files = {"ada_12_98_hw.zip": zip_file({FILE: WRONG}), "ada_12_99_problem_01.py": RIGHT}
    (ada,) = take(files).submissions
    assert (source(ada), ada.unused) == (RIGHT, ("hw.zip",))
