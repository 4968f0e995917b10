"""Problem 04 with faults that can be switched on, one or several at a time."""

import math
from types import SimpleNamespace

import torch
from torch import nn

from grader.author.backward import BACKWARD, softmax_with

_D_K = "Which dimension of q and k is summed over in a score, and what is done with its size?"
_POWER = (
    "Python takes the power ** first, then * and / from left to right. Where do brackets belong?"
)
_ROW = "Row i of the mask belongs to query i. Write down the first two rows for four tokens."
_ROLES = "Who asks, who is asked, and what is mixed in the end? Follow each of the three layers."
_AXIS = "Each query shares out a weight of 1 among the keys. Along which dimension do the keys lie?"
_BEFORE = "Add up a row of your weights. What share do the hidden scores take, and when?"
_ZERO = "What is e to the power of 0? Which number gets no weight at all?"
_FORMULA = "Compare the order of the steps with the formula in the README."

STYLES = ("", ", filled", ", added", ", zeroed")
"""How hidden scores are hidden, where a fault leaves rows in which all of them are: they become
-inf, they become a large negative number, such a number is added, or NaN is replaced by 0 later."""

SWITCHES = {
    "mask": {
        "next": ("the causal mask lets each position see the next one as well", _ROW),
        "next two": ("the causal mask lets each position see the next two as well", _ROW),
        "own": ("the causal mask hides each position from itself", _ROW),
        "future": (
            "the causal mask is upside down: each position sees itself and later ones",
            _ROW,
        ),
        **{
            f"strict future{style}": (
                "the mask is used the other way round: each position sees only what comes after it",
                "What does True mean here, and which side of the diagonal is to be True?",
            )
            for style in STYLES
        },
        **{
            f"after next{style}": (
                "each position sees only later ones, from the next but one on",
                "Which side of the diagonal is to be True, and is the diagonal itself?",
            )
            for style in STYLES
        },
        "none": ("nothing is hidden: the mask isn't used, or hides nothing", _ROW),
        "own only": ("each position sees itself alone, and nothing that came before it", _ROW),
        "first only": ("each position sees the first one alone", _ROW),
        "own and last": ("each position sees itself and the one before it, no others", _ROW),
        "from the last": ("each position sees the one before it and all that comes after", _ROW),
        "mirrored": ("the causal mask is mirrored from left to right", _ROW),
    },
    "corner": {
        "last rows": (
            "the rows for T positions are taken from the end of the mask and its columns from the "
            "start",
            "The mask for T positions stands in a corner of the large one. In which?",
        ),
    },
    "hide": {
        "after softmax": (
            "the mask is applied after softmax, so the rows no longer sum to 1",
            _BEFORE,
        ),
        "before and after": (
            "hidden scores are 0 in softmax and their weights are set to 0 after it, so the rows "
            "no longer sum to 1",
            _BEFORE,
        ),
        "weights to -inf": (
            "it is the weights that are set to -inf, after softmax, rather than the scores before",
            _BEFORE,
        ),
        "weights to -1e9": (
            "it is the weights that are set to -1e9, after softmax, rather than the scores before",
            _BEFORE,
        ),
        "in the sum only": (
            "hidden scores are left out of the sum that one divides by, but keep their own shares",
            _BEFORE,
        ),
        "times": ("hidden scores are set to 0 before softmax", _ZERO),
        "to 1": ("hidden scores are set to 1 before softmax", _ZERO),
        "to -1": ("hidden scores are set to -1 before softmax", _ZERO),
        "added": (
            "the mask itself is added to the scores, 1 where allowed and 0 where hidden",
            _ZERO,
        ),
        "subtracted": ("the mask itself is subtracted from the scores", _ZERO),
        "not at all": (
            "nothing is hidden: the mask isn't used, or hides nothing",
            "Which line hides something?",
        ),
        **{
            f"turned around{style}": (
                "what is allowed is hidden, and what is forbidden is kept",
                "Which scores does your line change: those where the mask is True, or others?",
            )
            for style in STYLES
        },
        "transposed": (
            "masked_softmax transposes its mask",
            "A row of the mask belongs to a query, and so does a row of the scores.",
        ),
        "very large": (
            "hidden scores are set to a very large number rather than to one far below all others",
            "Which sign does that number need?",
        ),
        "plus infinity": (
            "hidden scores are set to plus infinity",
            "Which sign does infinity need?",
        ),
    },
    "softmax": {
        "queries": ("softmax runs over the queries rather than over the keys", _AXIS),
        "queries, maximum of rows": (
            "the powers are divided by their sum over the queries rather than over the keys",
            _AXIS,
        ),
        "dimension 0": ("softmax runs along dimension 0", _AXIS),
        "dimension 0, filled": ("softmax runs along dimension 0", _AXIS),
        "dimension 1": ("softmax runs along dimension 1, whatever the rank of the scores", _AXIS),
        "dimension 2": (
            "softmax runs along dimension 2, which is the last one for scores (B, n, m) only",
            _AXIS,
        ),
        "everything": ("softmax runs over all scores at once", _AXIS),
        "everything, maximum of rows": (
            "the powers are divided by the sum of all of them rather than by that of their row",
            _AXIS,
        ),
        "missing": ("there is no softmax: the scores themselves are the weights", _FORMULA),
        "missing, hidden at 0": (
            "there is no softmax: the scores themselves are the weights",
            _FORMULA,
        ),
        "sigmoid": ("a sigmoid stands in place of softmax", _FORMULA),
        "exp only": ("the powers are not divided by their sum", _FORMULA),
        "divided by the sum": ("the scores are divided by their sum, without exp", _FORMULA),
        "log": ("the logarithm of the weights stands in their place", _FORMULA),
        "negative": ("softmax is taken of minus the scores", _FORMULA),
        "twice": ("softmax is taken twice", _FORMULA),
        "twice, masked": ("softmax is taken twice", _FORMULA),
        "ones": ("softmax runs over a dimension of size 1, so that every weight is 1", _AXIS),
        "powers of 2": ("powers of 2 stand in place of powers of e", _FORMULA),
        "mean": ("the powers are divided by their mean rather than by their sum", _FORMULA),
        "largest": ("all weight goes to the largest score of a row", _FORMULA),
        "bias of one": ("1 is added to the sum that the powers are divided by", _FORMULA),
        **{
            f"no keepdim, {of}": (
                f"{what} of each row has lost its last dimension, so it meets other rows",
                "What is the shape of that result, and which shape would line up with the scores?",
            )
            for of, what in [
                ("sum", "the sum"),
                ("maximum", "the maximum"),
                ("both", "the maximum and the sum"),
            ]
        },
    },
    "scale": {
        "none": ("the scores are not divided by √d_k", _D_K),
        "d_k": (
            "the scores are divided by d_k in all: by it in place of √d_k, or by √d_k twice",
            _D_K,
        ),
        "half of d_k": ("the scores are divided by d_k / 2", _POWER),
        "one over 2 d_k": ("the scores are divided by 2 d_k", _POWER),
        "times the root": ("the scores are multiplied by √d_k rather than divided by it", _D_K),
        "log": ("the scores are divided by the logarithm of d_k", _D_K),
        "root of n_positions": ("the scores are divided by the root of n_positions", _D_K),
        "rounded down": ("the root of d_k is rounded down to a whole number", _D_K),
        "of the weights": (
            "it is the weights or the output that are divided by √d_k, not the scores",
            _FORMULA,
        ),
    },
    "roles": {
        "kqv": ("queries and keys have changed places", _ROLES),
        **{
            order: (when, _ROLES)
            for order, when in [
                ("qvk", "keys and values have changed places"),
                ("vkq", "queries and values have changed places"),
                ("kvq", "keys are used as queries, values as keys, and queries as values"),
                ("vqk", "values are used as queries, queries as keys, and keys as values"),
            ]
        },
        "qkk": ("the weights average the keys rather than the values", _ROLES),
        "qkq": ("the weights average the queries rather than the values", _ROLES),
        "qqv": ("the queries meet themselves rather than the keys", _ROLES),
        "kkv": ("the keys meet themselves rather than the queries", _ROLES),
        "qqq": ("the layer `query` makes queries, keys and values", _ROLES),
        "kkk": ("the layer `key` makes queries, keys and values", _ROLES),
        "vvv": ("the layer `value` makes queries, keys and values", _ROLES),
        "qkx": ("the weights average the tokens themselves rather than their values", _ROLES),
        "xkv": ("the tokens themselves take the place of the queries", _ROLES),
        "qxv": ("the tokens themselves take the place of the keys", _ROLES),
        "xxv": ("the tokens themselves meet each other, without the layers query and key", _ROLES),
        "xxx": ("none of the three layers is used", _ROLES),
    },
    "layers": {
        "without bias": (
            "the layers' weights are used without their biases",
            "What does nn.Linear do with a token besides the product?",
        ),
        "not transposed": (
            "the tokens are multiplied with the layers' weights as they are, not transposed",
            "Is the weight of nn.Linear stored as (out, in) or as (in, out)?",
        ),
    },
    "keys": {
        "reshaped": ("the keys are reshaped rather than transposed", _FORMULA),
        "as they are": ("the keys are not transposed", _FORMULA),
        "all dimensions": ("all dimensions of the keys are swapped", _FORMULA),
        "first two": ("the first two dimensions of the keys are swapped", _FORMULA),
    },
    "weights": {
        "transposed": ("the weights are transposed before they average the values", _ROLES),
    },
    "extra": {
        "tokens": ("the tokens are added to the output", _FORMULA),
        "queries": ("the queries are added to the output", _FORMULA),
        "values": ("the values are added to the output", _FORMULA),
        "mean": (
            "the weighted values are averaged rather than added up",
            "The weights of a row sum to 1 already. What would dividing by T do?",
        ),
    },
    "backward": BACKWARD,
    "shift": {
        "with zeros": (
            "the maximum is taken of the scores with hidden ones set to 0, and is too high where "
            "all allowed ones lie far below",
            "Let the allowed scores of a row lie near -1000. What is subtracted from them, and "
            "what is left after exp?",
        ),
        "of all": (
            "the maximum of all scores is subtracted, hidden ones too, and then they are hidden",
            "A hidden score may be huge. What is left of the digits of the others, when it is "
            "subtracted?",
        ),
    },
    "lowered": {
        "below the lowest": (
            "hidden scores are set a fixed way below the others, so that a small weight is left",
            "How much is exp(-60)? Which number leaves no weight at all?",
        ),
        "below the highest": (
            "hidden scores are set a fixed way below the highest of all scores",
            "How much is exp(-60)? And what if an allowed score lies lower still?",
        ),
        "subtracted": (
            "a number such as 60 is subtracted from hidden scores, so that a small weight is left, "
            "or a large one where they are high",
            "How high may a hidden score be? Which number hides it all the same?",
        ),
        "small number": (
            "no weight is ever 0: a small number is added, or the weights are kept above one, "
            "hidden ones too",
            "What does the task say of the weight of a hidden score?",
        ),
    },
    "mask_form": {
        "row by row": (
            "the mask is taken row by row, or to the size of the scores, and a mask with one row "
            "for all queries fails",
            "A mask may have size 1 where all share it, or fewer dimensions. What does "
            "broadcasting make of it?",
        ),
        "three mean a batch": (
            "a mask of three dimensions is given a dimension for the heads",
            "Broadcasting lines dimensions up from the last. Which one of the scores does the "
            "first of three meet?",
        ),
    },
    "lone": {
        "token": (
            "a sequence of one token comes back as it came, and its value is never made",
            "A single token gives itself the weight 1. What is it that the weights average?",
        ),
    },
}

