"""Problem 05 with faults that can be switched on, one or several at a time."""

import math
from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import nn

from grader.author.backward import BACKWARD, softmax_with

_SPLIT = "Which numbers of which token should head 0 hold? See the example in the README."
_MERGE = "Merging is the way of split_heads backwards. What stands side by side at the end?"
_WIDTH = "How many numbers does a dot product in one head sum up?"
_FORMULA = "Compare the order of the steps with the formula in the README."
_AXIS = "For one query, the weights of all keys should sum to 1. Which dimension are the keys?"
_ORDER = "GPT-2's weights hold the three in a fixed order. Which one comes where?"
_CUT = "The first third of c_attn's output should be the queries, those of head 0 first. Is it?"
_ROLES = "Who asks, who is asked, and what is mixed in the end?"
_MASK = "Row i belongs to query i. Which columns may it see, and with which weight?"
_PLACES = "There are two dropouts: of the weights, after softmax, and of the output, last of all."
_GROWTH = "What is kept grows by 1/(1 - dropout), in training only. Who sees to that in your code?"
_PIECES = "Which dimensions does your dropout treat as one piece?"
_CHECK = "Which numbers of heads can be made, and which error says that a value is wrong?"
_MADE = "Compare the layers with the list in the README."
_DEFAULTS = "What should MultiHeadAttention() be like when nobody asked for anything?"


def _all(look, whens):
    """The same nudge for all members of a family."""
    return {value: (when, look) for value, when in whens.items()}


