"""Where in an upload the work is: looked for in one order, and never guessed.

It is what holds problems' folders, here or in `problems`; the same one folder down; single files
whose names tell their problems; the only archive; such files or an archive one folder down. Folders
around all this that hold just one folder each are passed through.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from grader.course import SUBMISSION_FILE
from grader.intake.archives.kinds import archive_suffix
from grader.intake.did_you_mean import nearest_folder
from grader.intake.limits import MAX_DEPTH
from grader.intake.problem_names import Problems
from grader.intake.sentences import CANDIDATES_SHOWN, listed, meant, misspelt
from grader.intake.survey import ALL_PROBLEMS, Role, Survey, survey
from grader.intake.tree import BadArchive, Refused, TreeEntry, gathered
from grader.intake.wanted import wanted
from grader.text import quoted

_KEEP_ONE = "which one counts can't be known, so keep one"


@dataclass(frozen=True)
class Loose:
    """A file with code that stands beside problems' folders.

    Attributes:
        path: where, from the folder on that holds the work.
        file: the file.
        problem: the problem that its name tells; empty if it tells none.
    """

    path: str
    file: TreeEntry
    problem: str


@dataclass
class Place:
    """Where in a submission the work is.

    Attributes:
        work: what holds the problems' folders.
        notes: what to say about it.
        unused: the names of files beside it that were not used.
        loose: files beside it, of which one may be used where a folder holds just the stub.
    """

    work: Survey
    notes: list[str] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)
    loose: list[Loose] = field(default_factory=list)

    def beside(self, files: Sequence[TreeEntry], problems: Problems) -> Place:
        """Return this place, having said of other files that they were not used."""
        names = [file.own_name for file in files]
        if names:
            shown = listed(names, CANDIDATES_SHOWN)
            self.notes.append(f"Not used: {shown}.{meant(names, problems)}")
        self.unused += names
        return self


class Unclear(Refused):
    """Files were handed in whose problems can't be known."""

    def __init__(self, text: str, files: Iterable[TreeEntry]) -> None:
        super().__init__(text)
        self.files = tuple(files)


def find_work(folder: TreeEntry, problems: Problems) -> Place:
    """Return what holds the problems' folders of a submission, and what to say about that.

    Raises:
        Refused: the folder can't be read, or more than one place could be meant.
    """
    if folder.leads_out:
        raise BadArchive(folder.leads_out)
    here, way = _down_the_only_way(survey(folder, problems.known), problems)
    place = (
        _in_problems_folders(here, problems)
        or _beside_misspelt(here, problems)
        or _in_files(here, problems)
        or _one_folder_down(here, problems)
    )
    if way and not _is_packed_folder(folder, way) and place.work.with_problems(problems.sought):
        place.notes.insert(0, _is_in_folder("/".join(way)))
    return place


def _down_the_only_way(here: Survey, problems: Problems) -> tuple[Survey, list[str]]:
    """Return what a folder is around, if all that it holds is a folder, and so on.

    The way there comes after it. A folder that is called after a problem, or nearly so, is not
    passed.
    """
    way: list[str] = []
    for _ in range(MAX_DEPTH):
        inside = [s for s in here.seen if s.role is not Role.MINOR]
        if len(inside) != 1 or inside[0].role is not Role.FOLDER:
            break
        inner = inside[0].entry
        is_others = problems.inside(inner.name).bare != problems.bare
        if is_others or nearest_folder(inner.name, problems.known):
            break
        way.append(inner.name)
        here = survey(inner, problems.known)
    return here, way


def _is_packed_folder(folder: TreeEntry, way: Sequence[str]) -> bool:
    """Tell whether it is what one gets who packs a folder, of which there is nothing to say."""
    return len(way) == 1 and folder.is_packed and bool(archive_suffix(folder.name))


def _is_in_folder(name: str) -> str:
    return f"The work is in the folder {quoted(name)}."


# Problems' folders


