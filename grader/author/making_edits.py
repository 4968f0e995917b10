"""Makes an edit of a wrong file: from which right file, and what is replaced in it.

The wrong file's comments and docstrings are left out, and so is every difference that makes none
for Python. What is replaced is whole lines of the right file, as they stand there.
"""

from __future__ import annotations

import ast
import io
import textwrap
import tokenize
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TypeGuard

from grader.diagnose.edits import Block, Edit

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
        None if there is no edit of whole lines, as where nothing is different.
    """
    raw = {name: _Change.between(source, wrong) for name, source in right.items()}
    least = min(change.size for change in raw.values())
    near = {name: change for name, change in raw.items() if change.size <= 2 * least + 4}
    found: list[Edit] = []
    for name, change in near.items():
        blocks = change.without_noise().blocks()
        if blocks:
            found.append(Edit(edit.name, name, edit.when, edit.look, tuple(blocks), edit.weight))
    return min(found, key=lambda each: written(each).count("\n"), default=None)


def meaning(source: str) -> str:
    """Return what a file says to Python, without comments, docstrings and what nothing uses.

    That are imports and, as long as TorchScript doesn't read them, the types of arguments.
    """
    tree = ast.parse(source)
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
    return ast.dump(tree)


@dataclass(frozen=True)
class _Hunk:
    """Lines of the right file from `start` to `end`, and what stands there in the wrong one."""

    start: int
    end: int
    new: tuple[str, ...]

    @property
    def size(self) -> int:
        return self.end - self.start + len(self.new)


@dataclass(frozen=True)
class _Change:
    """What makes a wrong file of a right one."""

    right: list[str]
    code: set[int]
    wrong: str
    hunks: list[_Hunk]

    @classmethod
    def between(cls, right: str, wrong: str) -> _Change:
        """Return the change, by the lines of code alone."""
        ours, theirs = _Code.of(right), _Code.of(wrong)
        matcher = SequenceMatcher(None, ours.texts(), theirs.texts(), autojunk=False)
        hunks = []
        for kind, a, b, c, d in matcher.get_opcodes():
            if kind in ("replace", "delete"):
                new = theirs.lines_of(theirs.numbers[c], theirs.numbers[d - 1] + 1) if d > c else ()
                hunks.append(_Hunk(ours.numbers[a], ours.numbers[b - 1] + 1, new))
            elif kind == "insert":
                hunks.append(_insertion(ours, a, theirs, c, d))
        return cls(ours.lines, {*ours.numbers}, wrong, hunks)

    @property
    def size(self) -> int:
        """How many lines are taken away and added."""
        return sum(hunk.size for hunk in self.hunks)

    def without_noise(self) -> _Change:
        """Return it without what makes no difference for Python."""
        meant, hunks = meaning(self.wrong), self.hunks
        for hunk in self.hunks:
            fewer = [each for each in hunks if each is not hunk]
            if _means(self._applied(fewer), meant):
                hunks = fewer
        return _Change(self.right, self.code, self.wrong, hunks)

    def _applied(self, hunks: list[_Hunk]) -> str:
        lines = [*self.right]
        for hunk in reversed(hunks):
            lines[hunk.start : hunk.end] = hunk.new
        return "\n".join(lines) + "\n"

    def blocks(self) -> list[Block]:
        """Return it as blocks, each with as many lines around it as it needs to fit once."""
        hunks = self.hunks
        while True:
            ranges = [self._range(hunk) for hunk in hunks]
            joined = self._joined(hunks, ranges)
            if len(joined) == len(hunks):
                break
            hunks = joined
        return [
            Block(
                1,
                tuple(self.right[a:b]),
                (*self.right[a : h.start], *h.new, *self.right[h.end : b]),
            )
            for h, (a, b) in zip(hunks, ranges, strict=True)
        ]

    def _joined(self, hunks: list[_Hunk], ranges: list[tuple[int, int]]) -> list[_Hunk]:
        """Return the hunks with those as one that are close, or need the same lines around."""
        joined: list[_Hunk] = []
        reach = 0
        for hunk, (start, end) in zip(hunks, ranges, strict=True):
            close = joined and hunk.start - joined[-1].end <= _TOGETHER
            if joined and (close or start < reach):
                before = joined.pop()
                between = self.right[before.end : hunk.start]
                hunk = _Hunk(before.start, hunk.end, (*before.new, *between, *hunk.new))
            joined.append(hunk)
            reach = max(reach, end)
        return joined

    def _range(self, hunk: _Hunk) -> tuple[int, int]:
        """Return the fewest lines around a hunk that stand in the file once."""
        room = len(self.right) - (hunk.end - hunk.start)
        for more in range(room + 1):
            splits = [(hunk.start - before, hunk.end + more - before) for before in range(more + 1)]
            fitting = [
                (start, end)
                for start, end in splits
                if 0 <= start < end <= len(self.right) and self._is_once(start, end)
            ]
            if fitting:
                return min(fitting, key=lambda each: self._strange(each, hunk))
        return 0, len(self.right)

    def _strange(self, lines: tuple[int, int], hunk: _Hunk) -> tuple[int, int]:
        """Return how many lines around are no code; of as many, those before are better."""
        start, end = lines
        around = [*range(start, hunk.start), *range(hunk.end, end)]
        return sum(n not in self.code for n in around), end

    def _is_once(self, start: int, end: int) -> bool:
        wanted, length = self.right[start:end], end - start
        every = range(len(self.right) - length + 1)
        return sum(self.right[n : n + length] == wanted for n in every) == 1


def _means(source: str, meant: str) -> bool:
    try:
        return meaning(source) == meant
    except SyntaxError:
        return False


@dataclass(frozen=True)
class _Code:
    """The lines of a file, and which of them are code: no docstring, and no comment alone.

    Attributes:
        lines: all of them.
        plain: the same without comments.
        numbers: of the lines of code, counted from 0.
        docstrings: the numbers of the lines of docstrings.
    """

    lines: list[str]
    plain: list[str]
    numbers: list[int]
    docstrings: set[int]

    @classmethod
    def of(cls, source: str) -> _Code:
        lines, plain = source.splitlines(), source.splitlines()
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.COMMENT:
                row, column = token.start
                plain[row - 1] = plain[row - 1][:column].rstrip()
        docstrings: set[int] = set()
        for node in ast.walk(ast.parse(source)):
            if _has_docstring(node):
                text = node.body[0]
                docstrings |= set(range(text.lineno - 1, text.end_lineno or text.lineno))
        numbers = [n for n, line in enumerate(plain) if line and n not in docstrings]
        return cls(lines, plain, numbers, docstrings)

    def texts(self) -> list[str]:
        """Return the lines of code."""
        return [self.plain[number] for number in self.numbers]

    def lines_of(self, start: int, end: int) -> tuple[str, ...]:
        """Return the lines of code from one to another, and the blank ones between them."""
        numbers = [n for n in range(start, end) if n not in self.docstrings]
        return tuple(self.plain[n] for n in numbers if self.plain[n] or not self.lines[n])


def _has_docstring(node: ast.AST) -> TypeGuard[ast.Module | ast.ClassDef | ast.FunctionDef]:
    """Tell whether something has a docstring, and more than that."""
    if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
        return False
    return ast.get_docstring(node) is not None and len(node.body) > 1


def _insertion(ours: _Code, place: int, theirs: _Code, first: int, after: int) -> _Hunk:
    """Return lines of the wrong file as put between two lines of code of the right one.

    They follow the first of these where they do so in the wrong file; otherwise they stand before
    the second, with as many blank lines between.
    """
    start, end = theirs.numbers[first], theirs.numbers[after - 1] + 1
    follow = start > 0 and bool(theirs.lines[start - 1]) and place > 0
    if follow or place == len(ours.numbers):
        at = ours.numbers[place - 1] + 1
        while at in ours.docstrings:
            at += 1
        blank = 0 if follow else 2
        return _Hunk(at, at, ("",) * blank + theirs.lines_of(start, end))
    while end < len(theirs.lines) and not theirs.lines[end]:
        end += 1
    at = ours.numbers[place]
    return _Hunk(at, at, theirs.lines_of(start, end))