SWITCHES = {
    "split": _all(
        _SPLIT,
        {
            "reshaped": "the heads are split by a bare reshape to (B, n_head, T, head_dim)",
            "interleaved": (
                "the heads take turns at the entries of a token, instead of a slice each"
            ),
            "positions first": (
                "the positions still stand before the heads: (B, T, n_head, head_dim)"
            ),
            "n_head as width": "n_head is taken for the width of a head",
            "width before positions": "the heads are split into the shape (B, n_head, head_dim, T)",
            "heads last": "the heads are split into the shape (B, T, head_dim, n_head)",
            "width first": "the heads are split into the shape (B, head_dim, n_head, T)",
            "heads first": "the heads are split into the shape (n_head, B, T, head_dim)",
            "batch and positions": (
                "the batch and the positions are swapped when the heads are split"
            ),
            "transposed first": (
                "dimensions are swapped first and the heads are split by a reshape then"
            ),
            "batch of heads": "the heads are joined to the batch",
            "first for all": "every head works on the first slice of the embedding",
            "backwards": "the heads get their slices in reversed order",
            **{
                f"{how}, right scale": does
                for how, does in {
                    "n_head as width": "n_head is taken for the width of a head",
                    "width before positions": (
                        "the heads are split into the shape (B, n_head, head_dim, T)"
                    ),
                    "heads last": "the heads are split into the shape (B, T, head_dim, n_head)",
                    "width first": "the heads are split into the shape (B, head_dim, n_head, T)",
                }.items()
            },
        },
    ),
    "merge": {
        "reshaped": (
            ("the heads are joined by a bare reshape while they still stand before the positions"),
            "Which two dimensions must stand side by side before they can become one?",
        ),
        **_all(
            _MERGE,
            {
                "positions and width": (
                    "heads and the width of a head are swapped before the heads are joined"
                ),
                "width before positions": (
                    "positions and the width of a head are swapped before the heads are joined"
                ),
                "width first": (
                    "the width of a head is brought to the front before the heads are joined"
                ),
                "batch": "the batch and the heads are swapped before the heads are joined",
                "not joined": "heads and positions are swapped back, but the heads are not joined",
                "summed": "the heads are added up in place of joined",
                "averaged": "the heads are averaged in place of joined",
                "along positions": "the heads are set one after the other as positions",
                "with positions": "the heads are joined to the positions",
                "backwards": "the heads are joined in reversed order",
                "transposed after": (
                    "the heads are joined by a reshape, and dimensions are swapped only then"
                ),
            },
        ),
    },
    "heads": _all(
        _SPLIT,
        {
            "one": "there is a single head of the full width, whatever n_head is",
            "one, with its width": (
                "there is a single head of the full width, and the scores are divided by √n_embd"
            ),
            "other heads' weights": "all heads use the weights of head 0",
            "averaged weights": "the weights are averaged over the heads",
            "batch": "the tokens attend to other sequences at the same position",
        },
    ),
    "scale": {
        "none": (
            "the scores are not divided by √head_dim",
            "How large do dot products get as the vectors get longer, and what does softmax make "
            "of large scores? Problem 03 has the answer.",
        ),
        "head_dim": (
            (
                "the scores are divided by head_dim in all: by it in place of its root, or by"
                " its root twice"
            ),
            "Is the root forgotten, or is something scaled twice, such as the queries and then "
            "the scores?",
        ),
        **_all(
            _WIDTH,
            {
                "n_embd": "the scores are divided by √n_embd",
                "full n_embd": "the scores are divided by n_embd",
                "full length": "the scores are divided by T, the sequence length",
                "full heads": "the scores are divided by n_head",
                "three n_embd": "the scores are divided by √(3 n_embd)",
                "half": "the scores are divided by head_dim / 2: ** binds more tightly than /",
                "one over double": (
                    "the scores are multiplied by head_dim ** -1 / 2, which is 1 / (2 head_dim)"
                ),
                "rounded down": "the root of head_dim is rounded down to a whole number",
                "log": "the scores are divided by the logarithm of head_dim",
            },
        ),
    },
    "when": _all(
        _FORMULA,
        {
            "output": "it is the weights, or what they gather, that is divided",
            "both": "both the scores and the values are divided",
        },
    ),
    "softmax": {
        "queries": (
            "the softmax runs over the queries, so the columns sum to 1",
            "For one query, the weights of all keys should sum to 1. Which dimension are the keys?",
        ),
        "heads": (
            "the softmax runs over the heads",
            "There are four dimensions now. Which of them are the keys?",
        ),
        **_all(
            _AXIS,
            {
                "heads, finite": "the softmax runs over the heads",
                "heads, seen": "the softmax runs over the heads",
                "batch": "the softmax runs over the sequences of the batch",
                "batch, finite": "the softmax runs over the sequences of the batch",
                "batch, seen": "the softmax runs over the sequences of the batch",
                "everything": "the softmax runs over all scores at once",
            },
        ),
        **_all(
            _FORMULA,
            {
                "missing": "there is no softmax: the scores themselves mix the values",
                "missing, seen": "there is no softmax: the scores themselves mix the values",
                "sigmoid": "a sigmoid stands in place of softmax",
                "relu": "a relu stands in place of softmax",
                "exp only": "the powers are not divided by their sum",
                "divided by the sum": "the scores are divided by their sum, without exp",
                "log": "the logarithm of the weights mixes the values",
                "negative": "softmax is taken of minus the scores",
                "twice": "softmax is taken twice",
                "largest": "each query takes the one value of the key that fits best",
                "bias of one": "1 is added to the sum that the powers are divided by",
            },
        ),
        **_all(
            "What shape has a maximum or a sum over the keys, and what has it with keepdim?",
            {
                "no keepdim": "keepdim is forgotten in the sum and the maximum of softmax",
                "no keepdim in max": "keepdim is forgotten in the maximum of softmax",
                "no keepdim in sum": "keepdim is forgotten in the sum of softmax",
            },
        ),
    },
    "roles": {
        "kqv": (
            "c_attn is cut into keys, queries, values instead of queries, keys, values",
            "GPT-2's weights hold the three in a fixed order. Which one comes first?",
        ),
        **_all(
            _ORDER,
            {
                "qvk": "c_attn is cut into queries, values, keys instead of queries, keys, values",
                "vqk": "c_attn is cut into keys, values, queries instead of queries, keys, values",
                "vkq": "c_attn is cut into values, keys, queries instead of queries, keys, values",
            },
        ),
        **_all(
            _ROLES,
            {
                "kkv": "the keys are compared with themselves instead of the queries",
                "qkk": "the weights mix the keys in place of the values",
                "qkq": "the weights mix the queries in place of the values",
                "qqq": "queries, keys and values are all the same",
                "xkv": "the input itself takes the place of the queries",
                "qxv": "the input itself takes the place of the keys",
                "xxx": "the input itself is queries, keys and values",
            },
        ),
    },
    "cut": {
        "within heads": (
            "each head's query, key and value stand together in c_attn's output",
            "First come the queries of all heads, then all keys, then all values. Cut into three "
            "first, then into heads.",
        ),
        **_all(
            _CUT,
            {
                "positions": "c_attn's output is reshaped to (B, 3, T, C)",
                "batch": "c_attn's output is reshaped to (3, B, T, C)",
                "heads": "c_attn's output is reshaped to (B, 3, n_head, T, head_dim)",
                "everything": "c_attn's output is reshaped to (3, B, n_head, T, head_dim)",
                "heads and positions": "c_attn's output is reshaped to (B, n_head, T, 3 head_dim)",
            },
        ),
    },
    "keys": _all(
        _FORMULA,
        {
            "reshaped": "the keys are reshaped in place of transposed",
            "as they are": "the keys are not transposed",
            "heads and positions": "the heads and positions of the keys are swapped",
            "heads and width": "the heads and widths of the keys are swapped",
            "all": "all dimensions of the keys are swapped",
        },
    ),
    "weights": _all(
        _ROLES,
        {
            "transposed": "the weights are transposed before they mix the values",
            "reshaped": "the weights are reshaped as if that transposed them",
        },
    ),
    "mask": {
        "never": (
            "causal=True changes nothing",
            "Where does your forward look at causal? And is the masked result kept?",
        ),
        "upper": (
            "each token sees itself and the future instead of itself and the past",
            "Row i belongs to query i. Which columns of row 0 may be seen?",
        ),
        "next": (
            "each token also sees the next one",
            "Look at row 0 of your mask: how many positions may the first token see?",
        ),
        "zero": (
            "hidden scores are set to 0 before the softmax, and exp(0) is 1",
            "What must a score be for its weight to become 0?",
        ),
        "after": (
            "the future's weights are set to 0 after the softmax, so rows no longer sum to 1",
            "When the softmax has run, the future has already taken its share. When must it be "
            "hidden?",
        ),
        **_all(
            _MASK,
            {
                "opposite": "the future is hidden with causal=False, and seen with causal=True",
                "in evaluation": "the future is hidden in evaluation only",
                "inverted, finite": "the allowed positions are hidden and the future is shown",
                "inverted, next": "the past and the next one are hidden, the rest is shown",
                "not itself, finite": (
                    "a token may not see itself, so that the first one sees nothing"
                ),
                "only itself": "each token sees only itself",
                "only the one before": "each token sees itself and the one before it only",
                "added": "the mask of 0 and 1 is added to the scores",
                "after, infinite": "the future's weights are set to -inf after the softmax",
                "after, and softmax again": "hidden weights are set to -inf, and softmax again",
                "times infinity": "the mask is multiplied by inf, and 0 times inf is NaN",
                "large": "hidden scores get a very large number in place of a very small one",
            },
        ),
    },
    "output": {
        "no c_proj": (
            "the merged heads are returned without c_proj",
            "After merging, each head's result still stands in its own slice. Which layer mixes "
            "them?",
        ),
        **_all(
            _FORMULA,
            {
                "twice": "c_proj is applied twice",
                "transposed": "the weight of c_proj is transposed",
                "added": "the merged heads are added to what c_proj makes of them",
                "relu": "a relu follows c_proj",
                "gelu": "a gelu follows c_proj",
                "normalised": "the output is normalised",
                "mean": "the output is averaged over the tokens",
                "softmax": "a softmax follows c_proj",
            },
        ),
    },
    "input": _all(
        _FORMULA,
        {
            "relu": "a relu follows c_attn",
            "gelu": "a gelu follows c_attn",
            "normalised": "the input is normalised",
            "normalised queries": "queries and keys are made to have the length 1",
            "centred": "the mean of each token is taken away",
        },
    ),
    "dropout": {
        **_all(
            _PLACES,
            {
                "none": "nothing is ever dropped",
                "scores too": "the scores are dropped before the softmax, too",
                "values": "the values are dropped instead of the weights",
                "gathered": "what the heads gathered is dropped, instead of the weights",
                "gathered too": "what goes into c_proj is dropped, too",
                "input": "the input is dropped, too",
                "projected": "what c_attn gives is dropped, too",
                "weights twice": "the weights are dropped twice",
                "output twice": "the output is dropped twice",
            },
        ),
        **_all(
            _GROWTH,
            {
                "output in evaluation": "the output is dropped after eval(), too",
                "in evaluation": "both dropouts stay on after eval()",
                "in evaluation only": "dropout acts in evaluation and not in training",
                "output not rescaled": "the outputs that are kept are not divided by 1 - dropout",
                "not rescaled": "what is kept is not divided by 1 - dropout",
                "shrunk": "what is kept is multiplied by 1 - dropout in place of divided",
                "divided by the rate": "what is kept is divided by dropout, not by 1 - dropout",
                "all scaled in evaluation": (
                    "what is kept is not divided in training; eval() multiplies by 1 - "
                    "dropout in place of that"
                ),
                "weights inverted, but for 0": (
                    "a share of 1 - dropout is dropped in place of a share of dropout"
                ),
                "output inverted": (
                    "a share of 1 - dropout of the output is dropped in place of a share of dropout"
                ),
                "output inverted, but for 0": (
                    "a share of 1 - dropout of the output is dropped in place of a share of dropout"
                ),
                "inverted": (
                    "a share of 1 - dropout of weights and output is dropped in place of a "
                    "share of dropout"
                ),
                "inverted, but for 0": (
                    "a share of 1 - dropout of weights and output is dropped in place of a "
                    "share of dropout"
                ),
                "weights 0.5": "half of the weights are dropped, whatever dropout is",
                "output 0.5": "half of the output is dropped, whatever dropout is",
                "0.5": "half of all is dropped, whatever dropout is",
                "0.1": "a tenth is dropped, whatever dropout is",
            },
        ),
        **_all(
            _PIECES,
            {
                "by keys": "a query loses all its weights at once",
                "whole channels": "all tokens of a sequence drop the same of the output",
                "output by batch": "all sequences of a batch drop the same of the output",
            },
        ),
    },
    "bias": _all(
        _MADE,
        {
            "both": "both linear layers have a bias even with bias=False",
            "c_attn": "c_attn has a bias even with bias=False",
            "c_proj": "c_proj has a bias even with bias=False",
            "no c_attn": "c_attn never has a bias",
            "no c_proj": "c_proj never has a bias",
            "none": "neither linear layer ever has a bias",
            "opposite": "the linear layers have a bias with bias=False only",
        },
    ),
    "rates": _all(
        _MADE,
        {
            "resid 0.5": "resid_dropout has nn.Dropout's own rate of 0.5",
            "0.5": "both dropouts have nn.Dropout's own rate of 0.5",
            "attn 0.1": "attn_dropout has the rate 0.1 whatever was asked for",
            "resid 0.1": "resid_dropout has the rate 0.1 whatever was asked for",
            "0": "the dropouts have the rate 0 whatever was asked for",
            "attn 0": "attn_dropout has the rate 0 whatever was asked for",
            "resid 0": "resid_dropout has the rate 0 whatever was asked for",
            "opposite": "the dropouts have the rate 1 - dropout",
            "no attn": "there is no nn.Dropout called attn_dropout",
            "no resid": "there is no nn.Dropout called resid_dropout",
            "missing": "there are no nn.Dropout called attn_dropout and resid_dropout",
        },
    ),
    "sizes": _all(
        _MADE,
        {
            "no n_head": "the attribute n_head is missing",
            "no n_embd": "the attribute n_embd is missing",
            "float": "head_dim is a float: / divides, and // gives a whole number",
            "head_dim is n_embd": "head_dim is n_embd, the width of all heads together",
            "head_dim is n_head": "head_dim is the number of heads",
            "head_dim is 64": "head_dim is 64, whatever n_embd and n_head are",
        },
    ),
    "defaults": _all(
        _DEFAULTS,
        {
            "no fit": "the defaults of n_embd and n_head do not fit each other",
            "8": "n_head is 8 by default",
            "1": "n_head is 1 by default",
            "16": "n_head is 16 by default",
            "dropout 0.5": "dropout is 0.5 by default",
        },
    ),
    "arguments": _all(
        _DEFAULTS,
        {
            "causal first": "causal comes before dropout among the arguments",
            "bias before causal": "bias comes before causal among the arguments",
            "bias first": "bias comes before dropout among the arguments",
        },
    ),
    "check": _all(
        _CHECK,
        {
            "zero": "0 heads are not refused with a ValueError",
            "any negative": "a negative number of heads is accepted",
            "asserted to divide": (
                "a number of heads that does not divide n_embd raises AssertionError"
            ),
            "asserted above 0": "a number of heads below 1 raises AssertionError",
            "other error": "an impossible number of heads raises another error than ValueError",
            "width": "as many heads as n_embd are refused",
            "not above the width": "only more heads than n_embd are refused",
        },
    ),
    "squeezed": {
        "heads": (
            "sizes of 1 are squeezed away where the heads are joined",
            "What is the shape of your result for a single head, and for a single sequence?",
        ),
        "a single head": (
            "with a single head all sizes of 1 are squeezed away where the heads are joined",
            "squeeze() takes every size of 1 away. Which dimension is it that should go?",
        ),
    },
    "long": {
        "window": (
            "in long sequences a token sees the latest ones only, and not all that came before it",
            "How far back may the last of 2000 tokens look? Nothing here says how long a sequence "
            "may be.",
        ),
        "positions": (
            "the last positions of long sequences are left out, as if they were cut in pieces",
            "What if the length is no multiple of the size of your pieces?",
        ),
        "keys": (
            "the last keys of long sequences are left out, as if they were cut in pieces",
            "What if the length is no multiple of the size of your pieces?",
        ),
    },
    "cleared": {
        "kept from 0": (
            "the future's weights are set to 0 after the softmax and the rows are divided by their "
            "new sums",
            "What is left of a row when a future score is so large that it takes all the weight? "
            "Hide the future before the softmax.",
        ),
    },
    "backward": BACKWARD
    | {
        "other drops": (
            "the gradient belongs to other dropped weights than the output, as when attention is "
            "computed a second time in the backward pass",
            "What is drawn when something is computed again? It has to be drawn as before.",
        ),
    },
}

