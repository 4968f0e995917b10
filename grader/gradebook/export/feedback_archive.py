"""Pack feedback in the form that a platform distributes to students.

Moodle reads a zip of folders, named as in its download of submissions. Canvas reads a zip of files,
named as in its download: it finds the student by the numbers of user and attachment.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from grader.errors import UsageError
from grader.gradebook.export.filling import whose
from grader.gradebook.export.page_text import page_text
from grader.gradebook.export.sheet import SheetPerson

PAGE = "feedback.html"

Rows = Iterable[tuple[SheetPerson, str]]
"""People of a platform's file, each with the name of the submission."""

_EPOCH = (1980, 1, 1, 0, 0, 0)  # the same feedback is the same file, whenever it is packed
_NOT_IN_A_NAME = set("\\/:*?\"'<>|&`")


@dataclass
class Pack:
    """The files of an archive.

    Attributes:
        files: by the name in the archive.
        told: messages about students without feedback.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    told: list[str] = field(default_factory=list)

    def zipped(self) -> bytes:
        """Return the archive."""
        return _zipped(self.files)


def for_moodle(rows: Rows, folder: Path) -> Pack:
    """Return the pages of the students in Moodle's worksheet.

    Args:
        rows: of the worksheet.
        folder: of the feedback.
    """
    pack = Pack()
    for person, submission in rows:
        page = _read(folder / f"{submission}.html", person, pack)
        if page is not None:
            name = f"{_folder_name(person.name)}_{person.id}_assignsubmission_file_"
            pack.files[f"{name}/{PAGE}"] = page
    return pack


def for_canvas(rows: Rows, folder: Path, download: Path) -> Pack:
    """Return feedback under the names of the download: as text, or as a zip for a zip.

    Args:
        rows: of the gradebook.
        folder: of the feedback.
        download: Canvas's download of the submissions, a zip or a folder.

    Raises:
        UsageError: the download can't be read.
    """
    names = _names_by_user(download)
    pack = Pack()
    for person, submission in rows:
        usable = [name for name in names.get(person.id, []) if _kind(name)]
        if not usable:
            pack.told.append(
                f"No feedback for {whose(person)}: {download.name} has no .py, .txt, .md or .zip "
                "of theirs."
            )
            continue
        name = max(usable, key=lambda name: (_kind(name) == "text", _numbers(name)[1]))
        page = _read(folder / f"{submission}.html", person, pack)
        if page is not None:
            text = page_text(page.decode()).encode()
            pack.files[name] = text if _kind(name) == "text" else _zipped({PAGE: page})
    return pack


def _read(path: Path, person: SheetPerson, pack: Pack) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        pack.told.append(f"No feedback for {whose(person)}: there is no {path.name}.")
        return None


def _zipped(files: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in sorted(files.items()):
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), content, zipfile.ZIP_DEFLATED)
    return packed.getvalue()


def _folder_name(name: str) -> str:
    """Return a name for Moodle's folders, without `_`, which separates name and number."""
    kept = (c for c in name.replace("_", " ") if c.isprintable() and c not in _NOT_IN_A_NAME)
    return "".join(kept).strip(" .~") or "Participant"


def _names_by_user(download: Path) -> dict[str, list[str]]:
    """Return the file names in Canvas's download by the number of the user."""
    found: dict[str, list[str]] = {}
    for name in _names(download):
        if numbers := _numbers(name):
            found.setdefault(str(numbers[0]), []).append(name)
    return found


def _names(download: Path) -> list[str]:
    try:
        if download.is_dir():
            paths = [*download.glob("*"), *download.glob("*/*")]
            return sorted(path.name for path in paths if path.is_file())
        with zipfile.ZipFile(download) as archive:
            return sorted(PurePosixPath(name).name for name in archive.namelist())
    except (OSError, zipfile.BadZipFile):
        raise UsageError(f"{download} is no download of submissions, zip or folder.") from None


def _numbers(name: str) -> list[int]:
    """Return the numbers of user and attachment, the first two in a file name."""
    found = [int(part) for part in name.split("_") if part.isascii() and part.isdecimal()]
    return found[:2] if len(found) > 1 and not name.startswith("._") else []


def _kind(name: str) -> str:
    ending = PurePosixPath(name).suffix.lower()
    return {".zip": "zip", ".py": "text", ".txt": "text", ".md": "text"}.get(ending, "")
