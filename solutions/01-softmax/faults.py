"""Problem 01 with faults that can be switched on, one or several at a time."""

import math
from types import SimpleNamespace

import torch

from grader.author.backward import BACKWARD, softmax_with

_ORDER = "Follow the letters n, m and d: which dimension of which tensor is summed over?"
_PLAIN = "The score is the plain dot product. Compare your steps with the formula in the README."
_BATCH = "Each matrix of a batch stands by itself. What becomes of the leading dimensions?"
_FORMULA = "Compare your steps, one by one, with the formula of softmax in the README."
_DIM = "The caller chooses the dimension. Which steps go along it, and do all of them?"
_LINED_UP = "Write down the shape of each step for x of shape (3, 4), for dim 0 and for dim 1."
_CANCELS = "A shift cancels only if it is one and the same number for a whole slice."

SWITCHES = {
    "scale": {
        "root of d": ("the dot products are divided by the square root of d", _PLAIN),
        "d": ("the products are averaged over d, and not summed", _PLAIN),
        "times the root": ("the dot products are multiplied by the square root of d", _PLAIN),
        "root of n": ("the dot products are divided by the root of the number of queries", _PLAIN),
        "root of m": ("the dot products are divided by the root of the number of keys", _PLAIN),
        "n": ("the dot products are divided by the number of queries", _PLAIN),
        "m": ("the dot products are divided by the number of keys", _PLAIN),
        "8": ("the dot products are divided by 8", _PLAIN),
        "half": ("the dot products are divided by 2", _PLAIN),
        "double": ("the dot products are doubled", _PLAIN),
        "largest": ("the scores are divided by the largest of them", _PLAIN),
    },
    "similarity": {
        "cosine": (
            "each query and key is brought to length 1 first, which gives the cosine similarity",
            "A dot product grows with the length of its vectors. Which step takes it away?",
        ),
        "q normalized": ("each query is brought to length 1 first", _PLAIN),
        "k normalized": ("each key is brought to length 1 first", _PLAIN),
        "distance": ("the distances between queries and keys come back", _PLAIN),
        "minus distance": ("the distances, with a minus, come back", _PLAIN),
        "squared distance": ("the squared distances come back", _PLAIN),
        "minus squared distance": ("the squared distances, with a minus, come back", _PLAIN),
        "absolute": ("the scores lose their sign: their absolute values come back", _PLAIN),
        "absolute products": ("the products lose their sign before they are summed", _PLAIN),
        "negative": ("the scores have the wrong sign", _PLAIN),
        "squared": ("the scores are squared", _PLAIN),
        "sums": ("the entries of queries and keys are added, and not multiplied", _PLAIN),
        "softmax over keys": ("the scores have been through a softmax already", _PLAIN),
        "softmax over queries": (
            "the scores have been through a softmax already, over the queries",
            _PLAIN,
        ),
        "first number left out": ("the first number of each vector is left out", _ORDER),
        "last number left out": ("the last number of each vector is left out", _ORDER),
        "relu": ("negative scores have become 0", _PLAIN),
    },
    "product": {
        "pairs": (
            "query i is multiplied with key i alone, and not with every key",
            "How many scores should three queries and five keys give?",
        ),
        "pairs kept": (
            "query i is multiplied with key i alone, and not with every key",
            "How many scores should three queries and five keys give?",
        ),
        "products": (
            "queries and keys are multiplied entry by entry, and nothing is summed",
            _ORDER,
        ),
        "products over n": ("the products are summed over the vectors, not over d", _ORDER),
        "numbers": ("it is the numbers' places that are compared, not the vectors: qᵀ k", _ORDER),
        "numbers, turned": ("it is the numbers' places that are compared, not the vectors", _ORDER),
        "nobody transposed": ("queries are multiplied with keys that are not transposed", _ORDER),
        "both transposed": ("queries and keys are both transposed", _ORDER),
        "diagonal": ("all scores but those of query i and key i are 0", _ORDER),
        "summed": ("the scores of each query are summed over the keys", _ORDER),
    },
    "roles": {
        "kq": (
            "each key is scored against every query, so that rows belong to keys and columns to "
            "queries",
            "Which of the two should the rows stand for? Follow the letters n and m from q and k "
            "to the scores.",
        ),
        "qq": ("the queries are scored against themselves, and the keys have no part", _ORDER),
        "kk": ("the keys are scored against themselves, and the queries have no part", _ORDER),
    },
    "keys": {
        "reshaped": (
            "the keys are reshaped to (d, m), which moves their numbers to other keys, in place "
            "of transposed",
            "Both have the same shape but not the same numbers. Try reshape and transpose on "
            "[[1, 2], [3, 4]].",
        ),
        "all dimensions": (
            "the keys are transposed with .T, which reverses all dimensions and not only the last "
            "two",
            "It is right for a single matrix. What shape does .T give to a batch of shape "
            "(2, 5, 4)?",
        ),
        "first two": (
            "the keys have their dimensions 0 and 1 swapped, and not their last two",
            "It is right for a single matrix. In a batch, what do the dimensions 0 and 1 stand "
            "for?",
        ),
        "1 and 2": (
            "the keys have their dimensions 1 and 2 swapped, however many there are",
            _ORDER,
        ),
        "0 and -1": ("the keys have their first and last dimensions swapped", _ORDER),
        "turned by half": ("the keys are in reversed order", _ORDER),
        "rolled": ("the keys' dimensions are moved round, and not their last two swapped", _ORDER),
    },
    "batch": {
        "across": (
            "the queries of each batch entry are scored against the keys of all of them",
            "Each matrix of a batch stands for a text of its own. Which shape should come out for "
            "q of shape (3, 5, 4)?",
        ),
        "flattened": ("all matrices of a batch are scored as one large one", _BATCH),
        "first": ("all queries are scored against the keys of the first batch entry", _BATCH),
        "only the first": ("only the first batch entry's scores come back", _BATCH),
        "first for all": ("the scores of the first batch entry stand for all", _BATCH),
        "summed": ("the scores of all batch entries are summed", _BATCH),
        "averaged": ("the scores of all batch entries are averaged", _BATCH),
    },
    "power": {
        "2": (
            "the weights are made with powers of 2 in place of powers of e",
            "Which base does the formula name? The weights of [4, 5] should be 26.89 % and "
            "73.11 %.",
        ),
        "10": ("the weights are made with powers of 10 in place of powers of e", _FORMULA),
        "3": ("the weights are made with powers of 3 in place of powers of e", _FORMULA),
        "none": ("the numbers are divided by their sum, without exp", _FORMULA),
        "absolute": ("absolute values are divided by their sum, without exp", _FORMULA),
        "squares": ("squares take the place of powers of e", _FORMULA),
        "relu": ("negative numbers become 0, and exp is missing", _FORMULA),
        "sigmoid": ("a sigmoid takes the place of exp", _FORMULA),
        "softplus": ("log(1 + exp) takes the place of exp", _FORMULA),
        "exp and one": ("1 is added to each power of e", _FORMULA),
        "expm1": ("1 is subtracted from each power of e", _FORMULA),
        "half": ("exp is taken of half the numbers", _FORMULA),
        "double": ("exp is taken of twice the numbers", _FORMULA),
        "root of n": ("the numbers are divided by the root of their count before exp", _FORMULA),
        "count": ("the numbers are divided by their count before exp", _FORMULA),
        "sizes": ("exp is taken of absolute values", _FORMULA),
        "minus": (
            "the numbers change their sign, so that the smallest gets the largest weight",
            "The largest score should get the largest weight. Is the difference taken the right "
            "way round?",
        ),
        "squared distance": ("exp is taken of minus the squared distance to the maximum", _FORMULA),
        "standard": ("the numbers are divided by their standard deviation first", _FORMULA),
        "population": ("the numbers are divided by their standard deviation first", _FORMULA),
        "to length 1": ("the numbers are brought to length 1 first", _FORMULA),
        "by the maximum": (
            "the numbers are divided by their maximum, which changes the weights",
            "Subtracting a constant cancels in the quotient. Does dividing by one?",
        ),
        "by the largest of all": ("the numbers are divided by the maximum of all", _FORMULA),
        "by the largest size": (
            "the numbers are divided by their largest absolute value",
            _FORMULA,
        ),
        "from 0 to 1": ("the numbers are stretched to the range from 0 to 1 first", _FORMULA),
        "exp twice": ("exp is taken twice", _FORMULA),
    },
    "shift": {
        "lost": (
            "the dimension along which the maximum was taken is gone, so that the difference "
            "pairs the wrong numbers or fails",
            _LINED_UP,
        ),
        "lost, at the end": (
            "slices are moved to the last dimension, and there the maximum loses its dimension",
            _LINED_UP,
        ),
        "last dim": ("the maximum is taken along the last dimension whatever dim is", _CANCELS),
        "dim 0": ("the maximum is taken along dimension 0 whatever dim is", _CANCELS),
        "dim 1": ("the maximum is taken along dimension 1 whatever dim is", _CANCELS),
        "last place": (
            "the maximum gets its missing dimension back in the last place, whatever dim is",
            _LINED_UP,
        ),
        "index": ("the place of the maximum is subtracted, along another dimension", _CANCELS),
        "other dimension": ("the maximum is taken along the dimension next to dim", _CANCELS),
        "after exp": ("the maximum is subtracted after exp", _FORMULA),
        "after exp, from all": ("the maximum of x is subtracted from the powers", _FORMULA),
        "log": ("the maximum is subtracted only above the line, not in the sum", _CANCELS),
        "in the sum": ("the maximum is subtracted only in the sum, not above the line", _CANCELS),
    },
    "total": {
        "lost": (
            "the dimension that was summed over is gone, so that the division pairs the wrong "
            "numbers or fails",
            _LINED_UP,
        ),
        "lost, at the end": (
            "slices are moved to the last dimension, and there the sum loses its dimension",
            _LINED_UP,
        ),
        "everything": (
            "the exponentials are divided by the sum of the whole tensor, and not by that of "
            "their slice",
            "It is right for a single row. What should each row of a matrix sum to?",
        ),
        "last dim": ("the sum is taken along the last dimension whatever dim is", _DIM),
        "dim 0": ("the sum is taken along dimension 0 whatever dim is", _DIM),
        "dim 1": ("the sum is taken along dimension 1 whatever dim is", _DIM),
        "other dimension": ("the sum is taken along the dimension next to dim", _DIM),
        "last place": (
            "the sum gets its missing dimension back in the last place, whatever dim is",
            "It is right along the last dimension. Where must the dimension of size 1 stand when "
            "dim is 0?",
        ),
        "mean": ("the powers are divided by their mean, and not by their sum", _FORMULA),
        "largest": ("the powers are divided by the largest of them", _FORMULA),
        "none": ("the powers are not divided by their sum", _FORMULA),
        "none, not shifted": ("exp of the numbers comes back, and nothing is divided", _FORMULA),
        "length": ("the powers are divided by the root of the sum of their squares", _FORMULA),
        "count": ("the powers are divided by how many they are", _FORMULA),
        "sum of numbers": (
            "the powers are divided by the sum of x, and not of the powers",
            _FORMULA,
        ),
        "power of the sum": ("the powers are divided by e to the sum of x", _FORMULA),
        "one more": ("1 is added to the sum that the powers are divided by", _FORMULA),
        "one more, not shifted": ("1 is added to the sum of the powers", _FORMULA),
        "a tenth more": ("0.1 is added to the sum that the powers are divided by", _FORMULA),
        "a hundredth more": ("0.01 is added to the sum that the powers are divided by", _FORMULA),
        "a thousandth more": ("0.001 is added to the sum that the powers are divided by", _FORMULA),
        "others": ("each power is divided by the sum of the others", _FORMULA),
        "running": ("each power is divided by the sum up to itself", _FORMULA),
        "times": ("the powers are multiplied by their sum", _FORMULA),
        "upside down": ("the sum is divided by the powers", _FORMULA),
        "log": ("the powers are divided by the logarithm of their sum", _FORMULA),
        "product": ("the powers are divided by their product", _FORMULA),
    },
    "dim": {
        "last": (
            "the weights sum to 1 along the last dimension whatever dim is",
            "The caller chooses the dimension. Where does your code use dim?",
        ),
        "0": ("the weights sum to 1 along dimension 0 whatever dim is", _DIM),
        "1": ("the weights sum to 1 along dimension 1 whatever dim is", _DIM),
        "-2": ("the weights sum to 1 along the last dimension but one, whatever dim is", _DIM),
        "everything": ("all weights together sum to 1, whatever dim is", _DIM),
        "first by default": (
            "the default of dim is 0, the first dimension, and not the last",
            "Look at the signature in the task: along which dimension do the weights sum to 1 "
            "when nobody says?",
        ),
        "second by default": ("the default of dim is 1, and not the last dimension", _DIM),
        "everything by default": ("without dim, all weights together sum to 1", _DIM),
        "two assumed": (
            "every dim but 0 is taken for the last one, as if there were only two dimensions",
            "It is right for a matrix. What do dim=1 and dim=-2 mean for a tensor of shape "
            "(2, 3, 4)?",
        ),
        "two assumed, 1 is last": (
            "dim 1 is taken for the last dimension, and all others for 0",
            _DIM,
        ),
        "negative is last": ("a negative dim is always taken for the last one", _DIM),
        "sign lost": ("the sign of dim is lost: -2 is taken for 2", _DIM),
        "one less": ("a negative dim is counted one off", _DIM),
        "other end": ("dim is counted from the wrong end", _DIM),
        "next": ("the weights sum to 1 along the dimension after dim", _DIM),
        "before": ("the weights sum to 1 along the dimension before dim", _DIM),
        "last but one by default": ("without dim, the last dimension but one is meant", _DIM),
    },
    "moved": {
        "not moved back": ("the dimension that was moved is not moved back", _LINED_UP),
        "moved back wrongly": (
            "the dimension that was moved is moved back to another place",
            _LINED_UP,
        ),
        "swapped, not back": ("dimensions were swapped before and are not swapped back", _LINED_UP),
        "only swapped back": (
            "dimensions are swapped back that were not swapped before",
            _LINED_UP,
        ),
        "only moved back": ("a dimension is moved back that was not moved before", _LINED_UP),
        "moved, swapped back": (
            "a dimension is moved to the end and swapped back, which mixes up the others",
            _LINED_UP,
        ),
        "swapped, moved back": (
            "a dimension is swapped with the last and moved back, which mixes up the others",
            _LINED_UP,
        ),
        "reshaped": ("slices are cut out with a reshape, which mixes their numbers", _LINED_UP),
        "turned": ("the weights come back with their dimensions swapped", _LINED_UP),
        "flat": ("the weights come back in one row, without their shape", _LINED_UP),
    },
    "result": {
        "log": (
            "the logarithms of the weights come back, and not the weights",
            "Weights are positive. Which last step is missing?",
        ),
        "log2": ("logarithms to base 2 of the weights come back, and not the weights", _FORMULA),
        "minus log": ("minus the logarithms of the weights come back", _FORMULA),
        "rest": ("what is missing to 1 comes back in place of the weights", _FORMULA),
        "largest": ("the largest number gets all the weight, and the others none", _FORMULA),
        "twice": ("softmax is taken twice", _FORMULA),
        "percent": ("the weights come back in percent", _FORMULA),
        "rounded": ("the weights are rounded to four digits", _FORMULA),
        "rounded to two": ("the weights are rounded to two digits", _FORMULA),
        "rounded to three": ("the weights are rounded to three digits", _FORMULA),
        "sorted": ("the weights come back in another order", _FORMULA),
        "maximum": ("only the largest weight of each slice comes back", _FORMULA),
        "sum": ("what is divided by comes back, and not the weights", _FORMULA),
        "times x": ("the weights come back multiplied with x", _FORMULA),
        "mixed": ("the average of x by the weights comes back, not the weights", _FORMULA),
        "logsumexp": ("the logarithm of the sum comes back, not the weights", _FORMULA),
    },
    "backward": BACKWARD
    | {
        "of a quotient's logarithm": (
            "the weights are made by way of their logarithms, and where a weight is 0 its "
            "logarithm is -inf and its gradient NaN",
            "What is the slope of the logarithm at 0? Which logarithm can be had without it?",
        ),
    },
    "memory": {
        "keys": (
            "the keys are read as they would lie in memory if nobody had transposed them before",
            "A tensor may lie in memory in another order than it is read in. Its own methods know.",
        ),
        "queries": (
            "the queries are read as they would lie in memory if nobody had transposed them before",
            "A tensor may lie in memory in another order than it is read in. Its own methods know.",
        ),
    },
}

