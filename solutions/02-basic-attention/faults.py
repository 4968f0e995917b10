"""Problem 02 with faults that can be switched on, one or several at a time."""

import math
from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import nn

from grader.author.backward import BACKWARD, softmax_with

_SCORES = "In this problem the scores go into the softmax as they are: plain dot products."
_AXIS = "Each query shares out a weight of 1 among the keys. Along which dimension do the keys lie?"
_ROLES = "Who asks, who is asked, and what is mixed in the end? Follow queries, keys and values."
_FORMULA = "Compare the order of your steps with the formula in the README."
_LAYERS = "Three layers each look at x. What does each of yours take in, and where does it go?"
_LAYER = "A layer is its weight and its bias. What does calling the layer do?"
_ARGUMENTS = "Look at the constructor's arguments: is each of them used, for each layer?"
_NOTHING_MORE = "The output is softmax(q kᵀ) v, nothing more. Which step is one too many?"
_BATCH = "Each sequence of a batch stands by itself. What does your code do with dimension 0?"
_ALL_SEE_ALL = "Here every position may attend to every position, also to itself."
_SHAPES = "Write down the shape of each step. Which two dimensions have to change places?"

SWITCHES = {
    "scale": {
        "root of C": ("the scores are divided by √n_embd", _SCORES),
        "C": ("the scores are divided by n_embd", _SCORES),
        "times the root of C": ("the scores are multiplied by √n_embd", _SCORES),
        "half of C": ("the scores are divided by n_embd / 2", _SCORES),
        "one over 2 C": (
            "the scores are multiplied by n_embd ** -1 / 2: the power comes first",
            _SCORES,
        ),
        "double": ("the scores are multiplied by 2", _SCORES),
        "cosine": ("queries and keys are brought to length 1 before they are compared", _SCORES),
        "q normalized": ("the queries are brought to length 1 before they are compared", _SCORES),
        "k normalized": ("the keys are brought to length 1 before they are compared", _SCORES),
        "largest": ("the scores are divided by the largest of their row", _SCORES),
        "standard": ("the scores of each row are divided by their standard deviation", _SCORES),
    },
    "when": {
        "weights": ("the weights are divided by a root of n_embd, after softmax", _NOTHING_MORE),
        "output": ("the output is divided by √n_embd", _NOTHING_MORE),
        "by T": ("the output is divided by the sequence length", _NOTHING_MORE),
        "by C": ("the output is divided by n_embd", _NOTHING_MORE),
    },
    "softmax": {
        "queries": (
            "the softmax runs over the queries instead of the keys",
            "Each query shares out a weight of 1 among the keys. In scores of shape (B, T, T), "
            "which of the two T counts the keys?",
        ),
        "batch": (
            "the softmax runs over the sequences of the batch",
            "Without a dim, or with the wrong one, the softmax takes a dimension that you may not "
            "expect. Along which one should the weights sum to 1?",
        ),
        "sequence": ("one softmax runs over all scores of a sequence at once", _AXIS),
        "everything": ("one softmax runs over all scores of the batch at once", _AXIS),
        "missing": ("the scores are used as weights without a softmax", _FORMULA),
        "sigmoid": (
            "each score goes through a sigmoid instead of a softmax over the row",
            _FORMULA,
        ),
        "relu": ("negative scores become 0, and there is no softmax", _FORMULA),
        "tanh": ("each score goes through a tanh instead of a softmax over the row", _FORMULA),
        "exp only": ("the powers of the scores are not divided by their sum", _FORMULA),
        "exp only, shifted": ("the powers of the scores are not divided by their sum", _FORMULA),
        "sum of everything": ("the powers are divided by the sum of all of them", _AXIS),
        "sum of a sequence": ("the powers are divided by the sum over all of a sequence", _AXIS),
        "maximum without keepdim": (
            "the maximum that is subtracted has lost its dimension (keepdim), and is lined up with "
            "the wrong rows",
            _AXIS,
        ),
        "both without keepdim": (
            "maximum and sum have lost their dimension (keepdim), and are lined up with the wrong "
            "rows",
            _AXIS,
        ),
        "mean in place of sum": (
            "the powers are divided by their mean, not by their sum",
            _FORMULA,
        ),
        "sum without keepdim": (
            "the sum of the powers has lost its dimension (keepdim), and is lined up with the "
            "wrong rows",
            _AXIS,
        ),
        "divided by the sum": (
            "the scores are divided by their sum instead of going through a softmax",
            "That makes rows sum to 1, but scores may be negative, and a weight may not. What does "
            "a softmax do first?",
        ),
        "divided by sizes": (
            "the scores are divided by the sum of their absolute values",
            _FORMULA,
        ),
        "log": ("the logarithm of the weights averages the values", _FORMULA),
        "negative": (
            "the scores have the wrong sign, so that the worst match counts most",
            _FORMULA,
        ),
        "twice": ("the softmax is applied twice", _FORMULA),
        "twice, both ways": ("a softmax runs over the keys, and another over the queries", _AXIS),
        "over queries, then keys": (
            "a softmax runs over the queries, then one over the keys",
            _AXIS,
        ),
        "largest": ("each query takes only the value of the key that fits best", _FORMULA),
        "powers of 2": ("the weights are made with powers of 2 instead of e", _FORMULA),
        "queries after it": ("softmax is taken of the queries before they meet the keys", _FORMULA),
        "keys before": ("softmax is taken of the keys before the queries meet them", _FORMULA),
        "output": ("softmax is taken of the output, too", _NOTHING_MORE),
        "output only": ("softmax is taken of the output, not of the scores", _FORMULA),
        "values": ("softmax is taken of the values", _FORMULA),
        "squares": ("the scores are squared before the softmax", _SCORES),
        "sizes": ("the scores lose their sign before the softmax", _SCORES),
        "flat": ("all keys count the same: the output is the mean of the values", _FORMULA),
        "one more": ("1 is added to the sum that the powers are divided by", _FORMULA),
        "distance": ("the distance of query and key takes the place of their dot product", _SCORES),
        "minus distance": ("minus the distance takes the place of the dot product", _SCORES),
        "squared distance": ("minus the squared distance takes the place of the product", _SCORES),
        "elementwise": (
            "queries and keys are multiplied entry by entry, and the softmax runs over the "
            "embedding",
            "A score is one number for a query and a key. Which shape do your scores have?",
        ),
        "elementwise, positions": (
            "queries and keys are multiplied entry by entry, and the softmax runs over the "
            "positions",
            "A score is one number for a query and a key. Which shape do your scores have?",
        ),
        "features": (
            "it is the features that attend to each other: the scores are (C, C)",
            "Which shape do your scores have, and which should they have?",
        ),
        "features, kᵀ q": (
            "it is the features that attend to each other: the scores are (C, C)",
            "Which shape do your scores have, and which should they have?",
        ),
    },
    "roles": {
        **{
            order: (when, _ROLES)
            for order, when in [
                ("qvk", "keys and values have changed places"),
                ("vkq", "queries and values have changed places"),
                ("kvq", "keys are used as queries, values as keys, and queries as values"),
                ("vqk", "values are used as queries, queries as keys, and keys as values"),
            ]
        },
        "kqv": (
            "queries and keys have changed places",
            "Row i of the scores belongs to query i and column j to key j. Which of the two do you "
            "transpose?",
        ),
        "qkk": (
            "the weights average the keys instead of the values",
            "Keys are for being found, values for what is then handed on. What should the weights "
            "be multiplied with?",
        ),
        "qkq": ("the weights average the queries instead of the values", _ROLES),
        "qqv": ("the queries meet themselves in place of the keys", _ROLES),
        "kkv": ("the keys meet themselves in place of the queries", _ROLES),
        "vvv": ("the values stand in for queries and keys, too", _ROLES),
        "qqq": ("the queries stand in for keys and values, too", _ROLES),
        "kkk": ("the keys stand in for queries and values, too", _ROLES),
        "qvv": ("the queries meet the values in place of the keys", _ROLES),
        "vkv": ("the values meet the keys in place of the queries", _ROLES),
        "qkx": (
            "the weights average x itself, so that the value layer has no part",
            "There are three layers. What does each of them make of x, and where is it used?",
        ),
        "qxv": ("the queries meet x itself, so that the key layer has no part", _LAYERS),
        "xkv": ("x itself meets the keys, so that the query layer has no part", _LAYERS),
        "xxv": (
            "the scores compare x with itself, so that query and key layers have no part",
            "Which two layers decide what is looked for, and what can be found?",
        ),
        "xxx": ("no layer has a part in the output: it is all done with x", _LAYERS),
        "qxx": ("neither keys nor values are made by a layer; x stands in for them", _LAYERS),
        "xkx": ("neither queries nor values are made by a layer; x stands in for them", _LAYERS),
    },
    "nested": {
        "key of q": ("the key layer is applied to the queries instead of to x", _LAYERS),
        "value of k": ("the value layer is applied to the keys instead of to x", _LAYERS),
        "value of q": ("the value layer is applied to the queries instead of to x", _LAYERS),
        "query of k": ("the query layer is applied to the keys instead of to x", _LAYERS),
        "one after another": ("each layer is applied to what the one before made of x", _LAYERS),
        "value at the end": (
            "the value layer is applied to the averages, after x was averaged",
            "Weights that sum to 1 make both orders alike; do yours? And where is x averaged?",
        ),
        "value twice": ("the value layer is applied twice", _LAYERS),
        "query at the end": ("the query layer is applied to the output once more", _LAYERS),
    },
    "layer": {
        "without biases": ("only the weights of the layers are used, not their biases", _LAYER),
        "without query bias": ("the bias of `query` isn't used", _LAYER),
        "without value bias": ("the bias of `value` isn't used", _LAYER),
        "biases only in key": ("only the bias of `key` is used", _LAYER),
        "turned": (
            "x is multiplied with the weights of the layers as they are stored, not transposed",
            "nn.Linear keeps its weight as (out, in). With a square weight a wrong order goes "
            "unnoticed; what does calling the layer do?",
        ),
        "turned, without biases": (
            "x is multiplied with weights that are not transposed, and biases aren't used",
            _LAYER,
        ),
        "query turned": ("the weight of `query` is not transposed", _LAYER),
        "key turned": ("the weight of `key` is not transposed", _LAYER),
        "value turned": ("the weight of `value` is not transposed", _LAYER),
        "relu": ("negative entries of queries, keys and values become 0", _NOTHING_MORE),
        "relu of values": ("negative entries of the values become 0", _NOTHING_MORE),
    },
    "made": {
        "bias always": (
            "the layers have a bias even with bias=False",
            "Look at the constructor's arguments: is each of them used?",
        ),
        "bias never": ("the layers have no bias, whatever `bias` is", _ARGUMENTS),
        "query bias never": ("`query` has no bias, whatever `bias` is", _ARGUMENTS),
        "key bias never": ("`key` has no bias, whatever `bias` is", _ARGUMENTS),
        "value bias never": ("`value` has no bias, whatever `bias` is", _ARGUMENTS),
        "query bias always": ("`query` has a bias even with bias=False", _ARGUMENTS),
        "key bias always": ("`key` has a bias even with bias=False", _ARGUMENTS),
        "value bias always": ("`value` has a bias even with bias=False", _ARGUMENTS),
        "bias upside down": ("the layers have a bias just when bias is False", _ARGUMENTS),
        "query is key": (
            "query and key are one and the same layer",
            "One layer has one weight, so nothing can look for what it isn't itself. How many "
            "layers does your constructor make?",
        ),
        "key is value": ("key and value are one and the same layer", _LAYERS),
        "query is value": ("query and value are one and the same layer", _LAYERS),
        "all are one": ("query, key and value are one and the same layer", _LAYERS),
    },
    "keys": {
        "reshaped": (
            "the keys are reshaped to (B, C, T) instead of transposed",
            "Rows of the keys should become columns, one for each key. Which two dimensions have "
            "to change places?",
        ),
        "as they are": ("the keys are not transposed", _SHAPES),
        "all dimensions": ("all dimensions of the keys are reversed, as .T does", _SHAPES),
        "first two": ("dimensions 0 and 1 of the keys are swapped, not the last two", _SHAPES),
        "0 and 2": ("dimensions 0 and 2 of the keys are swapped, not the last two", _SHAPES),
    },
    "weights": {
        "transposed": ("the weights are transposed before they average the values", _ROLES),
        "from the right": (
            "values and weights have changed places in their product: v times the weights",
            _ROLES,
        ),
        "reshaped": ("the output is reshaped as if that transposed it", _SHAPES),
        "output transposed": (
            "the output comes back with its last two dimensions swapped",
            _SHAPES,
        ),
        "times": ("weights and values are multiplied entry by entry", _FORMULA),
    },
    "batch": {
        "sequence first": (
            "x is read as (T, B, C), so that each position attends across the batch",
            "Here the batch comes first: (B, T, C). Between which positions should your scores be?",
        ),
        "not turned back": ("x is read as (T, B, C), and the output comes back so", _BATCH),
        "one sequence": (
            "all sequences of the batch attend to each other as if they were one",
            "Each sequence is a text of its own. Which shape do your scores have, and which should "
            "they have?",
        ),
        "first": (
            "only the first sequence of the batch is used, for all of them",
            "Try a batch of two different sequences. Which of them does each row of your result "
            "come from?",
        ),
        "only the first": ("only the output of the first sequence comes back", _BATCH),
        "last": ("only the last sequence of the batch is used, for all of them", _BATCH),
        "averaged": ("the sequences of the batch are averaged", _BATCH),
        "keys of the first": ("all sequences attend to the keys of the first", _BATCH),
        "values of the first": ("all sequences average the values of the first", _BATCH),
        "scores averaged": ("the scores are averaged over the batch", _BATCH),
    },
    "extra": {
        "x": (
            "x is added to the result",
            "The residual connection belongs to the block around attention. What does the formula "
            "end with?",
        ),
        "queries": ("the queries are added to the output", _NOTHING_MORE),
        "values": ("the values are added to the output", _NOTHING_MORE),
        "twice": ("the output is doubled", _NOTHING_MORE),
        "mean": ("the output is averaged over the positions", _NOTHING_MORE),
        "mean, one row": ("the output is averaged over the positions", _NOTHING_MORE),
        "sum": ("the output is summed over the positions", _NOTHING_MORE),
        "last": ("only the last position's output comes back", _NOTHING_MORE),
        "scores": ("the scores come back, not the averages", _FORMULA),
        "weights": ("the weights come back, not the averages", _FORMULA),
        "causal": (
            "each position sees only itself and those before it",
            "The causal mask comes in problem 04. Here every position may attend to every "
            "position.",
        ),
        "later": ("each position sees only itself and those after it", _ALL_SEE_ALL),
        "not itself": ("no position sees itself", _ALL_SEE_ALL),
        "others before": ("each position sees only itself and those just before", _ALL_SEE_ALL),
        "causal after": ("later positions lose their weights after the softmax", _ALL_SEE_ALL),
        "causal by 0": ("the scores of later positions are set to 0", _ALL_SEE_ALL),
        "layer norm": ("the output is normalized", _NOTHING_MORE),
        "layer norm before": ("x is normalized before the layers", _NOTHING_MORE),
        "learned layer norm": ("the output goes through a layer norm", _NOTHING_MORE),
        "learned layer norm before": ("x goes through a layer norm first", _NOTHING_MORE),
        "projection": (
            "one more layer is applied to the result",
            "An output projection comes with multi-head attention in problem 05. How many layers "
            "does this one have?",
        ),
        "projection with bias": (
            "one more layer, with a bias, is applied to the result",
            _NOTHING_MORE,
        ),
        "projection without bias": ("one more layer is applied to the result", _NOTHING_MORE),
        "projection and x": ("one more layer is applied to the result, and x added", _NOTHING_MORE),
        "positions": ("sines and cosines for positions are added to x", _NOTHING_MORE),
        "relu": ("negative entries of the output become 0", _NOTHING_MORE),
        "tanh": ("the output goes through a tanh", _NOTHING_MORE),
        "two heads": ("attention has two heads", "Several heads come in problem 05."),
    },
    "backward": BACKWARD,
    "lone": {
        "token": (
            "a sequence of one token comes back as it came, and its value is never made",
            "A single token gives itself the weight 1. What is it that the weights average?",
        ),
    },
    "packed": {
        "subtracted": (
            "all sequences are worked off as one, and between them a number is subtracted that "
            "large scores outgrow",
            "What must a score be for its weight to be 0, however large the others are?",
        ),
    },
    "long": {
        "queries": (
            "the last positions of long sequences are left out, as if they were cut in pieces",
            "What if the length is no multiple of the size of your pieces?",
        ),
        "keys": (
            "the last keys of long sequences are left out, as if they were cut in pieces",
            "What if the length is no multiple of the size of your pieces?",
        ),
        "pieces": (
            "the keys of a long sequence are worked off in pieces, and the pieces are put together "
            "wrongly",
            "Each piece has a maximum and a sum of its own. What must become of what was gathered "
            "before, when a larger maximum is found?",
        ),
    },
}

