"""Canvas: `lovelaceada_LATE_<user>_<attachment>_problem.py`, all files in one folder.

Without names it is `anon_<id>_...`, and `LATE_anon_<id>_...`; some versions had the words the other
way around.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from grader.intake.archives.kinds import archive_suffix
from grader.intake.layout import Layout, Work, handed_in, typed_online
from grader.intake.platforms.download import Download, Platform, Upload, first_match
from grader.intake.problem_names import Problems, before_reupload, is_bare
from grader.intake.tree import Kind, TreeEntry
from grader.text import quoted

_END = r"_(?:(?P<attachment>[1-9]\d*)_(?P<file>.+)|(?P<typed>text|link)\.html)"
_NAMES = (
    re.compile(r"(?P<late>LATE_)?(?P<name>anon)_(?P<id>(?!LATE_)[A-Za-z0-9]+)" + _END, re.DOTALL),
    re.compile(r"(?P<name>anon)(?P<late>_LATE)_(?P<id>[A-Za-z0-9]+)" + _END, re.DOTALL),
    re.compile(r"(?P<name>.+?)(?P<late>_LATE)?_(?P<id>[1-9]\d*)" + _END, re.DOTALL),
)

Versions = Sequence[tuple[TreeEntry, str]]
"""What one student uploaded for one file, the newest last, each as it was called then."""


def _look(download: Download, problems: Problems) -> Layout | None:
    found = download.fitting(_match)
    users: dict[str, set[str]] = {}
    for _, match in found:
        users.setdefault(match["id"], set()).add(match["name"])
    unclear = {id: sorted(names) for id, names in users.items() if len(names) > 1}
    if len(unclear) * 2 >= len(users) or _has_most_twice(found):
        return None
    clear = [upload for upload in found if upload[1]["id"] not in unclear]
    work = partial(_work, problems=problems)
    layout = download.layout("Canvas download", clear, lambda match: match["id"], work)
    layout.notes = [
        f"User {id} is called {' and '.join(map(quoted, names))}; whose that is can't be known."
        for id, names in unclear.items()
    ]
    return layout


def _match(child: TreeEntry) -> re.Match[str] | None:
    return None if child.kind is Kind.FOLDER else first_match(_NAMES, child.name)


def _has_most_twice(uploads: Iterable[Upload]) -> bool:
    """Tell whether half of the attachments' numbers are there twice, so that they are none."""
    attachments = Counter(match["attachment"] for _, match in uploads if match["attachment"])
    twice = sum(number > 1 for number in attachments.values())
    return twice * 2 >= len(attachments) > 0


def _work(files: Sequence[Upload], problems: Problems) -> Work:
    first = files[0][1]
    uploads = [(child, match) for child, match in files if match["file"]]
    versions = _versions(sorted(uploads, key=lambda u: int(u[1]["attachment"])), problems)
    entries = [found[-1][0].renamed(called) for called, found in versions.items()]
    notes = [note for called, found in versions.items() if (note := _reuploads(called, found))]
    typed = [match["typed"] for _, match in files if match["typed"]]
    return Work(
        f"canvas:{first['id']}",
        f"anon {first['id']}" if first["name"] == "anon" else first["name"],
        handed_in(first["name"], entries),
        members=(first["id"],),
        late=any(match["late"] for _, match in files),
        notes=(*notes, *map(typed_online, typed)),
        unused=(*(f"{kind}.html" for kind in typed), *_older(versions.values())),
        parts=tuple(child.name for child, _ in files),
    )


def _versions(uploads: Sequence[Upload], problems: Problems) -> Mapping[str, Versions]:
    """Return uploads by what they were called at first; Canvas calls later ones `hw-1.zip`."""
    names = {match["file"] for _, match in uploads}
    versions: dict[str, list[tuple[TreeEntry, str]]] = {}
    for child, match in uploads:
        before = before_reupload(match["file"])
        is_archive = archive_suffix(before) and before in names
        is_known = problems.of_file(before) or is_bare(before) or is_archive
        is_copy = is_known and not problems.of_file(match["file"])
        called = before if is_copy else match["file"]
        versions.setdefault(called, []).append((child, match["file"]))
    return versions


def _reuploads(called: str, found: Versions) -> str:
    """Return a sentence about which of several uploads counts; empty when there was only one."""
    names = [name for _, name in found]
    if len(names) > 1:
        older = " and ".join(quoted(name) for name in names[:-1])
        return (
            f"{quoted(names[-1])} was read, the newest upload of {quoted(called)}, but not {older}."
        )
    return (
        f"{quoted(names[0])} was read as {quoted(called)}, uploaded again."
        if names[0] != called
        else ""
    )


def _older(versions: Iterable[Versions]) -> list[str]:
    return [name for found in versions for _, name in found[:-1]]


PLATFORM = Platform(
    _look,
    may_hold=lambda name, part: first_match(_NAMES, part.name) is not None,
)
