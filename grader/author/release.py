"""Write the students' copy of the course, without hidden tests and other secrets.

The copy contains these files:
- the files in `students/`, such as the README and the list of required packages;
- the files of the grader that the students' commands, pytest and the problems import;
- the files of each problem that `_problem_files` lists.

If the copy contains only some parts of the course, its documents do not mention the other parts.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from grader.author.documents import beginning_with, without_part, without_tables
from grader.author.notebooks import FRONT_PAGE, notebooks_of, with_address
from grader.code.course_modules import modules_used
from grader.course import (
    COPY,
    COPY_DATA,
    HIDDEN_MARKER,
    MANIFEST,
    NOTEBOOK,
    OWN_PICTURE,
    STUB_LINE,
    SUBMISSION_FILE,
    Course,
    Problem,
)
from grader.diagnose.edits import edits_file
from grader.errors import CourseError, UsageError
from grader.files import back_up, write_whole, writing
from grader.grade.packing import files_used
from grader.text import counted

_COURSE_FOLDERS = {
    "benchmarks", "docs", "examples", "grader", "problems", "solutions", "students", "tests"
}  # fmt: skip
"""A copy must not be in one of these folders, because its files would look like course files."""

_PACKAGE = Path(__file__).resolve().parents[1]
"""The folder of the grader's package."""

_NEEDED = (FRONT_PAGE, "pyproject.toml")
"""The files that `students/` must contain. All other files in it are also copied."""

_NEEDS_SOLUTIONS = "grader.student.solved"
"""The subpackage of the grader that only a copy with solutions contains."""

_PACKS = (".compare.bin", ".practice.bin")
"""Earlier versions of the grader released solutions in files with these names."""

_HISTORY = (
    "The copy no longer has these solutions, but its git history keeps them. To hand out a copy "
    "without them, release it into a new folder with a new repository."
)

_TRIVIAL = 24
"""Lines of the solution with at most this many characters, such as `return weights`, are no secret.
"""


@dataclass
class Release:
    """The outcome of a release.

    Attributes:
        folder: the folder of the copy.
        new: whether the release created the copy.
        parts: the ids of the parts of the course that the copy contains.
        written: the paths of the new or changed files.
        removed: the paths of files that were removed, because the release does not contain them.
        kept: the paths of files that were not updated or removed, because they were changed in the
            copy.
        beside: the paths of backups. A file that was changed in the copy is backed up before it is
            replaced.
        unlisted: the ids of the problems that the front page of the copy does not mention.
    """

    folder: Path
    new: bool
    parts: tuple[str, ...]
    written: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    beside: list[str] = field(default_factory=list)
    unlisted: list[str] = field(default_factory=list)

    def summary(self) -> str:
        """Return a summary of the release in a few lines for the terminal."""
        lines = [f"students/{FRONT_PAGE} does not mention {id}." for id in self.unlisted]
        if self.new:
            has = " and ".join(f"part {part}" for part in self.parts)
            number = counted(len(self.written), "file")
            return "\n".join([*lines, f"The students' copy is in {self.folder}: {has}, {number}."])
        lines += [f"written: {path}" for path in self.written]
        lines += [f"backup of a file that was changed in the copy: {path}" for path in self.beside]
        lines += [f"removed: {path}" for path in self.removed]
        lines += [f"not updated, because it was changed in the copy: {path}" for path in self.kept]
        if any(_is_solution(path) for path in self.removed):
            lines.append(_HISTORY)
        done = "is up to date." if self.written or self.removed else "was up to date already."
        return "\n".join([*lines, f"The students' copy in {self.folder} {done}"])