COMMON = {
    "mask": ("next", "own", "strict future", "none"),
    "hide": ("after softmax", "times", "turned around"),
    "softmax": ("queries", "dimension 1", "everything"),
    "scale": ("none", "d_k", "times the root"),
    "roles": ("kqv", "qkx"),
}


AT_EDGES = ("backward", "shift", "lowered", "mask_form", "lone")


def shifted(kind, scores, mask):
    """Masked softmax that subtracts another maximum."""
    if kind == "with zeros":
        shown = scores.masked_fill(~mask, 0)
        powers = (shown - shown.amax(-1, keepdim=True).detach()).exp() * mask
        return powers / powers.sum(-1, keepdim=True)
    stable = scores - scores.amax(-1, keepdim=True).detach()
    return stable.masked_fill(~mask, -math.inf).softmax(-1)


def weighed_low(kind, scores, mask):
    """Weights of which the hidden ones are small, but not 0."""
    low = {
        "below the lowest": lambda: scores.amin(-1, keepdim=True).detach() - 60,
        "below the highest": lambda: scores.amax(-1, keepdim=True).detach() - 60,
        "subtracted": lambda: scores - 60,
        "small number": lambda: torch.full_like(scores, -math.inf),
    }[kind]()
    weights = torch.where(mask, scores, low).softmax(-1)
    return weights.clamp(min=1e-12) if kind == "small number" else weights


