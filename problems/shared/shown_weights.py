"""Attention whose output shows the weights themselves, and what should have been made of scores.

It serves the probes: what is read off the weights is told in `grader.diagnose`.
"""

from fractions import Fraction

import torch

from grader.diagnose import edges
from grader.diagnose.estimate import PowerLaw
from grader.diagnose.estimate_shapes import about_names
from grader.diagnose.numbers import numbers
from grader.diagnose.probe import Part
from grader.run.compare import parameters, set_weights
from shared.estimate_weights import (
    ALL,
    CAUSAL,
    CAUSAL_TO_THE_END,
    Expected,
    Weighing,
    about_weights,
)
from shared.worked_example import LAYERS

NO_SCALE = PowerLaw(1.0, {})
LOOK = {
    "scale": "By what are the scores divided, and of which tensor's dimension is that the size?",
    "sums": "For one query, the weights of all keys sum to 1. Which dimension are the keys?",
    "sight": "Row i of the weights belongs to query i. Which of its columns are 0 in your code?",
}


def by_root_of(name):
    """The law of scores that are divided by the root of a size."""
    return PowerLaw(1.0, {name: Fraction(-1, 2)})


def output_of(answer):
    """The output, if it came back together with something else."""
    return answer[0] if isinstance(answer, tuple | list) and answer else answer


def about_function(attend):
    """Return an estimator of a function of queries, keys and values, scaled and without a mask."""

    def weighing(batch, n, m, d_k, d_v):
        q, k = numbers(batch, n, d_k, start=0.2), numbers(batch, m, d_k, start=0.9)
        v = torch.eye(m, d_v, dtype=torch.float64).repeat(batch, 1, 1)
        weights = output_of(attend(q.clone(), k.clone(), v))[..., :m]
        sizes = {"the batch size": batch, "n": n, "m": m, "d_k": d_k, "d_v": d_v}
        return Weighing(sizes, q @ k.mT, weights.detach())

    def estimate():
        sizes = [(2, 3, 4, 5, 6), (3, 3, 4, 6, 4), (2, 5, 3, 4, 4), (2, 4, 6, 3, 7),
                 (3, 6, 5, 7, 9), (4, 2, 5, 4, 5), (2, 5, 7, 9, 8), (5, 4, 3, 6, 5)]  # fmt: skip
        names = ("d_k", "d_v", "n", "m", "the batch size")
        expected = Expected(by_root_of("d_k"), [names], ALL, look=LOOK)
        return about_weights([weighing(*each) for each in sizes], expected)

    return estimate


def shown_tokens(batch, length, width, places):
    """Tokens (batch, length, width) that are unit vectors, in each sequence others."""
    x = torch.zeros(batch, length, width, dtype=torch.float64)
    for b in range(batch):
        for t in range(length):
            x[b, t, (t + b) % places] = 1
    return x


def read(output, length, places):
    """The weights (batch, ..., n, length) that an output (batch, ..., n, >= places) shows."""
    rows = [
        torch.stack([of_one[..., (t + b) % places] for t in range(length)], dim=-1)
        for b, of_one in enumerate(output)
    ]
    return torch.stack(rows)


def weighing_of_layers(make, n_embd, length, batch):
    """What a module with the layers query, key and value makes of scores."""
    module = make(n_embd).double().eval()
    weights = {
        "query.weight": numbers(n_embd, n_embd, start=0.3),
        "key.weight": numbers(n_embd, n_embd, start=1.1),
        "value.weight": torch.eye(n_embd, dtype=torch.float64),
    }
    set_weights(module, weights | {f"{n}.bias": torch.zeros(n_embd).double() for n in LAYERS})
    x = shown_tokens(batch, length, n_embd, n_embd)
    q, k = (x @ weights[f"{name}.weight"].mT for name in LAYERS[:2])
    shown = read(output_of(module(x.clone())).detach(), length, n_embd)
    sizes = {"n_embd": n_embd, "d_k": n_embd, "T": length, "the batch size": batch}
    return Weighing(sizes, q @ k.mT, shown)


def layer_weights(n_embd, size, bias=True):
    """Weights of the layers query, key and value, by name; `size` is that of the matrices."""
    weights = {}
    for start, name in enumerate(LAYERS):
        weights[f"{name}.weight"] = size * numbers(n_embd, n_embd, start=1.3 * start)
        if bias:
            weights[f"{name}.bias"] = 0.4 * numbers(n_embd, start=2.0 + start)
    return weights


def like_layer_weights(n_embd, size):
    """Weights of the same layers, where all three are one: which is which makes no difference."""
    weights = layer_weights(n_embd, size)
    return {
        f"{name}.{part}": weights[f"key.{part}"] for name in LAYERS for part in ("weight", "bias")
    }


def filled(module, weights, dtype=torch.float64):
    """Give a module these weights by name, and what else it has numbers that its shape tells.

    A bias that isn't there stays away, and one that should not be there isn't 0: what comes out
    tells as much.
    """
    module = module.to(dtype)
    found = parameters(module)
    set_weights(module, {n: w for n, w in weights.items() if n in found or n.endswith("weight")})
    given = {id(each) for name, each in found.items() if name in weights}  # under any of its names
    others = {name: each for name, each in found.items() if id(each) not in given}
    set_weights(module, {name: numbers(*p.shape, start=4.0) for name, p in others.items()})
    return module


def steps_of_queries_lost(make, x):
    """Whether small steps of the layer query's weights don't show in the output; see `edges`."""

    def output_of(query):
        module = make()
        set_weights(module, {"query.weight": query})
        return edges.first(module(x.clone()))

    return edges.loses_steps(output_of, parameters(make())["query.weight"].detach())