AT_EDGES = ("squeezed", "long", "cleared", "backward")

COMMON = {
    "split": ("reshaped",),
    "merge": ("reshaped",),
    "scale": ("none", "n_embd", "head_dim"),
    "softmax": ("queries", "heads"),
    "roles": ("kqv",),
    "cut": ("within heads",),
    "mask": ("never", "next", "upper", "after", "zero"),
    "output": ("no c_proj",),
}


def divided(x, n_head):
    """X with the last dimension cut in two: (B, T, n_head, head_dim)."""
    return x.reshape(*x.shape[:-1], n_head, -1)


def split(how, x, n_head):
    """What split_heads makes of x."""
    batch, seq_len, n_embd = x.shape
    width = n_embd // n_head
    slices = divided(x, n_head)
    right = slices.transpose(1, 2)
    return {
        "right": lambda: right,
        "reshaped": lambda: x.reshape(batch, n_head, seq_len, width),
        "interleaved": lambda: divided(x, width).permute(0, 3, 1, 2),
        "positions first": lambda: slices,
        "n_head as width": lambda: divided(x, width).transpose(1, 2),
        "width before positions": lambda: right.mT,
        "heads last": lambda: slices.mT,
        "width first": lambda: slices.transpose(1, 3),
        "heads first": lambda: right.transpose(0, 1),
        "batch and positions": lambda: slices.transpose(0, 1),
        "transposed first": lambda: x.mT.reshape(batch, n_head, seq_len, width),
        "batch of heads": lambda: right.flatten(0, 1),
        "first for all": lambda: right[:, :1].expand_as(right),
        "backwards": lambda: right.flip(1),
    }[how.removesuffix(", right scale")]()


