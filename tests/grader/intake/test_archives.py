"""Archives with special, duplicate or unreadable members are reported."""

from __future__ import annotations

import stat
import tarfile
import zipfile
from pathlib import Path

import pytest

from grader.course import Course
from grader.intake.submissions import find_submissions
from tests.grader.intake.uploads import (
    BOTH,
    FILE,
    ID,
    RIGHT,
    Pack,
    Read,
    assert_bad,
    tarred,
    zipped,
)

LINK, PIPE = stat.S_IFLNK | 0o777, stat.S_IFIFO | 0o666


@pytest.mark.parametrize("mode", [LINK, PIPE])
def test_links_and_pipes_in_a_zip_are_refused(read: Read, mode: int) -> None:
    assert_bad(read(zipped((FILE, b"/etc/passwd"), mode=mode)), "problem.py in 01-doubling is")


@pytest.mark.parametrize(
    "kind",
    [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE, tarfile.GNUTYPE_SPARSE],
)
def test_links_and_devices_in_a_tar_are_refused(read: Read, kind: bytes) -> None:
    assert_bad(read(tarred((FILE, b""), kind=kind, target="/etc/passwd"), ".tar"), "01-doubling is")


def test_a_linked_folder_in_a_tar_is_refused(read: Read) -> None:
    link = tarred(("01-doubling", b""), kind=tarfile.SYMTYPE, target="/etc")
    assert_bad(read(link, ".tar"), "01-doubling is a link")
    behind = link[:512] + tarred((FILE, RIGHT))
    assert_bad(read(behind, ".tar"), "01-doubling is in the archive more than once")


@pytest.mark.parametrize("around", ["", "class/"])
def test_a_link_with_a_students_name_is_refused(
    tmp_path: Path, small_course: Course, around: str
) -> None:
    """The link could replace the student's file."""
    own, others = (f"{around}{name}/{FILE}" for name in ("ada", "bob"))
    for members in ([f"{around}ada", own, others], [own, others, f"{around}ada"]):
        with zipfile.ZipFile(tmp_path / "class.zip", "w") as archive:
            for name in members:
                info = zipfile.ZipInfo(name)
                is_link = not name.endswith(".py")
                info.external_attr = (LINK if is_link else stat.S_IFREG | 0o644) << 16
                archive.writestr(info, b"bob" if is_link else RIGHT)
        ada, bob = find_submissions(tmp_path / "class.zip", small_course)
        assert_bad(ada, "'ada' is in the archive more than once")
        assert (bob.name, bob.files["01-doubling"].source) == ("bob", RIGHT)


# Several files for one problem


@BOTH
def test_a_file_and_a_folder_of_one_name_are_reported(read: Read, ending: str, pack: Pack) -> None:
    packed = pack(("01-doubling", b""), (FILE, RIGHT))
    assert_bad(read(packed, ending), "01-doubling is in the archive more than once")


@BOTH
def test_names_that_differ_in_case_are_reported(read: Read, ending: str, pack: Pack) -> None:
    odd = [("01-Doubling/problem.py", b"2"), ("01-doubling/Problem.py", b"3")]
    submission = read(pack(odd[0], (FILE, RIGHT), odd[1]), ending)
    assert submission.files["01-doubling"].source == RIGHT
    assert submission.notes == [f"Not read: '01-Doubling/problem.py', '{ID}/Problem.py'."]


@BOTH
def test_leftover_files_of_tools_are_ignored(read: Read, ending: str, pack: Pack) -> None:
    beside = ["conftest.py", "pytest.ini", "torch/__init__.py", "x.pth", "results.json"]
    noise = ["__MACOSX/01-doubling/._problem.py", "01-doubling/._problem.py", ".git/config"]
    noise += ["01-doubling/__pycache__/problem.cpython-311.pyc", "__MACOSX/../../x"]
    members = [(f"01-doubling/{name}", b"raise SystemExit") for name in beside]
    submission = read(pack(*members, *((name, b"") for name in noise), (FILE, RIGHT)), ending)
    assert submission.files["01-doubling"].source == RIGHT
    assert submission.notes == []


@pytest.mark.parametrize("place", ["", "hw/"])
@BOTH
def test_a_zip_file_may_contain_the_students_archive(
    read: Read, ending: str, pack: Pack, place: str
) -> None:
    inner = pack((FILE, RIGHT))
    submission = read(zipped((f"{place}hw{ending}", inner), ("notes.txt", b"")))
    assert submission.files["01-doubling"].source == RIGHT
    assert f"The files are in the archive '{place}hw{ending}'." in submission.notes
    assert_bad(read(zipped((f"{place}hw{ending}", b"?"))), f"hw{ending}' is")


def test_a_deeper_archive_is_not_opened(read: Read) -> None:
    hw = zipped((FILE, RIGHT))
    for deeper in (zipped(("hw.zip", hw)), tarred(("hw.zip", hw))):
        submission = read(zipped(("a.zip", deeper)))
        assert_bad(
            submission, "archive inside an archive, which is not opened; unpack the outer one"
        )