COMMON = {
    "scale": ("root of d", "d"),
    "roles": ("kq",),
    "keys": ("reshaped", "all dimensions", "first two"),
    "power": ("2", "minus"),
    "shift": ("lost", "last dim"),
    "total": ("lost", "everything", "last dim"),
    "dim": ("first by default", "last"),
    "result": ("log",),
}

AT_EDGES = ("backward", "memory")


def as_packed(tensor):
    """A tensor's numbers in the order in which they lie in memory."""
    packed = torch.empty(tensor.shape).stride()
    return torch.as_strided(tensor, tensor.shape, packed)


def by_logarithms(x, dim):
    """Softmax whose gradient is NaN where a weight is 0."""
    powers = (x - x.amax(dim, keepdim=True)).exp()
    return (powers.log() - powers.sum(dim, keepdim=True).log()).exp()


def turned_keys(keys, k):
    """What the queries are multiplied with."""
    match keys:
        case "reshaped":
            return k.reshape(*k.shape[:-2], k.shape[-1], k.shape[-2])
        case "all dimensions":
            return k.permute(*reversed(range(k.dim())))
        case "first two":
            return k.transpose(0, 1)
        case "1 and 2":
            return k.transpose(1, 2)
        case "0 and -1":
            return k.transpose(0, -1)
        case "turned by half":
            return k.flip(-2).mT
        case "rolled":
            return k.movedim(-1, 0)
    return k.mT