def _in_problems_folders(here: Survey, problems: Problems) -> Place | None:
    below = _below(here, problems)
    loose = _loose("", here, problems)
    if work := here.with_problems(problems.sought):
        second = [s.entry.name for s in here.seen if s.entry.name == ALL_PROBLEMS and work is here]
        named = [
            path
            for folder in here.of(Role.FOLDER)
            if folder.name not in below
            for path in _paths_of_named(folder, problems.inside(folder.name))
        ]
        return Place(work, not_read([*below, *second, *named]), loose=loose)
    if len(below) > 1:
        raise Refused(f"has work in {listed(below)}; {_KEEP_ONE}")
    for name, (folder, work) in below.items():
        notes = [_is_in_folder(name)]
        return Place(
            work, notes, loose=[*loose, *_loose(f"{name}/", folder, problems.inside(name))]
        )
    return None


def _below(here: Survey, problems: Problems) -> dict[str, tuple[Survey, Survey]]:
    """Return folders one down by their names, each with what holds problems' folders in it."""
    found: dict[str, tuple[Survey, Survey]] = {}
    for folder in here.of(Role.FOLDER):
        with suppress(Refused):
            there = survey(folder, problems.known)
            if work := there.with_problems(problems.sought):
                found[folder.name] = there, work
    return found


def _loose(place: str, here: Survey, problems: Problems) -> list[Loose]:
    """Return the files with code in a folder that holds problems' folders, or their `problems`."""
    told = dict(here.single_files(problems.bare))
    files = [Loose(f"{place}{f.own_name}", f, told.get(f, "")) for f in here.scripts]
    for below in here.of(Role.ALL_PROBLEMS):
        with suppress(Refused):
            inner = survey(below, problems.known)
            files += _loose(f"{place}{below.name}/", inner, problems)
    return files


def not_read(names: Sequence[str]) -> list[str]:
    """Return a sentence about work that was passed over, if there is any."""
    return [f"What is in {listed(names)} was not read."] if names else []


# A misspelt folder


def _beside_misspelt(here: Survey, problems: Problems) -> Place | None:
    """Return where the folders should stand, if one is nearly called so: that is asked back."""
    if not _is_asked_back(here, problems):
        return None
    below = here.of(Role.ALL_PROBLEMS)
    work = survey(below[0], problems.known) if below else here
    return Place(work).beside(here.files, problems)


def _is_asked_back(here: Survey, problems: Problems) -> bool:
    """Tell whether a problem's name is misspelt, so that what is there has to be asked back.

    If only one problem was handed in, that is no question: it can't have been another's.
    """
    return not problems.takes_bare and bool(misspelt(here, problems))


# Single files and archives


def _in_files(here: Survey, problems: Problems) -> Place | None:
    """Return the work if it is in single files or an archive; None when there is neither.

    Raises:
        Refused: there is something, but which problem it is for can't be known.
    """
    archives = here.of(Role.ARCHIVE)
    named = _by_problem(here, problems)
    if len(archives) + bool(named) > 1:
        work = [*archives, *(file for found in named.values() for file in found)]
        names = listed((file.own_name for file in work), CANDIDATES_SHOWN)
        raise Unclear(f"has {'work in' if named else 'the archives'} {names}; {_KEEP_ONE}", work)
    if named:
        return _in_named_files(here, named, problems)
    if archives:
        others = [file for file in here.files if file is not archives[0]]
        return _in_archive(archives[0], problems).beside(others, problems)
    if scripts := [file for file in here.scripts if file.name.lower().endswith(".py")]:
        raise Unclear(_problem_unknown([file.own_name for file in scripts], problems), scripts)
    return None


def _by_problem(here: Survey, problems: Problems) -> dict[str, list[TreeEntry]]:
    """Return by problem the files whose names tell it; there may be several for one problem."""
    named: dict[str, list[TreeEntry]] = {}
    for file, problem in here.single_files(problems.bare):
        named.setdefault(problem, []).append(file)
    return {id: named[id] for id in problems.sought if id in named}