COMMON = {
    "scale": ("root of C", "C"),
    "softmax": ("queries", "batch", "missing"),
    "roles": ("kqv", "qkk", "qkx", "qqv"),
    "layer": ("without biases", "turned"),
    "keys": ("reshaped",),
    "extra": ("x", "causal", "projection"),
}

AT_EDGES = ("backward", "lone", "packed", "long")

LONG = 100
"""What may go wrong in long sequences goes wrong beyond this length."""


def in_pieces(long, q, k, v):
    """Attention that works off long sequences in pieces, with a fault."""

    def attend(k, v):
        return (q @ k.mT).softmax(-1) @ v

    head, tail = slice(LONG), slice(LONG, None)
    match long:
        case "keys":
            return attend(k[:, head], v[:, head])
        case "pieces" if k.shape[1] > LONG:
            return (attend(k[:, head], v[:, head]) + attend(k[:, tail], v[:, tail])) / 2
    output = attend(k, v)
    return torch.cat([output[:, head], 0 * output[:, tail]], 1)


def as_one(q, k, v):
    """Attention of all sequences as one, with 1000 less for the scores between them."""
    place = torch.arange(len(q)).repeat_interleave(q.shape[1])
    flat = [tensor.flatten(0, 1) for tensor in (q, k, v)]
    scores = flat[0] @ flat[1].mT - 1000.0 * (place[:, None] != place)
    return (scores.softmax(-1) @ flat[2]).view_as(v)