def compare(similarity, q, k, keys):
    """Compare each query with each key."""
    turned = turned_keys(keys, k)
    match similarity:
        case "cosine":
            scores = (q / q.norm(dim=-1, keepdim=True)) @ turned
            return scores / k.norm(dim=-1).unsqueeze(-2)
        case "q normalized":
            return (q / q.norm(dim=-1, keepdim=True)) @ turned
        case "k normalized":
            return q @ turned / k.norm(dim=-1).unsqueeze(-2)
        case "distance":
            return torch.cdist(q, k)
        case "minus distance":
            return -torch.cdist(q, k)
        case "squared distance":
            return torch.cdist(q, k) ** 2
        case "minus squared distance":
            return -(torch.cdist(q, k) ** 2)
        case "absolute":
            return (q @ turned).abs()
        case "absolute products":
            return q.abs() @ turned.abs()
        case "negative":
            return -(q @ turned)
        case "squared":
            return (q @ turned) ** 2
        case "sums":
            return (q.unsqueeze(-2) + k.unsqueeze(-3)).sum(-1)
        case "softmax over keys":
            return (q @ turned).softmax(-1)
        case "softmax over queries":
            return (q @ turned).softmax(-2)
        case "first number left out":
            return q[..., 1:] @ k[..., 1:].mT
        case "last number left out":
            return q[..., :-1] @ k[..., :-1].mT
        case "relu":
            return (q @ turned).relu()
    return q @ turned


