"""Problem 05 with faults that can be switched on, one or several at a time."""

import math
from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import nn

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

SWITCHES = {
    "split": {
        "reshaped": ("split_heads reshapes straight to (B, n_head, T, head_dim)", _SPLIT),
        "interleaved": ("split_heads lets the heads take turns at the entries of a token", _SPLIT),
        "positions first": ("split_heads leaves the positions before the heads", _SPLIT),
        "n_head as width": ("split_heads takes n_head for the width of a head", _SPLIT),
        "width before positions": ("split_heads gives (B, n_head, head_dim, T)", _SPLIT),
        "heads last": ("split_heads gives (B, T, head_dim, n_head)", _SPLIT),
        "width first": ("split_heads gives (B, head_dim, n_head, T)", _SPLIT),
        "heads first": ("split_heads gives (n_head, B, T, head_dim)", _SPLIT),
        "batch and positions": ("split_heads swaps the batch and the positions", _SPLIT),
        "transposed first": ("split_heads transposes x and reshapes it then", _SPLIT),
        "batch of heads": ("split_heads joins the heads to the batch", _SPLIT),
        "first for all": ("every head works on the first slice of the embedding", _SPLIT),
        "backwards": ("split_heads gives the heads their slices in reversed order", _SPLIT),
    },
    "merge": {
        "reshaped": (
            "merge_heads reshapes to (B, T, C) while the heads still stand before the positions",
            _MERGE,
        ),
        "interleaved": ("merge_heads puts entry 0 of all heads first, then entry 1", _MERGE),
        "positions and width": ("merge_heads swaps the heads with the width of a head", _MERGE),
        "width before positions": ("merge_heads swaps positions and the width of a head", _MERGE),
        "width first": ("merge_heads brings the width of a head to the front", _MERGE),
        "batch": ("merge_heads swaps the batch and the heads", _MERGE),
        "not joined": ("merge_heads swaps heads and positions and joins nothing", _MERGE),
        "summed": ("merge_heads adds the heads up", _MERGE),
        "averaged": ("merge_heads averages the heads", _MERGE),
        "along positions": ("merge_heads sets the heads one after the other as positions", _MERGE),
        "with positions": ("merge_heads joins the heads to the positions", _MERGE),
        "positions joined": ("merge_heads joins the positions in place of the heads", _MERGE),
        "backwards": ("merge_heads joins the heads in reversed order", _MERGE),
        "transposed after": ("merge_heads reshapes first and transposes then", _MERGE),
    },
    "heads": {
        "one": ("there is a single head of the full width, whatever n_head is", _SPLIT),
        "one, with its width": (
            "there is a single head of the full width, and the scores are divided by √n_embd",
            _SPLIT,
        ),
        "other heads' weights": ("all heads use the weights of head 0", _SPLIT),
        "averaged weights": ("the weights are averaged over the heads", _SPLIT),
        "batch": ("the tokens attend to other sequences at the same position", _FORMULA),
    },
    "scale": {
        "none": ("the scores are not divided by √head_dim", _WIDTH),
        "n_embd": ("the scores are divided by √n_embd", _WIDTH),
        "full n_embd": ("the scores are divided by n_embd", _WIDTH),
        "head_dim": ("the scores are divided by head_dim in place of its root", _WIDTH),
        "length": ("the scores are divided by √T, the root of the sequence length", _WIDTH),
        "full length": ("the scores are divided by T, the sequence length", _WIDTH),
        "heads": ("the scores are divided by √n_head", _WIDTH),
        "full heads": ("the scores are divided by n_head", _WIDTH),
        "three n_embd": ("the scores are divided by √(3 n_embd)", _WIDTH),
        "batch": ("the scores are divided by the root of the number of sequences", _WIDTH),
        "times the root": ("the scores are multiplied by √head_dim", _WIDTH),
        "times head_dim": ("the scores are multiplied by head_dim", _WIDTH),
        "head_dim and its root": ("the scores are divided by head_dim and by its root", _WIDTH),
        "head_dim squared": ("the scores are divided by head_dim twice", _WIDTH),
        "fourth root": ("the scores are divided by the fourth root of head_dim", _WIDTH),
        "half": ("the scores are divided by head_dim / 2: ** binds more tightly than /", _WIDTH),
        "one over double": (
            "the scores are multiplied by head_dim ** -1 / 2, which is 1 / (2 head_dim)",
            _WIDTH,
        ),
        "rounded down": ("the root of head_dim is rounded down to a whole number", _WIDTH),
        "log": ("the scores are divided by the logarithm of head_dim", _WIDTH),
        "8": ("the scores are divided by 8 whatever the width of a head is", _WIDTH),
        "2": ("the scores are divided by 2 whatever the width of a head is", _WIDTH),
        "root of 8": ("the scores are divided by √8 whatever the width of a head is", _WIDTH),
        "64": ("the scores are divided by 64 whatever the width of a head is", _WIDTH),
    },
    "when": {
        "output": ("it is the weights, or what they gather, that is divided", _FORMULA),
        "both": ("both the scores and the values are divided", _FORMULA),
    },
    "softmax": {
        "queries": ("the softmax runs over the queries, so the columns sum to 1", _AXIS),
        "heads": ("the softmax runs over the heads", _AXIS),
        "batch": ("the softmax runs over the sequences of the batch", _AXIS),
        "everything": ("the softmax runs over all scores at once", _AXIS),
        "missing": ("there is no softmax: the scores themselves mix the values", _FORMULA),
        "sigmoid": ("a sigmoid stands in place of softmax", _FORMULA),
        "relu": ("a relu stands in place of softmax", _FORMULA),
        "exp only": ("the powers are not divided by their sum", _FORMULA),
        "divided by the sum": ("the scores are divided by their sum, without exp", _FORMULA),
        "log": ("the logarithm of the weights mixes the values", _FORMULA),
        "negative": ("softmax is taken of minus the scores", _FORMULA),
        "twice": ("softmax is taken twice", _FORMULA),
        "largest": ("each query takes the one value of the key that fits best", _FORMULA),
        "bias of one": ("1 is added to the sum that the powers are divided by", _FORMULA),
    },
    "roles": {
        **{
            order: (f"c_attn is cut into {a}, {b}, {c} instead of queries, keys, values", _ORDER)
            for order, a, b, c in [
                ("kqv", "keys", "queries", "values"),
                ("qvk", "queries", "values", "keys"),
                ("vqk", "keys", "values", "queries"),
                ("vkq", "values", "keys", "queries"),
                ("kvq", "values", "queries", "keys"),
            ]
        },
        "qqv": ("the queries are compared with themselves instead of the keys", _ROLES),
        "kkv": ("the keys are compared with themselves instead of the queries", _ROLES),
        "qkk": ("the weights mix the keys in place of the values", _ROLES),
        "qkq": ("the weights mix the queries in place of the values", _ROLES),
        "qqq": ("queries, keys and values are all the same", _ROLES),
        "qkx": ("the input itself is averaged instead of the values", _ROLES),
        "xkv": ("the input itself takes the place of the queries", _ROLES),
        "qxv": ("the input itself takes the place of the keys", _ROLES),
        "xxx": ("the input itself is queries, keys and values", _ROLES),
    },
    "cut": {
        "by turns": ("queries, keys and values take turns in c_attn's output", _CUT),
        "within heads": (
            "each head's query, key and value stand together in c_attn's output",
            _CUT,
        ),
        "positions": ("c_attn's output is reshaped to (B, 3, T, C)", _CUT),
        "batch": ("c_attn's output is reshaped to (3, B, T, C)", _CUT),
        "heads": ("c_attn's output is reshaped to (B, 3, n_head, T, head_dim)", _CUT),
        "everything": ("c_attn's output is reshaped to (3, B, n_head, T, head_dim)", _CUT),
        "heads and positions": ("c_attn's output is reshaped to (B, n_head, T, 3 head_dim)", _CUT),
    },
    "keys": {
        "reshaped": ("the keys are reshaped in place of transposed", _FORMULA),
        "as they are": ("the keys are not transposed", _FORMULA),
        "heads and positions": ("the heads and positions of the keys are swapped", _FORMULA),
        "heads and width": ("the heads and widths of the keys are swapped", _FORMULA),
        "all": ("all dimensions of the keys are swapped", _FORMULA),
    },
    "weights": {
        "transposed": ("the weights are transposed before they mix the values", _ROLES),
        "reshaped": ("the weights are reshaped as if that transposed them", _ROLES),
    },
    "mask": {
        "never": ("causal=True changes nothing", _MASK),
        "always": ("the future is hidden even with causal=False", _MASK),
        "opposite": ("the future is hidden with causal=False, and seen with causal=True", _MASK),
        "in training": ("the future is hidden in training only", _MASK),
        "in evaluation": ("the future is hidden in evaluation only", _MASK),
        "inverted": ("the allowed positions are hidden and the future is shown", _MASK),
        "inverted, finite": ("the allowed positions are hidden and the future is shown", _MASK),
        "upper": ("each token sees itself and the future instead of itself and the past", _MASK),
        "next": ("each token also sees the next one", _MASK),
        "not itself": ("a token may not see itself, so that the first one sees nothing", _MASK),
        "not itself, finite": (
            "a token may not see itself, so that the first one sees nothing",
            _MASK,
        ),
        "only itself": ("each token sees only itself", _MASK),
        "only the one before": ("each token sees itself and the one before it only", _MASK),
        "zero": ("hidden scores are set to 0 before the softmax, and exp(0) is 1", _MASK),
        "added": ("the mask of 0 and 1 is added to the scores", _MASK),
        "after": (
            "the future's weights are set to 0 after the softmax, so rows no longer sum to 1",
            _MASK,
        ),
        "after, infinite": ("the future's weights are set to -inf after the softmax", _MASK),
        "after, and softmax again": ("hidden weights are set to -inf, and softmax again", _MASK),
        "times infinity": ("the mask is multiplied by inf, and 0 times inf is NaN", _MASK),
        "large": ("hidden scores get a very large number in place of a very small one", _MASK),
    },
    "output": {
        "no c_proj": ("the merged heads are returned without c_proj", _FORMULA),
        "twice": ("c_proj is applied twice", _FORMULA),
        "transposed": ("the weight of c_proj is transposed", _FORMULA),
        "no bias": ("c_proj is applied without its bias", _FORMULA),
        "added": ("the merged heads are added to what c_proj makes of them", _FORMULA),
        "input added": ("the input is added to the output", _FORMULA),
        "relu": ("a relu follows c_proj", _FORMULA),
        "gelu": ("a gelu follows c_proj", _FORMULA),
        "normalised": ("the output is normalised", _FORMULA),
        "mean": ("the output is averaged over the tokens", _FORMULA),
        "softmax": ("a softmax follows c_proj", _FORMULA),
    },
    "input": {
        "no bias": ("c_attn is applied without its bias", _FORMULA),
        "relu": ("a relu follows c_attn", _FORMULA),
        "gelu": ("a gelu follows c_attn", _FORMULA),
        "normalised": ("the input is normalised", _FORMULA),
        "normalised queries": ("queries and keys are made to have the length 1", _FORMULA),
        "centred": ("the mean of each token is taken away", _FORMULA),
    },
    "dropout": {
        "no weights": ("the attention weights are never dropped", _PLACES),
        "no output": ("the output is never dropped", _PLACES),
        "none": ("nothing is ever dropped", _PLACES),
        "scores": ("dropout is applied to the scores before the softmax", _PLACES),
        "values": ("the values are dropped instead of the weights", _PLACES),
        "gathered": ("what the heads gathered is dropped, instead of the weights", _PLACES),
        "gathered too": ("what goes into c_proj is dropped, too", _PLACES),
        "before c_proj": (
            "the last dropout is applied before c_proj instead of after it",
            _PLACES,
        ),
        "input": ("the input is dropped, too", _PLACES),
        "projected": ("what c_attn gives is dropped, too", _PLACES),
        "weights twice": ("the weights are dropped twice", _PLACES),
        "output twice": ("the output is dropped twice", _PLACES),
        "weights in evaluation": ("the weights are dropped after eval(), too", _GROWTH),
        "output in evaluation": ("the output is dropped after eval(), too", _GROWTH),
        "in evaluation": ("both dropouts stay on after eval()", _GROWTH),
        "in evaluation only": ("dropout acts in evaluation and not in training", _GROWTH),
        "weights not rescaled": (
            "the weights that are kept do not grow by 1/(1 - dropout)",
            _GROWTH,
        ),
        "output not rescaled": ("the outputs kept do not grow by 1/(1 - dropout)", _GROWTH),
        "not rescaled": ("what is kept does not grow by 1/(1 - dropout)", _GROWTH),
        "shrunk": ("what is kept is multiplied by 1 - dropout in place of divided", _GROWTH),
        "divided by the rate": ("what is kept is divided by dropout, not by 1 - dropout", _GROWTH),
        "scaled in evaluation": (
            "the kept entries grow in evaluation's stead: eval() multiplies by 1 - dropout",
            _GROWTH,
        ),
        "all scaled in evaluation": (
            "nothing grows in training, and eval() multiplies by 1 - dropout",
            _GROWTH,
        ),
        **{
            f"{what}inverted{when}": (
                f"a share of 1 - dropout{of} is dropped instead of dropout",
                _GROWTH,
            )
            for what, of in [
                ("weights ", ""),
                ("output ", " of the output"),
                ("", " of weights and output"),
            ]
            for when in ("", ", but for 0")
        },
        "weights 0.5": ("half of the weights are dropped, whatever dropout is", _GROWTH),
        "output 0.5": ("half of the output is dropped, whatever dropout is", _GROWTH),
        "0.5": ("half of all is dropped, whatever dropout is", _GROWTH),
        "0.1": ("a tenth is dropped, whatever dropout is", _GROWTH),
        "renormalised": (
            "after dropout the weights of each row are made to sum to 1 again",
            _GROWTH,
        ),
        "by batch": ("all sequences of a batch drop the same weights", _PIECES),
        "by heads": ("all heads drop the same weights", _PIECES),
        "by queries": ("a key is dropped for all queries at once", _PIECES),
        "by keys": ("a query loses all its weights at once", _PIECES),
        "whole heads": ("dropout takes whole heads away instead of single weights", _PIECES),
        "whole tokens": (
            "dropout takes whole tokens of the output away instead of single entries",
            _PIECES,
        ),
        "whole channels": ("all tokens of a sequence drop the same of the output", _PIECES),
        "output by batch": ("all sequences of a batch drop the same of the output", _PIECES),
    },
    "bias": {
        "both": ("both linear layers have a bias even with bias=False", _MADE),
        "c_attn": ("c_attn has a bias even with bias=False", _MADE),
        "c_proj": ("c_proj has a bias even with bias=False", _MADE),
        "no c_attn": ("c_attn never has a bias", _MADE),
        "no c_proj": ("c_proj never has a bias", _MADE),
        "none": ("neither linear layer ever has a bias", _MADE),
        "opposite": ("the linear layers have a bias with bias=False only", _MADE),
    },
    "rates": {
        "attn 0.5": ("attn_dropout has nn.Dropout's own rate of 0.5", _MADE),
        "resid 0.5": ("resid_dropout has nn.Dropout's own rate of 0.5", _MADE),
        "0.5": ("both dropouts have nn.Dropout's own rate of 0.5", _MADE),
        "0.1": ("the dropout rate is 0.1 whatever was asked for", _MADE),
        "attn 0.1": ("attn_dropout has the rate 0.1 whatever was asked for", _MADE),
        "resid 0.1": ("resid_dropout has the rate 0.1 whatever was asked for", _MADE),
        "0": ("the dropouts have the rate 0 whatever was asked for", _MADE),
        "attn 0": ("attn_dropout has the rate 0 whatever was asked for", _MADE),
        "resid 0": ("resid_dropout has the rate 0 whatever was asked for", _MADE),
        "opposite": ("the dropouts have the rate 1 - dropout", _MADE),
        "no attn": ("there is no nn.Dropout called attn_dropout", _MADE),
        "no resid": ("there is no nn.Dropout called resid_dropout", _MADE),
        "missing": ("there are no nn.Dropout called attn_dropout and resid_dropout", _MADE),
        "identity": ("with dropout=0.0 the dropouts are nn.Identity", _MADE),
    },
    "sizes": {
        "no head_dim": ("the attribute head_dim is missing", _MADE),
        "no n_head": ("the attribute n_head is missing", _MADE),
        "no n_embd": ("the attribute n_embd is missing", _MADE),
        "float": ("head_dim is a float: / divides, and // gives a whole number", _MADE),
        "head_dim is n_embd": ("head_dim is n_embd, the width of all heads together", _MADE),
        "head_dim is n_head": ("head_dim is the number of heads", _MADE),
        "head_dim is 64": ("head_dim is 64, whatever n_embd and n_head are", _MADE),
    },
    "defaults": {
        "512, 8": ("the defaults of n_embd and n_head are 512 and 8", _DEFAULTS),
        "512": ("n_embd is 512 by default", _DEFAULTS),
        "1024": ("n_embd is 1024 by default", _DEFAULTS),
        "8": ("n_head is 8 by default", _DEFAULTS),
        "1": ("n_head is 1 by default", _DEFAULTS),
        "16": ("n_head is 16 by default", _DEFAULTS),
        "dropout 0.1": ("dropout is 0.1 by default", _DEFAULTS),
        "dropout 0.5": ("dropout is 0.5 by default", _DEFAULTS),
        "causal": ("causal is True by default", _DEFAULTS),
        "no bias": ("bias is False by default", _DEFAULTS),
    },
    "arguments": {
        "causal first": ("causal comes before dropout among the arguments", _DEFAULTS),
        "bias before causal": ("bias comes before causal among the arguments", _DEFAULTS),
        "bias first": ("bias comes before dropout among the arguments", _DEFAULTS),
    },
    "check": {
        "none": ("the number of heads is not checked at all", _CHECK),
        "divides": ("a number of heads below 1 is not refused in time", _CHECK),
        "zero": ("a number of heads of 0 is not refused in time", _CHECK),
        "negative": ("a negative number of heads that divides n_embd is accepted", _CHECK),
        "any negative": ("a negative number of heads is accepted", _CHECK),
        "above 0": ("a number of heads that does not divide n_embd is accepted", _CHECK),
        "asserted": ("an impossible number of heads raises AssertionError", _CHECK),
        "asserted to divide": (
            "a number of heads that does not divide n_embd raises AssertionError",
            _CHECK,
        ),
        "asserted above 0": ("a number of heads below 1 raises AssertionError", _CHECK),
        "other error": (
            "an impossible number of heads raises another error than ValueError",
            _CHECK,
        ),
        "one": ("a single head is refused", _CHECK),
        "width": ("as many heads as n_embd are refused", _CHECK),
        "not above the width": ("only more heads than n_embd are refused", _CHECK),
    },
}  # fmt: skip

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
    }[how]()