def release(
    course: Course,
    folder: Path,
    parts: Sequence[str] = (),
    *,
    solutions: bool | None = None,
    notebooks: bool | None = None,
    url: str | None = None,
) -> Release:
    """Write the students' copy into a new folder, or update an earlier copy.

    A file that was changed in the copy is not lost. If the course contains a new version of the
    file, the changed file is backed up before it is replaced. A changed `problem.py` is never
    replaced.

    Args:
        course: the instructor's course, with hidden tests.
        folder: a new folder, a folder that is empty except for `.git`, or an earlier copy.
        parts: the ids of the parts of the course for the copy. If empty, an earlier copy keeps its
            parts, and a new copy gets all parts.
        solutions: whether the copy contains `solutions/`. If None, an earlier copy keeps its
            setting, and a new copy contains none.
        notebooks: whether the copy contains a notebook for each problem. If None, an earlier copy
            keeps its setting, and a new copy contains none.
        url: the future address of the copy, for its front page. If None, an earlier copy keeps its
            address, and a new copy contains none.

    Raises:
        UsageError: the folder contains other files, or is inside the course.
        CourseError: a file of the course is missing.
        CannotWrite: the copy can't be written.
    """
    _require_outside(folder, course.root)
    earlier = _released_before(folder)
    before = earlier.files if earlier else {}
    every = tuple(part.id for part in course.manifest.parts)
    parts = tuple(parts) or (earlier.parts if earlier else ()) or every
    options: dict[str, Any] = {
        "solutions": solutions,
        "notebooks": notebooks,
        "url": url,
    }
    extras = earlier.extras if earlier else Extras()
    extras = replace(
        extras, **{name: value for name, value in options.items() if value is not None}
    )
    files = contents(course, parts, solutions=extras.solutions)
    made = notebooks_of(files, extras.url) if extras.notebooks else {}
    files |= made
    page = files[FRONT_PAGE].decode()
    files[FRONT_PAGE] = with_address(page, extras.url, notebook=next(iter(made), "")).encode()
    problems = [Path(path).parent.name for path in files if Path(path).name == SUBMISSION_FILE]
    unlisted = [id for id in problems if id not in page]
    done = Release(folder, new=earlier is None, parts=parts, unlisted=unlisted)
    if done.new:  # after an interruption, another run can complete the copy
        _write_manifest(folder, _Released({}, parts, extras))
    for path, content in files.items():
        _update_file(folder, path, content, before.get(path), done)
    for path in sorted(before.keys() - files.keys()):
        present = _hash_of(folder / path)
        if present == before[path] or (present and Path(path).name in _PACKS):
            with writing(folder / path):
                (folder / path).unlink()
            _remove_empty(folder, path)
            done.removed.append(path)
        elif present:
            done.kept.append(path)
    hashes = {path: _sha256(content) for path, content in files.items()}
    _write_manifest(folder, _Released(hashes, parts, extras))
    return done


def _is_solution(path: str) -> bool:
    return Path(path).name in _PACKS or Path(path).parts[0] == "solutions"


def _remove_empty(folder: Path, path: str) -> None:
    """Remove each parent folder of a removed file, if the folder is now empty."""
    for place in Path(path).parents[:-1]:
        with suppress(OSError):  # the folder isn't empty
            (folder / place).rmdir()


@dataclass(frozen=True)
class Extras:
    """The options of a copy. `release` describes them."""

    solutions: bool = False
    notebooks: bool = False
    url: str = ""


@dataclass(frozen=True)
class _Released:
    """The content of a copy's `.release.json`: the hash of each file, the parts and the options."""

    files: dict[str, str]
    parts: tuple[str, ...]
    extras: Extras


def _update_file(
    folder: Path, path: str, content: bytes, before: str | None, done: Release
) -> None:
    """Write one file of the copy, if the course contains a new version of it.

    A file that was changed in the copy is backed up first. A changed `problem.py` is never
    replaced.

    Args:
        folder: the folder of the copy.
        path: the path of the file in the copy.
        content: the new content of the file.
        before: the hash of the file in the earlier release, or None.
        done: the outcome of the release. The path of the file is added to it.
    """
    present, ours = _hash_of(folder / path), _sha256(content)
    if present == ours:
        return
    if present not in (None, before):  # it was changed in the copy
        if before == ours or Path(path).name == SUBMISSION_FILE:
            done.kept.append(path)
            return
        done.beside.append(back_up(folder / path).relative_to(folder).as_posix())
    write_whole(folder / path, content)
    done.written.append(path)


def _require_outside(folder: Path, root: Path) -> None:
    """Raise a UsageError if the folder is inside the course."""
    place, root = folder.resolve(), root.resolve()
    if place.is_relative_to(root) and {*place.relative_to(root).parts[:1]} <= _COURSE_FOLDERS:
        raise UsageError(
            f"{folder} is inside the course. Name a folder outside of the course, such as "
            f"../for-students."
        )


