"""On each platform, all students are found, and none can submit for a different student."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.course import Course
from grader.intake import limits
from grader.intake.submissions import read_submissions
from tests.grader.intake.uploads import (
    COURSE,
    ID,
    RIGHT,
    WRONG,
    Take,
    by_name,
    source,
    write,
    zip_file,
)

METADATA = b"submission_1:\n  :submitters:\n  - :name: Ada Lovelace\n"


def test_submissions_with_unknown_names_are_graded(take: Take) -> None:
    files = {"hopperada_12_98_hw.zip": zip_file(COURSE), "lovelace_13_99_problem_01.py": RIGHT}
    intake = take(files | {"late-hopper.zip": zip_file(COURSE)})
    assert [(s.full_name, source(s)) for s in intake.submissions] == [
        *(("hopperada", RIGHT), ("lovelace", RIGHT), ("late-hopper", RIGHT))
    ]
    assert intake.submissions[2].notes[0] == "Its name matches no student."


def test_one_student_cannot_turn_a_class_into_a_download(take: Take) -> None:
    files = {f"ada/hw/{name}": content for name, content in COURSE.items()}
    files |= {"ada/submission_metadata.yml": METADATA}
    intake = take(files | {"bea.zip": zip_file(COURSE), "cho.zip": zip_file(COURSE)})
    assert [(s.full_name, source(s)) for s in intake.submissions] == [
        *(("ada", RIGHT), ("bea", RIGHT), ("cho", RIGHT))
    ]
    assert intake.recognised == []


@pytest.mark.parametrize(
    "name",
    [
        "Bea_8_assignsubmission_file_",
        "hw_submissions_2026_11_24_T_09_05_00",
        "bea_9_97_hw.zip",
    ],
)
def test_one_name_does_not_turn_a_class_into_a_download(take: Take, name: str) -> None:
    """If a student is named like a platform's file, the other students are read as usual."""
    files = {f"{student}/{ID}/problem.py": RIGHT for student in ("ada", "bea", "cho")}
    own = {name: zip_file(COURSE)} if name.endswith(".zip") else {f"{name}/{ID}/problem.py": RIGHT}
    intake = take(files | own)
    identities = {s.identity for s in intake.submissions}
    assert identities == {"ada", "bea", "cho", name.removesuffix(".zip")}
    assert all(source(s) == RIGHT for s in intake.submissions)
    assert intake.recognised == []


def test_platform_files_inside_a_students_archive_are_ignored(take: Take) -> None:
    """With these files, a student could submit for other students."""
    evil = {"submission_metadata.yml": METADATA, f"submission_1/{ID}/problem.py": WRONG}
    files = {"ada_12_98_hw.zip": zip_file(evil), "bea_13_99_hw.zip": zip_file(COURSE)}
    assert [s.full_name for s in take(files).submissions] == ["ada", "bea"]


def test_a_harmful_archive_affects_only_its_row(
    tmp_path: Path, small_course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The archives include zip bombs, nested archives and archives with `../` in names."""
    monkeypatch.setattr(limits, "MAX_NESTED_BYTES", 100_000)
    monkeypatch.setattr(limits, "MAX_TOTAL_BYTES", 300_000)
    bad = {
        "ada_1_91_hw.zip": bytes(110_000),
        "bea_2_92_hw.zip": zip_file({f"{ID}/problem.py": b"#" * 600_000}),
        "cho_3_93_hw.zip": zip_file({f"../{ID}/problem.py": RIGHT, f"{ID}/problem.py": RIGHT}),
        "dan_4_94_hw.zip": zip_file({"a.zip": zip_file({"hw.zip": zip_file(COURSE)})}),
        "eli_5_95_hw.rar": b"Rar!",
        "fay_6_96_hw.zip": b"nothing of that kind",
        "gus_8_98_hw.zip": zip_file({"hw.zip": zip_file({f"{ID}/problem.py": b"#" * 600_000})}),
        "hal_9_90_hw.zip": zip_file({"hw.zip": bytes(110_000)}),
    }
    path = tmp_path / "submissions.zip"
    path.write_bytes(zip_file(bad | {"zoe_7_99_hw.zip": zip_file(COURSE)}))
    found = by_name(read_submissions(path, small_course))
    reasons = {name: s.files[ID].reason for name, s in found.items()}
    assert "has more than 100,000 bytes" in reasons["ada"]
    assert "unpacks to more than 300,000 bytes" in reasons["bea"]
    assert "is in the archive more than once" in reasons["cho"]
    assert "archive inside an archive" in reasons["dan"]
    assert "unpacks to more than 300,000 bytes" in reasons["gus"]
    assert "has more than 100,000 bytes" in reasons["hal"]
    assert "is a kind of archive that is not read" in reasons["eli"]
    assert "is not a complete zip or tar archive" in reasons["fay"]
    assert source(found["zoe"]) == RIGHT
    assert all(s.files[ID].bad for name, s in found.items() if name != "zoe")


def test_links_in_a_download_are_not_followed(tmp_path: Path, small_course: Course) -> None:
    folder = write(tmp_path / "download", {"bea_2_9_problem_01.py": RIGHT, "../secret.py": RIGHT})
    (folder / "ada_1_8_problem_01.py").symlink_to(tmp_path / "secret.py")
    ada, bea = read_submissions(folder, small_course).submissions
    assert source(ada) is None
    assert "is a link" in ada.files[ID].reason
    assert source(bea) == RIGHT