def merge(how, x):
    """What merge_heads makes of x."""
    batch, n_head, seq_len, width = x.shape
    shape = (batch, seq_len, n_head * width)
    right = x.transpose(1, 2)
    return {
        "right": lambda: right.reshape(shape),
        "reshaped": lambda: x.reshape(shape),
        "interleaved": lambda: x.permute(0, 2, 3, 1).reshape(shape),
        "positions and width": lambda: x.transpose(1, 3).reshape(shape),
        "width before positions": lambda: x.mT.reshape(shape),
        "width first": lambda: x.permute(0, 3, 1, 2).reshape(shape),
        "batch": lambda: x.transpose(0, 1).reshape(shape),
        "not joined": lambda: right,
        "summed": lambda: x.sum(1),
        "averaged": lambda: x.mean(1),
        "along positions": lambda: x.flatten(1, 2),
        "with positions": lambda: right.flatten(1, 2),
        "positions joined": lambda: x.flatten(2),
        "backwards": lambda: right.flip(2).reshape(shape),
        "transposed after": lambda: x.reshape(batch, n_head * width, seq_len).mT,
    }[how]()


def divisor(scale, q, x, n_head):
    """By what the scores are divided."""
    (batch, seq_len, n_embd), d = x.shape, q.shape[-1]
    return {
        "right": math.sqrt(d),
        "none": 1,
        "n_embd": math.sqrt(n_embd),
        "full n_embd": n_embd,
        "head_dim": d,
        "length": math.sqrt(seq_len),
        "full length": seq_len,
        "heads": math.sqrt(n_head),
        "full heads": n_head,
        "three n_embd": math.sqrt(3 * n_embd),
        "batch": math.sqrt(batch),
        "times the root": 1 / math.sqrt(d),
        "times head_dim": 1 / d,
        "head_dim and its root": d**1.5,
        "head_dim squared": d**2,
        "fourth root": d**0.25,
        "half": d / 2,
        "one over double": 2 * d,
        "rounded down": math.isqrt(d),
        "log": math.log(d) if d > 1 else 1,
        "8": 8,
        "2": 2,
        "root of 8": math.sqrt(8),
        "64": 64,
    }[scale]


