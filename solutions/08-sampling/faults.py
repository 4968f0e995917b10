"""Problem 08 with faults that can be switched on, one or several at a time."""

import math
from types import SimpleNamespace

import torch

_DIVIDE = "Compare with the formula in the README: what happens to the logits before softmax?"
_KTH = "Which single number of each row decides who stays? Try k = 1 and k = 2 on the example."
_ROWS = "Each row is cut by itself, along its tokens. Which dimension do your steps go along?"
_SUMS = "Go through the table of the worked example row by row: which sum is compared with p?"
_BACK = "After sorting, place 0 is the most probable token. Where does it stand in the row itself?"
_FILL = "A token that is out should have the probability 0. Which logit has that?"
_ORDER = "First the temperature, then top-k, then top-p: compare your order with the README's."
_DRAW = "Which probabilities should a draw follow, and which of your steps makes them?"
_USED = "The functions return new logits. Follow them through sample: where do they go?"
_BOUND = "Which values make no sense, and which error says that a value is wrong?"
_AS_THEY_WERE = "What is kept should stay as it was. Which of your steps changes it?"


def _all(look, whens):
    """The same nudge for all members of a family."""
    return {value: (when, look) for value, when in whens.items()}


SWITCHES = {
    "temperature": _all(
        _DIVIDE,
        {
            "times": "the logits are multiplied by the temperature, not divided by it",
            "twice": "the logits are divided by the temperature twice",
            "root": "the logits are divided by the root of the temperature",
            "ignored": "the temperature changes nothing",
            "plus": "the temperature is added to the logits",
            "minus": "the temperature is subtracted from the logits",
            "power": "the logits are raised to a power",
            "one more": "1 is added to the temperature",
            "probabilities": "the probabilities are divided by the temperature, not the logits",
            "softmax": "probabilities come back, where logits are asked for",
            "log softmax": "logarithms of probabilities come back, where logits are asked for",
            "softmax first": "softmax comes before the temperature",
            "opposite": "the logits change their sign",
            "rounded": "the scaled logits are rounded",
            "only calmer": "a temperature above 1 is taken for 1",
            "only bolder": "a temperature below 1 is taken for 1",
            "rounded down": "the scaled logits are rounded down to whole numbers",
        },
    ),
    "warm": _all(
        _BOUND,
        {
            "any": "any temperature is accepted",
            "zero": "a temperature of 0 is accepted by apply_temperature",
            "negative": "a temperature below 0 is accepted",
            "asserted": "an impossible temperature raises AssertionError, not ValueError",
            "other error": "an impossible temperature raises an error, but not ValueError",
        },
    ),
    "top_k": {
        **_all(
            _KTH,
            {
                "one more": "one token more than k is kept",
                "one fewer": "one token less than k is kept",
                "strict": "the k-th largest itself is dropped",
                "smallest": "the k smallest logits are kept",
                "counted from below": "k is counted from the smallest logit on, not the largest",
                "dropped": "the k largest logits are dropped, and the others kept",
                "only the kth": "only the k-th largest is kept",
                "above k": "the logits that are larger than k are kept",
                "first k": "the first k tokens are kept, whatever their logits are",
                "ties": "exactly k tokens are kept, and others that tie with the k-th are lost",
                "other ties": (
                    "exactly k tokens are kept, and others that tie with the k-th are lost"
                ),
                "different": (
                    "the k largest different numbers are kept, so that tokens that tie count as one"
                ),
                "share": "tokens with a probability of less than 1/k are dropped",
                "percent": "k is taken for a percentage of the tokens",
            },
        ),
        **_all(
            _ROWS,
            {
                "batch": "the k largest logits of the whole batch are kept, not those of each row",
                "lowest": ("one smallest logit is found for all rows, where each row has its own"),
                "highest": ("one smallest logit is found for all rows, where each row has its own"),
                "first row": "the first row decides for all rows",
                "first dimension": (
                    "keep_top_k looks along the first dimension, not along the tokens"
                ),
                "dimension 1": "keep_top_k looks along dimension 1, whatever the tokens are",
                "all rows": "a token that is kept in one row is kept in all rows",
            },
        ),
    },
    "k result": _all(
        _AS_THEY_WERE,
        {
            "zero": "keep_top_k puts 0 in place of what is out",
            "large": "keep_top_k puts a large negative number in place of what is out, not -inf",
            "plus": "keep_top_k puts +inf in place of what is out",
            "nan": "keep_top_k puts NaN in place of what is out",
            "table": "keep_top_k returns a table of rows, whatever stood before the tokens",
            "probabilities": "keep_top_k gives probabilities back, where logits are asked for",
            "logarithms": "keep_top_k gives logarithms of probabilities back, not the logits",
            "mask": "keep_top_k returns which tokens are kept, not their logits",
            "values": "only the kept logits come back, without their places",
            "sorted": "keep_top_k gives the logits back in sorted order",
        },
    ),
    "k bound": _all(
        _BOUND,
        {
            "any": "a k below 1 is not refused",
            "zero": "a k of 0 is not refused",
            "negative": "a k below 0 is not refused",
            "asserted": "an impossible k raises AssertionError, not ValueError",
            "above V": "a k above the number of tokens is refused",
            "other error": "an impossible k raises an error, but not ValueError",
        },
    ),
    "top_p": {
        **_all(
            _SUMS,
            {
                "crossing lost": "the token by which the sum reaches p is dropped",
                "crossing lost, none kept": (
                    "the token by which the sum reaches p is dropped, even if it is the first"
                ),
                "one more": "one token more is kept than it takes to reach p",
                "two at least": "two tokens are kept at least",
                "smallest first": "the probabilities are added up from the smallest on",
                "not sorted": (
                    "the probabilities are added up in the order of the tokens, without sorting "
                    "them"
                ),
                "own": "a token is kept when its own probability is p or more",
                "own or largest": "a token is kept when its own probability is p or more",
                "rest": "a token is kept when its own probability is 1 - p or more",
                "rest or largest": "a token is kept when its own probability is 1 - p or more",
                "below p": "the tokens whose own probability is below p are kept",
                "min p": "a token is kept when it has at least p times the largest probability",
                "min 1 - p": (
                    "a token is kept when it has at least 1 - p times the largest probability"
                ),
                "complement": "the tokens that reach 1 - p are kept, not those that reach p",
                "dropped": "the most probable tokens are dropped, and the tail is kept",
                "share": "p is taken for the share of all tokens to keep",
                "logits": "the logits are added up, not the probabilities",
                "powers": "the powers of e are added up without being divided by their sum",
                "normalised logits": (
                    "the logits are divided by their sum, where softmax makes probabilities"
                ),
                "sigmoid": "a sigmoid stands in place of softmax",
                "softmax twice": "softmax is applied twice before the probabilities are added up",
                "percent": "p is taken for a percentage",
                "all": "keep_top_p keeps all",
            },
        ),
        **_all(
            _BACK,
            {
                "not put back": (
                    "what is found among the sorted tokens is applied to the tokens in their own "
                    "order"
                ),
                "gathered back": "the way back from the sorted order is the way there again",
                "reversed": "the sorted order is taken from the wrong end on the way back",
            },
        ),
        **_all(
            _ROWS,
            {
                "softmax over rows": (
                    "softmax runs along the first dimension, not along the tokens"
                ),
                "all over rows": (
                    "softmax and the sum run along the first dimension, not along the tokens"
                ),
                "sums over rows": "the sum runs along the first dimension, not along the tokens",
                "batch": "the tokens of all rows are added up as one",
                "lowest": "one smallest logit is found for all rows, where each row has its own",
                "softmax over positions": (
                    "softmax runs along the last dimension but one, not along the tokens"
                ),
                "softmax over sorted positions": (
                    "softmax runs along the last dimension but one, not along the tokens"
                ),
                "softmax over sorted rows": (
                    "softmax runs along the first dimension, not along the tokens"
                ),
                "number of the first row": (
                    "every row keeps as many tokens as the first one needs"
                ),
                "most of all rows": "every row keeps as many tokens as the longest of them needs",
                "dropped in all": "a token that is dropped in one row is dropped in all rows",
                "kept in all": "a token that is kept in one row is kept in all rows",
            },
        ),
    },
    "p result": _all(
        _AS_THEY_WERE,
        {
            "zero": "keep_top_p puts 0 in place of what is out",
            "large": "keep_top_p puts a large negative number in place of what is out, not -inf",
            "plus": "keep_top_p puts +inf in place of what is out",
            "nan": "keep_top_p puts NaN in place of what is out",
            "table": "keep_top_p returns a table of rows, whatever stood before the tokens",
            "probabilities": "keep_top_p gives probabilities back, where logits are asked for",
            "not summing to 1": "keep_top_p gives probabilities back, where logits are asked for",
            "logarithms": "the logarithms of the new probabilities come back, not the logits",
            "logarithms of before": (
                "what is kept comes back as logarithms of probabilities, not as logits"
            ),
            "logarithms of before, but for 1": (
                "what is kept comes back as logarithms of probabilities, not as logits"
            ),
            "probabilities, but for 1": (
                "keep_top_p gives probabilities back, where logits are asked for"
            ),
            "logarithms, but for 1": (
                "the logarithms of the new probabilities come back, not the logits"
            ),
            "mask": "keep_top_p returns which tokens are kept, not their logits",
            "sorted": "the logits come back in sorted order",
        },
    ),
    "p bound": _all(
        _BOUND,
        {
            "any": "keep_top_p accepts any p",
            "above 1": "a p above 1 is accepted",
            "zero": "a p of 0 or less is accepted",
            "only zero": "a p of 0 is accepted",
            "negative": "a p below 0 is accepted",
            "one refused": "p = 1 is refused",
            "asserted": "an impossible p raises AssertionError, not ValueError",
            "other error": "an impossible p raises an error, but not ValueError",
        },
    ),
    "order": _all(
        _ORDER,
        {
            "p before k": (
                "top_p doesn't get what top_k has left: it comes first, or both get the same logits"
            ),
            "temperature last": "the temperature is applied after the filters",
            "either": "top_p is left out when there is a top_k",
            "either way": "top_k is left out when there is a top_p",
            "all turned": "the temperature is applied last, and top_p before top_k",
        },
    ),
    "used": _all(
        _USED,
        {
            "no temperature": "sample does not use the temperature",
            "no top_k": "sample does not use top_k",
            "no top_p": "sample does not use top_p",
            "no filters": "sample uses neither top_k nor top_p",
            "nothing": "sample uses neither the temperature nor the filters",
            "temperature twice": "the temperature is applied twice in sample",
            "top_k of the logits": "top_k is applied to the logits from before the temperature",
            "top_p of the logits": "top_p is applied to the logits from before the other steps",
            "only calmer": "a temperature above 1 is taken for 1 in sample",
            "only bolder": "a temperature below 1 is taken for 1 in sample",
            "times the temperature": "sample multiplies by the temperature in place of dividing",
        },
    ),
    "zero": _all(
        "What should come out at temperature 0, and can chance have a part in it?",
        {
            "refused": "a temperature of 0 is refused in sample",
            "last": "at temperature 0 the last of several equal logits is taken",
            "drawn": "temperature 0 is taken for temperature 1",
            "smallest": "at temperature 0 the smallest logit is taken",
            "tiny": (
                "temperature 0 is taken for a very small temperature, so that a draw decides "
                "between equal logits"
            ),
            "flat": "at temperature 0 the largest logit of all rows is taken",
            "first dimension": (
                "at temperature 0 the largest logit is looked for along the first dimension"
            ),
            "value": "at temperature 0 the largest logit itself comes back, not its place",
            "dimension kept": "at temperature 0 the result has one dimension more",
        },
    ),
    "draw": _all(
        _DRAW,
        {
            "greedy": "the most probable token is taken every time",
            "uniform": "all tokens that are kept are drawn with the same probability",
            "twice": "softmax is applied twice before the draw",
            "over rows": "the softmax before the draw runs over the rows, not over the tokens",
            "over positions": (
                "the softmax before the draw runs over the last dimension but one, not the tokens"
            ),
            "logits": "the draw is made from the logits, without softmax",
            "opposite": "the draw is made by the softmax of minus the logits",
            "sigmoid": "a sigmoid stands in place of softmax before the draw",
            "squared": "the probabilities are squared before the draw",
            "powers": "the powers of e are taken of the logits as they are, which overflows",
            "out as 0": "a logit of -inf is taken for 0, so that what is out is drawn",
            "root": "the root of the probabilities is drawn from",
            "next": "each draw is one token too far",
            "previous": "each draw is one token too low",
            "normal noise": "noise of another kind than Gumbel's is added to the logits",
            "uniform noise": "noise of another kind than Gumbel's is added to the logits",
            "exponential noise": "noise of another kind than Gumbel's is added to the logits",
            "minus Gumbel": "the Gumbel noise has the wrong sign",
            "largest of two": "the larger of two draws comes back",
            "sorted": (
                "the place among the sorted tokens comes back, not the token that stands there"
            ),
        },
    ),
    "rows": _all(
        "How many random numbers do you draw for a batch? Each row should have its own.",
        {
            "one": "all rows share one random number",
            "by sequence": "rows of the same sequence share a random number",
            "by place": ("rows with the same place in another sequence share a random number"),
            "first": "all rows get the token of the first row",
            "first distribution": "all rows are drawn with the probabilities of the first row",
            "one table": "softmax runs over all rows at once, as if they were one",
            "mean": "all rows are drawn with the mean of their probabilities",
            "mixed": "a reshape mixes the numbers of different rows",
        },
    ),
    "shape": _all(
        "One token for each row: which shape is that for logits of shape (2, 3, 5)?",
        {
            "kept": "the result has one dimension more, of size 1",
            "flat": "the tokens of all rows come back in one long row",
            "last position": "only the last position of each sequence is looked at",
            "last position, drawn": "only the last position of each sequence is looked at",
            "number": "one number comes back, where a tensor is asked for",
            "float": "the token numbers come back as floats",
            "int32": "the token numbers come back as int32",
            "one hot": "each token comes back as a row of 0 and 1",
            "probabilities": "the probabilities come back, not a token",
            "list": "a list comes back, where a tensor is asked for",
            "both": "tokens and probabilities come back, where only tokens are asked for",
        },
    ),
    "bounds": _all(
        _BOUND,
        {
            "negative is greedy": "a temperature below 0 is accepted in sample, as if it were 0",
            "zero is none": "a top_k or top_p of 0 is taken for None",
            "k of zero is none": "a top_k of 0 is taken for None",
            "p of zero is none": "a top_p of 0 is taken for None",
            "p above 1 is none": "a top_p above 1 is taken for None",
            "asserted": "an impossible temperature raises AssertionError in sample",
        },
    ),
    "arguments": _all(
        "Compare the arguments, their order and what they are when left out with the stub.",
        {
            "p before k": "top_p comes before top_k among the arguments",
            "temperature last": "the temperature comes after top_k and top_p among the arguments",
            "temperature 0.7": "the default temperature is not 1",
            "temperature 0": "the default temperature is 0",
            "top_k 3": "only the best tokens are drawn from when nobody asked for a top_k",
            "top_p 0.9": "only the best tokens are drawn from when nobody asked for a top_p",
        },
    ),
    "source": _all(
        "Who decides about the seed, and which source do the random numbers come from?",
        {
            "global": "the generator is not used",
            "restarted": "the generator is set back to its seed before each draw",
            "copied": (
                "the draw is made by a copy of the generator, which itself does not move on"
            ),
            "new": (
                "without a generator a new one is made in each call, which always starts at the "
                "same number"
            ),
            "seeded": "a seed is set in each call",
            "session": (
                "without a generator each call begins anew at the seed that torch was given"
            ),
            "own": "without a generator the draw comes from a generator of the code's own",
            "seed taken": (
                "the draw comes from another source, which is given the generator's seed again in "
                "each call"
            ),
            "seeds torch": (
                "torch's global generator is set to the generator's seed in each call, and the "
                "generator itself doesn't move on"
            ),
            "ignored": "neither a generator nor torch.manual_seed decides what is drawn",
            "seed from generator": (
                "the global random state is changed although there is a generator"
            ),
        },
    ),
}

