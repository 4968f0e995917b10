"""Read and apply mistakes that are written as edits, in `solutions/NN-name/mistakes.edits`.

    == keys_are_queries (functions)
    # the queries are compared with themselves instead of the keys
    # Which two things does a score compare?
    @
    -    scores = q @ k.mT
    +    scores = q @ q.mT

The head contains the name of the mistake and, in parentheses, the right file to edit. The right
file is `reference` or the name of a variant. A weight may follow: `idea`, `idea of NAME` or `slip`.
The first sentence completes "It looks as if ...". The second sentence is a nudge, a question that
must not contain the right line of code. A sentence continues in lines that begin with `#` and at
least two blanks. Each `@` begins a block. The `+` lines of a block replace its `-` lines. Lines
that begin with a blank are unchanged context. The `-` lines with their context must occur exactly
once in the right file.

A family is a group of mistakes that replace the same lines of a right file:

    === What is compared with what (reference)
    # Which two things does a score compare?
    @
    -    scores = q @ k.mT

    == queries_with_queries
    # the queries are compared with themselves instead of the keys
    +    scores = q @ q.mT

The head of a family contains a title and the right file that all members edit. A member without a
nudge gets the family's nudge. The head of a member contains its name and no right file. The `+`
lines of a member before its first `@` are added to the family's block. A member may also have
additional blocks, which begin with `@`.
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
"""The name of the file with a problem's mistakes. It is in the folder of the reference."""


_HEAD = re.compile(r"== (\w+)(?: \((\w+)\))?(?: (idea|idea of \w+|slip))?")
_FAMILY = re.compile(r"=== \S.* \((\w+)\)")


_Lines = list[tuple[int, str]]
"""Pairs of a line number and the text of the line."""


@dataclass(frozen=True)
class Block:
    """Lines of a right file and the lines that replace them.

    Attributes:
        line: the line number of the block in the file of edits.
        old: the lines to replace, which occur exactly once in the right file.
        new: the replacement.
    """

    line: int
    old: tuple[str, ...]
    new: tuple[str, ...]


@dataclass(frozen=True)
class Edit:
    """A mistake that is written as an edit of a right file.

    Attributes:
        name: the name of the mistake.
        base: the name of the right file to edit.
        when: completes the sentence "It looks as if ...".
        nudge: a question that leads the student to the mistake; may be empty.
        weight: `idea`, `idea of NAME` or `slip`; empty if the head contains no weight.
        blocks: the replacements.
        file_name: the path of the file of edits.
        line: the line number of the head in the file of edits.
    """

    name: str
    base: str
    when: str
    nudge: str
    blocks: tuple[Block, ...]
    weight: str = ""
    file_name: str = EDITS_FILE
    line: int = 1


@dataclass(frozen=True)
class _Family:
    """The common properties of the members of a family.

    Attributes:
        base: the name of the right file to edit.
        nudge: the default nudge of the members; may be empty.
        block: the lines of the common block; empty if the family has no common block.
    """

    base: str
    nudge: str
    block: _Lines


@dataclass(frozen=True)
class Mistake:
    """A mistake with the source code before and after the edit.

    Attributes:
        edit: the edit.
        right: the source code of the right file.
        source: the source code after the edit.
    """

    edit: Edit
    right: str
    source: str


def edits_file(course: Course, problem: Problem) -> Path:
    """Return the path of a problem's file of edits. A problem without mistakes has no such file."""
    return course.solution(problem).with_name(EDITS_FILE)


def mistakes_of(course: Course, problem: Problem) -> list[Mistake]:
    """Return a problem's mistakes, sorted by name.

    The list is empty if the problem has no file of edits.

    Raises:
        CourseError: an edit cannot be read, or does not match its right file.
    """
    path = edits_file(course, problem)
    if not path.is_file():
        return []
    right = {n: p.read_text(encoding="utf-8") for n, p in course.right_files(problem).items()}
    file_name = path.relative_to(course.root).as_posix()
    edits = sorted(parse(path.read_text(encoding="utf-8"), file_name), key=lambda edit: edit.name)
    for edit in edits:
        if edit.base not in right:
            known = ", ".join(right)
            unknown = f"the right file '{edit.base}' is unknown; the known right files are: {known}"
            raise _error(edit.file_name, edit.line, unknown)
    return [Mistake(edit, right[edit.base], apply(edit, right[edit.base])) for edit in edits]


def apply(edit: Edit, source: str) -> str:
    """Return the source code of a right file after an edit.

    Args:
        edit: the mistake.
        source: the source code of the right file.

    Raises:
        CourseError: the old lines of a block do not occur exactly once, or two blocks overlap.
    """
    lines = source.splitlines()
    placed = [(_start_of(block, lines, edit), block) for block in edit.blocks]
    placed.sort(key=lambda each: (each[0], each[1].line))
    for (before, first), (start, block) in pairwise(placed):
        if before + len(first.old) > start:
            overlap = f"this block overlaps the block in line {first.line}"
            raise _error(edit.file_name, block.line, overlap)
    for start, block in reversed(placed):
        lines[start : start + len(block.old)] = block.new
    return "\n".join(lines) + "\n"


def _start_of(block: Block, lines: list[str], edit: Edit) -> int:
    """Return the index in `lines` at which the old lines of a block begin."""
    starts = [n for n, line in enumerate(lines) if line == block.old[0]]
    starts = [n for n in starts if tuple(lines[n : n + len(block.old)]) == block.old]
    if len(starts) == 1:
        return starts[0]
    if starts:
        many = f"these lines occur {len(starts)} times in {edit.base}"
        raise _error(edit.file_name, block.line, many)
    missing = next((line for line in block.old if line not in lines), None)
    what = "this sequence of lines" if missing is None else f"the line '{missing.strip()}'"
    raise _error(edit.file_name, block.line, f"{what} can't be found in {edit.base}")


