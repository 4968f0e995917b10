"""The learning platforms whose downloads are recognised, in the order in which they are tried."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from grader.intake.layout import Layout
from grader.intake.platforms import canvas, classroom_50, gradescope, moodle
from grader.intake.platforms.download import Download
from grader.intake.problem_names import Problems
from grader.intake.tree import Kind, Refused, TreeEntry

PLATFORMS = (
    gradescope.PLATFORM,
    moodle.PLATFORM,
    canvas.PLATFORM,
    classroom_50.PLATFORM,
)

LISTS = {name: most for platform in PLATFORMS for name, most in platform.lists.items()}
"""By the names of lists of students, the most bytes that are read of one."""


def recognise(found: TreeEntry, problems: Problems) -> Layout | None:
    """Return what a folder holds if it, or the only folder in it, is what a platform packs.

    Args:
        found: the folder, or an archive opened.
        problems: those of the course.
    """
    for download in _places(found):
        for platform in PLATFORMS:
            if layout := platform.look(download, problems):
                return layout
    return None


def recognise_part(
    part: TreeEntry, around: TreeEntry, above: TreeEntry, problems: Problems
) -> Layout | None:
    """Return what one student handed in if the folder around it is a platform's download.

    Args:
        part: the student's folder or archive.
        around: the folder that it stands in. Nothing else in it is looked at unless the name of
            the part says that it may be of such a download.
        above: the folder that this stands in.
        problems: those of the course.
    """
    possible = [platform for platform in PLATFORMS if platform.may_hold(around.name, part)]
    for platform in possible:
        download = Download(around.name, around.children(), above.children())
        if layout := platform.look(download, problems):
            own = [work for work in layout.works if part.name in (*work.parts, work.folder.name)]
            return Layout("", own) if len(own) == 1 else None
    return None


def _places(found: TreeEntry) -> Iterator[Download]:
    children = found.children()
    yield Download(found.name, children)
    inside = [child for child in children if not child.is_plain_file]
    if len(inside) == 1 and inside[0].kind is Kind.FOLDER:
        with suppress(Refused):  # one student's folder may be what can't be read
            yield Download(inside[0].name, inside[0].children(), children)