def _released_before(folder: Path) -> _Released | None:
    """Return the manifest of the earlier release in a folder, or None if the folder is empty.

    Raises:
        UsageError: the folder contains other files, or its manifest can't be read.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file. Name a folder for the students' copy.")
    manifest = folder / COPY
    if manifest.is_file():
        return _read_manifest(manifest)
    entries = sorted(path.name for path in folder.glob("*") if path.name != ".git")
    if entries:
        raise UsageError(
            f"{folder} contains {entries[0]}, but no {COPY}, so it is not a students' copy. Name a "
            f"new folder, or a copy to update."
        )
    return None


def _read_manifest(path: Path) -> _Released:
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
        files = {str(name): str(digest) for name, digest in said["files"].items()}
        extras = _options_from_files(files)
        if "extras" in said:
            names = {field.name for field in fields(Extras)}
            extras = Extras(**{n: value for n, value in said["extras"].items() if n in names})
        return _Released(files, tuple(map(str, said.get("parts", ()))), extras)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"{path} can't be read, so the copy can't be updated.") from error


def _options_from_files(files: Iterable[str]) -> Extras:
    """Derive the options of a copy from the names of its files.

    This is necessary if an earlier version of the grader wrote the manifest without options.
    """
    names = {Path(path).name for path in files}
    return Extras(notebooks=NOTEBOOK in names)


def _write_manifest(folder: Path, manifest: _Released) -> None:
    extras = asdict(manifest.extras)
    said = {"schema": 1, "parts": manifest.parts, "extras": extras, "files": manifest.files}
    write_whole(folder / COPY, json.dumps(said, indent=1) + "\n")


def _hash_of(path: Path) -> str | None:
    return _sha256(path.read_bytes()) if path.is_file() else None


def _sha256(content: bytes) -> str:
    """Return a SHA-256 hash of the content. Windows and Unix line endings give the same hash."""
    return hashlib.sha256(content.replace(b"\r\n", b"\n")).hexdigest()


# Contents


def contents(
    course: Course, parts: Sequence[str] = (), *, solutions: bool = False
) -> dict[str, bytes]:
    """Return the files of the students' copy: a dictionary from paths to contents.

    Args:
        course: the instructor's course.
        parts: the ids of the parts for the copy. If empty, the copy contains all parts.
        solutions: whether the copy contains `solutions/`.

    Raises:
        CourseError: a file of the course is missing.
    """
    manifest = course.manifest
    without = [part.id for part in manifest.parts if parts and part.id not in parts]
    problems = [problem for problem in course.problems() if problem.part.id not in without]
    for name in _NEEDED:
        if not (course.root / "students" / name).is_file():
            needed = f"a course needs {' and '.join(_NEEDED)} in students/ for its students' copy"
            raise CourseError(f"{course.root / 'students' / name} is missing; {needed}")
    files = {path.name: path for path in (course.root / "students").glob("*") if path.is_file()}
    pages = (path for path in (course.root / "students/docs").rglob("*") if path.is_file())
    files |= {path.relative_to(course.root / "students").as_posix(): path for path in pages}
    container = ".devcontainer/devcontainer.json"
    if (course.root / "students" / container).is_file():
        files[container] = course.root / "students" / container
    copied = {name: _read(path) for name, path in files.items()}
    of_problems = {
        name: content for problem in problems for name, content in _problem_files(problem)
    }
    if solutions:
        of_problems |= {
            path.relative_to(course.root).as_posix(): _read(path)
            for problem in problems
            for path in _solution_files(course, problem)
        }
    shared = _matching(course.root, manifest.students.shared)
    sources = [text for name, text in of_problems.items() if name.endswith(".py")]
    used = modules_used(sources, course.root / "problems")
    for path in shared:
        if path in used or path.suffix != ".py" or path.name == "__init__.py":
            copied[path.relative_to(course.root).as_posix()] = _read(path)
    begun = [*sources, *map(_read, used), _entry_points(course.root / "students/pyproject.toml")]
    copied |= _grader_files(begun, without="" if solutions else _NEEDS_SOLUTIONS)
    left_out = [problem.id for problem in course.problems() if problem not in problems]
    copied |= of_problems
    copied[MANIFEST] = without_tables(_text(course.root / MANIFEST), [*without, *left_out]).encode()
    for name in [name for name in copied if name.endswith(".md") and left_out]:
        text = without_part(copied[name].decode(), left_out, without)
        copied[name] = beginning_with(text, left_out[0], problems[0].id).encode()
    return copied


def _entry_points(project: Path) -> bytes:
    """Return import statements for the entry points of the students' `pyproject.toml`.

    These are the modules of the students' commands and of the pytest plugins.
    """
    said = tomllib.loads(_text(project))["project"]
    plugins = said["entry-points"]["pytest11"]
    modules = [name.partition(":")[0] for name in (*said["scripts"].values(), *plugins.values())]
    return "\n".join(f"import {module}" for module in modules).encode()


def _matching(folder: Path, patterns: Iterable[str]) -> list[Path]:
    """Return the files of a folder that match these patterns, except a student's pictures.

    A pattern without `*` is the path of one file, which is returned even if it does not exist.
    """
    matches = []
    for pattern in patterns:
        paths = folder.glob(pattern) if "*" in pattern else [folder / pattern]
        files = (path for path in paths if "*" not in pattern or path.is_file())
        matches += sorted(path for path in files if not path.name.startswith(OWN_PICTURE))
    return matches


def _grader_files(sources: Iterable[bytes], *, without: str) -> dict[str, bytes]:
    """Return the grader's files that these sources import: a dictionary from paths to contents.

    Args:
        sources: the code that imports the files.
        without: the name of a subpackage that is excluded, or "".
    """
    used = files_used(_PACKAGE, sources, without=without)
    return {path.relative_to(_PACKAGE.parent).as_posix(): _read(path) for path in used}


def _solution_files(course: Course, problem: Problem) -> list[Path]:
    """Return the files of a problem's solutions that may be released: all except the salt."""
    optional = (edits_file(course, problem), course.comparison(problem))
    return [*course.right_files(problem).values(), *filter(Path.is_file, optional)]