def thirds(how, qkv, n_head):
    """Queries, keys and values, each (B, n_head, T, head_dim); None for the right way to cut."""
    batch, seq_len, n_embd = qkv.shape[0], qkv.shape[1], qkv.shape[2] // 3
    width = n_embd // n_head

    def heads(parts):
        return [divided(part, n_head).transpose(1, 2) for part in parts]

    return {
        "by turns": lambda: heads(qkv[..., i::3] for i in range(3)),
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
        "inverted": ~past,
        "upper": ones.triu(),
        "next": ones.tril(1),
        "not itself": ones.tril(-1),
        "only itself": past.triu(),
        "only the one before": past.triu(-1),
    }.get(how.removesuffix(", finite"), past)
    return scores.masked_fill(~allowed, -1e9 if how.endswith("finite") else -math.inf)


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
        "bias of one": lambda: scores.exp() / (1 + scores.exp().sum(-1, keepdim=True)),
    }[softmax]()


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
    missing = ("no weights", "scores", "values", "gathered")
    shared = {"by batch": 0, "by heads": 1, "by queries": 2, "by keys": 3}
    if how in missing or how.startswith("output"):
        return drop("none" if how in missing else "", weights, rate, training)
    if how in shared:
        ones = torch.ones_like(weights.narrow(shared[how], 0, 1))
        return weights * F.dropout(ones, rate, training)
    if how == "whole heads":
        return F.dropout2d(weights, rate, training)
    how = how.removeprefix("weights ").removeprefix("all ")
    weights = drop(how, weights, rate, training)
    return weights / (weights.sum(-1, keepdim=True) + 1e-12) if how == "renormalised" else weights