def divisor(scale, q):
    """By what the scores are divided."""
    n_embd = q.shape[-1]
    return {
        "root of C": math.sqrt(n_embd),
        "C": n_embd,
        "times the root of C": 1 / math.sqrt(n_embd),
        "half of C": n_embd / 2,
        "one over 2 C": 2 * n_embd,
        "double": 0.5,
    }.get(scale, 1)


def turned_keys(keys, k):
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
        case "0 and 2":
            return k.transpose(0, 2)
    return k.mT


def compare(scale, softmax, keys, q, k):
    """The scores of queries and keys."""
    if scale in ("cosine", "q normalized"):
        q = F.normalize(q, dim=-1)
    if scale in ("cosine", "k normalized"):
        k = F.normalize(k, dim=-1)
    if softmax == "queries after it":
        q = q.softmax(-1)
    if softmax == "keys before":
        k = k.softmax(-1)
    distances = {"distance": 1, "minus distance": -1}
    if softmax in distances:
        return distances[softmax] * torch.cdist(q, k)
    if softmax == "squared distance":
        return -(torch.cdist(q, k) ** 2)
    scores = q @ turned_keys(keys, k) / divisor(scale, q)
    if scale == "largest":
        return scores / scores.amax(-1, keepdim=True)
    return scores / scores.std(-1, keepdim=True) if scale == "standard" else scores