def merge(how, x):
    """What merge_heads makes of x."""
    batch, n_head, seq_len, width = x.shape
    shape = (batch, seq_len, n_head * width)
    right = x.transpose(1, 2)
    return {
        "right": lambda: right.reshape(shape),
        "reshaped": lambda: x.reshape(shape),
        "positions and width": lambda: x.transpose(1, 3).reshape(shape),
        "width before positions": lambda: x.mT.reshape(shape),
        "width first": lambda: x.permute(0, 3, 1, 2).reshape(shape),
        "batch": lambda: x.transpose(0, 1).reshape(shape),
        "not joined": lambda: right,
        "summed": lambda: x.sum(1),
        "averaged": lambda: x.mean(1),
        "along positions": lambda: x.flatten(1, 2),
        "with positions": lambda: right.flatten(1, 2),
        "backwards": lambda: right.flip(2).reshape(shape),
        "transposed after": lambda: x.reshape(batch, n_head * width, seq_len).mT,
    }[how]()


def divisor(scale, q, x, n_head):
    """By what the scores are divided."""
    seq_len, n_embd, d = x.shape[1], x.shape[2], q.shape[-1]
    return {
        "right": math.sqrt(d),
        "none": 1,
        "n_embd": math.sqrt(n_embd),
        "full n_embd": n_embd,
        "head_dim": d,
        "full length": seq_len,
        "full heads": n_head,
        "three n_embd": math.sqrt(3 * n_embd),
        "half": d / 2,
        "one over double": 2 * d,
        "rounded down": math.isqrt(d),
        "log": math.log(d) if d > 1 else 1,
    }[scale]


