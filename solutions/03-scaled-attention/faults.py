"""Problem 03 with faults that can be switched on, one or several at a time."""

import math
from types import SimpleNamespace

import torch
from torch import nn

from grader.author.backward import BACKWARD, softmax_with

_D_K = "Which dimension of which tensor is d_k, and what is done with it in the formula?"
_AXIS = "Each query shares out a weight of 1 among the keys. Along which dimension do the keys lie?"
_ROLES = "Who asks, who is asked, and what is mixed in the end? Follow each of q, k and v."
_FORMULA = "Compare the order of the steps with the formula in the README."
_KEEPDIM = "What shape has a sum or a maximum over the keys, and how does it meet the scores?"
_LAYERS = "Three layers were made. What does each of them get, and where does its output go?"
_EXTRA = "What does this problem ask for beyond the formula?"
_DRAW = "Of which distribution should the entries be, and how does torch draw from it?"
_SOURCE = "Whoever hands over a generator wants the same numbers again. Where do yours come from?"
_MEASURE = "How many dot products are there, and what is the mean of their squared deviations?"
_SCALED = "Var(cX) = c² Var(X). Which c is meant, and what does it do to the variance?"

SWITCHES = {
    "scale": {
        "none": ("the scores are not divided by √d_k", _D_K),
        "d_k": (
            "the scores are divided by d_k in all: by it in place of √d_k, or by √d_k twice",
            _D_K,
        ),
        "half of d_k": ("the scores are divided by d_k / 2: ** binds more tightly than /", _D_K),
        "one over 2 d_k": (
            "the scores are multiplied by d_k ** -1 / 2, which is 1 / (2 d_k)",
            "Python takes the power first. Where do brackets belong?",
        ),
        "times the root": ("the scores are multiplied by √d_k in place of divided", _D_K),
        "log": ("the scores are divided by the logarithm of d_k", _D_K),
        "root of m": ("the scores are divided by the root of the number of keys", _D_K),
        "root of the keys' first": (
            "the scores are divided by the root of the first dimension of the keys",
            _D_K,
        ),
        "root of dimension 1": ("the scores are divided by the root of dimension 1", _D_K),
        "root of dimensions": (
            "the scores are divided by the root of the number of dimensions",
            _D_K,
        ),
        "root of all": ("the scores are divided by the root of how many numbers q holds", _D_K),
        "lengths": ("the scores are divided by the lengths of the vectors, as a cosine is", _D_K),
        "scatter": ("the scores are divided by their own standard deviation", _D_K),
        "root of the first": ("the scores are divided by the root of the first dimension", _D_K),
        "8": ("the scores are divided by 8 = √64, whatever d_k is", _D_K),
        "rounded down": ("the root of d_k is rounded down to a whole number", _D_K),
    },
    "when": {
        "weights": ("it is the weights that are divided, after softmax", _FORMULA),
        "output": ("it is the output that is divided, after the values are mixed", _FORMULA),
        "values": ("it is the values that are divided", _FORMULA),
    },
    "softmax": {
        "queries": ("softmax runs over the queries in place of the keys", _AXIS),
        "dimension 0": (
            "softmax runs over dimension 0, which PyTorch takes for three dimensions when it is "
            "told none",
            "Which dimension are the keys, counted from the end, and is softmax told so?",
        ),
        "dimension 1": ("softmax runs over dimension 1", _AXIS),
        "everything": ("softmax runs over all scores at once", _AXIS),
        "missing": ("there is no softmax: the scores themselves mix the values", _FORMULA),
        "sigmoid": ("a sigmoid stands in place of softmax", _FORMULA),
        "exp only": ("the powers are not divided by their sum", _FORMULA),
        "divided by the sum": ("the scores are divided by their sum, without exp", _FORMULA),
        "log": ("the logarithm of the weights mixes the values", _FORMULA),
        "negative": ("softmax is taken of minus the scores", _FORMULA),
        "twice": ("softmax is taken twice", _FORMULA),
        "sum without keepdim": ("the sum of the powers loses its dimension of size 1", _KEEPDIM),
        "maximum without keepdim": (
            "the maximum of the scores loses its dimension of size 1",
            _KEEPDIM,
        ),
        "no keepdim": ("the maximum and the sum lose their dimension of size 1", _KEEPDIM),
        "maximum of a column": (
            "the maximum is taken over the queries, the sum over the keys",
            _AXIS,
        ),
        "sum of a column": ("the sum is taken over the queries, the maximum over the keys", _AXIS),
        "late sum": ("the sum that the output is divided by loses its dimension", _KEEPDIM),
        "late sum and maximum": (
            "the maximum and the sum lose their dimension of size 1",
            _KEEPDIM,
        ),
        "sum of everything": ("the powers are divided by the sum of all of them", _AXIS),
        "mean": ("the powers are divided by their mean in place of their sum", _FORMULA),
        "powers of 2": ("powers of 2 stand in place of powers of e", _FORMULA),
        "largest": ("each query takes the one value of the key that fits best", _FORMULA),
    },
    "roles": {
        **{
            order: (when, _ROLES)
            for order, when in [
                ("kqv", "queries and keys have changed places"),
                ("qvk", "keys and values have changed places"),
                ("vkq", "queries and values have changed places"),
                ("kvq", "keys are used as queries, values as keys, and queries as values"),
                ("vqk", "values are used as queries, queries as keys, and keys as values"),
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
        "dimensions 1 and 2": ("dimensions 1 and 2 of the keys are swapped", _FORMULA),
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
        "keys": ("the keys are added to the output", _FORMULA),
        "itself hidden": ("no position sees itself", _EXTRA),
        "weights": ("the weights come back in place of the mixture of values", _FORMULA),
        "swapped": ("the last two dimensions of the output are swapped", _FORMULA),
        "sum": ("the output is summed over the queries", _FORMULA),
        "bias of one": ("1 is added to the sum that the powers are divided by", _FORMULA),
    },
    "layers": {
        **{
            f"{used} for {wanted}": (f"the layer `{used}` makes the {many} too", _LAYERS)
            for used in ("query", "key", "value")
            for wanted, many in [("query", "queries"), ("key", "keys"), ("value", "values")]
            if used != wanted
        },
        "query not used": ("x itself asks, without the layer `query`", _LAYERS),
        "key not used": ("x itself is asked, without the layer `key`", _LAYERS),
        "value not used": ("x itself is mixed, without the layer `value`", _LAYERS),
        "none used": ("x itself attends, without any layer", _LAYERS),
        "as they are": (
            "x is multiplied by the layers' weights without transposing them",
            "The weight of nn.Linear has the shape (out, in). Could you call the layer?",
        ),
        "value twice": ("the layer `value` is used on the output once more", _LAYERS),
        "kvq": ("the layers are called in another order than their outputs are named", _LAYERS),
    },
    "block": {
        "input": (
            "x is added to the result",
            "A residual connection belongs to the block around attention. "
            "What does this problem ask for?",
        ),
        "fourth layer": ("the result passes through a fourth layer", _EXTRA),
        "sequence first": (
            "the sequences of a batch attend to each other, position by position",
            "x is (B, T, C). Which of these dimensions should be mixed?",
        ),
        "softmax first": ("softmax is taken of the queries and keys themselves", _FORMULA),
        "mean": ("the output is averaged over the positions", _EXTRA),
        "output softmax": ("softmax is taken of the output", _FORMULA),
        "dropout": (
            "dropout is applied to the weights",
            "Dropout comes in problem 05. Does your result change from call to call?",
        ),
    },
    "draw": {
        "even": (
            "the vectors are drawn evenly between 0 and 1",
            "Which of rand and randn draws from N(0, 1)? For numbers drawn evenly between 0 and 1"
            " the variance is 7 d_k / 144.",
        ),
        "even around 0": ("the vectors are drawn evenly between -1 and 1", _DRAW),
        "even, near 0": ("the vectors are drawn evenly between -1/2 and 1/2", _DRAW),
        "queries only": ("only one of the two sets of vectors is drawn from N(0, 1)", _DRAW),
        "a number of its own": ("the number of pairs is not n_pairs", _MEASURE),
        "same": (
            "each query is multiplied with itself",
            "A query and a key are drawn independently of each other. Are yours?",
        ),
    },
    "source": {
        "ignored": (
            "dot_product_variance does not use the generator that it is given",
            _SOURCE,
        ),
        "one only": (
            "only one of the two sets of vectors is drawn from the generator",
            "Two sets of vectors are drawn. Do both come from the generator?",
        ),
        "fixed aside": (
            "dot_product_variance makes a generator of its own, with always the same seed",
            "The caller chooses the seed. Does your answer ever change?",
        ),
        "fixed": (
            "dot_product_variance sets a seed of its own",
            "The caller chooses the seed. Set two different seeds before two calls: do the "
            "answers differ?",
        ),
    },
    "measure": {
        "sample": (
            "dot_product_variance divides by n_pairs - 1 in place of n_pairs",
            "This is the sample variance. By what is the sum divided in the population variance?",
        ),
        "n + 1": ("dot_product_variance divides by n_pairs + 1 in place of n_pairs", _MEASURE),
        "sum": ("the squared deviations are summed, and not divided by n_pairs", _MEASURE),
        "deviation": (
            "dot_product_variance returns the standard deviation",
            "How is the standard deviation related to the variance?",
        ),
        "sample deviation": (
            "dot_product_variance returns the standard deviation, and that of a sample",
            "How is the standard deviation related to the variance?",
        ),
        "squares": (
            "dot_product_variance does not subtract the mean",
            "The variance is about the deviations from the mean. "
            "The mean of a few dot products is not 0.",
        ),
        "mean": ("dot_product_variance returns the mean of the dot products", _MEASURE),
        "absolute": ("deviations are taken without their sign in place of squared", _MEASURE),
        "entries": (
            "the products of single entries are not summed to dot products",
            "A dot product is a sum. How many numbers do you take the variance of?",
        ),
        "over pairs": (
            "the products are summed over the pairs in place of over the entries of a pair",
            "A dot product is a sum over d_k entries. How many dot products do you have?",
        ),
        "all pairs": (
            "every query is multiplied with every key",
            "n_pairs pairs have n_pairs dot products. "
            "How many numbers do you take the variance of?",
        ),
        "means": ("each dot product is divided by d_k, as a mean of products is", _MEASURE),
    },
    "scaled": {
        "never": (
            "dot_product_variance ignores `scaled`",
            "Where in your function does it matter whether `scaled` is True?",
        ),
        "always": ("dot_product_variance scales even when scaled=False", _SCALED),
        "inverted": (
            "dot_product_variance scales when it should not, and the other way round",
            "Call it with scaled=True and with scaled=False. Which of the two should be about 1?",
        ),
        "variance": (
            "the variance is divided by √d_k in place of each dot product",
            "Var(cX) = c² Var(X). "
            "What happens to the variance when each number is divided by √d_k?",
        ),
        "by d_k": (
            "each dot product is divided by d_k in place of √d_k",
            "Var(cX) = c² Var(X). Which c turns a variance of d_k into 1?",
        ),
        "times": ("each dot product is multiplied by √d_k in place of divided", _SCALED),
        "by n": ("each dot product is divided by √n_pairs in place of √d_k", _SCALED),
        "rounded": ("the root of d_k is rounded down to a whole number", _SCALED),
    },
    "backward": BACKWARD,
    "in_place": {
        "keys": (
            "the keys that were handed in are transposed in place, if only for a while",
            "Whoever calls may want gradients for those keys. Which transpose leaves them alone?",
        ),
        "queries": (
            "the queries that were handed in are scaled in place, if only for a while",
            "Whoever calls may want gradients for those queries. Can you make new numbers of them?",
        ),
    },
    "lone": {
        "token": (
            "a sequence of one token comes back as it came, and its value is never made",
            "A single token gives itself the weight 1. What is it that the weights average?",
        ),
    },
    "long": {
        "queries": (
            "the last queries of long inputs are left out, as if they were cut in pieces",
            "What if their number is no multiple of the size of your pieces?",
        ),
        "keys": (
            "the last keys of long inputs are left out, as if they were cut in pieces",
            "What if their number is no multiple of the size of your pieces?",
        ),
        "pieces": (
            "many keys are worked off in pieces, and the pieces are put together wrongly",
            "Each piece has a maximum and a sum of its own. What must become of what was gathered "
            "before, when a larger maximum is found?",
        ),
    },
}


COMMON = {
    "scale": ("none", "d_k", "times the root", "root of m", "8"),
    "when": ("weights",),
    "softmax": ("queries", "dimension 1", "everything", "missing"),
    "roles": ("kqv", "qkk"),
    "keys": ("reshaped",),
    "extra": ("causal",),
    "layers": ("value not used",),
    "block": ("input",),
    "draw": ("even",),
    "source": ("ignored", "one only"),
    "measure": ("sample", "deviation", "all pairs"),
    "scaled": ("never", "variance", "by d_k"),
}

AT_EDGES = ("backward", "in_place", "lone", "long")


def divisor(scale, q, k, v):
    """By what the scores are divided."""
    d_k, m = q.shape[-1], k.shape[-2]
    return {
        "right": math.sqrt(d_k),
        "none": 1,
        "d_k": d_k,
        "half of d_k": d_k / 2,
        "one over 2 d_k": 2 * d_k,
        "times the root": 1 / math.sqrt(d_k),
        "log": math.log(d_k) if d_k > 1 else 1,
        "root of m": math.sqrt(m),
        "root of the first": math.sqrt(q.shape[0]),
        "root of the keys' first": math.sqrt(k.shape[0]),
        "root of dimension 1": math.sqrt(q.shape[1]),
        "root of dimensions": math.sqrt(q.dim()),
        "root of all": math.sqrt(q.numel()),
        "lengths": q.norm(dim=-1, keepdim=True) * k.norm(dim=-1)[..., None, :],
        "scatter": 1,
        "8": 8,
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
        case "dimensions 1 and 2":
            return k.transpose(1, 2)
    return k.mT


def _shared(scores):
    return scores.exp() / scores.exp().sum(-1)


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
        "sum without keepdim": lambda: powers / powers.sum(-1),
        "maximum without keepdim": lambda: (scores - scores.amax(-1)).softmax(-1),
        "no keepdim": lambda: _shared(scores - scores.amax(-1)),
        "maximum of a column": lambda: (scores - scores.amax(-2, keepdim=True)).softmax(-1),
        "sum of a column": lambda: powers / powers.sum(-2, keepdim=True),
        "late sum": lambda: powers,
        "late sum and maximum": lambda: (scores - scores.amax(-1)).exp(),
        "sum of everything": lambda: scores.exp() / scores.exp().sum(),
        "mean": lambda: powers / powers.mean(-1, keepdim=True),
        "powers of 2": lambda: (scores * math.log(2)).softmax(-1),
        "largest": lambda: (powers == 1).to(scores.dtype),
    }[softmax]()


LONG = 100
"""What may go wrong in long inputs goes wrong beyond this length."""


def in_pieces(long, q, k, v):
    """Attention that works off long inputs in pieces, with a fault."""

    def attend(k, v):
        return (q @ k.mT / math.sqrt(q.shape[-1])).softmax(-1) @ v

    head, tail = slice(LONG), slice(LONG, None)
    match long:
        case "keys":
            return attend(k[..., head, :], v[..., head, :])
        case "pieces" if k.shape[-2] > LONG:
            pieces = [attend(k[..., part, :], v[..., part, :]) for part in (head, tail)]
            return sum(pieces) / 2
    output = attend(k, v)
    return torch.cat([output[..., head, :], 0 * output[..., tail, :]], -2)


def for_a_while(in_place, q, k, v):
    """Attention that changes what it was given, and changes it back."""
    root = math.sqrt(q.shape[-1])
    if in_place == "keys":
        k.transpose_(-2, -1)
        scores = q @ k / root
        k.transpose_(-2, -1)
    else:
        scores = q.mul_(0.5) @ k.mT * 2 / root
        q.mul_(2)
    return scores.softmax(-1) @ v


def attention(q, k, v, scale, when, softmax, roles, keys, weights, extra):
    """Attention with these faults."""
    given = {"q": q, "k": k, "v": v}
    q, k, v = (given[name] for name in roles)
    by = divisor(scale, q, k, v)
    if when == "values":
        v = v / by
    scores = q @ transposed(keys, k)
    by = scores.std() if scale == "scatter" else by
    scores = scores if when in ("weights", "output", "values") else scores / by
    shares = weigh(softmax, hidden(extra, scores), extra)
    shares = shares / by if when == "weights" else shares
    if weights == "transposed":
        shares = shares.mT
    if weights == "reshaped":
        shares = shares.reshape(*shares.shape[:-2], shares.shape[-1], shares.shape[-2])
    output = shares @ v / (shares.sum(-1) if softmax.startswith("late") else 1)
    output = output / by if when == "output" else output
    return finished(extra, output, shares, q, k, v)


def hidden(extra, scores):
    """The scores behind a mask, if there is one."""
    places = torch.ones(scores.shape[-2:], dtype=torch.bool)
    match extra:
        case "causal":
            return scores.masked_fill(places.triu(1), -math.inf)
        case "itself hidden":
            return scores.masked_fill(places.triu().tril(), -math.inf)
    return scores


def finished(extra, output, shares, q, k, v):
    """What is done to the output."""
    match extra:
        case "queries":
            return output + q
        case "keys":
            return output + k
        case "values":
            return output + v
        case "mean":
            return output.mean(-2, keepdim=True).expand_as(output)
        case "sum":
            return output.sum(-2, keepdim=True).expand_as(output)
        case "weights":
            return shares
        case "swapped":
            return output.mT
    return output


def projected(layers, module, x):
    """Queries, keys and values of x."""
    named = {"query": module.query, "key": module.key, "value": module.value}
    if layers == "as they are":
        return [
            x @ layer.weight + (0 if layer.bias is None else layer.bias) for layer in named.values()
        ]
    if layers == "kvq":
        return [named[name](x) for name in ("key", "value", "query")]
    if " for " in layers:
        used, wanted = layers.split(" for ")
        named[wanted] = named[used]
    unused = layers.removesuffix(" not used")
    skipped = set(named) if layers == "none used" else {unused}
    return [x if name in skipped else layer(x) for name, layer in named.items()]


def attending(layers, block, module, attend, x):
    """What a module with these faults makes of x."""
    x = x.transpose(0, 1) if block == "sequence first" else x
    q, k, v = projected(layers, module, x)
    if block == "softmax first":
        q, k = q.softmax(-1), k.softmax(-1)
    output = attend(q, k, v)
    output = module.value(output) if layers == "value twice" else output
    match block:
        case "sequence first":
            return output.transpose(0, 1)
        case "input":
            return output + x
        case "fourth layer":
            return module.fourth(output)
        case "mean":
            return output.mean(1)
        case "output softmax":
            return output.softmax(-1)
        case "dropout":
            return nn.functional.dropout(output, 0.1)
    return output


def drawn(draw, source, n_pairs, d_k, generator):
    """Queries and keys, in float64 whatever they were drawn in."""
    if source == "fixed":
        torch.manual_seed(0)
    if source == "fixed aside":
        generator = torch.Generator().manual_seed(0)
    own = {
        "fixed aside": (generator, generator),
        "one only": (generator, None),
        "": (generator, generator),
    }
    sources = own.get(source, (None, None))
    n_pairs = 1000 if draw == "a number of its own" else n_pairs
    first = torch.rand if draw.startswith("even") else torch.randn
    second = torch.rand if draw == "queries only" else first
    q, k = (
        take(n_pairs, d_k, generator=g).double()
        for take, g in zip((first, second), sources, strict=True)
    )
    if draw == "even around 0":
        return 2 * q - 1, 2 * k - 1
    if draw == "even, near 0":
        return q - 0.5, k - 0.5
    return q, q if draw == "same" else k


def measured(measure, q, k, factor):
    """What is said of the dot products, each times a factor."""
    products = factor * q * k
    dots = products.sum(-1)
    n = len(dots)
    return {
        "right": lambda: dots.var(correction=0),
        "sample": lambda: dots.var(),
        "n + 1": lambda: dots.var(correction=0) * n / (n + 1),
        "sum": lambda: dots.var(correction=0) * n,
        "deviation": lambda: dots.std(correction=0),
        "sample deviation": lambda: dots.std(),
        "squares": lambda: dots.square().mean(),
        "mean": lambda: dots.mean(),
        "absolute": lambda: (dots - dots.mean()).abs().mean(),
        "entries": lambda: products.var(correction=0),
        "over pairs": lambda: products.sum(0).var(correction=0),
        "all pairs": lambda: (factor * q @ k.T).var(correction=0),
        "means": lambda: products.mean(-1).var(correction=0),
    }[measure]().item()


def factors(scaled, is_scaled, d_k, n_pairs):
    """What each dot product is multiplied by, and then their variance."""
    root = 1 / math.sqrt(d_k)
    decided = {"never": False, "always": True, "inverted": not is_scaled}.get(scaled, is_scaled)
    if not decided:
        return 1, 1
    dot = {
        "variance": 1,
        "by d_k": 1 / d_k,
        "times": 1 / root,
        "by n": 1 / math.sqrt(n_pairs),
        "rounded": 1 / math.isqrt(d_k),
    }.get(scaled, root)
    return dot, root if scaled == "variance" else 1


def faulty(
    scale="right", when="scores", softmax="right", roles="qkv", keys="right", weights="right",
    extra="", layers="", block="", draw="", source="", measure="right", scaled="",
    backward="", in_place="", lone="", long="",
):  # fmt: skip
    """The functions and the class of problem 03 with these faults.

    A fault of the experiment has nothing to do with attention; of two such faults nothing comes.
    """
    of_attention = (scale, when, softmax, roles, keys, weights, extra)
    is_attention = of_attention != ("right", "scores", "right", "qkv", "right", "right", "")
    is_attention = is_attention or bool(layers or block)
    is_experiment = (draw, source, measure, scaled) != ("", "", "right", "")

    def scaled_dot_product_attention(q, k, v):
        if backward:
            return softmax_with(backward)(q @ k.mT / math.sqrt(q.shape[-1]), -1) @ v
        if in_place:
            return for_a_while(in_place, q, k, v)
        if long:
            return in_pieces(long, q, k, v)
        return attention(q, k, v, *of_attention)

    class ScaledAttention(nn.Module):
        def __init__(self, n_embd=768, bias=True):
            super().__init__()
            self.query = nn.Linear(n_embd, n_embd, bias=bias)
            self.key = nn.Linear(n_embd, n_embd, bias=bias)
            self.value = nn.Linear(n_embd, n_embd, bias=bias)
            if block == "fourth layer":
                self.fourth = nn.Linear(n_embd, n_embd, bias=bias)

        def forward(self, x):
            if lone and x.shape[1] == 1:
                return x
            return attending(layers, block, self, scaled_dot_product_attention, x)

    def dot_product_variance(d_k, n_pairs, scaled_asked, generator=None):
        q, k = drawn(draw, source, n_pairs, d_k, generator)
        dot, variance = factors(scaled, scaled_asked, d_k, n_pairs)
        return variance * measured(measure, q, k, dot)

    if is_attention and is_experiment:
        return SimpleNamespace()
    if is_experiment:
        return SimpleNamespace(dot_product_variance=dot_product_variance)
    return SimpleNamespace(
        scaled_dot_product_attention=scaled_dot_product_attention,
        ScaledAttention=ScaledAttention,
    )
