"""Mistakes as edits of right files: `solutions/NN-name/mistakes.edits`, read and applied.

    == keys_are_queries (functions)
    # the queries are compared with themselves instead of the keys
    # Which two things does a score compare?
    @
    -    scores = q @ k.mT
    +    scores = q @ q.mT

The head names the mistake and the right file that it starts from: `reference`, or a variant. Behind
it may stand how the mistake weighs: `idea`, `idea of NAME` or `slip`. The first sentence ends "It
looks as if ...", the second is a nudge, never the line of code; a sentence goes on in lines that
begin with `#` and more than one blank. Each `@` replaces lines that stand in the right file once.
Lines that begin with a blank stay, and say which of several places is meant.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from grader.course import Course, Problem
from grader.errors import CourseError

EDITS_FILE = "mistakes.edits"
"""The file beside a problem's reference that holds its mistakes."""

REFERENCE = "reference"
"""How the edits call the reference; a variant goes by its file's name."""

_HEAD = re.compile(r"== (\w+) \((\w+)\)(?: (idea|idea of \w+|slip))?")


@dataclass(frozen=True)
class Block:
    """Lines of a right file, and what stands in their place.

    Attributes:
        line: where the block begins, in the file of edits.
        old: the lines as they are in the right file, where they stand once.
        new: the lines in their place.
    """

    line: int
    old: tuple[str, ...]
    new: tuple[str, ...]


@dataclass(frozen=True)
class Edit:
    """A mistake, as it is written down.

    Attributes:
        name: of the mistake.
        base: the right file that it starts from.
        when: ends the sentence "It looks as if ...".
        look: a nudge to what to look at; may be empty.
        weight: what stands behind the head; may be empty.
        blocks: what is replaced.
        place: the file that it stands in.
        line: and where in it.
    """

    name: str
    base: str
    when: str
    look: str
    blocks: tuple[Block, ...]
    weight: str = ""
    place: str = EDITS_FILE
    line: int = 1


@dataclass(frozen=True)
class Mistake:
    """A mistake as a whole file.

    Attributes:
        edit: how it is written down.
        right: the right file that it starts from.
        source: what the edit makes of that.
    """

    edit: Edit
    right: str
    source: str


def edits_file(course: Course, problem: Problem) -> Path:
    """Return where a problem's mistakes are written down, whether or not there are any."""
    return course.solution(problem).with_name(EDITS_FILE)


def right_files(course: Course, problem: Problem) -> dict[str, Path]:
    """Return a problem's right files, by the names that edits call them: the reference first."""
    solution = course.solution(problem)
    variants = sorted((solution.parent / "variants").glob("*.py"))
    return {REFERENCE: solution} | {path.stem: path for path in variants}


def mistakes_of(course: Course, problem: Problem) -> list[Mistake]:
    """Return a problem's mistakes in the order of their names; none where none are written down.

    Raises:
        CourseError: an edit can't be read, or doesn't fit its right file.
    """
    path = edits_file(course, problem)
    if not path.is_file():
        return []
    right = {n: p.read_text(encoding="utf-8") for n, p in right_files(course, problem).items()}
    place = path.relative_to(course.root).as_posix()
    edits = sorted(parse(path.read_text(encoding="utf-8"), place), key=lambda edit: edit.name)
    for edit in edits:
        if edit.base not in right:
            known = ", ".join(right)
            raise _error(edit.place, edit.line, f"there is no '{edit.base}'; there are: {known}")
    return [Mistake(edit, right[edit.base], apply(edit, right[edit.base])) for edit in edits]


def apply(edit: Edit, source: str) -> str:
    """Return a right file with a mistake in it.

    Args:
        edit: the mistake.
        source: the right file that it starts from.

    Raises:
        CourseError: a block's lines are not in the file, or more than once, or two blocks overlap.
    """
    lines = source.splitlines()
    placed = [(_place_of(block, lines, edit), block) for block in edit.blocks]
    placed.sort(key=lambda each: (each[0], each[1].line))
    for (before, first), (start, block) in pairwise(placed):
        if before + len(first.old) > start:
            raise _error(edit.place, block.line, f"overlaps the block in line {first.line}")
    for start, block in reversed(placed):
        lines[start : start + len(block.old)] = block.new
    return "\n".join(lines) + "\n"


