"""Makes an edit of a wrong file: from which right file, and what is replaced in it.

Both files are compared as Python writes them anew, without comments, docstrings and what makes no
difference. What is replaced is whole lines of the right file, as they stand there.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import replace
from difflib import SequenceMatcher
from itertools import count
from typing import NamedTuple, TypeGuard

from grader.diagnose.edits import Block, Edit, apply

_TOGETHER = 2
"""Changes with so many lines between them, or fewer, are one block."""

_WIDTH = 100


def written(edit: Edit) -> str:
    """Return an edit as text, as `grader.diagnose.edits` reads it."""
    marks = [edit.weight] if edit.weight else []
    marks += ["core"] if edit.core else []
    head = " ".join([f"== {edit.name} ({edit.base})", *marks])
    sentences = [_wrapped(sentence) for sentence in (edit.when, edit.look) if sentence]
    return "\n".join([head, *sentences, *(_written_block(b) for b in edit.blocks)]) + "\n"


def _wrapped(sentence: str) -> str:
    return textwrap.fill(
        sentence,
        _WIDTH,
        initial_indent="# ",
        subsequent_indent="#   ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _written_block(block: Block) -> str:
    """Return a block as text: what is the same before and after is written once."""
    lines = ["@"]
    matcher = SequenceMatcher(None, block.old, block.new, autojunk=False)
    for kind, a, b, c, d in matcher.get_opcodes():
        if kind == "equal":
            lines += [f" {line}".rstrip() for line in block.old[a:b]]
        else:
            lines += [f"-{line}" for line in block.old[a:b]]
            lines += [f"+{line}" for line in block.new[c:d]]
    return "\n".join(lines)


def smallest_edit(edit: Edit, wrong: str, right: Mapping[str, str]) -> Edit | None:
    """Return the edit of that right file which needs the fewest lines.

    Args:
        edit: the mistake's name, sentences and weight.
        wrong: the file with the mistake.
        right: the right files, by name.

    Returns:
        None if there is no edit of whole lines, or one of the right files means the same.
    """
    meant = meaning(wrong)
    if any(meaning(source) == meant for source in right.values()):
        return None
    theirs = [line.text for line in _code(wrong)]
    found = [replace(edit, base=name, blocks=_blocks(right[name], theirs)) for name in right]
    found = [each for each in found if _means(apply(each, right[each.base]), meant)]
    return min(found, key=lambda each: written(each).count("\n"), default=None)


def meaning(source: str) -> str:
    """Return what a file says to Python, without what makes no difference."""
    return ast.dump(_plain(ast.parse(source)))


def _means(source: str, meant: str) -> bool:
    try:
        return meaning(source) == meant
    except SyntaxError:
        return False


def _plain(tree: ast.Module) -> ast.Module:
    """Return a file without docstrings and what nothing uses.

    That are imports and, as long as TorchScript doesn't read them, the types of arguments.
    """
    nodes = [*ast.walk(tree)]
    used = {node.id for node in nodes if isinstance(node, ast.Name)}
    typed = any(isinstance(node, ast.Attribute) and node.attr == "script" for node in nodes)
    for node in nodes:
        if _has_docstring(node):
            node.body = node.body[1:]
        if isinstance(node, ast.Import | ast.ImportFrom):
            node.names = [n for n in node.names if (n.asname or n.name.partition(".")[0]) in used]
        if isinstance(node, ast.arg) and not typed:
            node.annotation = None
        if isinstance(node, ast.FunctionDef) and not typed:
            node.returns = None
    tree.body = [node for node in tree.body if getattr(node, "names", True)]
    return tree


def _has_docstring(node: ast.AST) -> TypeGuard[ast.Module | ast.ClassDef | ast.FunctionDef]:
    """Tell whether something has a docstring, and more than that."""
    if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
        return False
    return ast.get_docstring(node) is not None and len(node.body) > 1


class _CodeLine(NamedTuple):
    """A line of code as Python writes it anew, and from where to where it stands in the file."""

    text: str
    start: int
    end: int


def _code(source: str) -> list[_CodeLine]:
    """Return the lines of code of a file."""
    tree = ast.parse(source)
    heads = {id(node): _end_of_head(node) for node in ast.walk(tree) if _has_place(node)}
    text = ast.unparse(_plain(tree))
    places: dict[int, tuple[int, int]] = {}
    for again, node in zip(ast.walk(ast.parse(text)), ast.walk(tree), strict=True):
        if _has_place(again) and _has_place(node):
            start, end = places.get(again.lineno, (node.lineno, 0))
            places[again.lineno] = min(start, node.lineno), max(end, heads[id(node)])
    lines = [(n, line) for n, line in enumerate(text.splitlines(), 1) if line]
    found: list[_CodeLine] = []
    for place, (number, line) in enumerate(lines):
        if number not in places:  # such as `else:`, which stands between its neighbours
            following, _ = lines[place + 1]
            places[number] = (found[-1].end if found else 0) + 1, places[following][0] - 1
        start, end = places[number]
        found.append(_CodeLine(line, start - 1, end))
    return found


def _has_place(node: ast.AST) -> TypeGuard[ast.stmt | ast.expr]:
    return hasattr(node, "lineno")


def _end_of_head(node: ast.stmt | ast.expr) -> int:
    """Return the last line of something, without the statements that stand in it."""
    body = getattr(node, "body", None)
    if not isinstance(body, list):
        return node.end_lineno or 0
    decorators = getattr(body[0], "decorator_list", ())
    first: int = min(each.lineno for each in (body[0], *decorators))
    return max(node.lineno, first - 1)


class _Hunk(NamedTuple):
    """Lines of the right file from `start` to `end`, and what stands there in the wrong one."""

    start: int
    end: int
    new: tuple[str, ...]


def _hunks(right: str, theirs: list[str]) -> Iterator[_Hunk]:
    """Yield where the lines of code of a right file and those of the wrong one are different."""
    ours = _code(right)
    matcher = SequenceMatcher(None, [line.text for line in ours], theirs, autojunk=False)
    for kind, a, b, c, d in matcher.get_opcodes():
        if kind == "insert":
            place = _place_between(ours, a, theirs[c])
            yield _Hunk(place, place, tuple(theirs[c:d]))
        elif kind != "equal":
            yield _Hunk(ours[a].start, ours[b - 1].end, tuple(theirs[c:d]))


def _place_between(ours: list[_CodeLine], place: int, text: str) -> int:
    """Return where to put a line: before the next line of its depth, else behind the last one."""
    if place < len(ours) and (place == 0 or _depth(ours[place].text) == _depth(text)):
        return ours[place].start
    return ours[place - 1].end


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def _blocks(right: str, theirs: list[str]) -> tuple[Block, ...]:
    """Return what to replace, each with as many lines around it as it needs to fit once."""
    lines = right.splitlines()
    hunks: list[_Hunk] = []
    for hunk in _hunks(right, theirs):
        while hunks and _reach(hunk, lines)[0] - _reach(hunks[-1], lines)[1] <= _TOGETHER:
            before = hunks.pop()
            between = lines[before.end : hunk.start]
            hunk = _Hunk(before.start, hunk.end, (*before.new, *between, *hunk.new))
        hunks.append(hunk)
    return tuple(_block(hunk, lines) for hunk in hunks)


def _block(hunk: _Hunk, lines: list[str]) -> Block:
    start, end = _reach(hunk, lines)
    new = (*lines[start : hunk.start], *hunk.new, *lines[hunk.end : end])
    return Block(1, tuple(lines[start:end]), new)


def _reach(hunk: _Hunk, lines: list[str]) -> tuple[int, int]:
    """Return the fewest lines around a hunk that stand in the file once; rather those before."""
    places = (
        (hunk.start - more + after, hunk.end + after)
        for more in count()
        for after in range(more + 1)
    )
    return next((a, b) for a, b in places if 0 <= a < b <= len(lines) and _is_once(lines, a, b))


def _is_once(lines: list[str], start: int, end: int) -> bool:
    wanted, length = lines[start:end], end - start
    return sum(lines[n : n + length] == wanted for n in range(len(lines) - length + 1)) == 1