def multiply(product, similarity, keys, q, k):
    """Multiply queries and keys, in one of many ways."""
    match product:
        case "pairs":
            return (q * k).sum(-1)
        case "pairs kept":
            return (q * k).sum(-1, keepdim=True)
        case "products":
            return q * k
        case "products over n":
            return (q * k).sum(-2)
        case "numbers":
            return q.mT @ k
        case "numbers, turned":
            return k.mT @ q
        case "nobody transposed":
            return q @ k
        case "both transposed":
            return q.mT @ k.mT
        case "diagonal":
            return torch.diag_embed((q * k).sum(-1))
        case "summed":
            return (q @ k.mT).sum(-1)
    return compare(similarity, q, k, keys)


def in_batches(batch, q, k, score):
    """Score the matrices of a batch, in one of many ways."""
    leading = q.shape[:-2]
    if not leading:
        return score(q, k)
    match batch:
        case "across":
            return torch.inner(q, k)
        case "flattened":
            return score(q.reshape(-1, q.shape[-1]), k.reshape(-1, k.shape[-1]))
        case "first":
            return score(q, k[(0,) * len(leading)].expand_as(k))
        case "only the first":
            return score(q[0], k[0])
        case "first for all":
            return score(q[:1].expand_as(q), k[:1].expand_as(k))
        case "summed":
            return score(q, k).sum(0)
        case "averaged":
            return score(q, k).mean(0)
    return score(q, k)


