"""Load a GPT-2 checkpoint into the student's GPT, and print the most probable next tokens."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from grader.errors import UsageError
from shared import checkpoint, saved_models, student_parts
from shared.checkpoint import Checkpoint
from shared.oracles.torch_gpt import TinyGPT
from shared.training_text import Alphabet

HELLO = [15496, 11, 616, 3290, 318, 13779]
"""GPT-2's tokens of "Hello, my dog is cute"."""

SHOWN = 5
"""The number of most probable next tokens that are printed."""

WRITTEN = 20
"""The number of tokens that greedy decoding adds to the text."""


def explore(file: str, typed: list[int] | None, name: str | None, mine: bool) -> int | str:
    """Load a checkpoint into the student's GPT and print its predictions.

    If the checkpoint contains characters, also save the model for `--talk`.

    Args:
        file: the path of the checkpoint, or "course" for the checkpoint of the course.
        typed: the token numbers to continue; None for a default text.
        name: the name of the saved model. If it is None, the model is named after the file. The
            course's checkpoint then has the name "".
        mine: whether to use the student's code of problems 01, 05 and 06 in addition to 07.

    Returns:
        0, or an error message.
    """
    try:
        path = checkpoint.COURSE_MODEL if file == "course" else Path(file)
        _explore(path, typed, saved_models.name_for(name, [] if file == "course" else [file]), mine)
    except UsageError as error:
        return str(error)
    return 0


def _explore(file: Path, typed: list[int] | None, name: str, mine: bool) -> None:
    loaded = checkpoint.load(file)
    config = Namespace(**loaded.config)
    tokens = _tokens(loaded, typed)
    parts = student_parts.load_parts(student_parts.TRAINING[:4] if mine else ["model"])
    print(parts.summary())
    right = TinyGPT(config).eval()
    right.load_gpt2_weights(loaded.state)
    if parts["model"]:
        model = parts.model(config).eval()
        checkpoint.copy_into(model, loaded)
    else:
        model = parts.load(parts.model(config), loaded.state).eval()
    count = sum(weight.numel() for weight in right.parameters())
    print(f"All {len(loaded.state)} tensors match by name and shape: {count:,} parameters.")
    with torch.no_grad():
        logits, expected = model(tokens[None])[0], right(tokens[None])[0]
    off = float((logits - expected).abs().max())
    print(f"The largest difference from the logits of PyTorch's own transformer is {off:.1g}.")
    _show(loaded, model, tokens, logits[0, -1].softmax(-1))
    if loaded.characters:
        kept = saved_models.SavedModel(loaded.config, loaded.state, loaded.characters)
        print(saved_models.save(kept, name))


def _tokens(loaded: Checkpoint, typed: list[int] | None) -> Tensor:
    """Return the typed tokens, or default tokens if none are typed.

    Raises:
        UsageError: a token number is out of range, or there are more tokens than positions.
    """
    kinds, places = loaded.config["vocab_size"], loaded.config["n_positions"]
    if not typed and loaded.characters:
        typed = Alphabet(loaded.characters).encode("def __init__(self")
    typed = typed or [token for token in HELLO if token < kinds] or [0]
    if wrong := [token for token in typed if not 0 <= token < kinds]:
        raise UsageError(
            f"--tokens: there is no token {wrong[0]}; tokens are from 0 to {kinds - 1}."
        )
    if len(typed) > places:
        raise UsageError(f"--tokens: the model reads at most {places} tokens, not {len(typed)}.")
    return torch.tensor(typed)


@torch.no_grad()
def _show(loaded: Checkpoint, model: Any, tokens: Tensor, probabilities: Tensor) -> None:
    """Print the most probable next tokens, and a greedy continuation of the text."""

    def name(shown: list[int]) -> str:
        if loaded.characters:
            return repr(Alphabet(loaded.characters).decode(shown))
        return " ".join(map(str, shown))

    print(f"The most probable tokens after {name(tokens.tolist())}:")
    for token in probabilities.topk(min(SHOWN, len(probabilities))).indices.tolist():
        print(f"  {probabilities[token]:6.1%}  {name([token])}")
    text = tokens[None]
    for _ in range(WRITTEN):
        logits, _ = model(text[:, -loaded.config["n_positions"] :])
        text = torch.cat([text, logits[:, -1:].argmax(-1)], dim=1)
    print(f"The text when each next token is the most probable one: {name(text[0].tolist())}")