def thirds(how, qkv, n_head):
    """Queries, keys and values, each (B, n_head, T, head_dim)."""
    batch, seq_len, n_embd = qkv.shape[0], qkv.shape[1], qkv.shape[2] // 3
    width = n_embd // n_head

    def heads(parts):
        return [divided(part, n_head).transpose(1, 2) for part in parts]

    return {
        "within heads": lambda: divided(qkv, n_head).transpose(1, 2).chunk(3, -1),
        "positions": lambda: heads(qkv.reshape(batch, 3, seq_len, n_embd).unbind(1)),
        "batch": lambda: heads(qkv.reshape(3, batch, seq_len, n_embd).unbind(0)),
        "heads": lambda: qkv.reshape(batch, 3, n_head, seq_len, width).unbind(1),
        "everything": lambda: qkv.reshape(3, batch, n_head, seq_len, width).unbind(0),
        "heads and positions": lambda: qkv.reshape(batch, n_head, seq_len, 3 * width).chunk(3, -1),
    }[how]()


def transposed(keys, k):
    """What the queries are multiplied with."""
    return {
        "right": lambda: k.mT,
        "reshaped": lambda: k.reshape(*k.shape[:-2], k.shape[-1], k.shape[-2]),
        "as they are": lambda: k,
        "heads and positions": lambda: k.transpose(1, 2),
        "heads and width": lambda: k.transpose(1, 3),
        "all": lambda: k.permute(*reversed(range(k.dim()))),
    }[keys]()


FILLS = {
    "heads, finite": "finite",
    "batch, finite": "finite",
    "heads, seen": "after",
    "batch, seen": "after",
    "missing, seen": "after",
}
"""How the future is hidden where it makes a difference: by a finite number, or by not looking."""


