"""Pack feedback into a zip that a platform can distribute to students.

Moodle needs a zip of folders with the same names as in its download of submissions. Canvas needs a
zip of files with the same names as in its download. Each of these names contains the numbers of the
user and of the attachment.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections import defaultdict
from collections.abc import Iterable, Mapping
from html import unescape
from pathlib import Path, PurePosixPath
from textwrap import indent

from grader.errors import UsageError
from grader.gradebook.export.sheet import SheetPerson
from grader.text import counted

_PAGE = "feedback.html"
_TEXT = {".py", ".txt", ".md"}

_EPOCH = (1980, 1, 1, 0, 0, 0)  # fixed, so that archives of the same feedback are identical
_NOT_IN_A_NAME = set("\\/:*?\"'<>|&`")


_UNSEEN = re.compile(r"<(style|script|title|nav)\b.*?</\1>", re.DOTALL)
_TAGS = "h1|h2|p|li|pre|summary"
_BLOCK = re.compile(rf"<({_TAGS})\b[^>]*>(.*?)(?=</?(?:{_TAGS})\b)", re.DOTALL)
_TAG = re.compile(r"<[^>]*>")


def feedback_archive(
    rows: Iterable[tuple[SheetPerson, str]], folder: Path, download: Path | None
) -> tuple[bytes, list[str]]:
    """Return a zip with the feedback of students, and messages about it.

    Args:
        rows: the students in a platform's file, each with the name of their submission.
        folder: the folder of the feedback pages.
        download: Canvas's download of the submissions, a zip or a folder; None for Moodle.

    Raises:
        UsageError: the download can't be read.
    """
    in_canvas = _names_by_user(download) if download else None
    files: dict[str, bytes] = {}
    messages = []
    for person, submission in rows:
        page = folder / f"{submission}.html"
        name = _name_for_moodle(person) if in_canvas is None else in_canvas.get(person.id)
        if download and name is None:
            has = f"{download.name} has no .py, .txt, .md or .zip file of this student"
            messages.append(f"No feedback for {person}: {has}.")
        elif not page.is_file():
            messages.append(f"No feedback for {person}: {page.name} does not exist.")
        elif name:
            files[name] = _content(name, page)
    return _zipped(files), [*messages, f"Packed the feedback for {counted(len(files), 'student')}."]


def _content(name: str, page: Path) -> bytes:
    """Return the content of the feedback file `name`.

    The content of a `.zip` is an archive with the HTML page. The content of an `.html` is the page
    itself. Any other file contains the page as text.
    """
    content = page.read_bytes()
    match PurePosixPath(name).suffix.lower():
        case ".html":
            return content
        case ".zip":
            return _zipped({_PAGE: content})
        case _:
            return page_text(content.decode()).encode()


def page_text(page: str) -> str:
    """Convert a feedback page to text. Preformatted messages are indented."""
    blocks = []
    for tag, content in _BLOCK.findall(_UNSEEN.sub("", page)):
        text = unescape(_TAG.sub("", content))
        if tag == "pre":
            blocks.append(indent(text.rstrip("\n"), "    ", lambda line: True))
        else:
            blocks.append(f"{'- ' if tag == 'li' else ''}{' '.join(text.split())}")
    return "\n\n".join(filter(str.strip, blocks)) + "\n"


def _zipped(files: Mapping[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in sorted(files.items()):
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), content, zipfile.ZIP_DEFLATED)
    return packed.getvalue()


def _name_for_moodle(person: SheetPerson) -> str:
    """Return the path of a student's feedback page in the archive for Moodle."""
    kept = (c for c in person.name.replace("_", " ") if c.isprintable() and c not in _NOT_IN_A_NAME)
    name = "".join(kept).strip(" .~") or "Participant"
    return f"{name}_{person.id}_assignsubmission_file_/{_PAGE}"


def _names_by_user(download: Path) -> dict[str, str]:
    """Map the number of each user to the name that the user's feedback file must have.

    It is the name of the user's newest text file in the download. If the user has no text file, it
    is the name of the newest zip file.
    """
    by_user: defaultdict[str, list[tuple[bool, int, str]]] = defaultdict(list)
    for name in _names(download):
        numbers = [part for part in name.split("_") if part.isascii() and part.isdecimal()]
        suffix = PurePosixPath(name).suffix.lower()
        if len(numbers) > 1 and not name.startswith("._") and suffix in {".zip", *_TEXT}:
            user, attachment = numbers[:2]
            by_user[user].append((suffix in _TEXT, int(attachment), name))
    return {user: max(files)[-1] for user, files in by_user.items()}


def _names(download: Path) -> list[str]:
    try:
        if download.is_dir():
            paths = [*download.glob("*"), *download.glob("*/*")]
            return [path.name for path in paths if path.is_file()]
        with zipfile.ZipFile(download) as archive:
            return [PurePosixPath(name).name for name in archive.namelist()]
    except (OSError, zipfile.BadZipFile):
        raise UsageError(
            f"{download} is not a zip or a folder with a download of submissions."
        ) from None
