"""Save the models that are trained in problem 07, and read them in problems 08 and 09."""

from __future__ import annotations

import argparse
import io
import math
import re
import textwrap
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from grader.errors import UsageError
from grader.files import write_whole
from shared import pictures
from shared.oracles.torch_gpt import TinyGPT

PROBLEM = "07-tiny-gpt"

_TRAIN = """ This takes a minute or two:

    cd ../07-tiny-gpt
    uv run python explore.py
"""

NONE_YET = f"""There is no trained model yet. Train one first.{_TRAIN}
(The option --gpt2 course loads a model that the course has trained.)
"""
"""The message of problems 08 and 09 if there is no saved model."""

_SPOILT = f"The trained model can't be read. Train it again.{_TRAIN}"


@dataclass(frozen=True)
class SavedModel:
    """A trained model.

    Attributes:
        config: the arguments of GPTConfig, by name.
        state: the weights, by GPT-2's names.
        characters: all characters, in the order of their token numbers.
        loss: the loss after training; infinite if it is unknown.
        is_yours: whether the model was trained with the student's code.
        held_out: whether the loss was measured on held-out text.
    """

    config: dict[str, Any]
    state: dict[str, Tensor]
    characters: str
    loss: float = math.inf
    is_yours: bool = False
    held_out: bool = False

    def course_model(self) -> TinyGPT:
        """Return the course's GPT with these weights, in evaluation mode."""
        model = TinyGPT(argparse.Namespace(**self.config))
        model.load_gpt2_weights(self.state)
        return model.eval()

    def is_better_than(self, other: SavedModel) -> bool:
        """Return whether this model is better than the other one.

        A model of the student's code is better than one of the course's code. Next, a loss that was
        measured on held-out text is better than one that was not. Finally, a lower loss is better.
        """
        return self._rank() > other._rank()

    def _rank(self) -> tuple[bool, bool, float]:
        return self.is_yours, self.held_out, -self.loss


def file(name: str = "") -> Path:
    """Return the path of the model with this name: model-NAME.pt, or model.pt without a name."""
    return pictures.folder(PROBLEM) / (f"model-{name}.pt" if name else "model.pt")


def names() -> list[str]:
    """Return the names of the saved models, newest first. The name of model.pt is ""."""
    files = sorted(
        pictures.folder(PROBLEM).glob("model*.pt"), key=lambda path: -path.stat().st_mtime
    )
    return [
        path.stem.removeprefix("model").removeprefix("-")
        for path in files
        if path.stem == "model" or path.stem.startswith("model-")
    ]


def name_for(name: str | None, texts: Sequence[str]) -> str:
    """Return the name under which a model is saved.

    Args:
        name: the name that the user chose, or None.
        texts: the training texts. If `name` is None, the model is named after the first one.

    Raises:
        UsageError: the chosen name is too long or contains a character that is not allowed.
    """
    if name is None:
        return re.sub(r"[^\w-]+", "_", Path(texts[0]).stem)[:40] if texts else ""
    if not re.fullmatch(r"[\w-]{1,40}", name):
        raise UsageError(f"--name {name}: use letters, digits, _ and -, at most 40 of them.")
    return name


def read(name: str = "") -> SavedModel | None:
    """Read the saved model with this name; return None if there is none.

    Raises:
        UsageError: the file can't be read. The message shows how to train the model again.
    """
    if not file(name).is_file():
        return None
    try:
        kept = SavedModel(**torch.load(file(name), weights_only=True))
        kept.course_model()
        if len(kept.characters) != kept.config["vocab_size"]:
            raise ValueError("the number of characters differs from vocab_size")
    except Exception as error:
        reason = textwrap.shorten(f"{type(error).__name__}: {error}", 76, placeholder=" ...")
        raise UsageError(f"{_SPOILT}\n({reason})") from None
    return kept


def read_to_resume(name: str, config: dict[str, Any], characters: str) -> SavedModel:
    """Read the saved model with this name, to continue its training.

    Args:
        name: the name of the model; "" for model.pt.
        config: the expected arguments of GPTConfig, by name.
        characters: the expected characters.

    Raises:
        UsageError: there is no model with this name, or its sizes or characters differ.
    """
    kept = read(name)
    if kept is None:
        raise UsageError(f"There is no {file(name).name} yet. Train it first, without --resume.")
    if (kept.config, kept.characters) != (config, characters):
        raise UsageError(
            f"{file(name).name} was trained on a text with other characters, or has other sizes. "
            "Use --resume with the text of the first training."
        )
    return kept


def save(new: SavedModel, name: str = "") -> str:
    """Save a model unless a better one with this name is saved, and return a message for the user.

    An older model with different characters is always replaced: it belongs to a different text, so
    the losses can't be compared.
    """
    try:
        old = read(name)
    except UsageError:
        old = None
    where = file(name).name
    if old is not None and old.characters == new.characters and old.is_better_than(new):
        whose = "yours" if old.is_yours else "the course's"
        return (
            f"{where} already contains a better model: {whose}, with a loss of {old.loss:.3f}. The "
            "new model is not saved. To save it, delete the file or choose a name with --name."
        )
    whole = io.BytesIO()
    torch.save(asdict(new), whole)
    write_whole(file(name), whole.getvalue())
    return f"The model is saved in {where}."
