"""A right model for the picture of problem 09: a GPT that reads a text as a whole or in steps.

`explore.py` counts and times this model until a student's own is right. It keeps its memory to
itself and takes one token at a time, so it is no answer to the problem.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

Attend = Callable[[int, Tensor, Tensor, Tensor], Tensor]
"""What queries gather from keys and values, in the layer of this number."""


@dataclass
class Reader:
    """A GPT with the weights of a `state_dict` under GPT-2's names, and its memory of one text.

    Args:
        weights: the weights.
        config: an object with the fields of problem 09's GPTConfig.
    """

    weights: Mapping[str, Tensor]
    config: Any
    length: int = 0
    memory: dict[int, Tensor] = field(default_factory=dict)

    def whole(self, idx: Tensor) -> Tensor:
        """Return the logits of a whole text (B, T), and remember nothing."""
        return self._logits(idx, 0, lambda _, *qkv: _causal(*qkv))

    def read(self, idx: Tensor) -> Tensor:
        """Return the logits of a text (B, T), and keep keys and values of all its tokens."""
        self.length = idx.shape[1]
        return self._logits(idx, 0, self._remember)

    def step(self, token: Tensor) -> Tensor:
        """Return the logits of one more token (B, 1), and keep its keys and values."""
        self.length += 1
        return self._logits(token, self.length - 1, self._recall)

    def _remember(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        room = (2, *k.shape[:2], self.config.n_positions, k.shape[3])
        self.memory[layer] = k.new_zeros(room)
        self.memory[layer][:, :, :, : self.length] = torch.stack([k, v])
        return _causal(q, k, v)

    def _recall(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        held = self.memory[layer]
        held[:, :, :, self.length - 1 : self.length] = torch.stack([k, v])
        return F.scaled_dot_product_attention(q, *held[:, :, :, : self.length])

    def _logits(self, idx: Tensor, first: int, attend: Attend) -> Tensor:
        kinds = self.weights["transformer.wte.weight"]
        places = self.weights["transformer.wpe.weight"]
        x = F.embedding(idx, kinds) + places[first : first + idx.shape[1]]
        for layer in range(self.config.n_layer):
            x = x + self._attention(layer, self._norm(f"h.{layer}.ln_1", x), attend)
            hidden = self._linear(f"h.{layer}.mlp.c_fc", self._norm(f"h.{layer}.ln_2", x))
            hidden = F.gelu(hidden, approximate="tanh")
            x = x + self._linear(f"h.{layer}.mlp.c_proj", hidden)
        return self._norm("ln_f", x) @ kinds.T

    def _attention(self, layer: int, x: Tensor, attend: Attend) -> Tensor:
        thirds = self._linear(f"h.{layer}.attn.c_attn", x).chunk(3, dim=-1)
        q, k, v = (t.unflatten(-1, (self.config.n_head, -1)).transpose(1, 2) for t in thirds)
        y = attend(layer, q, k, v).transpose(1, 2).flatten(2)
        return self._linear(f"h.{layer}.attn.c_proj", y)

    def _linear(self, name: str, x: Tensor) -> Tensor:
        name = f"transformer.{name}"
        return F.linear(x, self.weights[f"{name}.weight"], self.weights.get(f"{name}.bias"))

    def _norm(self, name: str, x: Tensor) -> Tensor:
        name = f"transformer.{name}"
        weight, bias = self.weights[f"{name}.weight"], self.weights.get(f"{name}.bias")
        return F.layer_norm(x, x.shape[-1:], weight, bias)


def _causal(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def fresh_weights(config: Any) -> dict[str, Tensor]:
    """Return weights of a model that has learned nothing, large enough for its text to vary."""
    width = config.n_embd
    shapes = {"wte": (config.vocab_size, width), "wpe": (config.n_positions, width)}
    for layer in range(config.n_layer):
        shapes |= {
            f"h.{layer}.attn.c_attn": (3 * width, width),
            f"h.{layer}.attn.c_proj": (width, width),
            f"h.{layer}.mlp.c_fc": (4 * width, width),
            f"h.{layer}.mlp.c_proj": (width, 4 * width),
        }
    weights = {
        f"{name}.weight": torch.randn(shape) * (0.5 if name == "wte" else _size(name, shape))
        for name, shape in shapes.items()
    }
    for name in [f"h.{layer}.{ln}" for layer in range(config.n_layer) for ln in ("ln_1", "ln_2")]:
        weights[f"{name}.weight"], weights[f"{name}.bias"] = torch.ones(width), torch.zeros(width)
    weights["ln_f.weight"], weights["ln_f.bias"] = torch.ones(width), torch.zeros(width)
    weights |= {f"{n}.bias": torch.zeros(s[0]) for n, s in shapes.items() if n.startswith("h.")}
    named = {f"transformer.{name}": weight for name, weight in weights.items()}
    return named | {"lm_head.weight": named["transformer.wte.weight"]}


def _size(name: str, shape: tuple[int, ...]) -> float:
    return 1.0 if name == "wpe" else float(shape[1] ** -0.5)


@torch.no_grad()
def greedy(reader: Reader, prompt: Tensor, n_new: int, *, cached: bool) -> Tensor:
    """Return a prompt (B, T) with so many tokens more, with or without the reader's memory."""
    text = prompt
    for number in range(n_new):
        if not cached:
            logits = reader.whole(text)
        else:
            logits = reader.step(text[:, -1:]) if number else reader.read(text)
        text = torch.cat([text, logits[:, -1:].argmax(-1)], dim=1)
    return text