def formed(kind, scores, mask):
    """The mask, with what some make of its form."""
    if kind == "row by row":
        return torch.stack([mask[..., row, :] for row in range(scores.shape[-2])], -2)
    return mask.unsqueeze(1) if mask.dim() == 3 and scores.dim() == 4 else mask


def visible(kind, size):
    """The causal mask with a fault."""
    ones = torch.ones(size, size, dtype=torch.bool)
    return {
        "right": lambda: ones.tril(),
        "next": lambda: ones.tril(1),
        "next two": lambda: ones.tril(2),
        "own": lambda: ones.tril(-1),
        "future": lambda: ones.triu(),
        "strict future": lambda: ones.triu(1),
        "after next": lambda: ones.triu(2),
        "none": lambda: ones,
        "own only": lambda: torch.eye(size).bool(),
        "first only": lambda: ones.tril()[:1].expand(size, size),
        "own and last": lambda: ones.tril().triu(-1),
        "from the last": lambda: ones.triu(-1),
        "mirrored": lambda: ones.tril().fliplr(),
    }[kind.split(",")[0]]()


def hidden(scores, shown, style):
    """The scores, hidden where they are not shown."""
    match style:
        case "filled":
            return scores.masked_fill(~shown, -1e9)
        case "added":
            return scores - 1e9 * ~shown
    return scores.masked_fill(~shown, -math.inf)