COMMON = {
    "top_k": ("strict", "lowest"),
    "k result": ("zero", "large"),
    "k bound": ("any",),
    "top_p": ("crossing lost", "not put back", "gathered back"),
    "p result": ("large", "zero"),
    "p bound": ("any",),
    "zero": ("flat",),
    "rows": ("one table",),
}
"""Sample is asked about what it does with the functions before it, so those pair with their own."""

ONLY_IN = {
    "temperature": "apply_temperature",
    "top_k": "keep_top_k",
    "k result": "keep_top_k",
    "top_p": "keep_top_p",
    "p result": "keep_top_p",
}
"""The function that a switch is in, where sample doesn't show it."""

RIGHT = dict.fromkeys(SWITCHES, "right")


def refuse(how, is_wrong, value, *, zero=True, negative=True):
    """Raise what an impossible value raises."""
    errors = {"asserted": AssertionError, "other error": TypeError}
    accepted = how == "any" or (how == "zero" and zero) or (how == "negative" and negative)
    if is_wrong and not accepted:
        raise errors.get(how, ValueError)(value)


def scaled(how, x, t):
    """Logits after the temperature."""
    return {
        "times": lambda: x * t,
        "twice": lambda: x / t / t,
        "root": lambda: x / math.sqrt(t),
        "ignored": lambda: x,
        "plus": lambda: x + t,
        "minus": lambda: x - t,
        "power": lambda: x.sign() * x.abs() ** (1 / t),
        "one more": lambda: x / (1 + t),
        "probabilities": lambda: x.softmax(-1) / t,
        "softmax": lambda: (x / t).softmax(-1),
        "log softmax": lambda: (x / t).log_softmax(-1),
        "softmax first": lambda: (x.softmax(-1) / t).softmax(-1),
        "opposite": lambda: -x / t,
        "rounded": lambda: (x / t).round(decimals=2),
        "only calmer": lambda: x / min(t, 1),
        "only bolder": lambda: x / max(t, 1),
        "rounded down": lambda: (x / t).floor(),
    }.get(how, lambda: x / t)()


