"""Copy a checkpoint of GPT-2 into the student's GPT, and show the most probable next tokens."""

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
"""The tokens of GPT-2 for "Hello, my dog is cute"."""

SHOWN = 5
"""How many of the most probable tokens are shown."""

WRITTEN = 20
"""How many tokens are written, each the most probable one."""


def explore(file: str, typed: list[int] | None, name: str | None, mine: bool) -> int | str:
    """Load a checkpoint into the student's GPT, print its predictions, and save the model for a
    talk if the checkpoint has characters.

    Args:
        file: the checkpoint, or "course" for the checkpoint of the course.
        typed: the token numbers to continue.
        name: the name of the saved model; by default the name of the file, and no name for the
            course's checkpoint.
        mine: whether to use all of the student's parts, not only the model of 07.

    Returns:
        0, or a sentence about an error.
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
        checkpoint.into(model, loaded)
    else:
        model = parts.load(parts.model(config), loaded.state).eval()
    count = sum(weight.numel() for weight in right.parameters())
    print(f"{len(loaded.state)} tensors fit, each by its name and shape: {count:,} parameters.")
    with torch.no_grad():
        logits, expected = model(tokens[None])[0], right(tokens[None])[0]
    off = float((logits - expected).abs().max())
    print(f"Its logits are those of PyTorch's own transformer, up to {off:.1g}.")
    _show(loaded, model, tokens, logits[0, -1].softmax(-1))
    if loaded.characters:
        kept = saved_models.SavedModel(loaded.config, loaded.state, loaded.characters)
        print(saved_models.save(kept, name))


def _tokens(loaded: Checkpoint, typed: list[int] | None) -> Tensor:
    """Return the tokens to continue.

    Raises:
        UsageError: the model has no such tokens, or not enough positions.
    """
    kinds, places = loaded.config["vocab_size"], loaded.config["n_positions"]
    if not typed and loaded.characters:
        typed = Alphabet(loaded.characters).encode("def __init__(self")
    typed = typed or [token for token in HELLO if token < kinds] or [0]
    if wrong := [token for token in typed if not 0 <= token < kinds]:
        raise UsageError(f"--tokens: there is no token {wrong[0]}; they go from 0 to {kinds - 1}.")
    if len(typed) > places:
        raise UsageError(f"--tokens: the model has room for {places} tokens, not {len(typed)}.")
    return torch.tensor(typed)


@torch.no_grad()
def _show(loaded: Checkpoint, model: Any, tokens: Tensor, probabilities: Tensor) -> None:
    """Print the most probable next tokens and the model's continuation."""

    def name(shown: list[int]) -> str:
        if loaded.characters:
            return repr(Alphabet(loaded.characters).decode(shown))
        return " ".join(map(str, shown))

    print(f"After {name(tokens.tolist())} comes")
    for token in probabilities.topk(min(SHOWN, len(probabilities))).indices.tolist():
        print(f"  {probabilities[token]:6.1%}  {name([token])}")
    text = tokens[None]
    for _ in range(WRITTEN):
        logits, _ = model(text[:, -loaded.config["n_positions"] :])
        text = torch.cat([text, logits[:, -1:].argmax(-1)], dim=1)
    print(f"Each time with the most probable one: {name(text[0].tolist())}")
