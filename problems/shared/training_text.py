"""Read the training text for problem 07, convert it to tokens, and hold out the last tenth."""

from __future__ import annotations

import importlib.util
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import torch
from torch import Tensor

from grader.errors import UsageError

MODULES = """
    argparse ast bdb calendar cmd configparser contextlib copy csv dataclasses difflib doctest
    enum fractions functools heapq inspect mailbox optparse pdb pickle pprint random shutil
    smtplib socket statistics subprocess tarfile tempfile textwrap threading timeit trace
    traceback turtle typing urllib.parse urllib.request uuid weakref
"""
"""Modules of Python's library. Without `--text`, their source is the training text."""

SHIPPED = {"alice": Path(__file__).with_name("alice.txt")}
"""The files of texts that are part of the course, by their names for `--text`.

alice: chapters 1 to 7 of Alice's Adventures in Wonderland by Lewis Carroll (1865), which is in the
public domain.
"""

MOST = 3000
"""The largest number of different characters. In a text with more, the rarest are replaced."""

_TAB, _FOUR_SPACES, _OTHER = "\t", " " * 4, "\N{REPLACEMENT CHARACTER}"


@dataclass(frozen=True)
class Alphabet:
    """The characters that a model knows. Each character is a token.

    Attributes:
        characters: all characters, in the order of their token numbers.
    """

    characters: str
    number_of: dict[str, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        numbers = {character: number for number, character in enumerate(self.characters)}
        object.__setattr__(self, "number_of", numbers)

    def encode(self, text: str) -> list[int]:
        """Convert a text to tokens. Unknown characters are omitted."""
        if _TAB in self.number_of:
            text = text.replace(_FOUR_SPACES, _TAB)
        return [self.number_of[character] for character in text if character in self.number_of]

    def decode(self, tokens: Sequence[int]) -> str:
        """Convert tokens to a text, and each tab to four spaces."""
        return "".join(self.characters[token] for token in tokens).replace(_TAB, _FOUR_SPACES)


@dataclass(frozen=True)
class TrainingText:
    """A text as tokens, in two parts.

    Attributes:
        alphabet: the characters of the text.
        training: the tokens of the first nine tenths.
        held_out: the tokens of the last tenth, on which no model trains.
        is_the_course_s: whether the text is the source of Python's library.
    """

    alphabet: Alphabet
    training: Tensor
    held_out: Tensor
    is_the_course_s: bool

    @property
    def prompt(self) -> str:
        """A short beginning of a text, which the model continues."""
        return self._beginning("def ", 8)

    @property
    def line(self) -> str:
        """A short text for the picture of the attention heads."""
        return self._beginning("    def run(self):\n", 15)

    def _beginning(self, of_code: str, length: int) -> str:
        """Return a beginning that suits the training text.

        This is `of_code` for the source of Python's library. For any other text, it consists of
        `length` characters of the held-out text, from the beginning of a word.
        """
        known = {*self.alphabet.characters} >= {*of_code.replace(_FOUR_SPACES, _TAB)}
        if self.is_the_course_s and known:
            return of_code
        characters = [self.alphabet.decode([token]) for token in self.held_out.tolist()]
        pairs = enumerate(pairwise(characters[:-length]), 1)
        words = (place for place, (a, b) in pairs if a.isspace() and not b.isspace())
        start = next(words, 0)
        return "".join(characters[start : start + length])

    def held_out_batches(self, n_positions: int, rows: int = 64) -> list[tuple[Tensor, Tensor]]:
        """Return batches of inputs and targets from the held-out text.

        The inputs are `rows` evenly spread pieces of n_positions tokens. The targets are the same
        pieces, shifted by one token.
        """
        pieces = self.held_out.unfold(0, n_positions + 1, 1)
        pieces = pieces[torch.linspace(0, len(pieces) - 1, rows).long()]
        return [(part[:, :-1], part[:, 1:]) for part in pieces.split(16)]


def read(files: Sequence[str | Path], n_positions: int, first: int | None = None) -> TrainingText:
    """Read the training text.

    Args:
        files: paths of files, or names of texts that are part of the course. If there are none, the
            text is the source of Python's library.
        n_positions: the number of tokens that the model reads at once.
        first: the number of characters to use; by default all.

    Raises:
        UsageError: a file can't be read, or the text is too short for a model of this size.
    """
    text = "\n".join(_content(Path(file)) for file in files) if files else _library()
    text = text.expandtabs(4).replace(_FOUR_SPACES, _TAB)[:first]
    needed = 10 * (n_positions + 1)  # so that a tenth contains one input and its targets
    if len(text) < needed:
        raise UsageError(
            f"The text has {len(text):,} characters, but at least {needed:,} are needed. Its last "
            f"tenth is held out and must have at least {n_positions + 1} characters. "
            "To learn to write words, a model needs about 100,000 characters or more."
        )
    counts = Counter(text)
    if len(counts) > MOST:
        known = {character for character, _ in counts.most_common(MOST - 1)}
        text = "".join(character if character in known else _OTHER for character in text)
    alphabet = Alphabet("".join(sorted(set(text))))
    data = torch.tensor(alphabet.encode(text))
    training, held_out = data.split([len(data) - len(data) // 10, len(data) // 10])
    return TrainingText(alphabet, training, held_out, not files)


def _content(file: Path) -> str:
    if not file.exists():
        file = SHIPPED.get(str(file), file)
    try:
        return file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{file} is not a text in UTF-8: its byte {error.start + 1} is not valid. Save the "
            "file as UTF-8; most editors offer this under Save as."
        ) from None
    except OSError as error:
        raise UsageError(f"{file} can't be read: {error.strerror or error}.") from None


def _library() -> str:
    text = "".join(map(_source, MODULES.split()))
    return "".join(c for c in text if c in "\t\n" or " " <= c <= "~")


def _source(name: str) -> str:
    """Return the source of a module of Python's library, or "" if there is no such module."""
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.has_location or spec.origin is None:
        return ""
    return Path(spec.origin).read_text(encoding="utf-8")
