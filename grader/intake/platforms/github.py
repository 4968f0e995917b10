"""GitHub Classroom, and Classroom 50 after it: a folder of clones, `<slug>-<user name>/`.

The first calls the folder `<slug>-submissions`, the second `<slug>_submissions_<time>`. People are
the same in both, so that a class that moves keeps its rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from grader.intake.archives.kinds import without_suffix
from grader.intake.did_you_mean import did_you_mean
from grader.intake.layout import Layout, Work
from grader.intake.platforms.download import Download, Platform
from grader.intake.platforms.github_roster import MAX_BYTES, ROSTER, SCORES, GithubLine, roster
from grader.intake.problem_names import Problems
from grader.intake.tree import Kind, Refused, TreeEntry, gathered
from grader.text import quoted


class _Clones(NamedTuple):
    """What one of the two makes.

    Attributes:
        title: what it is.
        folder: what its folder is called, with the slug as the group.
        list: the name of its list of students.
        group: what it calls groups, by numbers that are another group's in the next assignment.
    """

    title: str
    folder: re.Pattern[str]
    list: str
    group: re.Pattern[str] | None = None


_KINDS = (
    _Clones("GitHub Classroom clones", re.compile(r"(.*)-submissions.*", re.DOTALL), ROSTER),
    _Clones(
        "Classroom 50 clones",
        re.compile(r"(.+)_submissions_\d{4}(?:_\d\d){2}_T(?:_\d\d){3}"),
        SCORES,
        re.compile(r"group-\d+"),
    ),
)


def _look(download: Download, problems: Problems) -> Layout | None:
    name = without_suffix(download.name)
    for kind in _KINDS:
        match = kind.folder.fullmatch(name)
        if match and (layout := _layout(download, kind, f"{match[1]}-")):
            return layout
    return None


def _layout(download: Download, kind: _Clones, prefix: str) -> Layout | None:
    clones: dict[str, TreeEntry] = {}
    others = []
    for child in download.children:
        if child.kind is Kind.FOLDER and child.name.startswith(prefix) and child.name != prefix:
            user = child.name.removeprefix(prefix)
            is_numbered = kind.group is not None and kind.group.fullmatch(user)
            clones[child.name if is_numbered else user] = child
        elif child.name != kind.list:
            others.append(child)
    if not clones:
        return None
    layout = Layout(kind.title, [])
    lines: list[GithubLine] | None = None
    try:
        lines = roster([*download.children, *download.beside], kind.list)
    except Refused as refused:
        layout.notes = [f"{refused.sentence(kind.list)} Submissions go by their user names."]
    layout.works = _works(clones, lines, prefix, kind.list)
    return layout.with_others(others)


def _works(
    clones: dict[str, TreeEntry], lines: list[GithubLine] | None, prefix: str, list_name: str
) -> list[Work]:
    """Return a work for each clone, and for each line of the roster that has none.

    Args:
        clones: by user name, or by what stands for it.
        lines: the roster; None when there is none.
        prefix: what stands before the user name in a clone's.
        list_name: what the roster is called.
    """
    if lines is None:
        return [_work(clone, user, (), "") for user, clone in clones.items()]
    by_repository = _by(lines, lambda line: line.repository)
    by_user = _by(lines, lambda line: line.user)
    own = {
        user: by_repository.get(clone.name.lower()) or by_user.get(user.lower(), [])
        for user, clone in clones.items()
    }
    used = {line for found in own.values() for line in found}
    unused = [line for line in lines if line not in used]
    works = [_work_of(clone, user, own[user], unused, list_name) for user, clone in clones.items()]
    for found in _by(unused, lambda line: line.repository or line.member).values():
        name = found[0].repository or found[0].member
        note = f"{quoted(name)} is in {list_name}, but there is no such folder."
        user = found[0].repository.removeprefix(prefix) or found[0].user
        works.append(_work(gathered(name, ()), user, found, note))
    return works


def _work_of(
    clone: TreeEntry,
    user: str,
    own: Sequence[GithubLine],
    unused: Sequence[GithubLine],
    list_name: str,
) -> Work:
    note = f"{quoted(clone.name)} has no roster identifier in {list_name}."
    if not own:
        near = did_you_mean(user, (line.user for line in unused))
        note = f"{quoted(clone.name)} is not in {list_name}.{near}"
    known = any(line.who for line in own)
    return _work(clone, user, own, "" if known else note)


def _by(
    lines: Iterable[GithubLine], name: Callable[[GithubLine], str]
) -> dict[str, list[GithubLine]]:
    """Return lines by a name in them; GitHub's names are the same in capitals."""
    found: dict[str, list[GithubLine]] = {}
    for line in lines:
        found.setdefault(name(line).lower(), []).append(line)
    return found


def _work(clone: TreeEntry, user: str, lines: Sequence[GithubLine], note: str) -> Work:
    members = tuple(line.member for line in lines if line.member) or (user,)
    notes = (note,) if note else ()
    identity = f"github:{user.lower()}"
    time = max((line.time for line in lines), default="")
    return Work(identity, " + ".join(members), clone, members, handed_in=time, notes=notes)


PLATFORM = Platform(
    _look,
    lists={ROSTER: MAX_BYTES, SCORES: MAX_BYTES},
    may_hold=lambda name, part: part.kind is Kind.FOLDER,
)