def divisor(scale, q, k, scores):
    """By what the scores are divided."""
    n, m, d = q.shape[-2], k.shape[-2], q.shape[-1]
    return {
        "right": 1,
        "root of d": math.sqrt(d),
        "d": d,
        "times the root": 1 / math.sqrt(d),
        "root of n": math.sqrt(n),
        "root of m": math.sqrt(m),
        "n": n,
        "m": m,
        "8": 8,
        "half": 2,
        "double": 0.5,
        "largest": scores.max() if scale == "largest" else 1,
    }[scale]


def place(dim, given, x):
    """Along which dimension the weights are made; None for all at once."""
    default = {"first by default": 0, "second by default": 1, "last but one by default": -2}
    if given is None:
        if dim == "everything by default":
            return None
        given = default.get(dim, -1)
    match dim:
        case "last" | "0" | "1" | "-2":
            return -1 if dim == "last" else int(dim)
        case "everything":
            return None
        case "two assumed":
            return 0 if given == 0 else -1
        case "two assumed, 1 is last":
            return -1 if given in (1, -1) else 0
        case "negative is last":
            return -1 if given < 0 else given
        case "sign lost":
            return abs(given)
        case "one less":
            return given + x.dim() - 1 if given < 0 else given
        case "other end":
            return -1 - given
        case "next":
            return (given + 1) % x.dim()
        case "before":
            return (given - 1) % x.dim()
    return given