def largest_k(how, x, k):
    """Which tokens top_k keeps: bool, like x."""
    vocab_size = x.shape[-1]
    k = k + (how == "one more") - (how == "one fewer")
    n = max(0, min(k, vocab_size))
    if n == 0:
        return torch.zeros_like(x, dtype=torch.bool)
    kth = x.topk(n).values[..., -1:]
    rank = x.argsort(descending=True, stable=True).argsort()
    turned = x.flip(-1).argsort(descending=True, stable=True).argsort().flip(-1)
    places = torch.arange(vocab_size).expand_as(x)
    match how:
        case "strict":
            return (x > kth) | (n == vocab_size)
        case "smallest":
            return x <= x.topk(n, largest=False).values[..., -1:]
        case "counted from below":
            return x >= x.topk(n, largest=False).values[..., -1:]
        case "dropped":
            return (x < kth) | (n == vocab_size)
        case "only the kth":
            return x == kth
        case "above k":
            return x >= k
        case "first k":
            return places < n
        case "ties":
            return rank < n
        case "other ties":
            return turned < n
        case "different":
            again = (x[..., :, None] == x[..., None, :]).tril(-1).any(-1)
            larger = (x[..., None, :] > x[..., :, None]) & ~again[..., None, :]
            return larger.sum(-1) < n
        case "share":
            return x.softmax(-1) >= 1 / n
        case "percent":
            return x >= x.topk(min(math.ceil(vocab_size * k / 100), vocab_size)).values[..., -1:]
        case "batch":
            return x >= x.flatten().topk(min(k, x.numel())).values[-1]
        case "lowest":
            return x >= kth.min()
        case "highest":
            return x >= kth.max()
        case "first row":
            return x >= kth.flatten()[0]
        case "first dimension":
            return x >= x.topk(min(k, x.shape[0]), dim=0).values[-1:]
        case "dimension 1":
            along = min(1, x.dim() - 1)
            first = x.topk(min(k, x.shape[-1], x.shape[along]), dim=along).values[..., -1:]
            return x >= first if x.dim() < 4 else x >= kth
        case "all rows":
            kept = (x >= kth).reshape(-1, vocab_size).any(0)
            return kept.expand_as(x)
    return x >= kth


