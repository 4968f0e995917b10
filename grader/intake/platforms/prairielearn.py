"""PrairieLearn: `<uid>_<instance>_<question>_<variant>_<number>_<submission>_problem.py`.

So are the files called in `..._best_files.zip`, `..._final_files.zip` and `..._all_files.zip`, all
in one folder. Of several submissions of one file to one question the newest counts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

from grader.intake.layout import Layout, Work, handed_in
from grader.intake.platforms.download import Download, Platform, Upload, file_in
from grader.intake.problem_names import Problems, is_bare, problem_from_name
from grader.intake.tree import Kind, TreeEntry

_NAME = re.compile(
    r"(?P<uid>[^@]+@[^_]+|[^_@]+)_(?P<instance>\d+)_(?P<question>.+?)_(?P<variant>\d+)_(?P<number>\d+)"
    r"_(?P<id>\d+)_(?P<file>.+)",
    re.DOTALL,
)


def _look(download: Download, problems: Problems) -> Layout | None:
    found = download.fitting(_match)
    ids = {match["id"] for _, match in found}
    whose = {(match["id"], match["uid"]) for _, match in found}
    if not found or len(ids) < len(whose):
        return None
    work = partial(_work, problems=problems)
    return download.layout("PrairieLearn files", found, lambda match: match["uid"].lower(), work)


def _match(child: TreeEntry) -> re.Match[str] | None:
    return None if child.kind is Kind.FOLDER else _NAME.fullmatch(child.name)


def _work(uploads: Sequence[Upload], problems: Problems) -> Work:
    newest: dict[tuple[str, str], TreeEntry] = {}
    older = []
    for child, match in sorted(uploads, key=lambda upload: int(upload[1]["id"])):
        key = match["question"], match["file"]
        older += [match["file"]] if key in newest else []
        newest[key] = child.renamed(_called(match, problems))
    uid = uploads[0][1]["uid"]
    return Work(
        f"prairielearn:{uid.lower()}",
        uid,
        handed_in(uid, list(newest.values())),
        members=(uid,),
        notes=(f"The newest of several uploads was read ({len(older)} older).",) if older else (),
        unused=tuple(older),
        parts=tuple(child.name for child, _ in uploads),
    )


def _called(match: re.Match[str], problems: Problems) -> str:
    """Return what a file is called; a `problem.py` is the question's, if that tells a problem."""
    told = problem_from_name(f"{match['question'].rpartition('/')[2]}.py", problems.known)
    return f"{told}.py" if told and is_bare(match["file"]) else match["file"]


PLATFORM = Platform(
    _look,
    uploaded_as=lambda name: file_in(_NAME.fullmatch(name)),
    may_hold=lambda name, part: _match(part) is not None,
)