def at_the_end(x, per_slice, dim):
    """A number per slice, lined up as if slices lay along the last dimension."""
    return per_slice.expand_as(x.movedim(dim, -1)).movedim(-1, dim)


def largest(shift, x, dim):
    """What is subtracted before exp."""
    match shift:
        case "lost":
            return x.amax(dim)
        case "lost, at the end":
            return at_the_end(x, x.amax(dim), dim)
        case "last dim" | "dim 0" | "dim 1":
            return x.amax(-1 if shift == "last dim" else int(shift[-1]), keepdim=True)
        case "last place":
            return x.amax(dim).unsqueeze(-1)
        case "index":
            return x.argmax(dim)
        case "other dimension":
            return x.amax((dim + 1) % x.dim(), keepdim=True)
    return x.amax(dim, keepdim=True)


def raised(power, x, dim):
    """What becomes of the shifted numbers."""
    n = x.shape[dim]
    shifted = x - x.amax(dim, keepdim=True)
    deviation = {"standard": 1, "population": 0}.get(power, 0)
    return {
        "right": lambda: shifted.exp(),
        "2": lambda: 2**shifted,
        "10": lambda: 10**shifted,
        "3": lambda: 3**shifted,
        "none": lambda: x,
        "absolute": lambda: x.abs(),
        "squares": lambda: x**2,
        "relu": lambda: x.relu(),
        "sigmoid": lambda: x.sigmoid(),
        "softplus": lambda: (1 + x.exp()).log(),
        "exp and one": lambda: x.exp() + 1,
        "expm1": lambda: x.expm1(),
        "half": lambda: (shifted / 2).exp(),
        "double": lambda: (shifted * 2).exp(),
        "root of n": lambda: (shifted / math.sqrt(n)).exp(),
        "count": lambda: (shifted / n).exp(),
        "sizes": lambda: x.abs().exp(),
        "minus": lambda: (-x).exp(),
        "squared distance": lambda: (-(shifted**2)).exp(),
        "standard": lambda: (shifted / x.std(dim, correction=deviation, keepdim=True)).exp(),
        "population": lambda: (shifted / x.std(dim, correction=deviation, keepdim=True)).exp(),
        "to length 1": lambda: (x / x.norm(dim=dim, keepdim=True)).exp(),
        "by the maximum": lambda: (x / x.amax(dim, keepdim=True)).exp(),
        "by the largest of all": lambda: (x / x.max()).exp(),
        "by the largest size": lambda: (x / x.abs().amax(dim, keepdim=True)).exp(),
        "from 0 to 1": lambda: (
            shifted / (x.amax(dim, keepdim=True) - x.amin(dim, keepdim=True))
        ).exp(),
        "exp twice": lambda: shifted.exp().exp(),
    }[power]()