def probabilities_for(how, x):
    """What is added up for top_p."""
    return {
        "logits": lambda: x,
        "powers": lambda: x.exp(),
        "normalised logits": lambda: x / x.sum(-1, keepdim=True),
        "sigmoid": lambda: x.sigmoid(),
        "softmax twice": lambda: x.softmax(-1).softmax(-1),
        "softmax over rows": lambda: x.softmax(0),
        "softmax over positions": lambda: x.softmax(-2),
        "share": lambda: torch.ones_like(x) / x.shape[-1],
    }.get(how, lambda: x.softmax(-1))()


def by_itself(how, probabilities, p):
    """Which tokens are kept by what looks at one probability only; None for other faults."""
    largest = probabilities.amax(-1, keepdim=True)
    return {
        "own": lambda: probabilities >= p,
        "own or largest": lambda: (probabilities >= p) | (probabilities == largest),
        "rest": lambda: probabilities >= 1 - p,
        "rest or largest": lambda: (probabilities >= 1 - p) | (probabilities == largest),
        "below p": lambda: probabilities < p,
        "min p": lambda: probabilities >= p * largest,
        "min 1 - p": lambda: probabilities >= (1 - p) * largest,
        "all": lambda: torch.ones_like(probabilities, dtype=torch.bool),
    }.get(how, lambda: None)()