def masked(how, scores):
    """Scores after a mask."""
    ones = torch.ones(scores.shape[-2:], dtype=torch.bool)
    past = ones.tril()
    match how:
        case "zero":
            return scores * past
        case "added":
            return scores + past
        case "large":
            return scores.masked_fill(~past, 1e9)
        case "times infinity":
            return scores + ~past * -math.inf
        case "after" | "after, infinite" | "after, and softmax again":
            return scores
    allowed = {
        "upper": ones.triu(),
        "next": ones.tril(1),
        "inverted, finite": ~past,
        "inverted, next": ones.triu(2),
        "not itself, finite": ones.tril(-1),
        "only itself": past.triu(),
        "only the one before": past.triu(-1),
    }.get(how, past)
    return scores.masked_fill(~allowed, -1e9 if how.endswith("finite") else -math.inf)


LONG = 1024
"""What may go wrong in long sequences goes wrong beyond this length."""


def shortened(how, scores):
    """Scores without the keys that are forgotten in a long sequence."""
    ones = torch.ones(scores.shape[-2:], dtype=torch.bool)
    match how:
        case "window":
            return scores.masked_fill(ones.tril(-LONG), -math.inf)
        case "keys":
            return torch.cat([scores[..., :LONG], scores[..., LONG:] - math.inf], -1)
    return scores


def masked_again(how, weights):
    """Weights after what stands behind the softmax in place of a mask."""
    past = torch.ones(weights.shape[-2:], dtype=torch.bool).tril()
    match how:
        case "after":
            return weights * past
        case "after, infinite":
            return weights.masked_fill(~past, -math.inf)
        case "after, and softmax again":
            return weights.masked_fill(~past, -math.inf).softmax(-1)
    return weights


def by_hand(scores, keep_maximum, keep_sum):
    """Softmax in which one may forget keepdim."""
    powers = (scores - scores.amax(-1, keepdim=keep_maximum)).exp()
    return powers / powers.sum(-1, keepdim=keep_sum)


def weigh(softmax, scores):
    """What the scores become."""
    return {
        "right": lambda: scores.softmax(-1),
        "queries": lambda: scores.softmax(-2),
        "heads": lambda: scores.softmax(1),
        "batch": lambda: scores.softmax(0),
        "everything": lambda: scores.flatten().softmax(0).view_as(scores),
        "missing": lambda: scores,
        "sigmoid": lambda: scores.sigmoid(),
        "relu": lambda: scores.relu(),
        "exp only": lambda: scores.exp(),
        "divided by the sum": lambda: scores / scores.sum(-1, keepdim=True),
        "log": lambda: scores.log_softmax(-1),
        "negative": lambda: (-scores).softmax(-1),
        "twice": lambda: scores.softmax(-1).softmax(-1),
        "largest": lambda: (scores == scores.amax(-1, keepdim=True)).to(scores.dtype),
        "no keepdim": lambda: by_hand(scores, False, False),
        "no keepdim in max": lambda: by_hand(scores, False, True),
        "no keepdim in sum": lambda: by_hand(scores, True, False),
        "bias of one": lambda: scores.exp() / (1 + scores.exp().sum(-1, keepdim=True)),
    }[softmax.partition(",")[0]]()


def drop(how, x, rate, training):
    """X after a dropout."""
    keep = torch.rand_like(x) >= rate
    return {
        "none": lambda: x,
        "twice": lambda: drop("", drop("", x, rate, training), rate, training),
        "in evaluation": lambda: F.dropout(x, rate),
        "in evaluation only": lambda: F.dropout(x, rate, not training),
        "not rescaled": lambda: x * keep if training else x,
        "shrunk": lambda: x * keep * (1 - rate) if training else x,
        "divided by the rate": lambda: x * keep / rate if training and rate else x,
        "scaled in evaluation": lambda: x * keep if training else x * (1 - rate),
        "inverted": lambda: x * ~keep / (1 - rate) if training else x,
        "inverted, but for 0": lambda: x * ~keep / (1 - rate) if training and rate else x,
        "0.5": lambda: F.dropout(x, 0.5, training),
        "0.1": lambda: F.dropout(x, 0.1, training),
    }.get(how, lambda: F.dropout(x, rate, training))()


def drop_weights(how, weights, rate, training):
    """The attention weights after dropout."""
    if how.startswith(("output", "whole")):
        return F.dropout(weights, rate, training)
    if how == "by keys":
        return weights * F.dropout(torch.ones_like(weights[..., :1]), rate, training)
    return drop(how.removeprefix("weights ").removeprefix("all "), weights, rate, training)