def drop_output(how, y, rate, training):
    """The output after dropout."""
    shared = {"output by batch": 0, "whole channels": 1, "whole tokens": 2}
    missing = ("no output", "before c_proj")
    if how in missing or how.startswith("weights") or how == "scaled in evaluation":
        return drop("none" if how in missing else "", y, rate, training)
    if how in shared:
        return y * F.dropout(torch.ones_like(y.narrow(shared[how], 0, 1)), rate, training)
    return drop(how.removeprefix("output ").removeprefix("all "), y, rate, training)


def projected(how, c_proj, y, x):
    """The output before dropout."""
    return {
        "right": lambda: c_proj(y),
        "no c_proj": lambda: y,
        "twice": lambda: c_proj(c_proj(y)),
        "transposed": lambda: F.linear(y, c_proj.weight.T, c_proj.bias),
        "no bias": lambda: F.linear(y, c_proj.weight),
        "added": lambda: y + c_proj(y),
        "input added": lambda: x + c_proj(y),
        "relu": lambda: c_proj(y).relu(),
        "gelu": lambda: F.gelu(c_proj(y)),
        "normalised": lambda: F.layer_norm(c_proj(y), y.shape[-1:]),
        "mean": lambda: c_proj(y).mean(1, keepdim=True).expand_as(y),
        "softmax": lambda: c_proj(y).softmax(-1),
    }[how]()