def stay_among_sorted(how, sums, before, p):
    """Which of the sorted tokens stay, by the sums with and without them."""
    place = torch.arange(sums.shape[-1])
    needed = (before < p).sum(-1, keepdim=True)
    match how:
        case "crossing lost":
            return (sums <= p) | (place == 0)
        case "crossing lost, none kept":
            return sums <= p
        case "one more":
            return place < needed + 1
        case "two at least":
            return (before < p) | (place == 1)
        case "complement":
            return before < 1 - p
        case "dropped":
            return before >= p
        case "percent":
            return before < p / 100
        case "number of the first row":
            return (place < needed.flatten()[0]).expand_as(sums)
        case "most of all rows":
            return (place < needed.max()).expand_as(sums)
    return before < p


def largest_p(how, x, p):
    """Which tokens top_p keeps: bool, like x."""
    probabilities = probabilities_for(how, x)
    if (kept := by_itself(how, probabilities, p)) is not None:
        return kept
    if how == "batch":
        flat = x.softmax(-1).flatten() if x.dim() == 1 else x.flatten().softmax(0)
        order = flat.argsort(descending=True)
        before = flat[order].cumsum(0) - flat[order]
        return torch.zeros_like(flat, dtype=torch.bool).scatter(0, order, before < p).view_as(x)
    along = 0 if how == "all over rows" else -1
    probabilities = x.softmax(0) if how == "all over rows" else probabilities
    order = x.argsort(along, descending=how != "smallest first")
    if how == "not sorted":
        order = torch.arange(x.shape[-1]).expand_as(x)
    ordered = probabilities.gather(along, order)
    if how in ("softmax over sorted rows", "softmax over sorted positions"):
        ordered = x.gather(-1, order).softmax(0 if how.endswith("rows") else -2)
    sums = ordered.cumsum(0 if how == "sums over rows" else along)
    stay = stay_among_sorted(how, sums, sums - ordered, p)
    match how:
        case "not put back":
            return stay
        case "gathered back":
            return stay.gather(-1, order)
        case "reversed":
            return stay.flip(-1).gather(-1, order.argsort(-1))
    kept = torch.zeros_like(stay).scatter(along, order, stay)
    if how == "lowest":
        return x >= torch.where(kept, x, math.inf).min()
    if how in ("dropped in all", "kept in all"):
        rows = kept.reshape(-1, x.shape[-1])
        return (rows.all(0) if how == "dropped in all" else rows.any(0)).expand_as(x)
    return kept


