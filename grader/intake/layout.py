"""List the unread submissions at a path: of a download, a class, or one student."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path, PurePath

from grader.course import SUBMISSION_FILE
from grader.errors import SubmissionError
from grader.intake.disk import opened_at
from grader.intake.handed_in import Layout
from grader.intake.locate import wanted
from grader.intake.platforms import plain_submission, recognise, unmatched_file
from grader.intake.problem_names import ALL_PROBLEMS, Problems, is_bare, is_python
from grader.intake.tree import (
    ARCHIVE_SUFFIXES,
    IS_TWICE,
    Kind,
    Refused,
    TreeEntry,
    archive_suffix,
    is_minor,
    without_suffix,
)
from grader.text import quoted


@contextmanager
def opened_path(path: Path, problems: Problems) -> Iterator[Layout]:
    """Yield the submissions at a path. An archive is open inside the context.

    Args:
        path: the path that the instructor gave.
        problems: the problems of the course.

    Raises:
        SubmissionError: the path is neither a folder nor an archive, or is empty.
    """
    try:
        path.stat()
    except OSError as error:
        is_missing = isinstance(error, FileNotFoundError | NotADirectoryError)
        fault = "does not exist" if is_missing else f"can't be read ({error.strerror})"
        raise _error(path, fault, problems) from None
    if not path.is_dir() and not archive_suffix(path.name):
        raise _error(path, "is not a folder or an archive", problems)
    with opened_at(path.resolve(), wanted) as folder:
        if folder.kind is not Kind.FOLDER:
            yield Layout("", [plain_submission(folder)])
            return
        try:
            layout = _layout(path, folder, problems)
        except Refused as refused:
            raise _error(path, str(refused), problems) from None
        if not layout.submissions:
            is_bare_file = _has_work(folder, problems, bare=True)
            hint = f". It has a {SUBMISSION_FILE}. {problems.hint}" if is_bare_file else ""
            raise _error(path, "holds no submissions", problems, hint)
        yield layout


def _error(path: Path, fault: str, problems: Problems, hint: str = "") -> SubmissionError:
    return SubmissionError(
        f"{path} {fault}; give a submission, which is a folder or an archive "
        f"({', '.join(ARCHIVE_SUFFIXES)}) with {problems.known[0]}/{SUBMISSION_FILE} and so on in "
        f"it, or a folder of submissions{hint}"
    )


def _layout(path: Path, folder: TreeEntry, problems: Problems) -> Layout:
    # A file of unknown problem does not hide a download, even if the problem is given.
    if not _has_work(folder, problems, bare=False) and (layout := recognise(folder, problems)):
        return layout
    _require_folders(path, folder, problems)
    around, entries = _submissions_in(folder, problems)
    if entries == [folder]:
        submission = plain_submission(folder, is_archive=folder.is_packed)
        return Layout("", [submission], notes=_maybe_a_class(folder, problems, submission.name))
    code = [
        f"{unmatched_file(file.name)} If it is a student's, put it into a folder with the "
        "student's name."
        for file in around.children()
        if file.is_plain_file and not is_minor(file.name) and _is_code(file.name)
    ]
    return Layout("", [*map(plain_submission, entries)], unmatched=code)


def _is_code(name: str) -> bool:
    """Return whether a file looks like code, such as `bob.py.txt` or a notebook."""
    return bool({".py", ".ipynb"} & {*PurePath(name.lower()).suffixes})


def _require_folders(path: Path, folder: TreeEntry, problems: Problems) -> None:
    """Refuse the files of several students that are in one folder.

    Raises:
        SubmissionError: there are only such files.
    """
    children = folder.children()
    code = _python_files(children)
    is_flat = len(code) > 1 and all(each.is_plain_file for each in children)
    if is_flat and not _has_work(folder, problems, bare=True):
        raise SubmissionError(
            f"{path} holds {len(code)} Python files and no folders. If they are several "
            "students', put what each student handed in into a folder of the student's name, and "
            "give the folder of these; if not, keep the one that is to be graded."
        )


def _maybe_a_class(folder: TreeEntry, problems: Problems, name: str) -> list[str]:
    """Return a hint if all of an archive is in one folder, which may be its student's name."""
    inside = [each for each in folder.children() if not is_minor(each.name)]
    if not folder.is_packed or len(inside) != 1 or inside[0].is_plain_file:
        return []
    student = inside[0].name
    if student in {ALL_PROBLEMS, *problems.known} or without_suffix(student) == name:
        return []
    return [
        f"{quoted(folder.name)} counts as one student's, who is called {quoted(name)} here. "
        f"If {quoted(student)} or a folder in that has the student's name, unpack the archive and "
        "give that."
    ]