def hide(extra, scores):
    """The scores, some of them hidden by a mask."""
    ones = torch.ones(scores.shape[-2:], dtype=torch.bool)
    hidden = {
        "causal": ones.triu(1),
        "later": ones.tril(-1),
        "not itself": torch.eye(*ones.shape, dtype=torch.bool),
        "others before": ones.triu(1) | ones.tril(-2),
    }
    if extra == "causal by 0":
        return scores.masked_fill(ones.triu(1), 0)
    return scores.masked_fill(hidden[extra], -math.inf) if extra in hidden else scores


def normal(powers):
    """The powers, divided by their sum."""
    return powers / powers.sum(-1, keepdim=True)


def weigh(softmax, scores):
    """What the scores become."""
    powers = (scores - scores.amax(-1, keepdim=True)).exp()
    ways = {
        "queries": lambda: scores.softmax(-2),
        "batch": lambda: scores.softmax(0),
        "sequence": lambda: scores.flatten(1).softmax(-1).view_as(scores),
        "everything": lambda: scores.flatten().softmax(-1).view_as(scores),
        "missing": lambda: scores,
        "output only": lambda: scores,
        "queries after it": lambda: scores,
        "keys before": lambda: scores,
        "sigmoid": lambda: scores.sigmoid(),
        "relu": lambda: scores.relu(),
        "tanh": lambda: scores.tanh(),
        "exp only": lambda: scores.exp(),
        "exp only, shifted": lambda: powers,
        "sum of everything": lambda: powers / powers.sum(),
        "sum of a sequence": lambda: powers / powers.sum((-1, -2), keepdim=True),
        "sum without keepdim": lambda: powers / powers.sum(-1),
        "maximum without keepdim": lambda: normal((scores - scores.amax(-1)).exp()),
        "both without keepdim": lambda: (
            (scores - scores.amax(-1)).exp() / (scores - scores.amax(-1)).exp().sum(-1)
        ),
        "mean in place of sum": lambda: powers / powers.mean(-1, keepdim=True),
        "divided by the sum": lambda: scores / scores.sum(-1, keepdim=True),
        "divided by sizes": lambda: scores / scores.abs().sum(-1, keepdim=True),
        "log": lambda: scores.log_softmax(-1),
        "negative": lambda: (-scores).softmax(-1),
        "twice": lambda: scores.softmax(-1).softmax(-1),
        "twice, both ways": lambda: scores.softmax(-1).softmax(-2),
        "over queries, then keys": lambda: scores.softmax(-2).softmax(-1),
        "largest": lambda: (powers == 1).to(scores.dtype),
        "powers of 2": lambda: (scores * math.log(2)).softmax(-1),
        "squares": lambda: (scores**2).softmax(-1),
        "sizes": lambda: scores.abs().softmax(-1),
        "flat": lambda: torch.zeros_like(scores).softmax(-1),
        "one more": lambda: scores.exp() / (1 + scores.exp().sum(-1, keepdim=True)),
    }
    return ways.get(softmax, lambda: scores.softmax(-1))()