def hidden_scores(hide, scores, mask, style):
    """The scores that are left to softmax."""
    shown = mask.to(scores.dtype)
    match hide:
        case "times" | "before and after":
            return scores * shown
        case "to 1":
            return scores.masked_fill(~mask, 1)
        case "to -1":
            return scores.masked_fill(~mask, -1)
        case "very large":
            return scores.masked_fill(~mask, 1e9)
        case "plus infinity":
            return scores.masked_fill(~mask, math.inf)
        case "added":
            return scores + shown
        case "subtracted":
            return scores - shown
        case "turned around":
            return hidden(scores, ~mask, style)
        case "transposed":
            return hidden(scores, mask.mT, style)
        case "right":
            return hidden(scores, mask, style)
    return scores


def hidden_weights(hide, weights, scores, mask):
    """The weights, where the mask does something to them."""
    match hide:
        case "after softmax" | "before and after":
            return weights * mask
        case "weights to -inf":
            return weights.masked_fill(~mask, -math.inf)
        case "weights to -1e9":
            return weights.masked_fill(~mask, -1e9)
        case "in the sum only":
            return scores.exp() / (scores.exp() * mask).sum(-1, keepdim=True)
    return weights


def weigh(kind, scores, mask):
    """What the scores become."""
    top = scores.amax(-1, keepdim=True)
    powers = (scores - top).exp()
    shown = scores.masked_fill(~mask.broadcast_to(scores.shape), 0)

    def column_powers():
        return (scores - scores.amax(-1)).exp()

    return {
        "right": lambda: scores.softmax(-1),
        "queries": lambda: scores.softmax(-2),
        "queries, maximum of rows": lambda: powers / powers.sum(-2, keepdim=True),
        "dimension 0": lambda: scores.softmax(0),
        "dimension 0, filled": lambda: scores.clamp(min=torch.finfo(scores.dtype).min).softmax(0),
        "dimension 1": lambda: scores.softmax(1),
        "dimension 2": lambda: scores.softmax(min(2, scores.dim() - 1)),
        "everything": lambda: scores.flatten().softmax(0).view_as(scores),
        "everything, maximum of rows": lambda: powers / powers.sum(),
        "missing": lambda: scores,
        "missing, hidden at 0": lambda: shown,
        "sigmoid": lambda: scores.sigmoid(),
        "exp only": lambda: scores.exp(),
        "divided by the sum": lambda: shown / shown.sum(-1, keepdim=True),
        "log": lambda: scores.log_softmax(-1),
        "negative": lambda: torch.where(scores.isinf(), scores, -scores).softmax(-1),
        "twice": lambda: scores.softmax(-1).softmax(-1),
        "twice, masked": lambda: scores.softmax(-1).masked_fill(~mask, -math.inf).softmax(-1),
        "ones": lambda: (powers > 0).to(scores.dtype),
        "powers of 2": lambda: (scores * math.log(2)).softmax(-1),
        "mean": lambda: scores.softmax(-1) * scores.shape[-1],
        "largest": lambda: (powers == 1).to(scores.dtype),
        "bias of one": lambda: scores.exp() / (1 + scores.exp().sum(-1, keepdim=True)),
        "no keepdim, sum": lambda: powers / powers.sum(-1),
        "no keepdim, maximum": lambda: column_powers() / column_powers().sum(-1, keepdim=True),
        "no keepdim, both": lambda: column_powers() / column_powers().sum(-1),
    }[kind]()


