"""Google Classroom: a folder of Google Drive, which doesn't say whose file is whose."""

from __future__ import annotations

import re

from grader.intake.layout import Layout
from grader.intake.platforms.download import Download, Platform
from grader.intake.problem_names import Problems
from grader.intake.tree import Refused, TreeEntry

_DRIVE = re.compile(r".+-\d{8}T\d{6}Z(-\d+)*(\.zip)?")
_WHAT_TO_DO = (
    "seems to be a folder of Google Drive, as Google Classroom makes it. That doesn't say whose "
    "file is whose: put what each student handed in into a folder that is called after the student"
)


def _look(download: Download, problems: Problems) -> Layout | None:
    works = [child for child in download.children if _is_work(child)]
    alone = all(child.is_plain_file or child.is_archive for child in download.children)
    if _DRIVE.fullmatch(download.outer) and alone and len(works) > 1:
        raise Refused(_WHAT_TO_DO)
    return None


def _is_work(child: TreeEntry) -> bool:
    return child.is_archive or (child.is_plain_file and child.name.lower().endswith(".py"))


PLATFORM = Platform(_look, may_hold=lambda name, part: False)
