"""Build a GPT and train it with PyTorch's built-in parts, for `explore.py` of 07, 09 and 10.

`explore.py` uses this code until the student's code is correct. `CachedReader` is not a solution of
problem 09: its methods do not receive or return a cache, and it reads one new token at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

Attend = Callable[[int, Tensor, Tensor, Tensor], Tensor]
"""Computes the attention of q, k and v; the first argument is the number of the layer."""

_NAMES = {
    "norm1": "ln_1",
    "self_attn.in_proj_": "attn.c_attn.",
    "self_attn.out_proj": "attn.c_proj",
    "norm2": "ln_2",
    "linear1": "mlp.c_fc",
    "linear2": "mlp.c_proj",
    "encoder.layers": "transformer.h",
    "encoder.norm": "transformer.ln_f",
    "tokens": "transformer.wte",
    "places": "transformer.wpe",
}
"""The names of layers in PyTorch's transformer, and the names of the same layers in GPT-2."""


class TinyGPT(nn.Module):
    """A GPT that consists of PyTorch's built-in layers.

    Args:
        config: an object with the fields of problem 07's GPTConfig.
    """

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.config, self.causal = config, True
        width = config.n_embd
        layer = nn.TransformerEncoderLayer(
            width, config.n_head, 4 * width, config.dropout,
            activation=lambda x: F.gelu(x, approximate="tanh"), batch_first=True, norm_first=True,
        )  # fmt: skip
        self.encoder = nn.TransformerEncoder(
            layer, config.n_layer, nn.LayerNorm(width), enable_nested_tensor=False
        )
        self.tokens = nn.Embedding(config.vocab_size, width)
        self.places = nn.Embedding(config.n_positions, width)
        for name, numbers in self.named_parameters():
            if numbers.dim() == 2:
                depth = 2 * config.n_layer if "out_proj" in name or "linear2" in name else 1
                nn.init.normal_(numbers, std=0.02 * depth**-0.5)
            elif "norm" not in name:
                nn.init.zeros_(numbers)

    def forward(self, idx: Tensor, targets: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        """Return logits and loss as GPT.forward of problem 07 does."""
        length = idx.shape[1]
        hidden = self.tokens.weight[idx] + self.places.weight[:length]
        hidden = self.blocks(hidden)
        logits = F.linear(hidden, self.tokens.weight)
        return logits, None if targets is None else F.cross_entropy(logits.mT, targets)

    def blocks(self, hidden: Tensor) -> Tensor:
        """Apply the Blocks and the last LayerNorm to embeddings (B, T, C)."""
        output: Tensor = self.encoder(hidden, mask=self.mask(hidden.shape[1]))
        return output

    def mask(self, length: int) -> Tensor | None:
        """Return the causal mask: -inf for masked entries, 0 for others. None means no mask."""
        if not self.causal:
            return None
        return self.tokens.weight.new_full((length, length), -torch.inf).triu(1)

    def gpt2_weights(self) -> dict[str, Tensor]:
        """Return the weights by GPT-2's names."""
        weights = {gpt2_name(name): weight for name, weight in self.state_dict().items()}
        return weights | {"lm_head.weight": self.tokens.weight.detach()}

    def load_gpt2_weights(self, weights: dict[str, Tensor]) -> None:
        """Load weights that are given by GPT-2's names."""
        self.load_state_dict({name: weights[gpt2_name(name)] for name in self.state_dict()})

    @torch.no_grad()
    def attention_weights(self, idx: Tensor) -> Tensor:
        """Return the attention weights (n_layer, n_head, T, T) for one sequence of shape (T,)."""
        tables: list[Tensor] = []

        def look(layer: Any, inputs: tuple[Tensor, ...], _: object) -> None:
            x = layer.norm1(inputs[0])
            mask = self.mask(len(idx))
            _, weights = layer.self_attn(x, x, x, attn_mask=mask, average_attn_weights=False)
            tables.append(weights[0])

        hooks = [layer.register_forward_hook(look) for layer in self.encoder.layers]
        self(idx[None])
        for hook in hooks:
            hook.remove()
        return torch.stack(tables)


def gpt2_name(name: str) -> str:
    """Convert the name of a weight of PyTorch's transformer to GPT-2's name.

    Other names are returned unchanged.
    """
    for ours, theirs in _NAMES.items():
        name = name.replace(ours, theirs)
    return name


def get_batch(data: Tensor, n_positions: int, batch_size: int) -> tuple[Tensor, Tensor]:
    """Return random pieces of a text, and the same pieces shifted by one token."""
    windows = data.unfold(0, n_positions + 1, 1)
    drawn = windows[torch.randint(len(windows), (batch_size,))]
    return drawn[:, :-1], drawn[:, 1:]


def bigram_loss(data: Tensor, vocab_size: int) -> float:
    """Return the loss of the bigram model in nats.

    It is the entropy of the pairs of tokens minus the entropy of their first tokens.
    """

    def entropy(kinds: Tensor) -> float:
        counts = torch.bincount(kinds).double()
        return float(torch.special.entr(counts / counts.sum()).sum())

    return entropy(data[:-1] * vocab_size + data[1:]) - entropy(data[:-1])


# Training, for problem 10


def softmax_backward(weights: Tensor, grad: Tensor) -> Tensor:
    """Return the gradient with respect to the scores of a softmax with the result `weights`."""
    scores = weights.log().requires_grad_()  # the softmax of these scores is `weights`
    (gradient,) = torch.autograd.grad(scores.softmax(-1), scores, grad)
    return gradient


class AdamW(torch.optim.AdamW):
    """PyTorch's AdamW without `foreach`, and with a learning rate `lr` that can be set."""

    def __init__(self, parameters: Any, **options: Any) -> None:
        super().__init__(parameters, foreach=False, **options)

    @property
    def lr(self) -> float:
        """The learning rate of all parameters."""
        return float(self.param_groups[0]["lr"])

    @lr.setter
    def lr(self, lr: float) -> None:
        for group in self.param_groups:
            group["lr"] = lr


def learning_rate(step: int, warmup: int, total: int, peak: float, floor: float) -> float:
    """Return the learning rate of a step, computed with NumPy's `linspace` and `hanning`."""
    if step < warmup:
        return float(np.linspace(0, peak, warmup + 1)[step + 1])
    length = total - warmup
    wave = np.hanning(2 * length + 1)[length:]  # from 1 down to 0
    return float(floor + (peak - floor) * wave[min(step - warmup, length)])


def train_step(
    model: nn.Module, idx: Tensor, targets: Tensor, optimizer: Any, max_norm: float = 1.0
) -> float:
    """Make a training step with clipped gradients, and return the loss before the step."""
    model.zero_grad()
    loss = _loss(model, idx, targets)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    return loss.item()


def evaluate(model: nn.Module, batches: list[tuple[Tensor, Tensor]]) -> float:
    """Return the mean loss over all tokens of the batches, in evaluation mode."""
    mode = model.training
    model.eval()
    with torch.no_grad():
        losses = [_loss(model, *batch).item() * batch[0].numel() for batch in batches]
    model.train(mode)
    return sum(losses) / sum(idx.numel() for idx, _ in batches)


def _loss(model: nn.Module, idx: Tensor, targets: Tensor) -> Tensor:
    return F.cross_entropy(model(idx).mT, targets)


# Generation with a cache, for problem 09


@dataclass
class CachedReader:
    """A GPT that stores the keys and values of one batch of texts.

    Args:
        weights: the weights by GPT-2's names.
        config: an object with the fields of problem 09's GPTConfig.
    """

    weights: Mapping[str, Tensor]
    config: Any
    length: int = 0
    memory: dict[int, Tensor] = field(default_factory=dict)

    def whole(self, idx: Tensor) -> Tensor:
        """Return the logits of a text (B, T), and store nothing."""
        return self._logits(idx, 0, lambda _, *qkv: _causal(*qkv))

    def read(self, idx: Tensor) -> Tensor:
        """Return the logits of a text (B, T), and store the keys and values of all its tokens."""
        self.length = idx.shape[1]
        return self._logits(idx, 0, self._remember)

    def step(self, token: Tensor) -> Tensor:
        """Return the logits after one more token (B, 1), and store its keys and values."""
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
    """Return random weights by GPT-2's names, large enough for a varied greedy text."""
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
def greedy(reader: CachedReader, prompt: Tensor, n_new: int, *, cached: bool) -> Tensor:
    """Return a prompt (B, T) and its greedy continuation.

    Args:
        reader: the model.
        prompt: the tokens of the prompt.
        n_new: the number of tokens to add.
        cached: whether the model uses the stored keys and values.
    """
    text = prompt
    for number in range(n_new):
        if not cached:
            logits = reader.whole(text)
        else:
            logits = reader.step(text[:, -1:]) if number else reader.read(text)
        text = torch.cat([text, logits[:, -1:].argmax(-1)], dim=1)
    return text