def mix(weights, shares, v):
    """The values, averaged by the weights."""
    match weights:
        case "transposed":
            return shares.mT @ v
        case "from the right":
            return (v.mT @ shares).mT
        case "reshaped":
            return (v.mT @ shares.mT).reshape(v.shape)
        case "output transposed":
            return (shares @ v).mT
        case "times":
            return shares * v
    return shares @ v


def without_positions(softmax, q, k, v):
    """Attention that isn't between positions; None if it is."""
    match softmax:
        case "elementwise":
            return (q * k).softmax(-1) * v
        case "elementwise, positions":
            return (q * k).softmax(1) * v
        case "features":
            return v @ (q.mT @ k).softmax(-1).mT
        case "features, kᵀ q":
            return v @ (q.mT @ k).softmax(-1)
    return None


def added(extra, output, x, q, v):
    """The output with something added or done to it."""
    return {
        "x": lambda: output + x,
        "projection and x": lambda: output + x,
        "queries": lambda: output + q,
        "values": lambda: output + v,
        "twice": lambda: 2 * output,
        "mean": lambda: output.mean(1, keepdim=True).expand_as(output),
        "mean, one row": lambda: output.mean(1),
        "sum": lambda: output.sum(1),
        "last": lambda: output[:, -1],
        "layer norm": lambda: F.layer_norm(output, output.shape[-1:]),
        "relu": lambda: output.relu(),
        "tanh": lambda: output.tanh(),
    }.get(extra, lambda: output)()