def _in_named_files(here: Survey, named: dict[str, list[TreeEntry]], problems: Problems) -> Place:
    """Return single files as if each stood in its problem's folder."""
    beside = _folders_beside(here, problems)
    folders = [_as_folder(id, files, beside) for id, files in named.items()]
    single = {id: files[0] for id, files in named.items() if len(files) == 1}
    # That problem.py is the given problem's was said by the instructor, and what others mean too.
    told = {id for id, file in single.items() if file.called or file.name == SUBMISSION_FILE}
    read = [f"{quoted(file.name)} as {id}" for id, file in single.items() if id not in told]
    notes = [f"Read by their names: {', '.join(read)}."] if read else []
    unclear = [file.own_name for files in named.values() if len(files) > 1 for file in files]
    used = {*beside, *(file for files in named.values() for file in files)}
    others = [file for file in here.files if file not in used]
    work = survey(gathered(here.folder.name, folders), problems.known)
    return Place(work, notes, unclear).beside(others, problems)


def _as_folder(id: str, files: Sequence[TreeEntry], beside: Sequence[TreeEntry]) -> TreeEntry:
    if len(files) < 2:
        return gathered(id, [*(file.renamed(SUBMISSION_FILE) for file in files), *beside])
    names = listed((file.own_name for file in files), CANDIDATES_SHOWN)
    return gathered(id, (), fault=f"could be {names}; {_KEEP_ONE}")


def _folders_beside(here: Survey, problems: Problems) -> list[TreeEntry]:
    """Return the folders beside a single file, if it counts as if in a problem's folder.

    A copy in one of them is then told, as it is there.
    """
    beside = here.folders if problems.takes_bare else []
    return [entry for entry in beside if entry.name != SUBMISSION_FILE]


def _in_archive(archive: TreeEntry, problems: Problems) -> Place:
    inside = problems.inside(archive.name)
    try:
        place = find_work(archive.opened(wanted(inside)), inside)
    except Unclear as unclear:
        reason = f"has the archive {quoted(archive.name)}, which {unclear}"
        raise Unclear(reason, unclear.files) from None
    except Refused as refused:
        raise BadArchive(f"has the archive {quoted(archive.name)}, which {refused}") from None
    place.notes.insert(0, f"The work is in the archive {quoted(archive.name)}.")
    return place


def _problem_unknown(names: Sequence[str], problems: Problems) -> str:
    stand, have = ("stands", "has no name") if len(names) == 1 else ("stand", "have no names")
    first = problems.sought[0]
    called = SUBMISSION_FILE if problems.takes_bare else f"{first}.py"
    which = f"which {stand} in no folder such as {first} and {have} such as {called}"
    question = meant(names, problems).rstrip(".")
    listed_names = listed(names, CANDIDATES_SHOWN)
    return f"has {listed_names}, {which}{'.' if question else ''}{question}"


# The same one folder down


def _one_folder_down(here: Survey, problems: Problems) -> Place:
    """Return the work in the folder where it could be, or that folder, to say what is there."""
    inner = _likely_folder(here, problems)
    if inner is None:
        return Place(here).beside(here.files, problems)
    there = survey(inner, problems.known)
    place = None
    if not _is_asked_back(there, problems):
        place = _in_files(there, problems.inside(inner.name))
    if place:
        place.notes.insert(0, _is_in_folder(inner.name))
    return (place or Place(there)).beside(here.files, problems)


def _likely_folder(here: Survey, problems: Problems) -> TreeEntry | None:
    """Return `problems`, or the only folder that is not called after another problem.

    Of several that is the one with files whose names tell their problems.

    Raises:
        Refused: several have such files.
    """
    below = here.of(Role.ALL_PROBLEMS)
    folders = [f for f in here.folders if problems.inside(f.name).bare == problems.bare]
    if len(folders) > 1 and not below:
        named = {folder: _paths_of_named(folder, problems) for folder in folders}
        folders = [folder for folder in folders if named[folder]]
        if len(folders) > 1:
            paths = [path for found in named.values() for path in found]
            raise Refused(f"has work in {listed(paths, CANDIDATES_SHOWN)}; {_KEEP_ONE}")
    return next(iter(below), folders[0] if len(folders) == 1 else None)


def _paths_of_named(folder: TreeEntry, problems: Problems) -> list[str]:
    with suppress(Refused):
        named = _by_problem(survey(folder, problems.known), problems)
        return [f"{folder.name}/{file.own_name}" for files in named.values() for file in files]
    return []
