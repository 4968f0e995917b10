"""Problem 03 with faults that can be switched on, one or several at a time."""

import math
from types import SimpleNamespace

import torch
from torch import nn

_D_K = "Which dimension of which tensor is d_k, and what is done with it in the formula?"
_AXIS = "Each query shares out a weight of 1 among the keys. Along which dimension do the keys lie?"
_ROLES = "Who asks, who is asked, and what is mixed in the end? Follow each of q, k and v."
_FORMULA = "Compare the order of the steps with the formula in the README."

SWITCHES = {
    "scale": {
        "none": ("the scores are not divided by √d_k", _D_K),
        "d_k": ("the scores are divided by d_k in place of √d_k", _D_K),
        "half of d_k": ("the scores are divided by d_k / 2: ** binds more tightly than /", _D_K),
        "one over 2 d_k": (
            "the scores are multiplied by d_k ** -1 / 2, which is 1 / (2 d_k)",
            "Python takes the power first. Where do brackets belong?",
        ),
        "times the root": ("the scores are multiplied by √d_k in place of divided", _D_K),
        "times d_k": ("the scores are multiplied by d_k", _D_K),
        "d_k squared": ("the scores are divided by d_k twice", _D_K),
        "d_k and its root": ("the scores are divided by d_k and by √d_k", _D_K),
        "fourth root": ("the scores are divided by the fourth root of d_k", _D_K),
        "log": ("the scores are divided by the logarithm of d_k", _D_K),
        "root of n": ("the scores are divided by the root of the number of queries", _D_K),
        "root of m": ("the scores are divided by the root of the number of keys", _D_K),
        "n": ("the scores are divided by the number of queries", _D_K),
        "m": ("the scores are divided by the number of keys", _D_K),
        "root of d_v": ("the scores are divided by the root of the length of a value", _D_K),
        "root of the first": ("the scores are divided by the root of the first dimension", _D_K),
        "2": ("the scores are divided by 2, whatever d_k is", _D_K),
        "root of 2": ("the scores are divided by √2, whatever d_k is", _D_K),
        "8": ("the scores are divided by 8 = √64, whatever d_k is", _D_K),
        "root of 8": ("the scores are divided by √8, whatever d_k is", _D_K),
        "64": ("the scores are divided by 64, whatever d_k is", _D_K),
        "root of 512": ("the scores are divided by √512, whatever d_k is", _D_K),
        "root of 768": ("the scores are divided by √768, whatever d_k is", _D_K),
        "rounded down": ("the root of d_k is rounded down to a whole number", _D_K),
    },
    "when": {
        "weights": ("it is the weights that are divided, after softmax", _FORMULA),
        "output": ("it is the output that is divided, after the values are mixed", _FORMULA),
        "values": ("it is the values that are divided", _FORMULA),
    },
    "softmax": {
        "queries": ("softmax runs over the queries in place of the keys", _AXIS),
        "dimension 0": ("softmax runs over dimension 0", _AXIS),
        "dimension 1": ("softmax runs over dimension 1", _AXIS),
        "everything": ("softmax runs over all scores at once", _AXIS),
        "missing": ("there is no softmax: the scores themselves mix the values", _FORMULA),
        "sigmoid": ("a sigmoid stands in place of softmax", _FORMULA),
        "exp only": ("the powers are not divided by their sum", _FORMULA),
        "divided by the sum": ("the scores are divided by their sum, without exp", _FORMULA),
        "log": ("the logarithm of the weights mixes the values", _FORMULA),
        "negative": ("softmax is taken of minus the scores", _FORMULA),
        "twice": ("softmax is taken twice", _FORMULA),
        "largest": ("each query takes the one value of the key that fits best", _FORMULA),
    },
    "roles": {
        **{
            order: (f"{a}, {b} and {c} take the places of queries, keys and values", _ROLES)
            for order, a, b, c in [
                ("kqv", "keys", "queries", "values"),
                ("qvk", "queries", "values", "keys"),
                ("vkq", "values", "keys", "queries"),
                ("kvq", "keys", "values", "queries"),
                ("vqk", "values", "queries", "keys"),
            ]
        },
        "qkk": ("the weights mix the keys in place of the values", _ROLES),
        "qkq": ("the weights mix the queries in place of the values", _ROLES),
        "qqv": ("the queries meet themselves in place of the keys", _ROLES),
        "kkv": ("the keys meet themselves in place of the queries", _ROLES),
    },
    "keys": {
        "reshaped": ("the keys are reshaped in place of transposed", _FORMULA),
        "as they are": ("the keys are not transposed", _FORMULA),
        "all dimensions": ("all dimensions of the keys are swapped", _FORMULA),
        "first two": ("the first two dimensions of the keys are swapped", _FORMULA),
    },
    "weights": {
        "transposed": ("the weights are transposed before they mix the values", _ROLES),
        "reshaped": ("the weights are reshaped as if that transposed them", _ROLES),
    },
    "extra": {
        "queries": ("the queries are added to the output", _FORMULA),
        "values": ("the values are added to the output", _FORMULA),
        "mean": ("the output is averaged over the queries", _FORMULA),
        "causal": ("a causal mask hides later keys; that is for problem 04", _FORMULA),
        "bias of one": ("1 is added to the sum that the powers are divided by", _FORMULA),
    },
}


