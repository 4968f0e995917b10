"""GitHub Classroom: `<slug>-submissions/<slug>-<user name>/`, each a clone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from grader.intake.archives.kinds import without_suffix
from grader.intake.did_you_mean import did_you_mean
from grader.intake.layout import Layout, Work
from grader.intake.platforms.download import Download, Platform
from grader.intake.platforms.github_roster import MAX_BYTES, ROSTER, GithubLine, roster
from grader.intake.problem_names import Problems
from grader.intake.tree import Kind, Refused, TreeEntry, gathered
from grader.text import quoted


def _look(download: Download, problems: Problems) -> Layout | None:
    slug, found, _ = without_suffix(download.name).rpartition("-submissions")
    prefix = f"{slug}-"
    clones: dict[str, TreeEntry] = {}
    others = []
    for child in download.children:
        if child.kind is Kind.FOLDER and child.name.startswith(prefix) and child.name != prefix:
            clones[child.name.removeprefix(prefix)] = child
        elif child.name != ROSTER:
            others.append(child)
    if not found or not clones:
        return None
    layout = Layout("GitHub Classroom clones", [])
    lines: list[GithubLine] | None = None
    try:
        lines = roster([*download.children, *download.beside])
    except Refused as refused:
        layout.notes = [f"{refused.sentence(ROSTER)} Submissions go by their user names."]
    layout.works = _works(clones, lines, prefix)
    return layout.with_others(others)


def _works(clones: dict[str, TreeEntry], lines: list[GithubLine] | None, prefix: str) -> list[Work]:
    """Return a work for each clone, and for each line of the roster that has none.

    Args:
        clones: by user name.
        lines: the roster; None when there is none.
        prefix: what stands before the user name in a clone's.
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
    works = [_work_of(clone, user, own[user], unused) for user, clone in clones.items()]
    for found in _by(unused, lambda line: line.repository or line.member).values():
        name = found[0].repository or found[0].member
        note = f"{quoted(name)} is in {ROSTER}, but there is no such folder."
        user = found[0].repository.removeprefix(prefix) or found[0].user
        works.append(_work(gathered(name, ()), user, found, note))
    return works


def _work_of(
    clone: TreeEntry, user: str, own: Sequence[GithubLine], unused: Sequence[GithubLine]
) -> Work:
    note = f"{quoted(clone.name)} has no roster identifier in {ROSTER}."
    if not own:
        near = did_you_mean(user, (line.user for line in unused))
        note = f"{quoted(clone.name)} is not in {ROSTER}.{near}"
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
    _look, lists={ROSTER: MAX_BYTES}, may_hold=lambda name, part: part.kind is Kind.FOLDER
)