def drop_output(how, y, rate, training):
    """The output after dropout."""
    shared = {"output by batch": 0, "whole channels": 1}
    if how.startswith("weights"):
        return F.dropout(y, rate, training)
    if how in shared:
        return y * F.dropout(torch.ones_like(y.narrow(shared[how], 0, 1)), rate, training)
    return drop(how.removeprefix("output ").removeprefix("all "), y, rate, training)


def projected(how, c_proj, y):
    """The output before dropout."""
    return {
        "right": lambda: c_proj(y),
        "no c_proj": lambda: y,
        "twice": lambda: c_proj(c_proj(y)),
        "transposed": lambda: F.linear(y, c_proj.weight.T, c_proj.bias),
        "added": lambda: y + c_proj(y),
        "relu": lambda: c_proj(y).relu(),
        "gelu": lambda: F.gelu(c_proj(y)),
        "normalised": lambda: F.layer_norm(c_proj(y), y.shape[-1:]),
        "mean": lambda: c_proj(y).mean(1, keepdim=True).expand_as(y),
        "softmax": lambda: c_proj(y).softmax(-1),
    }[how]()


def adapted(how, x):
    """What goes into c_attn."""
    match how:
        case "normalised":
            return F.layer_norm(x, x.shape[-1:])
        case "centred":
            return x - x.mean(-1, keepdim=True)
    return x


RIGHT = dict.fromkeys(SWITCHES, "right") | {"roles": "qkv"}

ORDERS = {
    "right": "n_embd n_head dropout causal bias",
    "causal first": "n_embd n_head causal dropout bias",
    "bias before causal": "n_embd n_head dropout bias causal",
    "bias first": "n_embd n_head bias dropout causal",
}

DEFAULTS = {"n_embd": 768, "n_head": 12, "dropout": 0.0, "causal": False, "bias": True}

OTHER_DEFAULTS = {
    "no fit": {"n_embd": 512},
    "8": {"n_head": 8},
    "1": {"n_head": 1},
    "16": {"n_head": 16},
    "dropout 0.5": {"dropout": 0.5},
}


def refuse(how, n_embd, n_head):
    """Raise what a number of heads raises."""
    positive, divides = n_head > 0, n_head != 0 and n_embd % n_head == 0
    accepted = {
        "zero": positive and divides or n_head == 0,
        "any negative": n_head < 0 or divides,
        "width": positive and divides and n_head < n_embd,
        "not above the width": 0 < n_head <= n_embd,
    }.get(how, positive and divides)
    error = {
        "asserted to divide": AssertionError if positive else ValueError,
        "asserted above 0": ValueError if positive else AssertionError,
        "other error": TypeError,
    }.get(how, ValueError)
    if not accepted:
        raise error(f"{n_head} heads")


def linear_layers(how, n_embd, bias):
    """c_attn and c_proj."""
    attn, proj = {
        "right": (bias, bias),
        "both": (True, True),
        "c_attn": (True, bias),
        "c_proj": (bias, True),
        "no c_attn": (False, bias),
        "no c_proj": (bias, False),
        "none": (False, False),
        "opposite": (not bias, not bias),
    }[how]
    return nn.Linear(n_embd, 3 * n_embd, bias=attn), nn.Linear(n_embd, n_embd, bias=proj)


def dropouts(how, rate):
    """attn_dropout and resid_dropout."""
    name, _, fixed = how.partition(" ")
    if how in ("missing", "no attn", "no resid"):
        rates = (rate if how == "no resid" else None, rate if how == "no attn" else None)
    elif how in ("0", "0.1", "0.5", "opposite"):
        rates = (1 - rate if how == "opposite" else float(how),) * 2
    else:
        rates = tuple(float(fixed) if name == each else rate for each in ("attn", "resid"))
    return [nn.Identity() if each is None else nn.Dropout(each) for each in rates]


