"""All submissions in a class folder are found, without guessing."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from grader.course import Course
from grader.intake.submissions import find_submissions, read_submissions
from tests.grader.intake.uploads import (
    FILE,
    ID,
    PACKERS,
    RIGHT,
    WRONG,
    Take,
    assert_bad,
    by_name,
    source,
    write,
    zip_file,
    zipped,
)


@pytest.mark.parametrize("around", ["", "spring"])
def test_each_folder_is_a_submission(class_folder: Path, small_course: Course, around: str) -> None:
    """A folder around the class is skipped, and files of tools are not submissions."""
    names = (f"ada/{FILE}", f"grace/problems/{FILE}", ".01-doubling.py")
    write(class_folder / around, dict.fromkeys(names, RIGHT))
    submissions = find_submissions(class_folder, small_course)
    assert [s.full_name for s in submissions] == ["ada", "grace"]
    assert all(source(s) == RIGHT for s in submissions)
    assert all(len(s.files["01-doubling"].sha256) == 64 for s in submissions)


@pytest.mark.parametrize("place", ["", "Week 1/"])
@pytest.mark.parametrize("stray", [FILE, "problem.py", "doubling.py", "01-doubling.py"])
def test_stray_files_do_not_turn_a_class_into_one_submission(
    take_one: Take, place: str, stray: str
) -> None:
    names = {"ada", "bea"}
    intake = take_one(
        {f"{place}{path}": RIGHT for path in (stray, *(f"{n}/{FILE}" for n in names))}
    )
    assert {*by_name(intake)} - {ID} == names
    unmatched = [] if stray == FILE else [stray]
    assert [text.split("'")[1] for text in intake.unmatched] == unmatched


def test_each_folder_and_archive_has_a_row(class_folder: Path, small_course: Course) -> None:
    write(class_folder, {f"ada/{FILE}": WRONG})
    (class_folder / "ada.zip").write_bytes(zip_file({FILE: RIGHT}))
    shutil.make_archive(str(class_folder / "grace"), "gztar", class_folder, "ada")
    (class_folder / "hugo.zip").write_bytes(b"no archive")
    (class_folder / "imani.rar").write_bytes(b"Rar!")
    (class_folder / "grades.csv").write_text("not a submission\n")
    intake = read_submissions(class_folder, small_course)
    by_identity = {s.identity: s for s in intake.submissions}
    assert list(by_identity) == ["ada", "ada (ada.zip)", "grace", "hugo", "imani"]
    sources = [source(by_identity[name]) for name in ("ada", "ada (ada.zip)", "grace")]
    assert (sources, by_identity["ada"].name) == ([WRONG, RIGHT, WRONG], "ada")
    assert by_identity["grace"].notes == []
    assert any(
        text.startswith("'ada' was submitted twice, and is graded") for text in intake.unmatched
    )
    for name in ("hugo", "imani"):
        assert by_identity[name].files["01-doubling"].bad
        assert by_identity[name].files["01-doubling"].reason.startswith(f"'{name}.")


@pytest.mark.parametrize("ending", PACKERS)
@pytest.mark.parametrize("place", ["", "spring/"])
def test_a_class_in_one_archive_is_read(
    tmp_path: Path, small_course: Course, ending: str, place: str
) -> None:
    path = tmp_path / f"class{ending}"
    names = ["ada", "grace", "hugo"]
    members = [(f"{place}{name}/{FILE}", name.encode()) for name in names]
    path.write_bytes(PACKERS[ending](*members, (f"{place}imani.zip", zipped((FILE, RIGHT)))))
    submissions = find_submissions(path, small_course)
    assert [s.full_name for s in submissions] == [*names, "imani"]
    assert [s.files["01-doubling"].source for s in submissions[:3]] == [b"ada", b"grace", b"hugo"]
    if ending == ".zip":  # platforms pack the archives of students into a zip file
        assert submissions[3].files["01-doubling"].source == RIGHT
    else:
        assert_bad(submissions[3], "archive inside an archive, which is not opened")


def test_archives_are_read_alike_in_a_folder_and_in_a_zip_file(take: Take) -> None:
    hw = zip_file({FILE: RIGHT})
    files = {f"{name}.zip": zip_file({"hw.zip": hw}) for name in ("ada", "grace")}
    files |= {"hugo/hw.zip": files["ada.zip"], "imani.zip": zip_file({"a.zip": files["ada.zip"]})}
    submissions = by_name(take(files))
    assert [source(submissions[name]) for name in ("ada", "grace", "hugo")] == [RIGHT] * 3
    assert_bad(submissions["imani"], "archive inside an archive, which is not opened")


@pytest.mark.parametrize("place", ["", "problems/", "hw/", "hw/problems/"])
def test_a_single_archive_is_one_submission(
    tmp_path: Path, small_course: Course, place: str
) -> None:
    path = tmp_path / "ada.zip"
    path.write_bytes(zipped((f"{place}{FILE}", RIGHT)))
    intake = read_submissions(path, small_course)
    (submission,) = intake.submissions
    assert (submission.name, source(submission)) == ("ada", RIGHT)
    assert bool(intake.unmatched) == ("hw" in place)


@pytest.mark.parametrize("inside", [f"Ada Lovelace/{FILE}", "Ada Lovelace.zip"])
def test_an_archive_with_one_folder_is_one_submission_with_a_message(
    tmp_path: Path, small_course: Course, inside: str
) -> None:
    """The grader can't decide whether the archive contains a class or the files of one student."""
    content = zip_file({FILE: RIGHT}) if inside.endswith("zip") else RIGHT
    path = tmp_path / "submissions.zip"
    path.write_bytes(zip_file({inside: content}))
    intake = read_submissions(path, small_course)
    assert [s.full_name for s in intake.submissions] == ["submissions"]
    (message,) = intake.unmatched
    assert message.startswith("'submissions.zip' counts as the submission of one student")
    assert repr(inside.split("/")[0]) in message
    unpacked = write(tmp_path / "unpacked", {inside: content})
    intake = read_submissions(unpacked, small_course)
    assert ([s.full_name for s in intake.submissions], intake.unmatched) == (["Ada Lovelace"], [])


def test_one_problem_folder_does_not_hide_a_class(tmp_path: Path, small_course: Course) -> None:
    """The folder of a problem is next to the folders of two students."""
    names = (FILE, f"ada/{FILE}", f"grace/{FILE}")
    folder = write(tmp_path / "class", dict.fromkeys(names, RIGHT))
    alone, ada, grace = find_submissions(folder, small_course)
    assert (alone.full_name, source(ada), source(grace)) == (ID, RIGHT, RIGHT)
    assert_bad(alone, "The problem of 'problem.py' is unknown")


def test_folders_with_misspelled_problem_names_are_not_students(take_one: Take) -> None:
    names = ("1-doubling", "2-tripling")
    (submission,) = take_one({f"ada/{name}/problem.py": RIGHT for name in names}).submissions
    assert submission.name not in names
    assert submission.notes == ["The files are in the folder '1-doubling'."]