def about_parameters(make, default):
    """Return the questions about what a module with the layers query, key and value is made of.

    Args:
        make: makes it, of a width, with a bias or without one.
        default: makes it without being told either.
    """
    names = [f"{layer}.{part}" for layer in LAYERS for part in ("weight", "bias")]

    def there(bias):
        """Which names a parameter has, those of the layers themselves among them."""
        found = parameters(make(4, bias))
        return torch.tensor([float(name in found) for name in (*names, *LAYERS)])

    def sizes():
        found = [getattr(make(5, True), name).weight for name in LAYERS]
        return torch.tensor([size for weight in found for size in weight.shape])

    def what_they_are_called():
        for bias in (True, False):
            found = {name: tuple(p.shape) for name, p in parameters(make(4, bias)).items()}
            shapes = {"weight": (4, 4), "bias": (4,)} if bias else {"weight": (4, 4)}
            wanted = {f"{a}.{part}": shape for a in LAYERS for part, shape in shapes.items()}
            look = f"Compare the parameters with the list in the README, with bias={bias}."
            yield from about_names(found, wanted, look)

    return Part(
        main={
            "with bias": lambda: there(True),
            "without bias": lambda: there(False),
            "sizes": sizes,
            "default width": lambda: len(default().query.weight),
            "default bias": lambda: default().query.bias is not None,
        },
        edges={"starts alike": lambda: edges.starts_alike(lambda: make(4, True))},
        estimators=(what_they_are_called,),
    )


def about_layers(make, *, scaled=True, causal=False):
    """Return an estimator of a module with the layers query, key and value.

    Args:
        make: makes the module, of a width.
        scaled: whether its scores should be divided by the root of that.
        causal: whether each position should see itself and those before it only.
    """

    def estimate():
        sizes = [(4, 3, 2), (6, 3, 3), (6, 5, 2), (9, 4, 2), (10, 6, 3), (5, 2, 4), (8, 7, 2)]
        weighings = [weighing_of_layers(make, *each) for each in sizes]
        law = by_root_of("d_k") if scaled else NO_SCALE
        names = ("d_k" if scaled else "n_embd", "T", "the batch size")
        return about_weights(
            weighings, Expected(law, [names], CAUSAL if causal else ALL, look=LOOK)
        )

    return estimate


def head_weights(n_head, head_dim):
    """Weights of c_attn and c_proj that show each head's attention weights in its own slice."""
    width = n_head * head_dim
    eye, nothing = torch.eye(width, dtype=torch.float64), torch.zeros(width, dtype=torch.float64)
    v = torch.zeros(n_head, head_dim, width, dtype=torch.float64)
    for place in range(head_dim):
        v[:, place, place] = 1
    q, k = numbers(width, width, start=0.3), numbers(width, width, start=1.1)
    return {
        "c_attn.weight": torch.cat([q, k, v.reshape(width, width)]),
        "c_attn.bias": nothing.repeat(3),
        "c_proj.weight": eye,
        "c_proj.bias": nothing,
    }


def cut(x, n_head):
    """Heads side by side become (B, n_head, T, head_dim)."""
    return torch.stack(x.chunk(n_head, dim=-1), dim=1)


def weighing_of_heads(call, n_head, head_dim, length, past, batch):
    """What attention with several heads makes of scores.

    Args:
        call: takes weights, the number of heads, tokens and a past, and returns the output.
        n_head: the number of heads.
        head_dim: the width of each.
        length: how many new tokens there are.
        past: how many tokens there are before them.
        batch: how many sequences there are.
    """
    weights, width = head_weights(n_head, head_dim), n_head * head_dim
    both = shown_tokens(batch, past + length, width, head_dim)
    q, k, v = (cut(part, n_head) for part in (both @ weights["c_attn.weight"].mT).chunk(3, -1))
    before = (k[:, :, :past].clone(), v[:, :, :past].clone()) if past else None
    output = output_of(call(weights, n_head, both[:, past:].clone(), before)).detach()
    shown = read(cut(output, n_head), past + length, head_dim)
    sizes = {"n_head": n_head, "head_dim": head_dim, "n_embd": width, "T": past + length,
             "t": length, "the batch size": batch}  # fmt: skip
    return Weighing(sizes, q[:, :, past:] @ k.mT, shown)


def about_heads(call, *, causal=False, with_past=False):
    """Return an estimator of attention with several heads.

    Args:
        call: takes weights, the number of heads, tokens and a past, and returns the output.
        causal: whether each position should see itself and those before it only.
        with_past: whether it takes a past.
    """

    def estimate():
        sizes = [(2, 4, 3, 0, 2), (3, 5, 4, 0, 2), (2, 6, 3, 0, 3), (4, 4, 2, 0, 2),
                 (2, 7, 6, 0, 2), (3, 6, 5, 0, 4), (5, 4, 3, 0, 3), (2, 5, 2, 0, 5)]  # fmt: skip
        if with_past:
            sizes = [(h, d + 3, t, n % 4, b) for n, (h, d, t, _, b) in enumerate(sizes)]
        weighings = [weighing_of_heads(call, *each) for each in sizes]
        sight = (CAUSAL_TO_THE_END if with_past else CAUSAL) if causal else ALL
        lengths = ("T", "t") if with_past else ("T",)
        choices = [("head_dim", "n_head", *lengths, "the batch size"),
                   ("n_embd", "n_head", *lengths, "the batch size")]  # fmt: skip
        dims = ("sequences", "heads", "queries", "keys")
        return about_weights(
            weighings, Expected(by_root_of("head_dim"), choices, sight, dims, LOOK)
        )

    return estimate