def widths(how, n_embd, n_head):
    """The three attributes that say how the layer is cut up."""
    found = {"n_embd": n_embd, "n_head": n_head, "head_dim": n_embd // n_head}
    other = {
        "float": n_embd / n_head,
        "head_dim is n_embd": n_embd,
        "head_dim is n_head": n_head,
        "head_dim is 64": 64,
    }
    found["head_dim"] = other.get(how, found["head_dim"])
    found.pop(how.removeprefix("no "), None)
    return found


def faulty(**faults):
    """The functions and the class of problem 05 with these faults."""
    on = SimpleNamespace(**(RIGHT | faults))

    def split_heads(x, n_head):
        return split(on.split, x, n_head)

    def merge_heads(x):
        if on.squeezed == "a single head" and x.shape[1] == 1:
            return x.squeeze()
        merged = merge(on.merge, x)
        return merged.squeeze() if on.squeezed == "heads" else merged

    class MultiHeadAttention(nn.Module):
        def __init__(self, *arguments, **named):
            super().__init__()
            default = DEFAULTS | OTHER_DEFAULTS.get(on.defaults, {})
            by_position = dict(zip(ORDERS[on.arguments].split(), arguments, strict=False))
            given = SimpleNamespace(**(default | by_position | named))
            refuse(on.check, given.n_embd, given.n_head)
            for name, size in widths(on.sizes, given.n_embd, given.n_head).items():
                setattr(self, name, size)
            self.c_attn, self.c_proj = linear_layers(on.bias, given.n_embd, given.bias)
            self.attn_dropout, self.resid_dropout = dropouts(on.rates, given.dropout)
            self.given = given

        def drops(self, x):
            return F.dropout(x, self.given.dropout, self.training)

        def parts(self, x):
            n_head = 1 if on.heads.startswith("one") else self.given.n_head
            x = self.drops(x) if on.dropout == "input" else x
            qkv = self.c_attn(adapted(on.input, x))
            qkv = {"relu": F.relu, "gelu": F.gelu}.get(on.input, lambda same: same)(qkv)
            qkv = self.drops(qkv) if on.dropout == "projected" else qkv
            if on.cut == "right":
                thirds_of = [split_heads(third, n_head) for third in qkv.chunk(3, -1)]
            else:
                thirds_of = thirds(on.cut, qkv, n_head)
            given = dict(zip("qkv", thirds_of, strict=True)) | {"x": split_heads(x, n_head)}
            q, k, v = (given[role] for role in on.roles)
            if on.input == "normalised queries":
                q, k = F.normalize(q, dim=-1), F.normalize(k, dim=-1)
            return (
                [part.transpose(0, 2) for part in (q, k, v)] if on.heads == "batch" else (q, k, v)
            )

        def weights(self, q, k, by):
            scores = q @ transposed(on.keys, k)
            scores = scores if on.when == "output" else scores / by
            causal = {
                "never": False,
                "opposite": not self.given.causal,
                "in evaluation": self.given.causal and not self.training,
            }.get(on.mask, self.given.causal)
            scores = self.drops(scores) if on.dropout == "scores too" else scores
            hidden = on.mask if on.mask != "right" else FILLS.get(on.softmax, "right")
            scores = shortened(on.long, scores) if scores.shape[-1] > LONG else scores
            if on.backward in BACKWARD:
                scores = masked(hidden, scores) if causal else scores
                weights = softmax_with(on.backward)(scores, -1)
            elif on.cleared != "right" and causal:
                weights = masked_again("after", weigh(on.softmax, scores))
                weights = weights / (weights.sum(-1, keepdim=True) + 1e-12)
            else:
                weights = weigh(on.softmax, masked(hidden, scores) if causal else scores)
                weights = masked_again(hidden, weights) if causal else weights
            if on.heads == "other heads' weights":
                weights = weights[:, :1].expand_as(weights)
            if on.heads == "averaged weights":
                weights = weights.mean(1, keepdim=True).expand_as(weights)
            weights = self.dropped(drop_weights, self.attn_dropout, weights)
            if on.weights == "reshaped":
                return weights.reshape(*weights.shape[:-2], *reversed(weights.shape[-2:]))
            return weights.mT if on.weights == "transposed" else weights

        def dropped(self, how, layer, x):
            if on.dropout == "right" and on.rates != "right":
                return layer(x)
            return how(on.dropout, x, self.given.dropout, self.training)

        def forward(self, x):
            q, k, v = self.parts(x)
            wide = on.heads != "one" or self.given.n_head == 1
            d = q if wide else q[..., : self.given.n_embd // self.given.n_head]
            d = (
                q.new_empty(self.given.n_embd // self.given.n_head)
                if on.split.endswith("scale")
                else d
            )
            by = divisor(on.scale, d, x, self.given.n_head)
            v = v / by if on.when == "both" else v
            y = self.weights(q, k, by) @ v
            if on.backward == "other drops" and self.training:
                again = self.weights(q, k, by) @ v
                y = again + (y - again).detach()
            if on.long == "positions" and y.shape[-2] > LONG:
                y = torch.cat([y[:, :, :LONG], 0 * y[:, :, LONG:]], -2)
            y = y / by if on.when == "output" else y
            y = y.transpose(0, 2) if on.heads == "batch" else y
            y = self.drops(y) if on.dropout == "gathered too" else y
            y = merge_heads(y)
            y = projected(on.output, self.c_proj, y)
            return self.dropped(drop_output, self.resid_dropout, y)

    found = SimpleNamespace(split_heads=split_heads, merge_heads=merge_heads)
    if on.merge not in ("summed", "averaged", "along positions", "with positions"):
        # With these a layer only raises something, which says nothing about its mistake.
        found.MultiHeadAttention = MultiHeadAttention
    return found