def filtered(how, x, kept):
    """What a filter returns."""
    fills = {"zero": 0.0, "large": -1e9, "plus": math.inf, "nan": math.nan}
    out = x.masked_fill(~kept, fills.get(how, -math.inf))
    if how.startswith("logarithms of before"):
        return x.log_softmax(-1).masked_fill(~kept, -math.inf)
    return {
        "probabilities, but for 1": lambda: out.softmax(-1),
        "logarithms, but for 1": lambda: out.log_softmax(-1),
        "probabilities": lambda: out.softmax(-1),
        "not summing to 1": lambda: x.softmax(-1) * kept,
        "logarithms": lambda: out.log_softmax(-1),
        "mask": lambda: kept,
        "table": lambda: out.reshape(-1, out.shape[-1]) if out.dim() > 2 else out,
        "values": lambda: x[kept] if x.dim() == 1 else x.topk(int(kept.sum(-1).max())).values,
        "sorted": lambda: out.sort(-1, descending=True).values,
    }.get(how, lambda: out)()


DEFAULTS = {"temperature": 1.0, "top_k": None, "top_p": None, "generator": None}

OTHER_DEFAULTS = {
    "temperature 0.7": {"temperature": 0.7},
    "temperature 0": {"temperature": 0},
    "top_k 3": {"top_k": 3},
    "top_p 0.9": {"top_p": 0.9},
}

ORDERS = {
    "p before k": "logits temperature top_p top_k generator",
    "temperature last": "logits top_k top_p temperature generator",
}


def weights_for(how, x):
    """What a draw is made by."""
    return {
        "greedy": lambda: (x == x.amax(-1, keepdim=True)).to(x.dtype),
        "uniform": lambda: (x > -math.inf).to(x.dtype),
        "twice": lambda: x.softmax(-1).softmax(-1),
        "over rows": lambda: x.softmax(0),
        "over positions": lambda: x.softmax(-2),
        "logits": lambda: x,
        "opposite": lambda: (-x).softmax(-1),
        "sigmoid": lambda: x.sigmoid(),
        "squared": lambda: x.softmax(-1) ** 2,
        "powers": lambda: x.exp(),
        "out as 0": lambda: torch.where(x.isinf(), 0.0, x).softmax(-1),
        "root": lambda: x.softmax(-1).sqrt(),
    }.get(how, lambda: x.softmax(-1))()


def noise_for(how, x, generator):
    """What is added to the logits before the largest is taken; None where nothing is."""
    uniform = torch.rand(x.shape, generator=generator, dtype=x.dtype)
    return {
        "normal noise": lambda: torch.randn(x.shape, generator=generator, dtype=x.dtype),
        "uniform noise": lambda: uniform,
        "exponential noise": lambda: -uniform.log(),
        "minus Gumbel": lambda: (-uniform.log()).log(),
    }.get(how, lambda: None)()


