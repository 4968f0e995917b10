"""Build a GPT from the student's code of several problems.

`explore.py --mine` of problem 07 trains this GPT, and `explore.py --talk --mine` of 08 generates
text with it. The GPT from 07 contains the Block from 06, the Block contains the attention from 05,
and the attention calls the softmax from 01. The course's code replaces each part that is not
correct yet.
"""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from shared import pictures
from shared.oracles import torch_gpt
from shared.oracles.torch_gpt import TinyGPT, gpt2_name

CONFIG = Namespace(
    vocab_size=11, n_positions=8, n_embd=12, n_layer=2, n_head=3, dropout=0.0, bias=True
)
"""The arguments of GPTConfig for the small model with which parts are checked."""

TRAINING = ("softmax", "attention", "block", "model", "training step")
GENERATION = ("sampling", "cache")

_PROBLEMS = {
    "softmax": "01-softmax",
    "attention": "05-multi-head-attention",
    "block": "06-transformer-block",
    "model": "07-tiny-gpt",
    "training step": "10-training-step",
    "sampling": "08-sampling",
    "cache": "09-kv-cache",
}


@dataclass
class Part:
    """A part of the model: the student's code or the course's.

    Attributes:
        name: the name of the part, such as "attention".
        problem_id: the problem in which the student writes the part.
        module: the student's imported file, or None if the course's code is used.
        remark: the reason why the student's code isn't used, as a sentence; "" if it is used.
    """

    name: str
    problem_id: str
    module: ModuleType | None
    remark: str = ""

    def __str__(self) -> str:
        return f"{self.name} " + (
            f"yours, {self.problem_id[:2]}" if self.module else "the course's"
        )


@dataclass
class Parts:
    """The parts of a model, by name."""

    parts: dict[str, Part] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Any:
        """Return the student's imported file for a part, or None if the course's code is used."""
        return self.parts[name].module if name in self.parts else None

    def summary(self) -> str:
        """Return one line that lists all parts, followed by the remarks on unused parts."""
        line = " · ".join(map(str, self.parts.values()))
        return "\n".join([line, *(part.remark for part in self.parts.values() if part.remark)])

    def omit(self, name: str, why: str) -> None:
        """Replace a part of the student's code by the course's, although the part is correct.

        Args:
            name: the name of the part.
            why: the reason, as the rest of a sentence after "but".
        """
        part = self.parts[name]
        part.module = None
        part.remark = f"{name}: yours, {part.problem_id[:2]}, is correct, but {why}."

    @property
    def step(self) -> Any:
        """The module that defines AdamW and train_step: the student's or the course's."""
        return self["training step"] or torch_gpt

    def model(self, config: Namespace, called: set[str] | None = None) -> Any:
        """Return a new GPT that consists of these parts.

        Args:
            config: the arguments of GPTConfig.
            called: a set to which the model adds the name of each of the student's parts that it
                calls.
        """
        called = set() if called is None else called
        if self["model"]:
            model = self["model"].GPT(self["model"].GPTConfig(**vars(config)))
            blocks = model.get_submodule("transformer.h")
        else:
            model = _GPTWithStudentBlocks(config) if self["block"] else TinyGPT(config)
            blocks = model.encoder.layers
        sizes = {"dropout": config.dropout, "bias": config.bias}
        for number in map(str, range(config.n_layer)):
            if self["block"]:
                block = self["block"].Block(config.n_embd, config.n_head, **sizes)
                _replace_module(blocks, number, block)
                block.register_forward_pre_hook(lambda *_: called.add("block"))
            if self["attention"]:
                attention = self["attention"].MultiHeadAttention(
                    config.n_embd, config.n_head, causal=True, **sizes
                )
                _replace_module(blocks.get_submodule(number), "attn", attention)
                attention.register_forward_pre_hook(lambda *_: called.add("attention"))
            if self["softmax"]:
                _replace_softmax(
                    blocks.get_submodule(f"{number}.attn"), self["softmax"].softmax, called
                )
        return model

    def weights(self, model: Any) -> dict[str, Tensor]:
        """Return the weights of a model by GPT-2's names."""
        state = model.state_dict() if self["model"] else model.gpt2_weights()
        return {name: weight.detach() for name, weight in state.items()}

    def load(self, model: Any, weights: dict[str, Tensor]) -> Any:
        """Load weights, given by GPT-2's names, into a model, and return the model."""
        if self["model"]:
            model.load_state_dict(weights, strict=False)
        else:
            model.load_gpt2_weights(weights)
        return model