COMMON = {
    "scale": ("none", "d_k", "times the root", "root of m", "8"),
    "when": ("weights",),
    "softmax": ("queries", "dimension 1", "everything", "missing"),
    "roles": ("kqv", "qkk"),
    "keys": ("reshaped", "all dimensions"),
    "extra": ("queries", "causal"),
}


def divisor(scale, q, k, v):
    """By what the scores are divided."""
    d_k, n, m = q.shape[-1], q.shape[-2], k.shape[-2]
    return {
        "right": math.sqrt(d_k),
        "none": 1,
        "d_k": d_k,
        "half of d_k": d_k / 2,
        "one over 2 d_k": 2 * d_k,
        "times the root": 1 / math.sqrt(d_k),
        "times d_k": 1 / d_k,
        "d_k squared": d_k**2,
        "d_k and its root": d_k**1.5,
        "fourth root": d_k**0.25,
        "log": math.log(d_k) if d_k > 1 else 1,
        "root of n": math.sqrt(n),
        "root of m": math.sqrt(m),
        "n": n,
        "m": m,
        "root of d_v": math.sqrt(v.shape[-1]),
        "root of the first": math.sqrt(q.shape[0]),
        "2": 2,
        "root of 2": math.sqrt(2),
        "8": 8,
        "root of 8": math.sqrt(8),
        "64": 64,
        "root of 512": math.sqrt(512),
        "root of 768": math.sqrt(768),
        "rounded down": math.isqrt(d_k),
    }[scale]


def transposed(keys, k):
    """What the queries are multiplied with."""
    match keys:
        case "reshaped":
            return k.reshape(*k.shape[:-2], k.shape[-1], k.shape[-2])
        case "as they are":
            return k
        case "all dimensions":
            return k.permute(*reversed(range(k.dim())))
        case "first two":
            return k.transpose(0, 1)
    return k.mT


def weigh(softmax, scores, extra):
    """What the scores become."""
    powers = (scores - scores.amax(-1, keepdim=True)).exp()
    if extra == "bias of one":
        return scores.exp() / (1 + scores.exp().sum(-1, keepdim=True))
    return {
        "right": lambda: scores.softmax(-1),
        "queries": lambda: scores.softmax(-2),
        "dimension 0": lambda: scores.softmax(0),
        "dimension 1": lambda: scores.softmax(1),
        "everything": lambda: scores.flatten().softmax(0).view_as(scores),
        "missing": lambda: scores,
        "sigmoid": lambda: scores.sigmoid(),
        "exp only": lambda: scores.exp(),
        "divided by the sum": lambda: scores / scores.sum(-1, keepdim=True),
        "log": lambda: scores.log_softmax(-1),
        "negative": lambda: (-scores).softmax(-1),
        "twice": lambda: scores.softmax(-1).softmax(-1),
        "largest": lambda: (powers == 1).to(scores.dtype),
    }[softmax]()


def attention(q, k, v, scale, when, softmax, roles, keys, weights, extra):
    """Attention with these faults."""
    given = {"q": q, "k": k, "v": v}
    q, k, v = (given[name] for name in roles)
    by = divisor(scale, q, k, v)
    if when == "values":
        v = v / by
    scores = q @ transposed(keys, k)
    scores = scores if when in ("weights", "output", "values") else scores / by
    if extra == "causal":
        later = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        scores = scores.masked_fill(later, -math.inf)
    shares = weigh(softmax, scores, extra)
    shares = shares / by if when == "weights" else shares
    if weights == "transposed":
        shares = shares.mT
    if weights == "reshaped":
        shares = shares.reshape(*shares.shape[:-2], shares.shape[-1], shares.shape[-2])
    output = shares @ v
    output = output / by if when == "output" else output
    match extra:
        case "queries":
            return output + q
        case "values":
            return output + v
        case "mean":
            return output.mean(-2, keepdim=True).expand_as(output)
    return output


def faulty(
    scale="right", when="scores", softmax="right", roles="qkv", keys="right", weights="right",
    extra="",
):  # fmt: skip
    """The functions and the class of problem 03 with these faults; the experiment is right."""

    def scaled_dot_product_attention(q, k, v):
        return attention(q, k, v, scale, when, softmax, roles, keys, weights, extra)

    class ScaledAttention(nn.Module):
        def __init__(self, n_embd=768, bias=True):
            super().__init__()
            self.query = nn.Linear(n_embd, n_embd, bias=bias)
            self.key = nn.Linear(n_embd, n_embd, bias=bias)
            self.value = nn.Linear(n_embd, n_embd, bias=bias)

        def forward(self, x):
            return scaled_dot_product_attention(self.query(x), self.key(x), self.value(x))

    return SimpleNamespace(
        scaled_dot_product_attention=scaled_dot_product_attention,
        ScaledAttention=ScaledAttention,
    )