# A class or one submission


def _submissions_in(folder: TreeEntry, problems: Problems) -> tuple[TreeEntry, list[TreeEntry]]:
    """Return the submissions of a folder, after the folder that contains them.

    If the folder itself is one submission, only that is returned. A class may be in a single
    subfolder.
    """
    around, inside = folder, _possible(folder)
    if _has_work(folder, problems, bare=bool(problems.only)):
        return folder, inside if _is_class(inside, problems) else [folder]
    if len(inside) == 1 and inside[0].kind is Kind.FOLDER:
        with suppress(Refused):  # the unreadable folder may be one student's
            below = _possible(inside[0])
            if _is_class(below, problems):
                around, inside = inside[0], below
    valid = [entry for entry in inside if entry.fault == IS_TWICE or entry.kind in _SUBMITTED]
    return (folder, [folder]) if folder.is_packed and len(valid) < 2 else (around, inside)


_SUBMITTED = (Kind.FOLDER, Kind.FILE, Kind.LINK)


def _has_work(folder: TreeEntry, problems: Problems, *, bare: bool) -> bool:
    """Return whether a folder has problems' folders, or files named after problems.

    With `bare`, a `problem.py` outside of a problem's folder counts, and any other Python file that
    is the only entry.
    """
    children = folder.children()
    code = _python_files(children)
    if any(problems.of_file(each.name) or (bare and is_bare(each.name)) for each in code):
        return True
    if bare and len(code) == 1 and all(each.is_plain_file for each in children):
        return True
    if _has_problems(children, problems):
        return True
    with suppress(Refused):  # in a class it is the folder of a student with this name
        below = (each.children() for each in children if each.name == ALL_PROBLEMS)
        return any(_has_problems(inside, problems) for inside in below)
    return False


def _python_files(children: Sequence[TreeEntry]) -> list[TreeEntry]:
    """Return the Python files among entries, without those of tools and of the course."""
    plain = (each for each in children if each.is_plain_file and is_python(each.name))
    return [each for each in plain if not is_minor(each.name)]


def _has_problems(children: Sequence[TreeEntry], problems: Problems) -> bool:
    return any(each.name in problems.known and each.kind is not Kind.FILE for each in children)


def _possible(folder: TreeEntry) -> list[TreeEntry]:
    """Return folders and archives, as each of them may be a submission and needs a row."""
    return [each for each in folder.children() if not each.is_plain_file]


def _is_class(entries: Sequence[TreeEntry], problems: Problems) -> bool:
    """Return whether at least two entries are submissions.

    An entry may be one if it occurs twice, as a folder and as a link.
    """
    return sum(e.fault == IS_TWICE or _is_submission(e, problems) for e in entries) > 1


def _is_submission(entry: TreeEntry, problems: Problems) -> bool:
    """Return whether an entry of a class looks like a submission."""
    if entry.kind is not Kind.FOLDER or entry.name in {ALL_PROBLEMS, *problems.known}:
        return entry.is_archive
    # A problem.py does not make a folder a submission if its name is nearly that of a problem.
    bare = bool(problems.only) and not problems.nearly_folder(entry.name)
    with suppress(Refused):
        return _has_work(entry, problems, bare=bare)
    return False
