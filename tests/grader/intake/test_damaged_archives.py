"""A damaged archive has a row in the gradebook, and is never graded as a complete submission."""

from __future__ import annotations

import bz2
import gzip
import io
import zipfile
from pathlib import Path

import pytest

from grader.course import Course
from grader.intake.submissions import find_submissions
from tests.grader.intake.uploads import FILE, PACKERS, RIGHT, Read, assert_bad, tarred, zipped


def encrypted_zip() -> bytes:
    """Return a zip file whose members are marked as encrypted."""
    packed = bytearray(zipped((FILE, RIGHT)))
    packed[6] |= 1
    packed[packed.rindex(b"PK\x01\x02") + 8] |= 1
    return bytes(packed)


def test_an_encrypted_member_is_refused(read: Read) -> None:
    assert_bad(read(encrypted_zip()), "is encrypted; pack it again without a password")


def test_an_unsupported_compression_is_refused(read: Read) -> None:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr(FILE, RIGHT)
    assert_bad(read(made.getvalue()), "pack it with the usual method")


def test_a_damaged_member_does_not_affect_others(tmp_path: Path, small_course: Course) -> None:
    packed = zipped(("ada/" + FILE, b"a = 1\n" * 9), ("grace/" + FILE, RIGHT))
    start = packed.index(FILE.encode()) + len(FILE)
    path = tmp_path / "class.zip"
    path.write_bytes(packed[:start] + b"\xff\xff\xff" + packed[start + 3 :])
    ada, grace = find_submissions(path, small_course)
    assert_bad(ada, "is damaged")
    assert grace.files["01-doubling"].source == RIGHT


NO_ARCHIVES = {
    "empty": b"",
    "text": b"hello\n" * 1000,
    "a web page": b"<!DOCTYPE html><html>404</html>" * 50,
    "rar": b"Rar!\x1a\x07\x01\x00" + bytes(1000),
    "bzip2": bz2.compress(tarred((FILE, RIGHT))),
    "only the start of a zip": b"PK\x03\x04",
    "only the start of a gzip": b"\x1f\x8b\x08\x00",
    "gzip of text": gzip.compress(RIGHT),
    "a directory of zeros": b"PK\x05\x06" + bytes(18),
    "a huge directory": b"PK\x05\x06" + bytes(8) + b"\xff\xff\xff\x7f" + bytes(6),
    "zeros": bytes(10_240),
}


@pytest.mark.parametrize("ending", PACKERS)
@pytest.mark.parametrize("name", NO_ARCHIVES)
def test_files_that_are_not_archives_are_refused(read: Read, ending: str, name: str) -> None:
    assert_bad(read(NO_ARCHIVES[name], ending), "'ada.")


@pytest.mark.slow
@pytest.mark.parametrize("ending", PACKERS)
def test_an_archive_that_is_cut_off_at_any_byte_is_refused(read: Read, ending: str) -> None:
    packed = PACKERS[ending]((FILE, RIGHT), ("README.md", b"hello" * 300), ("x/y", RIGHT))
    end = packed.rindex(b"hello") if ending == ".tar" else len(packed) - 30
    for length in range(1, end, max(1, end // 40)):
        assert_bad(read(packed[:length], ending), "'ada.")


@pytest.mark.slow
@pytest.mark.parametrize("ending", PACKERS)
def test_an_archive_with_any_damaged_byte_has_a_file_or_a_reason(read: Read, ending: str) -> None:
    packed = PACKERS[ending]((FILE, RIGHT), ("README.md", b"hello"))
    for place in range(0, len(packed), max(1, len(packed) // 80)):
        broken = packed[:place] + bytes([packed[place] ^ 0xFF]) + packed[place + 1 :]
        file = read(broken, ending).files["01-doubling"]
        assert file.source is not None or file.reason
