"""Zip bombs, long lists and large files are reported in the row of their submission."""

from __future__ import annotations

import gzip
import io
import tarfile
from pathlib import Path

import pytest

from grader.course import Course
from grader.intake import limits, opening
from grader.intake.limits import MAX_SOURCE_BYTES
from grader.intake.opening import parts_of
from grader.intake.submissions import find_submissions
from tests.grader.intake.uploads import (
    BOTH,
    FILE,
    RIGHT,
    Pack,
    Read,
    assert_bad,
    tar_gz,
    tarred,
    write,
    zipped,
)


@BOTH
def test_a_member_that_is_too_large_is_refused(read: Read, ending: str, pack: Pack) -> None:
    packed = pack((FILE, b"#" * (MAX_SOURCE_BYTES + 1)))
    assert_bad(read(packed, ending), "has more than 1,000,000 bytes")
    largest = b"#" * MAX_SOURCE_BYTES
    assert read(pack((FILE, largest)), ending).files["01-doubling"].source == largest


def test_a_member_with_a_false_size_is_refused(read: Read) -> None:
    honest = zipped((FILE, b"#" * 2_000_000))
    size = (2_000_000).to_bytes(4, "little")
    assert_bad(read(honest.replace(size, (20).to_bytes(4, "little"))), "is damaged")


@BOTH
def test_too_many_members_are_refused(
    read: Read, ending: str, pack: Pack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MAX_ENTRIES", 20)
    packed = pack((FILE, RIGHT), *((f"data/{n}", b"") for n in range(20)))
    assert_bad(read(packed, ending), "has more than 20 members")


@pytest.mark.parametrize("name", ["data.bin", FILE])
def test_a_zip_bomb_is_refused(read: Read, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_TOTAL_BYTES", 3_000_000)
    packed = gzip.compress(tarred((name, bytes(5_000_000)), (FILE, RIGHT)), 9)
    assert_bad(read(packed, ".tar.gz"), "unpacks to more than 3,000,000 bytes")


def test_a_zip_bomb_of_many_members_is_refused(
    tmp_path: Path, small_course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MAX_TOTAL_BYTES", 3_000_000)
    path = tmp_path / "class.zip"
    path.write_bytes(zipped(*((f"s{n}/{FILE}", b"#" * 900_000) for n in range(5))))
    (submission,) = find_submissions(path, small_course)
    assert_bad(submission, "unpacks to more than 3,000,000 bytes")


def test_a_large_file_next_to_the_submission_is_not_read(
    tmp_path: Path, small_course: Course
) -> None:
    info = tarfile.TarInfo("data.bin")
    info.size = 5 * 2**30
    with (tmp_path / "ada.tar").open("wb") as file:
        file.write(info.tobuf())
        file.seek(info.size, io.SEEK_CUR)
        file.write(tarred((FILE, RIGHT)))
    (submission,) = find_submissions(tmp_path / "ada.tar", small_course)
    assert submission.files["01-doubling"].source == RIGHT


def test_a_tar_header_that_requests_much_memory_is_refused(read: Read) -> None:
    info = tarfile.TarInfo("name")
    info.type, info.size = tarfile.XHDTYPE, 2**30
    packed = gzip.compress(info.tobuf() + bytes(2**20))
    assert_bad(read(packed, ".tgz"), "a name or a list that is too long")


def test_an_archive_that_takes_too_long_is_refused(
    tmp_path: Path, small_course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MAX_SECONDS", -1.0)
    (tmp_path / "ada.tgz").write_bytes(tar_gz((FILE, RIGHT)))
    (submission,) = find_submissions(tmp_path / "ada.tgz", small_course)
    assert_bad(submission, "seconds to read")


@BOTH
def test_the_time_for_checking_names_counts(
    read: Read, ending: str, pack: Pack, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]

    def slowly(name: str) -> tuple[str, ...]:
        clock[0] += "slow" in name
        return parts_of(name)

    monkeypatch.setattr(limits.time, "thread_time", lambda: clock[0])
    monkeypatch.setattr(opening, "parts_of", slowly)
    few, many = ([(FILE, RIGHT), *((f"slow/{n}", b"") for n in range(n))] for n in (9, 11))
    assert read(pack(*few), ending).files["01-doubling"].source == RIGHT
    assert_bad(read(pack(*many), ending), "takes more than 10 seconds to read")


# Files of tools


@BOTH
@pytest.mark.parametrize(
    "place",
    ["venv", "hw/.venv/lib/site-packages", "node_modules/x", ".git/objects", "__MACOSX"],
)
def test_files_of_tools_are_not_counted_in_a_submission(
    read: Read, ending: str, pack: Pack, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MAX_FILES", 20)
    submission = read(pack((FILE, RIGHT), *((f"{place}/{n}", b"") for n in range(50))), ending)
    assert submission.files["01-doubling"].source == RIGHT
    assert submission.notes == []
    submission = read(pack((FILE, RIGHT), *((f"data/{n}", b"") for n in range(20))), ending)
    assert "contains more than 20 files and folders" in submission.files["01-doubling"].reason


@pytest.mark.slow
def test_a_repository_with_a_virtual_environment_is_read(read: Read) -> None:
    """The list of its names has more than 8 MB."""
    place = ".venv/lib/python3.11/site-packages/torch/include/ATen/ops/some_operator_native.h"
    submission = read(zipped((FILE, RIGHT), *((f"{place}{n}", b"") for n in range(65_000))))
    assert submission.files["01-doubling"].source == RIGHT


def test_a_folder_with_too_many_files_of_tools_is_refused(
    class_folder: Path, small_course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MAX_ENTRIES", 20)
    for name, number in (("ada", 10), ("grace", 20)):
        extra = {f"{name}/._extra{n}": b"" for n in range(number)}
        write(class_folder, {f"{name}/{FILE}": RIGHT, **extra})
    ada, grace = find_submissions(class_folder, small_course)
    assert ada.files["01-doubling"].source
    assert "'grace' contains more than 20 files" in grace.files["01-doubling"].reason