def divisor(scale, d_k, n_positions):
    """By what the scores are divided."""
    return {
        "right": math.sqrt(d_k),
        "none": 1,
        "d_k": d_k,
        "half of d_k": d_k / 2,
        "one over 2 d_k": 2 * d_k,
        "times the root": 1 / math.sqrt(d_k),
        "log": math.log(d_k) if d_k > 1 else 1,
        "root of n_positions": math.sqrt(n_positions),
        "rounded down": math.isqrt(d_k),
        "of the weights": 1,
    }[scale]


def projected(linear, x, layers):
    """What a layer makes of the tokens."""
    match layers:
        case "without bias":
            return x @ linear.weight.mT
        case "not transposed":
            return x @ linear.weight + (0 if linear.bias is None else linear.bias)
    return linear(x)


def transposed(keys, k):
    """What the queries are multiplied with."""
    match keys:
        case "reshaped":
            return k.reshape(k.shape[0], k.shape[2], k.shape[1])
        case "as they are":
            return k
        case "all dimensions":
            return k.permute(2, 1, 0)
        case "first two":
            return k.transpose(0, 1)
    return k.mT


def faulty(
    mask="right", corner="right", hide="right", softmax="right", scale="right", roles="qkv",
    layers="right", keys="right", weights="right", extra="",
    backward="", shift="", lowered="", mask_form="", lone="",
):  # fmt: skip
    """The functions and the class of problem 04 with these faults."""

    def causal_mask(seq_len, device=None):
        return visible(mask, seq_len).to(device)

    def masked_softmax(scores, shown):
        shown = formed(mask_form, scores, shown) if mask_form else shown
        if shift:
            return shifted(shift, scores, shown)
        if lowered:
            return weighed_low(lowered, scores, shown)
        if backward:
            return softmax_with(backward)(scores.masked_fill(~shown, -math.inf), -1)
        style = next((kind.split(", ")[1] for kind in (mask, hide) if "," in kind), "")
        left = hidden_scores(hide.split(",")[0], scores, shown, style)
        weights = hidden_weights(hide, weigh(softmax, left, shown), scores, shown)
        return weights.nan_to_num() if style == "zeroed" else weights

    class CausalAttention(nn.Module):
        def __init__(self, n_embd=768, n_positions=1024, bias=True):
            super().__init__()
            self.query = nn.Linear(n_embd, n_embd, bias=bias)
            self.key = nn.Linear(n_embd, n_embd, bias=bias)
            self.value = nn.Linear(n_embd, n_embd, bias=bias)
            self.register_buffer("mask", causal_mask(n_positions))

        def forward(self, x):
            if lone and x.shape[1] == 1:
                return x
            (_, T, C), n_positions = x.shape, len(self.mask)  # noqa: N806
            made = {name[0]: projected(layer, x, layers) for name, layer in self.named_children()}
            made["x"] = x
            q, k, v = (made[role] for role in roles)
            scores = q @ transposed(keys, k) / divisor(scale, C, n_positions)
            rows = self.mask[-T:] if corner == "last rows" else self.mask[:T]
            shares = masked_softmax(scores, rows[:, :T])
            shares = shares.mT if weights == "transposed" else shares
            output = shares @ v
            output = output / math.sqrt(C) if scale == "of the weights" else output
            output = output / T if extra == "mean" else output
            return output + {"tokens": x, "queries": q, "values": v}.get(extra, 0)

    return SimpleNamespace(
        causal_mask=causal_mask, masked_softmax=masked_softmax, CausalAttention=CausalAttention
    )