def _place_of(block: Block, lines: list[str], edit: Edit) -> int:
    """Return at which of the lines a block's lines begin."""
    found = [n for n, line in enumerate(lines) if line == block.old[0]]
    found = [n for n in found if tuple(lines[n : n + len(block.old)]) == block.old]
    if len(found) == 1:
        return found[0]
    if found:
        raise _error(edit.place, block.line, f"these lines stand in {edit.base} {len(found)} times")
    missing = next((line for line in block.old if line not in lines), None)
    what = "these lines together" if missing is None else f"the line '{missing.strip()}'"
    raise _error(edit.place, block.line, f"{what} can't be found in {edit.base}")


def parse(text: str, place: str = EDITS_FILE) -> list[Edit]:
    """Return the mistakes that a text writes down, in its order.

    Args:
        text: the file's.
        place: the file, as errors call it.

    Raises:
        CourseError: it can't be read, or two mistakes have one name.
    """
    lines = list(enumerate(text.splitlines(), 1))
    heads = [number for number, line in lines if line.startswith("==")]
    for number, line in lines[: heads[0] - 1 if heads else None]:
        if line:
            raise _error(place, number, "a head such as '== name (reference)' comes first")
    edits: dict[str, Edit] = {}
    for start, end in pairwise([*heads, len(lines) + 1]):
        edit = _edit(lines[start - 1 : end - 1], place)
        if edit.name in edits:
            other = edits[edit.name].line
            raise _error(place, start, f"'{edit.name}' stands in line {other} already")
        edits[edit.name] = edit
    return list(edits.values())


_Lines = list[tuple[int, str]]
"""Numbers and texts."""


def _edit(lines: _Lines, place: str) -> Edit:
    number, head = lines[0]
    match = _HEAD.fullmatch(head.rstrip())
    if match is None:
        raise _error(place, number, "a head is '== name (reference)', or has a variant's name")
    starts = [n for n, (_, line) in enumerate(lines) if line.rstrip() == "@"]
    sentences = _sentences(lines[1 : starts[0] if starts else None], place)
    if not 1 <= len(sentences) <= 2:
        raise _error(place, number, "a mistake has a sentence and a nudge, each behind a '#'")
    if not starts:
        raise _error(place, number, f"'{match[1]}' changes nothing: it has no '@'")
    blocks = tuple(_block(lines[a:b], place) for a, b in pairwise([*starts, len(lines)]))
    when, look = [*sentences, ""][:2]
    return Edit(match[1], match[2], when, look, blocks, match[3] or "", place, number)


def _sentences(lines: Iterable[tuple[int, str]], place: str) -> list[str]:
    found: list[str] = []
    for number, line in lines:
        if line.startswith("#  ") and found:
            found[-1] += " " + line[1:].strip()
        elif line.startswith("# ") and line[1:].strip():
            found.append(line[1:].strip())
        elif line:
            raise _error(place, number, "here stand sentences, each behind a '#', up to an '@'")
    return found


def _block(lines: _Lines, place: str) -> Block:
    start = lines[0][0]
    while not lines[-1][1]:
        lines = lines[:-1]
    for number, line in lines[1:]:
        if line and line[0] not in " -+":
            raise _error(place, number, "a line of a block begins with '-', '+' or a blank")
    old, new = (tuple(_side(lines[1:], sign)) for sign in "-+")
    if not old:
        raise _error(place, start, "a block has lines of the right file, to say where it belongs")
    if old == new:
        raise _error(place, start, "this block changes nothing")
    return Block(start, old, new)


def _side(lines: _Lines, sign: str) -> Iterator[str]:
    """Yield a block's lines as they are before (-) or after (+) the edit."""
    return (line[1:] for _, line in lines if line[:1] in ("", " ", sign))


def _error(place: str, line: int, text: str) -> CourseError:
    return CourseError(f"{place}, line {line}: {text}")
