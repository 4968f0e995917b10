"""The learning platforms whose downloads are recognised, in the order in which they are tried."""

from __future__ import annotations

from collections.abc import Iterator

from grader.intake.layout import Layout
from grader.intake.platforms import canvas, github, gradescope, moodle, nbgrader
from grader.intake.platforms.download import Download
from grader.intake.problem_names import Problems
from grader.intake.tree import Entry, Kind

PLATFORMS = (
    gradescope.PLATFORM,
    moodle.PLATFORM,
    canvas.PLATFORM,
    nbgrader.PLATFORM,
    github.PLATFORM,
)

LISTS = {name: most for platform in PLATFORMS for name, most in platform.lists.items()}
"""By the names of lists of students, the most bytes that are read of one."""


def recognise(found: Entry, problems: Problems) -> Layout | None:
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


def uploaded_as(name: str) -> list[str]:
    """Return what a file may have been called when it was uploaded, by the name it has now."""
    return [name, *(known for platform in PLATFORMS for known in platform.uploaded_as(name))]


def _places(found: Entry) -> Iterator[Download]:
    children = found.children()
    yield Download(found.name, children)
    inside = [child for child in children if not child.is_plain_file]
    if len(inside) == 1 and inside[0].kind is Kind.FOLDER:
        yield Download(inside[0].name, inside[0].children(), children)