class _GPTWithStudentBlocks(TinyGPT):
    """The course's GPT with the student's Blocks, which apply the causal mask themselves."""

    def blocks(self, hidden: Tensor) -> Tensor:
        for layer in self.encoder.layers:
            hidden = layer(hidden)
        normed: Tensor = self.encoder.norm(hidden)  # type: ignore[misc]
        return normed


class LogitsOnly(nn.Module):
    """A GPT that returns only the logits, as the functions of problem 10 expect."""

    def __init__(self, gpt: nn.Module) -> None:
        super().__init__()
        self.gpt = gpt

    def forward(self, idx: Tensor) -> Tensor:
        """Return the logits (B, T, V)."""
        logits: Tensor = self.gpt(idx)[0]
        return logits


def _replace_module(parent: nn.Module, name: str, new: nn.Module) -> None:
    """Replace the submodule `name` by `new`, which receives the weights of the old one."""
    old = parent.get_submodule(name).state_dict()
    new.load_state_dict({gpt2_name(name): weight for name, weight in old.items()}, strict=False)
    parent.register_module(name, new)


# The softmax of 01 inside the attention of 05


class _ReplacedSoftmax(TorchFunctionMode):
    """Replaces calls of PyTorch's softmax by calls of `softmax`."""

    def __init__(self, softmax: Callable[[Tensor, int], Tensor]) -> None:
        super().__init__()
        self.softmax = softmax

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if func in (torch.softmax, Tensor.softmax, F.softmax) and kwargs.get("dtype") is None:
            x = args[0] if args else kwargs["input"]
            dim = args[1] if len(args) > 1 else kwargs.get("dim")
            if len(args) < 3 and dim is not None:
                return self.softmax(x, dim)
        return func(*args, **kwargs)


def _replace_softmax(
    attention: Any, softmax: Callable[[Tensor, int], Tensor], called: set[str]
) -> None:
    """Make an attention call `softmax` instead of PyTorch's. A call adds "softmax" to `called`."""
    forward = attention.forward

    def recorded_softmax(x: Tensor, dim: int) -> Tensor:
        called.add("softmax")
        return softmax(x, dim)

    def with_replaced_softmax(*args: Any, **kwargs: Any) -> Any:
        with _ReplacedSoftmax(recorded_softmax):
            return forward(*args, **kwargs)

    attention.forward = with_replaced_softmax


# The correct parts


def load_parts(names: Sequence[str] = TRAINING) -> Parts:
    """Return the named parts: the student's code if it is correct, otherwise the course's."""
    with torch.random.fork_rng(devices=[]):
        parts = _checked_parts(names)
        _omit_unusable(parts)
    return parts


def _checked_parts(names: Sequence[str]) -> Parts:
    parts, checks = Parts(), _checks()
    for name in names:
        problem_id, (compute, expected) = _PROBLEMS[name], checks[name]
        loaded: list[ModuleType] = []

        def ask(
            problem_id: str = problem_id,
            compute: Callable[[Any], Tensor] = compute,
            loaded: list[ModuleType] = loaded,
        ) -> Tensor:
            loaded.append(pictures.students_module(problem_id))
            return compute(loaded[0])

        _, trouble = pictures.judged(ask, expected())
        if trouble:
            remark = f"{name}: yours, {problem_id[:2]}, {trouble}."
            parts.parts[name] = Part(name, problem_id, None, remark)
        else:
            parts.parts[name] = Part(name, problem_id, loaded[0])
    return parts


def _omit_unusable(parts: Parts) -> None:
    """Replace the student's parts that the model does not call or that don't fit other parts."""
    if parts["attention"] and not parts["block"] and not parts["model"]:
        parts.omit("attention", "it needs a block of yours, from 06 or 07")
    if parts["softmax"] and not parts["attention"]:
        parts.omit("softmax", "it needs your attention, from 05")
    called = _called_parts(parts)
    for name in ("softmax", "attention", "block"):
        if parts[name] and called is not None and name not in called:
            parts.omit(name, "your other parts do not call it")
    for name in ("softmax", "attention", "block", "model"):
        if parts[name] and not _is_correct(parts):
            parts.omit(name, "with your other parts the results are wrong")