def _problem_files(problem: Problem) -> Iterator[tuple[str, bytes]]:
    """Yield (path in the copy, content) pairs of the files of a problem that the copy contains."""
    folder, data = f"problems/{problem.id}", f"{COPY_DATA}/{problem.id}"
    stub = _stub(problem)
    yield f"{folder}/{SUBMISSION_FILE}", stub
    yield f"{data}/{problem.kept_stub.name}", stub  # for `reset`
    yield f"{folder}/README.md", _read(problem.folder / "README.md")
    yield f"{folder}/{problem.test_file.name}", visible_half(problem).encode()
    for path in filter(Path.is_file, _matching(problem.folder, problem.manifest.students.problem)):
        place = data if path in (problem.probe_file, problem.fingerprints) else folder
        yield f"{place}/{path.relative_to(problem.folder).as_posix()}", _read(path)


def _stub(problem: Problem) -> bytes:
    """Return the content of a problem's stub.

    Raises:
        CourseError: the stub is missing, or contains no function for the student to write.
    """
    stub = _read(problem.original)
    if STUB_LINE.encode() not in stub:
        raise CourseError(
            f"{problem.original} contains no function to write, but it would be released as the "
            f"stub. Move your own code out of it first."
        )
    return stub


def leaks(problem: Problem, solution: Path) -> Iterator[str]:
    """Yield a sentence for each secret in a problem's released files.

    Secrets are the names of hidden tests, and the lines of the reference that the stub does not
    contain.

    Args:
        problem: the problem.
        solution: the path of the reference solution.
    """
    if STUB_LINE not in _text(problem.original):
        yield "the stub contains no function to write"
        return
    tests = _text(problem.test_file)
    hidden = set(re.findall(r"^def (test_\w+)", tests.removeprefix(visible_half(problem)), re.M))
    secret = code_lines(_text(solution)) - code_lines(_text(problem.original))
    patterns = problem.manifest.students.shared
    shared = {path.name: _read(path) for path in _matching(problem.folder.parents[1], patterns)}
    released = {Path(name).name: content for name, content in _problem_files(problem)}
    for name, content in (*shared.items(), *released.items()):
        text = content.decode(errors="replace")
        lines = {line.strip() for line in text.splitlines()}
        yield from (f"the released {name} names {test}" for test in hidden if test in text)
        if HIDDEN_MARKER in lines:
            yield f"the released {name} has the line {HIDDEN_MARKER}"
        for line in sorted(secret & lines):
            if len(line) > _TRIVIAL:
                yield f"the released {name} has a line of the solution: {line}"


def code_lines(source: str) -> set[str]:
    """Return the lines of code without imports, docstrings and blank lines."""
    left_out: set[int] = set()
    statements = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.stmt))
    for node in statements:
        if _is_docstring(node) or isinstance(node, ast.Import | ast.ImportFrom):
            left_out |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines = enumerate(source.splitlines(), 1)
    return {line.strip() for number, line in lines if number not in left_out} - {""}


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def visible_half(problem: Problem) -> str:
    """Return the content of a problem's test file above its hidden tests."""
    lines = _text(problem.test_file).splitlines(keepends=True)
    hidden = problem.first_hidden_line()
    visible = lines if hidden is None else lines[: hidden - 1]
    return "".join(visible).rstrip() + "\n"


def _text(path: Path) -> str:
    return _read(path).decode()


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise CourseError(f"{path} is missing; the students' copy needs it") from error
