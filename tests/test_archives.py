"""Archives: what is wanted is read, in memory and with limits; the rest is told in a sentence."""

from __future__ import annotations

import bz2
import gzip
import io
import stat
import tarfile
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from grader.course import Course
from grader.intake import archives
from grader.intake.submissions import MAX_SOURCE_BYTES, Submission, find_submissions

RIGHT = b"def double(x):\n    return x + x\n"
FILE = "01-doubling/problem.py"
LINK, PIPE = stat.S_IFLNK | 0o777, stat.S_IFIFO | 0o666

Member = tuple[str, bytes]


def zipped(*members: Member, mode: int = 0) -> bytes:
    """Return a zip file; `mode` is the file type of all members."""
    made = io.BytesIO()
    with warnings.catch_warnings(action="ignore"), zipfile.ZipFile(made, "w") as archive:
        for name, content in members:
            info = zipfile.ZipInfo("x")
            info.filename = name  # the constructor would change it
            info.external_attr = mode << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, content)
    return made.getvalue()


def tarred(*members: Member, kind: bytes = tarfile.REGTYPE, target: str = "") -> bytes:
    """Return a tar file; `kind` and `target` are those of all members."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, target
            info.size = len(content) if kind == tarfile.REGTYPE else 0
            archive.addfile(info, io.BytesIO(content))
    return made.getvalue()


def tar_gz(*members: Member) -> bytes:
    return gzip.compress(tarred(*members))


PACKERS = {".zip": zipped, ".tar": tarred, ".tar.gz": tar_gz, ".tgz": tar_gz}
BOTH = pytest.mark.parametrize(("ending", "pack"), [(".zip", zipped), (".tar", tarred)])
Pack = Callable[..., bytes]
Read = Callable[..., Submission]


@pytest.fixture
def read(tmp_path: Path, small_course: Course) -> Read:
    """Read an archive that `ada` handed in beside `grace`, who must never notice."""

    def read_it(content: bytes, ending: str = ".zip") -> Submission:
        folder = tmp_path / "class"
        folder.mkdir(exist_ok=True)
        (folder / f"ada{ending}").write_bytes(content)
        (folder / "grace.zip").write_bytes(zipped((FILE, RIGHT)))
        before = sorted(tmp_path.rglob("*"))
        ada, grace = find_submissions([folder], small_course)
        assert (ada.name, grace.name, grace.notes) == ("ada", "grace", [])
        assert grace.files["01-doubling"].source == RIGHT
        assert sorted(tmp_path.rglob("*")) == before
        return ada

    return read_it


def assert_bad(submission: Submission, words: str) -> None:
    file = submission.files["01-doubling"]
    assert file.source is None
    assert file.bad
    assert file.reason.startswith("bad archive: ")
    assert words in file.reason
    assert file.reason.isprintable()


@pytest.mark.parametrize("ending", PACKERS)
@pytest.mark.parametrize("place", ["", "./", "problems/", "hw/", "hw/problems/"])
def test_a_submission_is_read(read: Read, ending: str, place: str) -> None:
    packed = PACKERS[ending]((f"{place}{FILE}", RIGHT), (f"{place}README.md", b"hello"))
    found = read(packed, ending)
    assert found.files["01-doubling"].source == RIGHT
    assert found.notes == []


@pytest.mark.parametrize("ending", PACKERS)
@pytest.mark.parametrize("place", ["", "spring/"])
def test_a_whole_class_in_one_archive(
    tmp_path: Path, small_course: Course, ending: str, place: str
) -> None:
    path = tmp_path / f"class{ending}"
    names = ["ada", "grace", "hugo"]
    members = [(f"{place}{name}/{FILE}", name.encode()) for name in names]
    path.write_bytes(PACKERS[ending](*members, (f"{place}imani.zip", zipped((FILE, RIGHT)))))
    found = find_submissions([path], small_course)
    assert [s.name for s in found] == [*names, "imani"]
    assert [s.files["01-doubling"].source for s in found[:3]] == [b"ada", b"grace", b"hugo"]
    if ending == ".zip":  # as learning platforms pack what students packed
        assert found[3].files["01-doubling"].source == RIGHT
    else:
        assert_bad(found[3], "archive inside an archive, which is not opened")


@pytest.mark.parametrize("place", ["", "hw/", "hw/problems/"])
def test_an_archive_by_itself_is_one_submission(
    tmp_path: Path, small_course: Course, place: str
) -> None:
    path = tmp_path / "ada.zip"
    path.write_bytes(zipped((f"{place}{FILE}", RIGHT)))
    (found,) = find_submissions([path], small_course)
    assert (found.name, found.files["01-doubling"].source) == ("ada", RIGHT)


@pytest.mark.parametrize("name", ["bad.zip", "bad.tar.gz", "bad.7z"])
def test_a_bad_archive_by_itself_is_a_row(tmp_path: Path, small_course: Course, name: str) -> None:
    (tmp_path / name).write_bytes(b"nothing of that kind")
    (found,) = find_submissions([tmp_path / name], small_course)
    assert found.name == "bad"
    assert_bad(found, "not a zip or tar archive" if name != "bad.7z" else "not read; hand in one")


def test_of_several_folders_the_one_with_the_work_is_told(read: Read) -> None:
    found = read(zipped((f"hw/{FILE}", RIGHT), ("docs/notes.txt", b"")))
    assert found.files["01-doubling"].source == RIGHT
    assert found.notes == ["The work is one level down, in 'hw'."]


def test_misspelt_folders_are_told(read: Read) -> None:
    found = read(zipped(("hw/1-doubling/problem.py", RIGHT)))
    assert found.files["01-doubling"].source is None
    assert "did you mean 01-doubling?" in found.notes[0]


# Names that lead elsewhere

OUTSIDE = {
    "../../01-doubling/problem.py": "leads out",
    "../ada2/problem.py": "leads out",
    "01-doubling/../../problem.py": "leads out",
    "/etc/passwd": "is absolute",
    "C:/01-doubling/problem.py": "is absolute",
    "c:\\problem.py": "is absolute",
    "01-doubling\\problem.py": "has a backslash",
    "\\\\server\\share\\problem.py": "has a backslash",
    "x" * 300: "is too long",
}


@BOTH
@pytest.mark.parametrize("name", OUTSIDE)
def test_names_that_lead_elsewhere(read: Read, ending: str, pack: Pack, name: str) -> None:
    assert_bad(read(pack((FILE, RIGHT), (name, b"planted")), ending), OUTSIDE[name])


def test_a_zero_byte_in_a_name(read: Read) -> None:
    packed = zipped((FILE, RIGHT), ("01-doubling/x_y", b"")).replace(b"x_y", b"x\0y")
    assert_bad(read(packed), "has a zero byte")


def test_in_a_class_they_are_one_students(tmp_path: Path, small_course: Course) -> None:
    path = tmp_path / "class.tar"
    names = ("ada", "grace")
    members = [(f"{name}/{FILE}", RIGHT) for name in names]
    path.write_bytes(tarred(*members, ("ada/../grace/01-doubling/problem.py", b"x"), ("/x", b"")))
    odd, ada, grace = find_submissions([path], small_course)
    assert_bad(odd, "is absolute")
    assert_bad(ada, "leads out of its folder")
    assert grace.files["01-doubling"].source == RIGHT


# Members that are no files


@pytest.mark.parametrize("mode", [LINK, PIPE])
def test_links_and_pipes_in_a_zip(read: Read, mode: int) -> None:
    assert_bad(read(zipped((FILE, b"/etc/passwd"), mode=mode)), "problem.py in 01-doubling is")


@pytest.mark.parametrize(
    "kind",
    [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE, tarfile.GNUTYPE_SPARSE],
)
def test_links_and_devices_in_a_tar(read: Read, kind: bytes) -> None:
    assert_bad(read(tarred((FILE, b""), kind=kind, target="/etc/passwd"), ".tar"), "01-doubling is")


def test_a_linked_folder_in_a_tar(read: Read) -> None:
    link = tarred(("01-doubling", b""), kind=tarfile.SYMTYPE, target="/etc")
    assert_bad(read(link, ".tar"), "01-doubling is a link")
    behind = link[:512] + tarred((FILE, RIGHT))
    assert_bad(read(behind, ".tar"), "01-doubling is in the archive more than once")


# Which of several


@BOTH
def test_the_same_member_twice(read: Read, ending: str, pack: Pack) -> None:
    assert_bad(
        read(pack((FILE, RIGHT), (f"./{FILE}", b"")), ending),
        "problem.py in 01-doubling is in the archive more than once",
    )


@BOTH
def test_a_file_and_a_folder_of_one_name(read: Read, ending: str, pack: Pack) -> None:
    packed = pack(("01-doubling", b""), (FILE, RIGHT))
    assert_bad(read(packed, ending), "01-doubling is in the archive more than once")


@BOTH
def test_names_that_differ_in_case_are_told(read: Read, ending: str, pack: Pack) -> None:
    odd = [("01-Doubling/problem.py", b"2"), ("01-doubling/Problem.py", b"3")]
    found = read(pack(odd[0], (FILE, RIGHT), odd[1]), ending)
    assert found.files["01-doubling"].source == RIGHT
    assert any("'01-Doubling'" in note for note in found.notes)
    assert any("but not 'Problem.py'" in note for note in found.notes)


@BOTH
def test_what_tools_and_students_leave_behind_is_ignored(
    read: Read, ending: str, pack: Pack
) -> None:
    beside = ["conftest.py", "pytest.ini", "torch/__init__.py", "x.pth", "results.json"]
    noise = ["__MACOSX/01-doubling/._problem.py", "01-doubling/._problem.py", ".git/config"]
    noise += ["01-doubling/__pycache__/problem.cpython-311.pyc", "__MACOSX/../../x"]
    members = [(f"01-doubling/{name}", b"raise SystemExit") for name in beside]
    found = read(pack(*members, *((name, b"") for name in noise), (FILE, RIGHT)), ending)
    assert found.files["01-doubling"].source == RIGHT
    assert found.notes == []


# Too much


@BOTH
def test_a_member_that_is_too_large(read: Read, ending: str, pack: Pack) -> None:
    packed = pack((FILE, b"#" * (MAX_SOURCE_BYTES + 1)))
    assert_bad(read(packed, ending), "has more than 1,000,000 bytes")
    largest = b"#" * MAX_SOURCE_BYTES
    assert read(pack((FILE, largest)), ending).files["01-doubling"].source == largest


def test_a_size_that_is_not_true(read: Read) -> None:
    honest = zipped((FILE, b"#" * 2_000_000))
    size = (2_000_000).to_bytes(4, "little")
    assert_bad(read(honest.replace(size, (20).to_bytes(4, "little"))), "is damaged")


@BOTH
def test_too_many_members(
    read: Read, ending: str, pack: Pack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archives, "MAX_ENTRIES", 20)
    packed = pack((FILE, RIGHT), *((f"data/{n}", b"") for n in range(20)))
    assert_bad(read(packed, ending), "has more than 20 members")


@pytest.mark.parametrize("name", ["data.bin", FILE])
def test_a_bomb(read: Read, name: str) -> None:
    """A terabyte would do the same: it is given up after the first bytes that are too many."""
    packed = gzip.compress(tarred((name, bytes(30_000_000)), (FILE, RIGHT)), 9)
    assert_bad(read(packed, ".tar.gz"), "unpacks to more than 20,000,000 bytes")


def test_a_bomb_of_many_members(
    tmp_path: Path, small_course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archives, "MAX_TOTAL_BYTES", 3_000_000)
    path = tmp_path / "class.zip"
    path.write_bytes(zipped(*((f"s{n}/{FILE}", b"#" * 900_000) for n in range(5))))
    (found,) = find_submissions([path], small_course)
    assert_bad(found, "unpacks to more than 3,000,000 bytes")


def test_archives_inside_are_not_opened(read: Read) -> None:
    assert_bad(read(zipped(("hw.zip", zipped((FILE, RIGHT))))), "archive inside an archive")


def test_a_large_file_beside_it_is_not_read(tmp_path: Path, small_course: Course) -> None:
    """In a tar that is not packed it is skipped."""
    info = tarfile.TarInfo("data.bin")
    info.size = 5 * 2**30
    with (tmp_path / "ada.tar").open("wb") as file:
        file.write(info.tobuf())
        file.seek(info.size, io.SEEK_CUR)
        file.write(tarred((FILE, RIGHT)))
    (found,) = find_submissions([tmp_path / "ada.tar"], small_course)
    assert found.files["01-doubling"].source == RIGHT


def test_a_tar_header_that_asks_for_much_memory(read: Read) -> None:
    info = tarfile.TarInfo("name")
    info.type, info.size = tarfile.XHDTYPE, 2**30
    packed = gzip.compress(info.tobuf() + bytes(2**20))
    assert_bad(read(packed, ".tgz"), "a name or a list that is too long")


def test_paths_without_end(read: Read) -> None:
    found = read(zipped(("a/" * 30_000, b""), (FILE, RIGHT)))
    assert found.files["01-doubling"].source == RIGHT


def test_an_archive_that_takes_too_long(
    tmp_path: Path, small_course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archives, "MAX_SECONDS", -1.0)
    (tmp_path / "ada.tgz").write_bytes(tar_gz((FILE, RIGHT)))
    (found,) = find_submissions([tmp_path / "ada.tgz"], small_course)
    assert_bad(found, "seconds to read")


# Broken


def encrypted() -> bytes:
    """Return a zip file that says that its members are encrypted."""
    packed = bytearray(zipped((FILE, RIGHT)))
    packed[6] |= 1
    packed[packed.rindex(b"PK\x01\x02") + 8] |= 1
    return bytes(packed)


def test_an_encrypted_member(read: Read) -> None:
    assert_bad(read(encrypted()), "is encrypted; pack it again without a password")


def test_another_way_of_packing(read: Read) -> None:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr(FILE, RIGHT)
    assert_bad(read(made.getvalue()), "pack it in the usual way")


def test_a_damaged_member_spares_the_others(tmp_path: Path, small_course: Course) -> None:
    packed = zipped(("ada/" + FILE, b"a = 1\n" * 9), ("grace/" + FILE, RIGHT))
    start = packed.index(FILE.encode()) + len(FILE)
    path = tmp_path / "class.zip"
    path.write_bytes(packed[:start] + b"\xff\xff\xff" + packed[start + 3 :])
    ada, grace = find_submissions([path], small_course)
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
def test_what_is_no_archive(read: Read, ending: str, name: str) -> None:
    assert_bad(read(NO_ARCHIVES[name], ending), "'ada.")


@pytest.mark.parametrize("ending", PACKERS)
def test_cut_short_anywhere(read: Read, ending: str) -> None:
    """Whatever is left, it is a row, and never half of the work for the whole."""
    packed = PACKERS[ending]((FILE, RIGHT), ("README.md", b"hello" * 300), ("x/y", RIGHT))
    end = packed.rindex(b"hello") if ending == ".tar" else len(packed) - 30
    for length in range(1, end, max(1, end // 40)):
        assert_bad(read(packed[:length], ending), "'ada.")


@pytest.mark.parametrize("ending", PACKERS)
def test_any_byte_may_be_wrong(read: Read, ending: str) -> None:
    packed = PACKERS[ending]((FILE, RIGHT), ("README.md", b"hello"))
    for place in range(0, len(packed), max(1, len(packed) // 80)):
        broken = packed[:place] + bytes([packed[place] ^ 0xFF]) + packed[place + 1 :]
        file = read(broken, ending).files["01-doubling"]
        assert file.source is not None or file.reason


def test_what_may_not_be_opened(tmp_path: Path, small_course: Course) -> None:
    folder = tmp_path / "class"
    folder.mkdir()
    (folder / "grace.zip").write_bytes(zipped((FILE, RIGHT)))
    (folder / "ada.zip").symlink_to(folder / "grace.zip")
    (folder / "eve.tar").symlink_to("nowhere")
    ada, eve, grace = find_submissions([folder], small_course)
    assert_bad(ada, "'ada.zip' is a link")
    assert_bad(eve, "'eve.tar' is a link")
    assert grace.files["01-doubling"].source == RIGHT