def powers_of(power, shift, x, dim):
    """What stands above the line of the quotient."""
    if power != "right":
        return raised(power, x, dim)
    match shift:
        case "after exp":
            powers = x.exp()
            return powers - powers.amax(dim, keepdim=True)
        case "after exp, from all":
            return x.exp() - x.amax(dim, keepdim=True)
        case "in the sum":
            return x.exp()
    return (x - largest(shift, x, dim)).exp()


def divided(total, powers, below, x, dim):
    """The powers, divided by what should be their sum; `below` is what is summed."""
    sums = below.sum(dim, keepdim=True)
    more = {"one more": 1, "a tenth more": 0.1, "a hundredth more": 0.01, "a thousandth more": 1e-3}
    match total:
        case "lost":
            return powers / below.sum(dim)
        case "lost, at the end":
            return powers / at_the_end(x, below.sum(dim), dim)
        case "everything":
            return powers / below.sum()
        case "last dim" | "dim 0" | "dim 1":
            return powers / below.sum(-1 if total == "last dim" else int(total[-1]), keepdim=True)
        case "other dimension":
            return powers / below.sum((dim + 1) % x.dim(), keepdim=True)
        case "last place":
            return powers / below.sum(dim).unsqueeze(-1)
        case "mean":
            return powers / below.mean(dim, keepdim=True)
        case "largest":
            return powers / below.amax(dim, keepdim=True)
        case "none":
            return powers
        case "none, not shifted":
            return x.exp()
        case "length":
            return powers / below.norm(dim=dim, keepdim=True)
        case "count":
            return powers / x.shape[dim]
        case "sum of numbers":
            return powers / x.sum(dim, keepdim=True)
        case "power of the sum":
            return x.exp() / x.sum(dim, keepdim=True).exp()
        case "one more, not shifted":
            return x.exp() / (1 + x.exp().sum(dim, keepdim=True))
        case "others":
            return powers / (sums - powers)
        case "running":
            return powers / powers.cumsum(dim)
        case "times":
            return powers * sums
        case "upside down":
            return sums / powers
        case "log":
            return powers / sums.log()
        case "product":
            return powers / below.prod(dim, keepdim=True)
    return powers / (sums + more.get(total, 0))