def _called_parts(parts: Parts) -> set[str] | None:
    """Return the names of the parts that the model calls, or None if the model fails."""
    called: set[str] = set()
    try:
        parts.model(CONFIG, called)(TOKENS)
    except Exception:
        return None
    return called


def _is_correct(parts: Parts) -> bool:
    """Return whether the model of these parts has the expected logits, loss and gradient."""
    right = _reference_model()

    def whole() -> Tensor:
        return _results(parts.load(parts.model(CONFIG).double(), right.gpt2_weights()))

    return not pictures.judged(whole, _results(right))[1]


# The expected results

TOKENS = torch.tensor([[3, 1, 4, 1, 5, 9], [2, 6, 5, 3, 5, 8]])


def _reference_model() -> TinyGPT:
    """Return PyTorch's GPT, with weights for which a mistake in any part changes the results."""
    model, generator = TinyGPT(CONFIG).double(), torch.Generator().manual_seed(30)
    for weight in model.parameters():
        weight.data = torch.randn(weight.shape, generator=generator).double() * 0.4
    return model


def _results(model: Any) -> Tensor:
    """Return a GPT's logits and loss for TOKENS, and the gradient of its token embedding."""
    logits, loss = model(TOKENS, TOKENS.roll(-1, 1))
    table = model.tokens if isinstance(model, TinyGPT) else model.lm_head
    (gradient,) = torch.autograd.grad(loss, table.weight)
    return torch.cat([logits.flatten(), loss.reshape(1), gradient.flatten()])