def shared_draw(how, weights, generator):
    """One token for each row, by random numbers that some rows share."""
    sums = weights.cumsum(-1)
    shape = list(sums.shape[:-1])
    if how in ("one", "first"):
        shape = [1] * len(shape)
    elif shape:
        shape[-1 if how == "by sequence" else 0] = 1
    uniform = torch.rand(*shape, 1, generator=generator, dtype=weights.dtype)
    drawn = (sums <= uniform * sums[..., -1:]).sum(-1)
    return drawn.flatten()[:1].expand_as(drawn).contiguous() if how == "first" else drawn


def draw_once(how, x, generator):
    """One token for each row, in one of many ways."""
    if (noise := noise_for(how, x, generator)) is not None:
        return (x + noise).argmax(-1)
    weights = weights_for(how, x)
    rows = weights.reshape(-1, weights.shape[-1])
    number = 2 if how == "largest of two" else 1
    drawn = torch.multinomial(rows, number, replacement=True, generator=generator).amax(-1)
    last = x.shape[-1] - 1
    drawn = {"next": (drawn + 1).clamp(max=last), "previous": (drawn - 1).clamp(min=0)}.get(
        how, drawn
    )
    drawn = drawn.reshape(x.shape[:-1])
    if how == "sorted":
        rank = x.argsort(-1, descending=True).argsort(-1)
        return rank.gather(-1, drawn.unsqueeze(-1)).squeeze(-1)
    return drawn


OWN = torch.Generator()


def source_of(how, generator):
    """Where random numbers come from."""
    if how == "seeded":
        torch.default_generator.manual_seed(42)
    if how == "new" and generator is None:
        return torch.Generator()
    if how == "session" and generator is None:
        return torch.Generator().manual_seed(torch.initial_seed())
    if how == "own" and generator is None:
        return OWN
    if how == "ignored" or (how == "seed taken" and generator is None):
        fresh = torch.Generator()
        fresh.seed()
        return fresh
    if how == "seeds torch" and generator is not None:
        torch.default_generator.manual_seed(generator.initial_seed())
        return None
    if how == "seed taken":
        return torch.Generator().manual_seed(generator.initial_seed())
    if generator is None:
        return None
    if how == "global":
        return None
    if how == "restarted":
        return generator.manual_seed(generator.initial_seed())
    if how == "copied":
        return generator.clone_state()
    if how == "seed from generator":
        seed = int(torch.randint(2**31, (), generator=generator))
        torch.default_generator.manual_seed(seed)
        return None
    return generator


def greedy(how, x):
    """What comes at temperature 0."""
    return {
        "last": lambda: x.shape[-1] - 1 - x.flip(-1).argmax(-1),
        "smallest": lambda: x.argmin(-1),
        "flat": lambda: x.argmax(),
        "first dimension": lambda: x.argmax(0),
        "value": lambda: x.amax(-1),
        "dimension kept": lambda: x.argmax(-1, keepdim=True),
    }.get(how, lambda: x.argmax(-1))()


def shaped(how, tokens, x):
    """Tokens as they come back."""
    match how:
        case "kept":
            return tokens.unsqueeze(-1)
        case "flat":
            return tokens.flatten()
        case "number":
            return int(tokens.flatten()[0])
        case "float":
            return tokens.float()
        case "int32":
            return tokens.int()
        case "one hot":
            return torch.nn.functional.one_hot(tokens, x.shape[-1])
        case "probabilities":
            return x.softmax(-1)
        case "list":
            return tokens.tolist()
        case "both":
            return tokens, x.softmax(-1)
    return tokens


def steps_of(on, given):
    """The order of the steps in sample, by their names, without those that are left out."""
    order = {
        "p before k": "temperature top_p top_k",
        "temperature last": "top_k top_p temperature",
        "all turned": "top_p top_k temperature",
    }.get(on.order, "temperature top_k top_p")
    out = {
        "no temperature": {"temperature"},
        "no top_k": {"top_k"},
        "no top_p": {"top_p"},
        "no filters": {"top_k", "top_p"},
        "nothing": {"temperature", "top_k", "top_p"},
    }.get(on.used, set())
    if given["top_k"] is not None and given["top_p"] is not None:
        out = out | {"either": {"top_p"}, "either way": {"top_k"}}.get(on.order, set())
    steps = [step for step in order.split() if step not in out and given[step] is not None]
    return steps + ["temperature"] * (on.used == "temperature twice")


def with_none(how, given):
    """The arguments, where some values are taken for None."""
    k, p = given["top_k"], given["top_p"]
    if k == 0 and how in ("zero is none", "k of zero is none"):
        given["top_k"] = None
    if p == 0 and how in ("zero is none", "p of zero is none"):
        given["top_p"] = None
    if p is not None and p > 1 and how == "p above 1 is none":
        given["top_p"] = None
    return given


