"""Convert a GPT-2 checkpoint, a safetensors file, to the weights of problem 07's GPT.

GPT-2's layers are called Conv1D, and their matrices have the shape (inputs, outputs). The matrices
of nn.Linear have the shape (outputs, inputs). So four matrices of each block are transposed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from grader.errors import UsageError

COURSE_MODEL = Path(__file__).with_name("course_model.safetensors")
"""The weights, in half precision, of a small model that was trained on the text of problem 07."""

_PREFIX = "transformer."
_CONV1D = re.compile(r"h\.\d+\.(attn\.c_attn|attn\.c_proj|mlp\.c_fc|mlp\.c_proj)\.weight")
_BUFFER = re.compile(r"h\.\d+\.attn\.(bias|masked_bias)")
_SHOWN = 6
"""The largest number of tensor names in one line of an error message."""


@dataclass(frozen=True)
class Checkpoint:
    """The weights and sizes of a GPT of problem 07.

    Attributes:
        config: the arguments of GPTConfig, by name.
        state: the weights in float32, by their names in the GPT's state_dict.
        characters: the character of each token, or "" if the file does not contain them.
    """

    config: dict[str, Any]
    state: dict[str, Tensor]
    characters: str = ""


def load(file: Path) -> Checkpoint:
    """Read a GPT from a safetensors file.

    Raises:
        UsageError: the file can't be read or contains no GPT-2. The message gives the reason.
    """
    tensors, metadata = read_tensors(file)
    config = config_of(tensors, _heads(file, metadata))
    state = from_gpt2(tensors, config)
    characters = metadata.get("characters", "")
    if len(characters) != config["vocab_size"]:
        characters = ""
    return Checkpoint(config, state, characters)


def copy_into(model: nn.Module, checkpoint: Checkpoint) -> None:
    """Copy the weights of a checkpoint into a GPT of problem 07.

    Raises:
        UsageError: the model lacks a weight, or a weight has a different shape. The message lists
            these weights.
    """
    weights = model.state_dict()
    shapes = {name: tuple(weight.shape) for name, weight in checkpoint.state.items()}
    trouble = _listed("Missing in your GPT", shapes.keys() - weights.keys())
    trouble += [
        f"Your {name} has shape {tuple(weights[name].shape)} instead of {shape}."
        for name, shape in shapes.items()
        if name in weights and tuple(weights[name].shape) != shape
    ]
    if trouble:
        raise UsageError("\n".join(["The checkpoint doesn't fit your GPT.", *trouble]))
    model.load_state_dict(checkpoint.state, strict=False)


# The file


def read_tensors(file: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Return the tensors of a safetensors file by name, and the metadata of the file.

    Raises:
        UsageError: the file can't be read or is not a safetensors file.
    """
    try:
        with safe_open(file, "pt") as opened:
            names = opened.keys()
            return {name: opened.get_tensor(name) for name in names}, opened.metadata() or {}
    except OSError as error:
        raise UsageError(f"{file} can't be read: {error}.") from None
    except SafetensorError as error:
        raise UsageError(f"{file} is not a safetensors file, or it is damaged ({error}).") from None


# GPT-2's layout


def _heads(file: Path, metadata: dict[str, str]) -> int | None:
    """Return n_head from the metadata, or from config.json next to the file.

    Return None if neither contains it.
    """
    try:
        config = json.loads(file.with_name("config.json").read_text("utf-8"))
    except (OSError, ValueError):
        config = {}
    n_head = metadata.get("n_head", config.get("n_head") if isinstance(config, dict) else None)
    return int(str(n_head)) if str(n_head).isdigit() else None


