"""The model that was trained in problem 07, as it is kept in `model.pt` for 08 and 09."""

from __future__ import annotations

import argparse
import io
import math
import textwrap
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from grader.errors import UsageError
from grader.files import write_whole
from grader.student import pictures
from grader.student.expected_gpt import TinyGPT

PROBLEM = "07-tiny-gpt"

_TRAIN = """ it takes a minute or two:

    cd ../07-tiny-gpt
    uv run python explore.py
"""

NONE_YET = f"There is no trained model yet. Train one first;{_TRAIN}"
"""What to say where there is none, in the folder of a problem beside it."""

_SPOILT = f"The trained model can't be read. Train it again;{_TRAIN}"


@dataclass(frozen=True)
class Trained:
    """A trained model.

    Attributes:
        config: its sizes, by the names of GPTConfig's fields.
        state: its weights, by GPT-2's names.
        characters: all characters, in the order of their token numbers.
        loss: how well it does; infinite where that isn't known.
        is_yours: whether it was the student's code that learned.
    """

    config: dict[str, Any]
    state: dict[str, Tensor]
    characters: str
    loss: float = math.inf
    is_yours: bool = False

    def course_model(self) -> TinyGPT:
        """Return the course's model with these weights."""
        model = TinyGPT(argparse.Namespace(**self.config))
        model.load_gpt2_weights(self.state)
        return model.eval()

    def better_than(self, other: Trained) -> bool:
        """Tell whether it is worth more: a student's own model is, and then a lower loss."""
        return (self.is_yours, -self.loss) > (other.is_yours, -other.loss)


def file() -> Path:
    """Return where the model is kept."""
    return pictures.folder(PROBLEM) / "model.pt"


def read() -> Trained | None:
    """Return the model that is kept; None when there is none.

    Raises:
        UsageError: it can't be read, or isn't whole; the text says what to do.
    """
    if not file().is_file():
        return None
    try:
        kept = Trained(**torch.load(file(), weights_only=True))
        kept.course_model()
        if len(kept.characters) != kept.config["vocab_size"]:
            raise ValueError("it has other characters than tokens")
    except Exception as error:
        reason = textwrap.shorten(f"{type(error).__name__}: {error}", 76, placeholder=" ...")
        raise UsageError(f"{_SPOILT}\n({reason})") from None
    return kept


def keep(new: Trained) -> str:
    """Keep a model unless a better one is kept already, and return a sentence about that."""
    try:
        old = read()
    except UsageError:
        old = None
    if old is not None and old.better_than(new):
        whose = "yours" if old.is_yours else "the course's"
        return (
            f"model.pt holds a better one already: {whose}, with a loss of {old.loss:.3f}. It "
            "stays; delete it to keep another."
        )
    whole = io.BytesIO()
    torch.save(asdict(new), whole)
    write_whole(file(), whole.getvalue())
    return "The model is kept in model.pt."