def positions(x):
    """Sines and cosines, as in the first paper."""
    seq, n_embd = x.shape[1:]
    rates = 10000 ** (-torch.arange(0, n_embd, 2, dtype=x.dtype) / n_embd)
    angles = torch.arange(seq, dtype=x.dtype)[:, None] * rates
    table = torch.zeros(seq, n_embd, dtype=x.dtype)
    table[:, 0::2], table[:, 1::2] = angles.sin(), angles.cos()[:, : n_embd // 2]
    return table


def applied(layer, module, name, x):
    """What the layer of this name makes of x."""
    weight, bias = getattr(module, name).weight, getattr(module, name).bias
    if layer in ("turned", "turned, without biases", f"{name} turned"):
        weight = weight.mT
    left_out = {
        "without biases": ("query", "key", "value"),
        "turned, without biases": ("query", "key", "value"),
        "biases only in key": ("query", "value"),
        f"without {name} bias": (name,),
    }
    if name in left_out.get(layer, ()):
        bias = None
    made = F.linear(x, weight, bias)
    return made.relu() if layer == "relu" or (layer, name) == ("relu of values", "value") else made


def projected(layer, nested, module, x):
    """Queries, keys and values."""

    def made(name, of):
        return applied(layer, module, name, of)

    q, k, v = (made(name, x) for name in ("query", "key", "value"))
    match nested:
        case "key of q":
            return q, made("key", q), v
        case "value of k":
            return q, k, made("value", k)
        case "value of q":
            return q, k, made("value", q)
        case "query of k":
            return made("query", k), k, v
        case "one after another":
            k = made("key", q)
            return q, k, made("value", k)
        case "value at the end":
            return q, k, x
        case "value twice":
            return q, k, made("value", v)
    return q, k, v


def faulty(
    scale="right", when="right", softmax="right", roles="qkv", nested="right", layer="right",
    made="right", keys="right", weights="right", batch="right", extra="right",
    backward="", lone="", packed="", long="",
):  # fmt: skip
    """The class of problem 02 with these faults."""

    def attend(x, q, k, v):
        found = without_positions(softmax, q, k, v)
        if found is not None:
            return found
        scores = compare(scale, softmax, keys, q, k)
        if batch == "scores averaged":
            scores = scores.mean(0, keepdim=True).expand_as(scores)
        shares = weigh(softmax, hide(extra, scores))
        if extra == "causal after":
            shares = shares.tril()
        if extra in ("scores", "weights"):
            return scores if extra == "scores" else shares
        v = v.softmax(-1) if softmax == "values" else v
        output = mix(weights, shares, v)
        root = math.sqrt(x.shape[-1])
        by = {"weights": root, "output": root, "by T": x.shape[1], "by C": x.shape[2]}
        output = output / by.get(when, 1)
        return output.softmax(-1) if softmax in ("output", "output only") else output

    def in_heads(x, q, k, v):
        if extra != "two heads":
            return attend(x, q, k, v)
        halves = zip(*(tensor.chunk(2, -1) for tensor in (x, q, k, v)), strict=True)
        return torch.cat([attend(*each) for each in halves], -1)

    def in_batches(x, q, k, v):
        if backward:
            return softmax_with(backward)(q @ k.mT, -1) @ v
        if lone and x.shape[1] == 1:
            return x
        if long or packed:
            return in_pieces(long, q, k, v) if long else as_one(q, k, v)
        match batch:
            case "sequence first" | "not turned back":
                output = in_heads(*(tensor.transpose(0, 1) for tensor in (x, q, k, v)))
                return output.transpose(0, 1) if batch == "sequence first" else output
            case "one sequence":
                flat = (tensor.flatten(0, 1)[None] for tensor in (x, q, k, v))
                return in_heads(*flat).view_as(x)
            case "first" | "only the first":
                output = in_heads(x, q, k, v)[:1]
                return output.expand_as(x) if batch == "first" else output[0]
            case "last":
                return in_heads(x, q, k, v)[-1:].expand_as(x)
            case "averaged":
                return in_heads(x, q, k, v).mean(0, keepdim=True).expand_as(x)
            case "keys of the first":
                return in_heads(x, q, k[:1].expand_as(k), v)
            case "values of the first":
                return in_heads(x, q, k, v[:1].expand_as(v))
        return in_heads(x, q, k, v)

    class SimpleAttention(nn.Module):
        def __init__(self, n_embd=768, bias=True):
            super().__init__()
            given = {"bias always": True, "bias never": False, "bias upside down": not bias}
            for name in ("query", "key", "value"):
                of_one = {f"{name} bias always": True, f"{name} bias never": False}
                own = (given | of_one).get(made, bias)
                setattr(self, name, nn.Linear(n_embd, n_embd, bias=own))
            shared = {
                "query is key": [("key", "query")],
                "key is value": [("value", "key")],
                "query is value": [("value", "query")],
                "all are one": [("key", "query"), ("value", "query")],
            }
            for name, other in shared.get(made, []):
                setattr(self, name, getattr(self, other))
            more = {"projection with bias": True, "projection without bias": False}
            if extra.startswith("projection"):
                self.more = nn.Linear(n_embd, n_embd, bias=more.get(extra, bias))
            if extra.startswith("learned"):
                self.more = nn.LayerNorm(n_embd)

        def forward(self, x):
            given = x
            if extra == "layer norm before":
                x = F.layer_norm(x, x.shape[-1:])
            if extra == "learned layer norm before":
                x = self.more(x)
            if extra == "positions":
                x = x + positions(x)
            q, k, v = projected(layer, nested, self, x)
            by_name = {"q": q, "k": k, "v": v, "x": x}
            output = in_batches(x, *(by_name[name] for name in roles))
            if nested == "value at the end":
                output = applied(layer, self, "value", output)
            if nested == "query at the end":
                output = applied(layer, self, "query", output)
            if extra.startswith("projection") or extra == "learned layer norm":
                output = self.more(output)
            return added(extra, output, given, q, v)

    return SimpleNamespace(SimpleAttention=SimpleAttention)