def config_of(tensors: Mapping[str, Tensor], n_head: int | None = None) -> dict[str, Any]:
    """Infer the arguments of GPTConfig from the shapes of a GPT-2's tensors.

    Args:
        tensors: the tensors by GPT-2's names, with or without the prefix `transformer.`.
        n_head: the number of heads, which can't be inferred from shapes. If it is None, head_dim
            is 64, as in every GPT-2.

    Raises:
        UsageError: an embedding table is missing, or n_embd is not a multiple of n_head.
    """
    plain = _plain(tensors)
    for name in ("wte.weight", "wpe.weight"):
        if name not in plain or plain[name].dim() != 2:
            raise UsageError(f"The tensor {name} is missing, so this is not a GPT-2 checkpoint.")
    (vocab_size, width), n_positions = plain["wte.weight"].shape, len(plain["wpe.weight"])
    layers = {int(name.split(".")[1]) for name in plain if re.match(r"h\.\d+\.", name)}
    n_head = n_head or max(1, width // 64)
    if width % n_head:
        raise UsageError(f"A width of {width} is not a multiple of {n_head} heads.")
    return {
        "vocab_size": vocab_size,
        "n_positions": n_positions,
        "n_embd": width,
        "n_layer": max(layers, default=-1) + 1,
        "n_head": n_head,
        "dropout": 0.0,
        "bias": "h.0.attn.c_attn.bias" in plain or not layers,
    }


def from_gpt2(tensors: Mapping[str, Tensor], config: Mapping[str, Any]) -> dict[str, Tensor]:
    """Convert the tensors of a GPT-2 to the weights of problem 07's GPT.

    Args:
        tensors: the tensors by GPT-2's names, with or without the prefix `transformer.`.
            `lm_head.weight` may be missing, as it equals `wte.weight`. The buffers `attn.bias` and
            `attn.masked_bias` are ignored.
        config: the arguments of GPTConfig, by name.

    Returns:
        All weights in float32, including `lm_head.weight`, by the names of problem 07's GPT.
        Matrices have the layout of nn.Linear.

    Raises:
        UsageError: a tensor is missing, unknown or has a wrong shape. The message lists these
            tensors.
    """
    plain, shapes = _plain(tensors), _shapes(config)
    plain = {name: tensor for name, tensor in plain.items() if not _BUFFER.fullmatch(name)}
    head = plain.pop("lm_head.weight", None)
    trouble = _listed("Missing", shapes.keys() - plain.keys())
    trouble += _listed("Unknown", plain.keys() - shapes.keys())
    for name in sorted(shapes.keys() & plain.keys()):
        shape, expected = tuple(plain[name].shape), shapes[name]
        if shape == expected:
            continue
        hint = ""
        if _CONV1D.fullmatch(name) and shape == expected[::-1]:
            hint = " This is the layout of nn.Linear; GPT-2's files use (inputs, outputs)."
        trouble.append(f"{name} has shape {shape} instead of {expected}.{hint}")
    if head is not None and not trouble and not torch.equal(head, plain["wte.weight"]):
        trouble.append("lm_head.weight and wte.weight differ, but in GPT-2 they are one table.")
    if trouble:
        raise UsageError("\n".join(["The file does not contain a GPT-2 of this size.", *trouble]))
    state = {
        _PREFIX + name: (plain[name].mT if _CONV1D.fullmatch(name) else plain[name])
        .float()
        .contiguous()
        for name in shapes
    }
    return state | {"lm_head.weight": state["transformer.wte.weight"]}


def _plain(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(_PREFIX): tensor for name, tensor in tensors.items()}


def _shapes(config: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """Return the shape of each tensor in a GPT-2 checkpoint; `config` contains the sizes."""
    width = config["n_embd"]
    shapes: dict[str, tuple[int, ...]] = {
        "wte.weight": (config["vocab_size"], width),
        "wpe.weight": (config["n_positions"], width),
    }
    for layer in range(config["n_layer"]):
        for norm in ("ln_1", "ln_2"):
            shapes[f"h.{layer}.{norm}.weight"] = shapes[f"h.{layer}.{norm}.bias"] = (width,)
        for name, inputs, outputs in (
            ("attn.c_attn", width, 3 * width),
            ("attn.c_proj", width, width),
            ("mlp.c_fc", width, 4 * width),
            ("mlp.c_proj", 4 * width, width),
        ):
            shapes[f"h.{layer}.{name}.weight"] = (inputs, outputs)
            shapes[f"h.{layer}.{name}.bias"] = (outputs,)
    shapes["ln_f.weight"] = shapes["ln_f.bias"] = (width,)
    return {n: s for n, s in shapes.items() if config["bias"] or not n.endswith(".bias")}


def _listed(label: str, names: Iterable[str]) -> list[str]:
    """Return a list with one error line `label: names`, or an empty list if there are no names."""
    names = sorted(names)
    if not names:
        return []
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return [f"{label}: {', '.join(names[:_SHOWN])}{more}."]
