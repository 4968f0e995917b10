"""Right answers of a GPT from PyTorch's built-in transformer, for problem 07's `explore.py`.

`explore.py` trains this model until the student's own is right.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

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
"""What PyTorch calls the parts of its transformer, and what GPT-2 calls them."""


class TinyGPT(nn.Module):
    """A GPT of PyTorch's parts that reads and returns weights under GPT-2's names.

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
        """Return logits and loss, as problem 07 asks for."""
        length = idx.shape[1]
        hidden = self.tokens.weight[idx] + self.places.weight[:length]
        hidden = self.blocks(hidden)
        logits = F.linear(hidden, self.tokens.weight)
        return logits, None if targets is None else F.cross_entropy(logits.mT, targets)

    def blocks(self, hidden: Tensor) -> Tensor:
        """Apply the blocks and the last norm to embeddings (B, T, C)."""
        found: Tensor = self.encoder(hidden, mask=self.mask(hidden.shape[1]))
        return found

    def mask(self, length: int) -> Tensor | None:
        """Return -inf where a token may not look, 0 elsewhere; None if it may look everywhere."""
        if not self.causal:
            return None
        return self.tokens.weight.new_full((length, length), -torch.inf).triu(1)

    def gpt2_weights(self) -> dict[str, Tensor]:
        """Return the weights under GPT-2's names."""
        weights = {gpt2_name(name): weight for name, weight in self.state_dict().items()}
        return weights | {"lm_head.weight": self.tokens.weight.detach()}

    def load_gpt2_weights(self, weights: dict[str, Tensor]) -> None:
        """Take the weights that stand under GPT-2's names."""
        self.load_state_dict({name: weights[gpt2_name(name)] for name in self.state_dict()})

    @torch.no_grad()
    def attention_weights(self, idx: Tensor) -> Tensor:
        """Return who looks at whom for one sequence, shape (T,): (n_layer, n_head, T, T)."""
        found: list[Tensor] = []

        def look(layer: Any, inputs: tuple[Tensor, ...], _: object) -> None:
            x = layer.norm1(inputs[0])
            mask = self.mask(len(idx))
            _, weights = layer.self_attn(x, x, x, attn_mask=mask, average_attn_weights=False)
            found.append(weights[0])

        hooks = [layer.register_forward_hook(look) for layer in self.encoder.layers]
        self(idx[None])
        for hook in hooks:
            hook.remove()
        return torch.stack(found)


def gpt2_name(name: str) -> str:
    """Return what GPT-2 calls a weight of PyTorch's transformer; other names stay."""
    for ours, theirs in _NAMES.items():
        name = name.replace(ours, theirs)
    return name


def get_batch(data: Tensor, n_positions: int, batch_size: int) -> tuple[Tensor, Tensor]:
    """Return pieces of a text, and the same one token further."""
    windows = data.unfold(0, n_positions + 1, 1)
    drawn = windows[torch.randint(len(windows), (batch_size,))]
    return drawn[:, :-1], drawn[:, 1:]


def bigram_loss(data: Tensor, vocab_size: int) -> float:
    """Return the loss of the bigram model: the entropy of pairs less that of their first tokens."""

    def entropy(kinds: Tensor) -> float:
        counts = torch.bincount(kinds).double()
        return float(torch.special.entr(counts / counts.sum()).sum())

    return entropy(data[:-1] * vocab_size + data[1:]) - entropy(data[:-1])