def faulty(**faults):
    """The functions of problem 08 with these faults."""
    on = SimpleNamespace(**{name.replace(" ", "_"): v for name, v in (RIGHT | faults).items()})

    def apply_temperature(logits, temperature):
        refuse(
            on.warm,
            not temperature > 0,
            temperature,
            zero=temperature == 0,
            negative=temperature < 0,
        )
        return scaled(on.temperature, logits, temperature)

    def keep_top_k(logits, k):
        if on.k_bound == "above V" and k > logits.shape[-1]:
            raise ValueError(k)
        refuse(on.k_bound, k < 1, k, zero=k == 0, negative=k < 0)
        return filtered(on.k_result, logits, largest_k(on.top_k, logits, max(k, 1)))

    def keep_top_p(logits, p):
        if on.p_bound == "one refused" and p == 1:
            raise ValueError(p)
        accepted = {"above 1": p > 1, "zero": p <= 0, "only zero": p == 0, "negative": p < 0}
        if not accepted.get(on.p_bound, False):
            how = "right" if on.p_bound in accepted else on.p_bound
            refuse(how, not 0 < p <= 1, p)
        if p >= 1 and on.p_result.endswith("but for 1"):
            return logits
        if p >= 1:
            return filtered(on.p_result, logits, torch.ones_like(logits, dtype=torch.bool))
        return filtered(on.p_result, logits, largest_p(on.top_p, logits, max(p, 1e-9)))

    def cut(x, step, given):
        function = {
            "temperature": apply_temperature,
            "top_k": keep_top_k,
            "top_p": keep_top_p,
        }[step]
        return function(x, given[step])

    def sample(*arguments, **named):
        names = ORDERS.get(on.arguments, "logits temperature top_k top_p generator").split()
        given = DEFAULTS | OTHER_DEFAULTS.get(on.arguments, {})
        given = given | dict(zip(names, arguments, strict=False)) | named
        x, t = given["logits"], given["temperature"]
        if on.shape == "last position" and x.dim() > 2:
            x = x[:, -1]
        if t < 0:
            if on.bounds == "negative is greedy":
                t = 0
            elif on.bounds == "asserted":
                raise AssertionError(t)
            elif on.warm not in ("any", "negative"):
                refuse(on.warm, True, t, zero=False, negative=False)
        if t == 0 and on.zero not in ("drawn", "tiny"):
            if on.zero == "refused":
                raise ValueError(t)
            return shaped(on.shape, greedy(on.zero, x), x)
        given["temperature"] = {"drawn": 1.0, "tiny": 1e-6}[on.zero] if t == 0 else t
        given = with_none(on.bounds, given)
        given["temperature"] = {"only calmer": min, "only bolder": max}.get(
            on.used, lambda t, _: 1 / t if on.used == "times the temperature" else t
        )(given["temperature"], 1.0)
        before = x
        for step in steps_of(on, given):
            x = cut(before if on.used == f"{step} of the logits" else x, step, given)
        if on.shape == "last position, drawn" and x.dim() == 3:
            x = x[:, -1]
        source = source_of(on.source, given["generator"])
        if on.rows == "first distribution":
            x = x.reshape(-1, x.shape[-1])[:1].expand(x[..., 0].numel(), -1).reshape(x.shape)
        if on.rows == "one table":
            table = x.flatten().softmax(0)
            number = x[..., 0].numel()
            drawn = torch.multinomial(table, number, replacement=True, generator=source)
            tokens = (drawn % x.shape[-1]).reshape(x.shape[:-1])
        elif on.rows == "mean":
            mean = x.softmax(-1).reshape(-1, x.shape[-1]).mean(0).log()
            tokens = draw_once(on.draw, mean.expand(x.shape), source)
        elif on.rows == "mixed":
            mixed = x.reshape(x.shape[-1], -1).T.reshape(x.shape)
            tokens = draw_once(on.draw, mixed, source)
        elif on.rows in ("right", "first distribution"):
            tokens = draw_once(on.draw, x, source)
        else:
            tokens = shared_draw(on.rows, x.softmax(-1), source)
        return shaped(on.shape, tokens, x)

    functions = (apply_temperature, keep_top_k, keep_top_p, sample)
    found = {function.__name__: function for function in functions}
    shown = {ONLY_IN.get(name) for name in faults}
    if faults and None not in shown:
        found = {name: function for name, function in found.items() if name in shown}
    return SimpleNamespace(**found)