def _output_and_gradient(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """Return the output of a function for x, and the gradient with respect to x."""
    x = x.clone().requires_grad_()
    y = function(x)
    upstream = torch.linspace(-1, 2, y.numel(), dtype=torch.float64).view(y.shape)
    (gradient,) = torch.autograd.grad(y, x, upstream)
    return torch.cat([y.flatten(), gradient.flatten()])


def _checks() -> dict[str, tuple[Callable[[Any], Tensor], Callable[[], Tensor]]]:
    """Return two functions for each part.

    The first function computes a result with the student's imported file. The second function
    returns the expected result.
    """
    right = _reference_model()
    weights, layer = right.gpt2_weights(), right.encoder.layers[0]
    sizes = {"dropout": 0.0, "bias": True}
    generator = torch.Generator().manual_seed(31)
    x = torch.randn(2, 6, CONFIG.n_embd, generator=generator).double()
    mask = right.mask(6)
    scores = 6 * torch.randn(3, 4, 5, generator=generator).double()
    scores[1] += 300
    scores[:, :2, 3:] = -torch.inf

    def loaded(module: nn.Module, prefix: str) -> nn.Module:
        inner = {n.removeprefix(prefix): w for n, w in weights.items() if n.startswith(prefix)}
        module.double().load_state_dict(inner, strict=False)
        return module

    def softmax(code: Any) -> Tensor:
        return _output_and_gradient(lambda scores: code.softmax(scores, -1), scores)

    def attention(code: Any) -> Tensor:
        module = code.MultiHeadAttention(CONFIG.n_embd, CONFIG.n_head, causal=True, **sizes)
        return _output_and_gradient(loaded(module, "transformer.h.0.attn."), x)

    def block(code: Any) -> Tensor:
        module = code.Block(CONFIG.n_embd, CONFIG.n_head, **sizes)
        return _output_and_gradient(loaded(module, "transformer.h.0."), x)

    def model(code: Any) -> Tensor:
        return _results(loaded(code.GPT(code.GPTConfig(**vars(CONFIG))), ""))

    def cache(code: Any) -> Tensor:
        model = loaded(code.CachedGPT(code.GPTConfig(**vars(CONFIG))), "").eval()
        with torch.no_grad():
            first, past = model(TOKENS[:, :3])
            second, past = model(TOKENS[:, 3:4], past)
            return torch.cat([first, second, model(TOKENS[:, 4:], past)[0]], dim=1)

    def attend(x: Tensor) -> Tensor:
        output: Tensor = layer.self_attn(x, x, x, attn_mask=mask)[0]
        return output

    return {
        "softmax": (softmax, lambda: softmax(torch)),
        "attention": (attention, lambda: _output_and_gradient(attend, x)),
        "block": (block, lambda: _output_and_gradient(lambda x: layer(x, src_mask=mask), x)),
        "model": (model, lambda: _results(right)),
        "training step": (_training_results, lambda: _training_results(torch_gpt)),
        "sampling": (_sampled_tokens, lambda: _EXPECTED_DRAWS),
        "cache": (cache, lambda: right(TOKENS)[0].detach()),
    }


def _training_results(code: Any) -> Tensor:
    """Return losses of three training steps, the loss of `evaluate`, and some learning rates."""
    model = LogitsOnly(_reference_model())
    optimizer = code.AdamW(model.parameters(), lr=0.01)
    batches = [(TOKENS, TOKENS.roll(-1, 1)), (TOKENS[:1, :3], TOKENS[:1, 1:4])]
    losses = [code.train_step(model, *batches[0], optimizer) for _ in range(2)]
    optimizer.lr = 0.03
    losses.append(code.train_step(model, *batches[0], optimizer))
    rates = [code.learning_rate(step, 5, 20, 0.1, 0.01) for step in (0, 4, 5, 11, 19, 25)]
    return torch.tensor([*losses, code.evaluate(model, batches), *rates], dtype=torch.float64)


_FILTERS: tuple[dict[str, Any], ...] = (
    {"top_k": 2},
    {"top_p": 0.9},
    {"temperature": 2.0, "top_k": 4, "top_p": 0.8},
    {"temperature": 0},
)
_EXPECTED_DRAWS = torch.tensor([[0, 1, 0, 0, 1], [0, 1, 0, 1, 1], [0, 1, 0, 1, 1], [0, 1, 0, 0, 0]])


def _sampled_tokens(code: Any) -> Tensor:
    """Return a row per filter and a column per token: 1 if `sample` drew the token, else 0."""
    logits = torch.tensor([[1.0, 4.0, 0.0, 2.0, 3.0]]).repeat(500, 1)
    drawn = [code.sample(logits.clone(), **options) for options in _FILTERS]
    return torch.stack([tokens.bincount(minlength=5) > 0 for tokens in drawn]).long()


# Generation with a cache


class CachedLogits:
    """Compute the logits of the next token with a key-value cache.

    The first token in the cache has position 0. If the cache is full, it is emptied, and the model
    reads the last n_positions // 2 tokens again.

    Args:
        model: a CachedGPT of problem 09.
        n_positions: the largest number of tokens in the cache.
    """

    def __init__(self, model: Any, n_positions: int) -> None:
        self.model, self.n_positions = model, n_positions
        self.read: list[int] = []
        self.past: Any = None
        self.dropped = 0

    @torch.no_grad()
    def __call__(self, tokens: list[int]) -> Tensor:
        """Return the logits for the token after `tokens`, shape (1, V)."""
        known = self.read
        if not (known and tokens[: len(known)] == known and len(tokens) > len(known)):
            self.past, self.dropped = None, max(0, len(tokens) - self.n_positions)
        elif len(tokens) - self.dropped > self.n_positions:
            self.past, self.dropped = None, len(tokens) - self.n_positions // 2
        start = self.dropped if self.past is None else len(known)
        logits, self.past = self.model(torch.tensor([tokens[start:]]), self.past)
        self.read = list(tokens)
        last: Tensor = logits[:, -1]
        return last


def seconds_per_step(step_code: Any, model: nn.Module, config: Namespace, steps: int = 4) -> float:
    """Return the mean time of a training step in seconds. The steps change the model."""
    reader = LogitsOnly(model)
    optimizer = step_code.AdamW(reader.parameters(), lr=1e-3)
    device = next(model.parameters()).device
    batch = torch.randint(config.vocab_size, (2, 16, config.n_positions)).to(device)
    step_code.train_step(reader, *batch, optimizer)
    begun = time.perf_counter()
    for _ in range(steps):
        step_code.train_step(reader, *batch, optimizer)
    return (time.perf_counter() - begun) / steps
