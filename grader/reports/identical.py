"""Find students' files that differ only in blanks, comments and docstrings.

Similar files are not reported: correct solutions of these problems are often similar, so a
similarity score would accuse innocent students.
"""

from __future__ import annotations

import hashlib
import io
import re
import tokenize
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from grader.reports.display_names import Person, by_name, people
from grader.reports.sources import Sources
from grader.result import SubmissionResult

_MOST_BYTES = 50_000
"""The maximum size of a file that is split into tokens. Larger files must be equal."""

_LONGEST_LINE = 1000
"""The maximum length of a line that is split into tokens. Longer lines could take minutes."""

_LEFT_OUT = {tokenize.COMMENT, tokenize.NL, tokenize.ENCODING, tokenize.ENDMARKER}
_LAYOUT = {tokenize.NEWLINE: "\n", tokenize.INDENT: "\t", tokenize.DEDENT: "\b"}
"""Fixed texts for tokens whose text may vary without changing the meaning, such as indents."""

_NO_TOKENS = (
    tokenize.TokenError,
    SyntaxError,
    ValueError,
    LookupError,  # for an encoding such as rot13, which is not a text encoding
    RecursionError,
    MemoryError,
)
"""The exceptions that are raised if a file can't be split into Python's tokens."""

_ROUGH = re.compile(
    rb"""
      '{3}.*?(?:'{3}|\Z) | \"{3}.*?(?:\"{3}|\Z)
    | '(?:\\.|[^'\\\n])*+'? | "(?:\\.|[^"\\\n])*+"?
    | \#[^\n]* | [\s\\]+ | \xef\xbb\xbf
    """,
    re.DOTALL | re.VERBOSE,
)
"""Matches blanks, comments and all strings.

Removing them is much faster than splitting a file into tokens. Files that still differ are not
identical.
"""


_NONE: Mapping[str, bytes] = {}


@dataclass(frozen=True)
class Identical:
    """Students with identical files for a problem.

    Attributes:
        problem: the problem's id.
        people: the students. One student is enough if the file equals a file of the course.
        course_file: the name of the identical file of the course; empty if there is none.
    """

    problem: str
    people: Sequence[Person]
    course_file: str = ""


def identical_files(
    results: Iterable[SubmissionResult],
    sources: Sources,
    course_files: Mapping[str, Mapping[str, bytes]] | None = None,
) -> list[Identical]:
    """Return the groups of students with identical files for a problem. Ignore unchanged stubs.

    Args:
        results: the results of the whole class.
        sources: the graded files.
        course_files: maps the id of each problem to a dictionary, which maps the names of the
            course's correct files to their contents.
    """
    results = by_name(results)
    who = people(results)
    handed_in: defaultdict[str, dict[Person | str, bytes]] = defaultdict(dict)
    for result in results:
        for problem in result.problems:
            source = None if problem.untouched else sources.read(problem.sha256)
            if source is not None:
                handed_in[problem.id][who[result.submission]] = source
    for id, files in handed_in.items():
        for name, content in (course_files or {}).get(id, _NONE).items():
            files[name] = content
    return [
        group
        for problem, files in sorted(handed_in.items())
        for rough in _alike(files, _without_details)
        for alike in _alike({person: files[person] for person in rough}, essence)
        if (group := _identical(problem, alike)).people
    ]


def _identical(problem: str, alike: Sequence[Person | str]) -> Identical:
    """Return the group of students with identical files.

    Args:
        problem: the problem's id.
        alike: the owners of the files: students, and names of files of the course.
    """
    of_course = next((each for each in alike if isinstance(each, str)), "")
    return Identical(problem, [each for each in alike if isinstance(each, Person)], of_course)


def _alike(
    files: Mapping[Person | str, bytes], key: Callable[[bytes], Hashable]
) -> list[Sequence[Person | str]]:
    """Group files with the same key. Return the owners in each group of two or more files."""
    groups: defaultdict[Hashable, list[Person | str]] = defaultdict(list)
    for person, source in files.items():
        groups[key(source)].append(person)
    return [group for group in groups.values() if len(group) > 1]


def _without_details(source: bytes) -> bytes:
    return source if len(source) > _MOST_BYTES else _ROUGH.sub(b"", source)


def essence(source: bytes) -> str:
    """Return a hash of a file without its blanks, comments and docstrings.

    The hash of a large file includes them.
    """
    if len(source) > _MOST_BYTES:
        return hashlib.sha256(source).hexdigest()
    parts = _tokens(source) or _lines(source)
    return hashlib.sha256("\0".join(parts).encode(errors="surrogatepass")).hexdigest()


def _tokens(source: bytes) -> list[str]:
    """Return a file's tokens. Leave out statements that consist of only a string.

    Return an empty list if the file can't be split into Python's tokens.
    """
    if max(map(len, source.split(b"\n"))) > _LONGEST_LINE:
        return []
    try:
        return _without_lone_strings(tokenize.tokenize(io.BytesIO(source).readline))
    except _NO_TOKENS:
        return []


def _without_lone_strings(tokens: Iterable[tokenize.TokenInfo]) -> list[str]:
    kept: list[tuple[int, str]] = []
    starts = 0
    for token in tokens:
        kind = token.type
        if kind in _LEFT_OUT or token.string.isspace() and kind not in _LAYOUT:
            continue
        if kind == tokenize.NEWLINE and [each for each, _ in kept[starts:]] == [tokenize.STRING]:
            del kept[starts:]
            continue
        kept.append((kind, _LAYOUT.get(kind, token.string)))
        starts = len(kept) if kind in _LAYOUT else starts
    return [text for _, text in kept]


def _lines(source: bytes) -> list[str]:
    """Return the lines of a file that Python can't read, without blank lines and comments."""
    lines = (line.rstrip() for line in source.decode(errors="replace").splitlines())
    return [line for line in lines if line and not line.lstrip().startswith("#")]