def parse(text: str, file_name: str = EDITS_FILE) -> list[Edit]:
    """Return the mistakes in a file of edits, in the order of the file.

    Args:
        text: the content of the file.
        file_name: the name of the file in error messages.

    Raises:
        CourseError: the text cannot be parsed, or two mistakes have the same name.
    """
    lines = list(enumerate(text.splitlines(), 1))
    heads = [number for number, line in lines if line.startswith("==")]
    for number, line in lines[: heads[0] - 1 if heads else None]:
        if line:
            raise _error(
                file_name, number, "the file must begin with a head: '== name (reference)'"
            )
    edits: dict[str, Edit] = {}
    family: _Family | None = None
    for start, end in pairwise([*heads, len(lines) + 1]):
        of_head = lines[start - 1 : end - 1]
        if of_head[0][1].startswith("==="):
            family = _family(of_head, file_name)
            continue
        edit = _edit(of_head, file_name, family)
        if edit.name in edits:
            other = edits[edit.name].line
            raise _error(file_name, start, f"the mistake '{edit.name}' is already in line {other}")
        edits[edit.name] = edit
    return list(edits.values())


def _family(lines: _Lines, file_name: str) -> _Family:
    number, head = lines[0]
    match = _FAMILY.fullmatch(head.rstrip())
    if match is None:
        raise _error(file_name, number, "the head of a family must be '=== title (reference)'")
    sentences, blocks = _parts(lines[1:], file_name)
    if len(sentences) > 1 or len(blocks) > 1:
        raise _error(file_name, number, "a family has at most one nudge and one block")
    block = blocks[0] if blocks else []
    for at, line in block[1:]:
        if line.startswith("+"):
            raise _error(file_name, at, "only the members of a family have '+' lines")
    return _Family(match[1], next(iter(sentences), ""), _without_trailing_empty_lines(block))


def _edit(lines: _Lines, file_name: str, family: _Family | None) -> Edit:
    number, head = lines[0]
    match = _HEAD.fullmatch(head.rstrip())
    if match is None or (match[2] is None and family is None):
        form = "a head must be '== name (reference)', or '== name' in a family"
        weight = "'idea', 'idea of NAME' or 'slip' may follow"
        raise _error(file_name, number, f"{form}; {weight}")
    common = family if family is not None and match[2] is None else _Family(match[2], "", [])
    sentences, blocks = _parts(lines[1:], file_name, common.block)
    if not 1 <= len(sentences) <= 2:
        raise _error(
            file_name, number, "a mistake needs one sentence and at most one nudge after '#'"
        )
    if sentences[0].endswith("?"):
        text = "the first sentence must complete 'It looks as if ...'; the nudge is the second"
        raise _error(file_name, number, text)
    if not blocks:
        raise _error(
            file_name, number, f"the mistake '{match[1]}' needs a block that begins with '@'"
        )
    when, nudge = [*sentences, common.nudge][:2]
    weight = match[3] or ""
    return Edit(
        match[1],
        common.base,
        when,
        nudge,
        tuple(_block(block, file_name) for block in blocks),
        weight,
        file_name,
        number,
    )


def _parts(
    lines: _Lines, file_name: str, common: _Lines | None = None
) -> tuple[list[str], list[_Lines]]:
    """Return the sentences and the blocks below a head. Each block begins with a line '@'.

    Args:
        lines: the lines below the head.
        file_name: the name of the file in error messages.
        common: the family's block. The '+' lines before a member's first '@' are added to it.
    """
    starts = [n for n, (_, line) in enumerate(lines) if line.rstrip() == "@"]
    first = starts[0] if starts else len(lines)
    new = next((n for n in range(first) if lines[n][1].startswith("+")), first) if common else first
    blocks = [lines[a:b] for a, b in pairwise([*starts, len(lines)])] if starts else []
    if common and new < first:
        number = lines[new][0]
        blocks.insert(0, [(number, "@"), *common[1:], *lines[new:first]])
    return _sentences(lines[:new], file_name), blocks


def _without_trailing_empty_lines(lines: _Lines) -> _Lines:
    while lines and not lines[-1][1]:
        lines = lines[:-1]
    return lines


def _sentences(lines: Iterable[tuple[int, str]], file_name: str) -> list[str]:
    sentences: list[str] = []
    for number, line in lines:
        if line.startswith("#  ") and sentences:
            sentences[-1] += " " + line[1:].strip()
        elif line.startswith("# ") and line[1:].strip():
            sentences.append(line[1:].strip())
        elif line:
            raise _error(file_name, number, "before the first '@', each line must begin with '# '")
    return sentences


def _block(lines: _Lines, file_name: str) -> Block:
    start = lines[0][0]
    lines = _without_trailing_empty_lines(lines)
    for number, line in lines[1:]:
        if line and line[0] not in " -+":
            raise _error(file_name, number, "a line of a block must begin with '-', '+' or a blank")
    old, new = (tuple(_side(lines[1:], sign)) for sign in "-+")
    if not old:
        raise _error(
            file_name, start, "a block needs lines of the right file, which mark its place"
        )
    if old == new:
        raise _error(file_name, start, "this block changes nothing")
    return Block(start, old, new)


def _side(lines: _Lines, sign: str) -> Iterator[str]:
    """Yield the lines of a block before the edit (sign "-") or after the edit (sign "+")."""
    return (line[1:] for _, line in lines if line[:1] in ("", " ", sign))


def _error(file_name: str, line: int, text: str) -> CourseError:
    return CourseError(f"{file_name}, line {line}: {text}")