def finished(result, weights, x, dim):
    """What is made of the weights before they come back."""
    return {
        "right": lambda: weights,
        "log": lambda: weights.log(),
        "log2": lambda: weights.log2(),
        "minus log": lambda: -weights.log(),
        "rest": lambda: 1 - weights,
        "largest": lambda: (weights == weights.amax(dim, keepdim=True)).to(weights.dtype),
        "twice": lambda: weights.softmax(dim),
        "percent": lambda: 100 * weights,
        "rounded": lambda: weights.round(decimals=4),
        "rounded to two": lambda: weights.round(decimals=2),
        "rounded to three": lambda: weights.round(decimals=3),
        "sorted": lambda: weights.sort(dim, descending=True).values,
        "maximum": lambda: weights.amax(dim),
        "sum": lambda: (x - x.amax(dim, keepdim=True)).exp().sum(dim, keepdim=True),
        "times x": lambda: weights * x,
        "mixed": lambda: (weights * x).sum(dim),
        "logsumexp": lambda: x.logsumexp(dim),
    }[result]()


def put_back(moved, weights, x, dim):
    """The weights with their dimensions in other places."""
    if moved == "reshaped":
        return x.reshape(-1, x.shape[dim]).softmax(-1).reshape(x.shape)
    last = weights.movedim(dim, -1)
    return {
        "right": lambda: weights,
        "not moved back": lambda: last,
        "moved back wrongly": lambda: last.movedim(dim, -1),
        "swapped, not back": lambda: weights.transpose(dim, -1),
        "moved, swapped back": lambda: last.transpose(dim, -1),
        "swapped, moved back": lambda: weights.transpose(dim, -1).movedim(-1, dim),
        "only swapped back": lambda: x.softmax(-1).transpose(dim, -1),
        "only moved back": lambda: x.softmax(-1).movedim(-1, dim),
        "turned": lambda: weights.mT if weights.dim() > 1 else weights,
        "flat": lambda: weights.flatten(),
    }[moved]()


def faulty(
    scale="right", similarity="right", product="right", roles="qk", keys="right", batch="right",
    power="right", shift="right", total="right", dim="right", moved="right", result="right",
    backward="", memory="",
):  # fmt: skip
    """The functions of problem 01 with these faults."""
    chosen = dim

    def score(q, k):
        scores = multiply(product, similarity, keys, q, k)
        return scores / divisor(scale, q, k, scores)

    def dot_product_similarity(q, k):
        given = {"q": q, "k": k}
        given |= {name: as_packed(given[name]) for name in given if memory.startswith(name)}
        return in_batches(batch, *(given[name] for name in roles), score)

    def softmax(x, dim=None):
        if backward:
            weigh = softmax_with(backward) if backward in BACKWARD else by_logarithms
            return weigh(x, -1 if dim is None else dim)
        dim = place(chosen, dim, x)
        if dim is None:
            return softmax_along(x.flatten(), 0).reshape(x.shape)
        return softmax_along(x, dim)

    def softmax_along(x, dim):
        powers = powers_of(power, shift, x, dim)
        below = x.exp() if shift == "log" else powers
        if shift == "in the sum":
            below = (x - x.amax(dim, keepdim=True)).exp()
        weights = divided(total, powers, below, x, dim)
        return finished(result, put_back(moved, weights, x, dim), x, dim)

    return SimpleNamespace(dot_product_similarity=dot_product_similarity, softmax=softmax)