RIGHT = dict.fromkeys(SWITCHES, "right") | {"roles": "qkv"}

ORDERS = {
    "right": "n_embd n_head dropout causal bias",
    "causal first": "n_embd n_head causal dropout bias",
    "bias before causal": "n_embd n_head dropout bias causal",
    "bias first": "n_embd n_head bias dropout causal",
}

DEFAULTS = {"n_embd": 768, "n_head": 12, "dropout": 0.0, "causal": False, "bias": True}

OTHER_DEFAULTS = {
    "512, 8": {"n_embd": 512, "n_head": 8},
    "512": {"n_embd": 512, "n_head": 16},
    "1024": {"n_embd": 1024},
    "8": {"n_head": 8},
    "1": {"n_head": 1},
    "16": {"n_head": 16},
    "dropout 0.1": {"dropout": 0.1},
    "dropout 0.5": {"dropout": 0.5},
    "causal": {"causal": True},
    "no bias": {"bias": False},
}


def refuse(how, n_embd, n_head):
    """Raise what a number of heads raises."""
    positive, divides = n_head > 0, n_head != 0 and n_embd % n_head == 0
    accepted = {
        "none": True,
        "divides": divides or n_head == 0,
        "zero": positive and divides or n_head == 0,
        "negative": divides,
        "any negative": n_head < 0 or divides,
        "above 0": positive,
        "one": positive and divides and n_head > 1,
        "width": positive and divides and n_head < n_embd,
        "not above the width": 0 < n_head <= n_embd,
    }.get(how, positive and divides)
    error = {
        "asserted": AssertionError,
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
    if how == "identity" and not rate:
        return nn.Identity(), nn.Identity()
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
        return merge(on.merge, x)

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
            bias = None if on.input == "no bias" else self.c_attn.bias
            qkv = F.linear(adapted(on.input, x), self.c_attn.weight, bias)
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
            scores = self.drops(scores) if on.dropout == "scores" else scores
            causal = {
                "never": False,
                "always": True,
                "opposite": not self.given.causal,
                "in training": self.given.causal and self.training,
                "in evaluation": self.given.causal and not self.training,
            }.get(on.mask, self.given.causal)
            weights = weigh(on.softmax, masked(on.mask, scores) if causal else scores)
            weights = masked_again(on.mask, weights) if causal else weights
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
            by = divisor(on.scale, d, x, self.given.n_head)
            v = self.drops(v) if on.dropout == "values" else v
            v = v / by if on.when == "both" else v
            y = self.weights(q, k, by) @ v
            y = y / by if on.when == "output" else y
            y = y.transpose(0, 2) if on.heads == "batch" else y
            y = self.drops(y) if on.dropout.startswith("gathered") else y
            y = merge_heads(y)
            y = self.drops(y) if on.dropout == "before c_proj" else y
            y = projected(on.output, self.c_proj, y, x)
            return self.dropped(drop_output, self.resid_dropout, y)

    return SimpleNamespace(
        split_heads=split_heads,
        merge_heads=merge_heads,
        **dict.fromkeys(PARTS, MultiHeadAttention),
    )


PARTS = (
    "MultiHeadAttention",
    "MultiHeadAttention: layers",
    "MultiHeadAttention: defaults",
    "MultiHeadAttention: number of heads",
    "MultiHeadAttention: dropout",
)


def adapted(how, x):
    """What goes into c_attn."""
    match how:
        case "normalised":
            return F.layer_norm(x, x.shape[-1:])
        case "centred":
            return x - x.mean(-1, keepdim=True)
    return x
