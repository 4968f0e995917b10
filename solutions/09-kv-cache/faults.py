"""Problem 09 with faults that can be switched on, one or several at a time."""

import math
from contextlib import nullcontext
from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import nn

_BYTES = (
    "What is kept of one token in one layer, and how many numbers is that? Then multiply by all "
    "there is."
)
_MASK = "Row i of the mask belongs to new token i. Which of all keys may it see, with which weight?"
_PAST = "Which keys and values may a new token see, and in which order do they stand?"
_PRESENT = "The present is the next call's past. What should be in it, in which order and shape?"
_JOIN = "Keys are (B, n_head, length, head_dim). Which of these dimensions grows, and at which end?"
_FORMULA = "Compare the order of the steps with problem 05. Apart from the past, nothing changes."
_WIDTH = "How many numbers does a dot product in one head sum up?"
_AXIS = "For one query, the weights of all keys should sum to 1. Which dimension are the keys?"
_ORDER = "GPT-2's weights hold the three in a fixed order. Which one comes where?"
_SPLIT = "Which numbers of which token should head 0 hold? Problem 05 has an example."
_MERGE = "Merging is the way of splitting backwards. What stands side by side at the end?"
_MADE = "Compare the layers with the docstring."
_PLACE = "A past of 3 tokens has the positions 0, 1 and 2. Which ones come next?"
_LAYERS = "Each layer has keys and values of its own. Which entry of the list is whose?"
_AFTER = "What does problem 07 do between the last block and the logits?"
_TOO_LONG = "With n_positions = 6, which positions are there, and what should happen beyond them?"
_NEXT = "Which logits say what comes next, and which token is the most probable one?"
_READ = "Which tokens has the model not read yet when it makes the next one?"
_FITS = "T and max_new_tokens are known beforehand. How many tokens may there be in all?"
_STATE = "Two texts may be made in turns. Where does a call learn which one it goes on with?"


def _all(look, whens):
    """The same nudge for all members of a family."""
    return {value: (when, look) for value, when in whens.items()}


SWITCHES = {
    "bytes": _all(
        _BYTES,
        {
            "one of both": "only the keys are counted, or only the values",
            "three": "queries are counted along with keys and values",
            "four": "keys and values are counted twice",
            "no layers": "the keys and values of one layer are counted",
            "no width": "n_embd doesn't count",
            "no length": "seq_len doesn't count",
            "no batch": "batch_size doesn't count",
            "no size": "the numbers are counted, not their bytes",
            "fixed": "every number takes 2 bytes, whatever bytes_per_number is",
            "fixed at 4": "every number takes 4 bytes, whatever bytes_per_number is",
            "bits": "bits are counted, 8 for each byte",
            "length twice": "the sequence length counts twice, as for scores",
            "width twice": "n_embd counts twice, as in a layer's weights",
            "added": "numbers are added that should be multiplied",
            "kilobytes": "kv_cache_bytes returns kilobytes in place of bytes",
            "megabytes": "kv_cache_bytes returns megabytes in place of bytes",
            "gigabytes": "kv_cache_bytes returns gigabytes in place of bytes",
            "million": "kv_cache_bytes returns millions of bytes in place of bytes",
            "one of 12 heads": "the numbers of one head out of twelve are counted",
            "12 heads more": "n_embd is multiplied by twelve heads, which it holds already",
            "bytes before": "a default of 4 bytes for a number is taken",
            "batch of 2": "a default of more than one sequence is taken",
            "divided by size": "the numbers are divided by bytes_per_number",
            "divided by 8": "the bytes are divided by 8, as if they were bits",
            "pages": (
                "kv_cache_bytes doesn't grow with each token, as when the length is rounded or "
                "bounded"
            ),
        },
    ),
    "mask": {
        "never": (
            "no token is hidden from any other, so the prompt sees its own future",
            "One new token needs no mask. Does a prompt of several tokens need one?",
        ),
        "not in the prompt": (
            "the prompt sees its own future, as there is a mask only after a past",
            "Which tokens of a prompt may its first token see?",
        ),
        "not after a past": (
            "the new tokens see each other's future when there is a past",
            "After a past one token needs no mask. What about a chunk of several?",
        ),
        "top left": (
            "the mask is aligned at the top left, so new token i sees only the first i + 1 keys of "
            "all",
            "At which position stands the first new token, and how many keys may it see?",
        ),
        "top left in chunks": (
            "the mask of a chunk is aligned at the top left, so its token i sees only the first "
            "i + 1 keys of all",
            "At which position stands the first token of the chunk, and how many keys may it see?",
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
                "new only": (
                    "the mask has a column for each new token only, and none for those of the past"
                ),
                "past hidden": "the past is hidden, so new tokens see only each other",
                "not itself": "a token doesn't see itself",
                "not itself, finite": "a token doesn't see itself",
                "one less after a past": (
                    "after a past a token doesn't see itself: its mask is moved by one too few"
                ),
                "next": "each token sees the next one, too",
                "next after a past": "after a past each token sees the next one, too",
                "inverted": ("the mask hides what should be seen and shows what should be hidden"),
                "inverted, finite": (
                    "the mask hides what should be seen and shows what should be hidden"
                ),
                "upper": "each token sees itself and the future instead of itself and the past",
                "upper after a past": (
                    "after a past each token sees itself and the future, and not what came before"
                ),
                "only itself": "each token sees only itself",
                "not itself, but the first": "a token doesn't see itself, if there is another one",
                "added": "the mask of 0 and 1 is added to the scores",
                "by new tokens": (
                    "the triangle is moved by the number of new tokens, not by the length of the "
                    "past"
                ),
                "window": "a token sees no more than the last few keys",
                "wide window": "a token sees only a fixed number of last keys",
                "padded": (
                    "the square mask of the new tokens lies over the first keys, and all others "
                    "are seen"
                ),
                "two or more": "a chunk of two tokens has no mask after a past",
            },
        ),
    },
    "cost": {
        "of fixed size": (
            "each call makes something far larger than its keys and values, such as a mask of one "
            "size for all",
            "How many rows and columns has the mask of one new token, and how many does yours have "
            "at first?",
        ),
        "square": (
            "for one new token there are as many rows of scores as there are keys",
            "Only the new tokens ask. How many queries has one new token?",
        ),
    },
    "seen": _all(
        _PAST,
        {
            "past only": "new tokens see the past only, and neither themselves nor each other",
            "new only": "new tokens don't see the past, which is kept and not used",
        },
    ),
    "join": _all(
        _JOIN,
        {
            "new first": "the new tokens are put before the past",
            "values first": "the values are joined in another order than the keys",
            "heads": "past and new tokens are joined along another dimension than the length",
            "batch": "past and new tokens are joined along another dimension than the length",
            "width": "past and new tokens are joined along another dimension than the length",
            "added": "new keys and values are added to those of the past, number by number",
            "last of past": "only the last token of the past is kept",
            "cropped": "what is kept of the past is cut off at a length",
            "keys only": "the values are those of the new tokens only, and the keys of all",
            "swapped": "past keys are taken for values, and past values for keys",
            "keys to values": "new keys are joined to the past's values",
            "values to keys": "new values are joined to the past's keys",
        },
    ),
    "present": _all(
        _PRESENT,
        {
            "new only": "the present holds the new tokens only, so the next call has lost the past",
            "past": "the present is the past as it was, without the new tokens",
            "last only": "of the new tokens only the last one is kept",
            "as long": "the cache doesn't grow: for each new token an old one falls out",
            "last of all": "the present holds the last token only",
            "swapped": "values come before keys in the cache",
            "swapped once": "values come before keys in the present, but not in the past",
            "keys twice": "keys stand in the present in place of values",
            "values twice": "values stand in the present in place of keys",
            "scaled once": "keys are kept scaled, and those of the past are taken to be so, too",
            "three": "queries are kept as well, so the present has three parts",
            "queries": "the cache holds queries in place of keys",
            "before split": (
                "keys and values are kept before they are cut into heads, as (B, length, C)"
            ),
            "heads last": ("the cache has positions before heads: (B, length, n_head, head_dim)"),
            "width before length": (
                "the cache has head_dim before the length: (B, n_head, head_dim, length)"
            ),
            "scaled": (
                "keys are kept after they were scaled, so they are scaled once more in each later "
                "call"
            ),
            "one tensor": "the present is one tensor in place of keys and values",
            "joined": "keys and values are joined in one tensor along head_dim",
            "nothing": "the present is None",
            "x": "the input is kept in place of keys and values",
            "one head": "the present has the first head only",
        },
    ),
    "returned": _all(
        "Which two things does the docstring say that forward returns, and in which order?",
        {
            "output": "CachedAttention returns its output only, without the present",
            "present first": "CachedAttention returns the present first and the output second",
            "flat": "CachedAttention returns three things: the output, the keys and the values",
        },
    ),
    "scale": {
        "none": (
            "the scores are not divided by √head_dim",
            "How large do dot products get as the vectors get longer, and what does softmax make "
            "of large scores? Problem 03 has the answer.",
        ),
        **_all(
            _WIDTH,
            {
                "n_embd": "the scores are divided by √n_embd",
                "head_dim": (
                    "the scores are divided by head_dim in all: by it in place of its root, or by "
                    "its root twice"
                ),
                "n_head": "the scores are divided by √n_head",
                "none for one token": "the scores of a single new token are not divided",
                "length": "the scores are divided by the root of the number of keys",
                "times": "the scores are multiplied by √head_dim",
            },
        ),
    },
    "softmax": _all(
        _AXIS,
        {
            "queries": "the softmax runs over the queries, so the columns sum to 1",
            "queries, finite": "the softmax runs over the queries, so the columns sum to 1",
            "heads": "the softmax runs over the heads",
            "heads, finite": "the softmax runs over the heads",
            "heads, seen": "the softmax runs over the heads",
            "missing": "there is no softmax: the scores themselves mix the values",
            "missing, seen": "there is no softmax: the scores themselves mix the values",
            "parts": "past and new tokens have a softmax each, so rows don't sum to 1",
            "twice": "softmax is taken twice",
            "exp only": "the powers are not divided by their sum",
        },
    ),
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
                "kvq": "c_attn is cut into values, queries, keys instead of queries, keys, values",
                "kkv": "the keys are compared with themselves instead of the queries",
                "qkk": "the weights mix the keys in place of the values",
            },
        ),
    },
    "split": _all(
        _SPLIT,
        {
            "reshaped": "the heads are split by a bare reshape to (B, n_head, t, head_dim)",
            "interleaved": (
                "the heads take turns at the entries of a token, instead of a slice each"
            ),
            "within heads": "each head's query, key and value stand together in c_attn's output",
            "one": "there is a single head of the full width, whatever n_head is",
            "not split": "the positions still stand before the heads: (B, t, n_head, head_dim)",
        },
    ),
    "merge": _all(
        _MERGE,
        {
            "reshaped": (
                "the heads are joined by a bare reshape while they still stand before the positions"
            ),
            "interleaved": "the heads take turns at the entries of a token when they are joined",
            "width first": "positions and the width of a head are swapped before they are joined",
        },
    ),
    "output": _all(
        _FORMULA,
        {
            "no c_proj": "the merged heads are returned without c_proj",
            "no bias": "the bias of c_proj is not added",
            "no bias of c_attn": "the bias of c_attn is not added",
            "no biases": "the biases of c_attn and c_proj are not added",
            "residual": "x is added to the output, which the block does by itself",
            "last": "the output of the last new token only is returned",
            "last after a past": ("after a past the output of the last new token only is returned"),
            "dropout": "there is dropout in training, where this attention has none",
        },
    ),
    "layers": _all(
        _MADE,
        {
            "bias in c_attn": "c_attn has a bias even with bias=False",
            "bias in c_proj": "c_proj has a bias even with bias=False",
            "bias in both": "both linear layers have a bias even with bias=False",
            "never in c_attn": "c_attn never has a bias",
            "never in c_proj": "c_proj never has a bias",
            "never": "neither linear layer ever has a bias",
            "opposite": "the linear layers have a bias with bias=False only",
            "other default": "CachedAttention() is not 768 wide",
            "no default bias": "CachedAttention() has no biases",
        },
    ),
    "state": _all(
        _STATE,
        {
            "module": (
                "the module keeps its own cache and goes on from its last call, whatever past is"
            ),
            "module after a past": (
                "the module goes on from what it kept of its last call, not from the past it is "
                "given"
            ),
            "module without a past": (
                "without a past the module goes on from its last call, in place of starting anew"
            ),
            "buffer": "all calls write into one and the same buffer",
        },
    ),
    "positions": {
        "from 0": (
            "the positions start at 0 again in each call",
            "At which position stands a token that comes after 5 others?",
        ),
        "all alike": (
            "after a past all new tokens have one and the same position",
            "Is there always one new token? Where does the second one of a chunk stand?",
        ),
        **_all(
            _PLACE,
            {
                "last": "all new tokens have the position of the last one",
                "one less": "the positions after a past are one too small",
                "one more": "the positions after a past are one too large",
                "from 1": "the positions begin with 1 in place of 0",
                "none": "no position is added to the tokens",
                "none after a past": "after a past no position is added to the tokens",
                "layers": "the number of layers in the past is taken for its length",
                "heads": "the number of heads is taken for the length of the past",
                "pair": "the past of a layer, which is a pair, is taken for its tokens: they are 2",
                "width": "head_dim is taken for the length of the past",
                "batch": "the number of sequences is taken for the length of the past",
                "all layers": "the lengths of all layers' pasts are added up",
                "modulo": "positions begin at 0 again after as many as there are new tokens",
            },
        ),
    },
    "caches": {
        "first": (
            "all layers go on from the first layer's past",
            "Does each layer have keys of its own?",
        ),
        "last": (
            "all layers go on from the last layer's past",
            "Does each layer have keys of its own?",
        ),
        "shared": (
            "one cache is handed from layer to layer, so a layer sees the keys of the one before "
            "it",
            "Does each layer have keys of its own?",
        ),
        "ignored": (
            "the blocks don't hear of the past",
            "Where does each block get its keys of earlier tokens from?",
        ),
        **_all(
            _LAYERS,
            {
                "last kept": "the present has the last layer's keys and values in all places",
                "only last": "the present has the last layer's keys and values only",
                "reversed": "the present has the layers in reversed order",
                "read reversed": "the layers read the past in reversed order",
                "next layer": "each layer reads the past of the one after it",
                "layer before": "each layer reads the past of the one before it",
                "old": "the present is the past as it was, without the new tokens",
                "behind": "new entries are put behind those of the past, and not in their places",
                "detached": "the model takes the past out of PyTorch's graph",
            },
        ),
    },
    "logits": _all(
        _AFTER,
        {
            "no ln_f": "the last layer norm, ln_f, is missing",
            "ln_f first": "ln_f stands before the blocks in place of after them",
            "last": "CachedGPT gives the logits of the last token only",
            "softmax": "CachedGPT gives probabilities in place of logits",
            "no lm_head": "lm_head is missing, so embeddings come out in place of logits",
            "detached": "no gradient reaches the weights from the logits",
            "scaled embeddings": "the token embeddings are multiplied by a root",
            "last input": "with a past only the last of the new tokens is read",
            "dropout": "there is dropout in training, where this model has none",
        },
    ),
    "gpt returns": _all(
        "Which two things does the docstring say that forward returns?",
        {
            "logits": "CachedGPT returns the logits only, without the present",
            "present first": "CachedGPT returns the present first and the logits second",
            "loss": "CachedGPT returns a third thing besides logits and present",
        },
    ),
    "length": _all(
        _TOO_LONG,
        {
            "unchecked": (
                "too many tokens don't raise ValueError in forward: nothing looks at their number, "
                "or another error is raised"
            ),
            "new only": (
                "only the new tokens are compared with n_positions, not past and new together"
            ),
            "new only, accepted": (
                "only the new tokens are compared with n_positions, not past and new together"
            ),
            "one less": "as many tokens as there are positions are refused",
            "one more": "one token more than n_positions isn't refused with ValueError",
            "asserted": "AssertionError is raised for too many tokens, not ValueError",
            "cut": "forward accepts more tokens than there are positions",
        },
    ),
    "text": {
        "no cache": (
            "generate reads the whole text again for each new token: right tokens, but at the cost "
            "of no cache",
            _READ,
        ),
        "all with past": (
            "generate hands over the whole text along with the past, so tokens are read twice",
            _READ,
        ),
        "end twice": (
            "the prompt's last token is read twice: with the prompt, and then by itself",
            "The logits for the first new token are already there. Which call gave them?",
        ),
        **_all(
            _READ,
            {
                "prompt's past": (
                    "generate goes on from the prompt's past each time, so new tokens are forgotten"
                ),
                "no past": "generate hands over one token without the past",
                "end only": "generate reads the prompt's last token only",
                "not without its end": "the prompt's last token is never read",
            },
        ),
        **_all(
            _NEXT,
            {
                "drawn": "generate draws the next token at random",
                "first": "the next token is read off the logits of the first position",
                "smallest": "generate takes the least probable token",
                "same for all": "all sequences go on with the first one's token",
                "new only": "generate returns the new tokens without the prompts",
                "last only": "generate returns the last token only",
                "one less": "generate makes one token too few",
                "one more": "generate makes one token too many",
                "no repeats": "generate never takes the same token twice in a row",
                "end token": "generate stops at one of the tokens, as if it were the end of a text",
                "ends at 0": "generate stops at one of the tokens, as if it were the end of a text",
                "ends at last": (
                    "generate stops at one of the tokens, as if it were the end of a text"
                ),
                "prompts changed": "generate writes into the prompts that were handed in",
            },
        ),
    },
    "fits": _all(
        _FITS,
        {
            "unchecked": "generate doesn't look at the lengths before it starts",
            "late": "generate raises ValueError only when the text has become too long",
            "late, but for the prompt": (
                "generate raises ValueError only when the text has become too long"
            ),
            "one less": "generate refuses a text that just fits into n_positions",
            "one more": "generate accepts one token more than n_positions",
            "prompt only": "generate compares only the prompt with n_positions",
            "cut": "generate makes fewer tokens in place of raising ValueError",
            "cropped": (
                "generate goes on with the last n_positions tokens in place of raising ValueError"
            ),
            "new only": "generate compares only max_new_tokens with n_positions",
            "asserted": "generate raises AssertionError for too many tokens, not ValueError",
        },
    ),
}

COMMON = {
    "mask": ("never", "not after a past", "top left"),
    "join": ("new first",),
    "present": ("new only",),
    "scale": ("none", "n_embd"),
    "roles": ("kqv",),
    "output": ("no c_proj",),
}

RIGHT = dict.fromkeys(SWITCHES, "right") | {"roles": "qkv"}


def counted(how, n_layer, n_embd, seq_len, batch_size=None, bytes_per_number=None):
    """kv_cache_bytes with a fault."""
    if batch_size is None:
        batch_size = 2 if how == "batch of 2" else 1
    if bytes_per_number is None:
        bytes_per_number = 4 if how == "bytes before" else 2
    numbers = n_layer * n_embd * seq_len * batch_size
    right = 2 * numbers * bytes_per_number
    return {
        "one of both": lambda: right // 2,
        "three": lambda: right // 2 * 3,
        "four": lambda: 2 * right,
        "no layers": lambda: right // n_layer,
        "no width": lambda: right // n_embd,
        "no length": lambda: right // seq_len,
        "no batch": lambda: right // batch_size,
        "no size": lambda: 2 * numbers,
        "fixed": lambda: 4 * numbers,
        "fixed at 4": lambda: 8 * numbers,
        "bits": lambda: 8 * right,
        "length twice": lambda: right * seq_len,
        "width twice": lambda: right * n_embd,
        "added": lambda: n_layer + n_embd * seq_len * batch_size * bytes_per_number * 2,
        "kilobytes": lambda: right / 1024,
        "megabytes": lambda: right / 1024**2,
        "gigabytes": lambda: right / 1024**3,
        "million": lambda: right / 1e6,
        "one of 12 heads": lambda: right * (n_embd // 12) // n_embd,
        "12 heads more": lambda: right * 12,
        "divided by size": lambda: 2 * numbers / bytes_per_number,
        "divided by 8": lambda: right // 8,
        "pages": lambda: right // seq_len * math.ceil(seq_len / 16) * 16,
    }.get(how, lambda: right)()


def in_heads(how, qkv, n_head):
    """Queries, keys and values in heads, from what c_attn gives."""
    batch, n_new, n_embd = qkv.shape[0], qkv.shape[1], qkv.shape[2] // 3
    width = n_embd // n_head
    if how == "within heads":
        return qkv.reshape(batch, n_new, n_head, 3 * width).transpose(1, 2).chunk(3, -1)
    return [
        {
            "reshaped": lambda part=part: part.reshape(batch, n_head, n_new, width),
            "interleaved": lambda part=part: part.reshape(batch, n_new, width, n_head).permute(
                0, 3, 1, 2
            ),
            "one": lambda part=part: part.reshape(batch, 1, n_new, n_embd),
            "not split": lambda part=part: part.reshape(batch, n_new, n_head, width),
        }.get(how, lambda part=part: part.reshape(batch, n_new, n_head, width).transpose(1, 2))()
        for part in qkv.chunk(3, -1)
    ]


def merged(how, y):
    """What the heads gathered, side by side."""
    batch, n_head, n_new, width = y.shape
    order = {
        "reshaped": (0, 1, 2, 3),
        "interleaved": (0, 2, 3, 1),
        "width first": (0, 3, 1, 2),
    }.get(how, (0, 2, 1, 3))
    return y.permute(*order).reshape(batch, n_new, n_head * width)


def joined(how, past, k, v):
    """Keys and values of past and new tokens together."""
    past_k, past_v = past
    if how == "swapped":
        past_k, past_v = past_v, past_k

    def both(join):
        return join(past_k, k), join(past_v, v)

    dims = {"heads": 1, "batch": 0, "width": 3}
    if how in dims:
        return both(lambda old, new: torch.cat([old, new], dims[how]))
    return {
        "new first": lambda: both(lambda old, new: torch.cat([new, old], 2)),
        "values first": lambda: (torch.cat([past_k, k], 2), torch.cat([v, past_v], 2)),
        "added": lambda: both(torch.add),
        "cropped": lambda: both(lambda old, new: torch.cat([old, new], 2)[:, :, -20:]),
        "last of past": lambda: both(lambda old, new: torch.cat([old[:, :, -1:], new], 2)),
        "keys only": lambda: (torch.cat([past_k, k], 2), v),
        "keys to values": lambda: (torch.cat([past_k, k], 2), torch.cat([past_v, k], 2)),
        "values to keys": lambda: (torch.cat([past_k, v], 2), torch.cat([past_v, v], 2)),
    }.get(how, lambda: both(lambda old, new: torch.cat([old, new], 2)))()


def allowed(how, n_new, length):
    """Which keys each new token may see."""
    n_past, ones = length - n_new, torch.ones(n_new, length, dtype=torch.bool)
    right = ones.tril(n_past)
    return {
        "never": lambda: ones,
        "not in the prompt": lambda: right if n_past else ones,
        "not after a past": lambda: ones if n_past else right,
        "top left": lambda: ones.tril(),
        "top left in chunks": lambda: ones.tril() if n_new > 1 else ones,
        "past hidden": lambda: right & ones.triu(n_past) | right & ~ones.tril(n_past - n_new),
        "not itself": lambda: ones.tril(n_past - 1),
        "not itself, finite": lambda: ones.tril(n_past - 1),
        "not itself, but the first": lambda: (
            ones.tril(n_past - 1) | right & (torch.arange(n_new)[:, None] + n_past == 0)
        ),
        "one less after a past": lambda: ones.tril(max(n_past - 1, 0)),
        "next": lambda: ones.tril(n_past + 1),
        "next after a past": lambda: ones.tril(n_past + 1) if n_past else right,
        "inverted": lambda: ~right,
        "inverted, finite": lambda: ~right,
        "upper": lambda: ones.triu(n_past),
        "upper after a past": lambda: ones.triu(n_past) if n_past else right,
        "only itself": lambda: ones.triu(n_past) & right,
        "by new tokens": lambda: ones.tril(n_new) if n_past else right,
        "window": lambda: right & ones.triu(n_past - 1),
        "wide window": lambda: right & ones.triu(n_past - 63),
        "of fixed size": lambda: torch.ones(1024, 1024).tril()[n_past:length, :length].bool(),
        "padded": lambda: F.pad(ones[:, :n_new].tril(), (0, n_past), value=True),
        "two or more": lambda: right if n_new > 2 or not n_past else ones,
    }.get(how, lambda: right)()


def weighed(on, scores):
    """The weights of the keys, from scores."""
    n_new, length = scores.shape[-2:]
    if on.mask == "new only":
        mask = torch.ones(n_new, n_new, dtype=torch.bool).tril()
    elif on.seen == "past only":
        mask = torch.ones(n_new, length, dtype=torch.bool)
    else:
        mask = allowed(on.cost if on.mask == "right" else on.mask, n_new, length)
    finite = on.mask.endswith("finite") or on.softmax.endswith("finite")
    if on.mask == "after":
        return softmax(on.softmax, scores, length - n_new) * mask
    if on.mask == "added":
        return softmax(on.softmax, scores + mask, length - n_new)
    if on.softmax.endswith("seen"):
        return softmax(on.softmax, scores * mask, length - n_new)
    fill = 0.0 if on.mask == "zero" else -1e9 if finite else -math.inf
    return softmax(on.softmax, scores.masked_fill(~mask, fill), length - n_new)


def softmax(how, scores, n_past):
    """A softmax of the scores."""
    return {
        "queries": lambda: scores.softmax(-2),
        "heads": lambda: scores.softmax(1),
        "missing": lambda: scores,
        "parts": lambda: torch.cat(
            [scores[..., :n_past].softmax(-1), scores[..., n_past:].softmax(-1)], -1
        ),
        "twice": lambda: scores.softmax(-1).softmax(-1),
        "exp only": lambda: scores.exp(),
    }.get(how.partition(",")[0], lambda: scores.softmax(-1))()


def divisor(how, q, k):
    """What the scores are divided by."""
    n_head, d = q.shape[1], q.shape[3]
    return {
        "none": 1,
        "n_embd": math.sqrt(n_head * d),
        "head_dim": d,
        "n_head": math.sqrt(n_head),
        "none for one token": 1 if q.shape[2] == 1 else math.sqrt(d),
        "length": math.sqrt(k.shape[2]),
        "times": 1 / math.sqrt(d),
    }.get(how, math.sqrt(d))


def held(how, q, k, v, past, new):
    """The present, from what is there in the end and from what is new."""
    n_new = new[0].shape[2]

    def each(change):
        return change(k), change(v)

    return {
        "new only": lambda: new,
        "past": lambda: (k, v) if past is None else past,
        "last only": lambda: each(lambda x: torch.cat([x[:, :, :-n_new], x[:, :, -1:]], 2)),
        "as long": lambda: each(lambda x: x if past is None else x[:, :, -past[0].shape[2] :]),
        "swapped": lambda: (v, k),
        "swapped once": lambda: (v, k),
        "last of all": lambda: each(lambda x: x[:, :, -1:]),
        "keys twice": lambda: (k, k),
        "values twice": lambda: (v, v),
        "three": lambda: (q, k, v),
        "before split": lambda: each(lambda x: x.transpose(1, 2).flatten(2)),
        "heads last": lambda: each(lambda x: x.transpose(1, 2)),
        "width before length": lambda: each(lambda x: x.mT),
        "scaled": lambda: (k / math.sqrt(k.shape[-1]), v),
        "one tensor": lambda: torch.stack([k, v]),
        "joined": lambda: torch.cat([k, v], -1),
        "nothing": lambda: None,
        "one head": lambda: each(lambda x: x[:, :1]),
    }.get(how, lambda: (k, v))()


def taken(how, past):
    """Keys and values of a past as this fault has left them behind."""
    back = {
        "swapped": lambda: (past[1], past[0]),
        "three": lambda: tuple(past[-2:]),
        "heads last": lambda: tuple(each.transpose(1, 2) for each in past),
        "width before length": lambda: tuple(each.mT for each in past),
        "one tensor": lambda: tuple(past),
        "joined": lambda: tuple(past.chunk(2, -1)),
    }
    return back.get(how, lambda: past)()


def linear_layers(how, n_embd, bias):
    """c_attn and c_proj."""
    attn, proj = {
        "bias in c_attn": (True, bias),
        "bias in c_proj": (bias, True),
        "bias in both": (True, True),
        "never in c_attn": (False, bias),
        "never in c_proj": (bias, False),
        "never": (False, False),
        "opposite": (not bias, not bias),
    }.get(how, (bias, bias))
    return nn.Linear(n_embd, 3 * n_embd, bias=attn), nn.Linear(n_embd, n_embd, bias=proj)


def places(how, n_past, n_new, past):
    """The positions of the new tokens."""
    right = torch.arange(n_past, n_past + n_new)
    return {
        "from 0": lambda: right - n_past,
        "all alike": lambda: torch.full_like(right, n_past) if n_past else right,
        "last": lambda: torch.full_like(right, n_past + n_new - 1),
        "one less": lambda: right - int(n_past > 0),
        "one more": lambda: right + int(n_past > 0),
        "from 1": lambda: right + 1,
        "layers": lambda: right - n_past + (len(past) if past else 0),
        "heads": lambda: right - n_past + (past[0][0].shape[1] if past else 0),
        "pair": lambda: right - n_past + (2 if past else 0),
        "width": lambda: right - n_past + (past[0][0].shape[3] if past else 0),
        "batch": lambda: right - n_past + (past[0][0].shape[0] if past else 0),
        "all layers": lambda: right + n_past * (len(past) - 1 if past else 0),
        "modulo": lambda: right % n_new,
    }.get(how, lambda: right)()


def check_length(how, total, n_new, n_positions):
    """Raise what too many tokens raise in forward."""
    found = {"one less": total + 1}.get(how, n_new if how.startswith("new only") else total)
    if how == "one more":
        found = total - 1
    if found > n_positions:
        raise (AssertionError if how == "asserted" else ValueError)(f"{total} tokens")


def check_text(how, length, n_new, n_positions):
    """Raise what too many tokens raise in generate, before it starts."""
    found = {
        "prompt only": length,
        "late, but for the prompt": length,
        "one less": length + n_new + 1,
        "one more": length + n_new - 1,
        "new only": n_new,
    }.get(how, length + n_new)
    if how not in ("unchecked", "late", "cut", "cropped") and found > n_positions:
        raise (AssertionError if how == "asserted" else ValueError)(f"{length} and {n_new} tokens")


def chosen(how, logits, text, n_prompt):
    """The next token of each sequence, (B, 1)."""
    last = logits[:, -1]
    if how == "no repeats":
        last = last.scatter(-1, text[:, -1:], -math.inf)
    if how == "end token":
        ended = (text[:, n_prompt:] == 0).any(-1, keepdim=True)
        return last.argmax(-1, keepdim=True).masked_fill(ended, 0)
    return {
        "drawn": lambda: torch.multinomial(last.softmax(-1), 1),
        "first": lambda: logits[:, 0].argmax(-1, keepdim=True),
        "smallest": lambda: last.argmin(-1, keepdim=True),
        "same for all": lambda: last[:1].argmax(-1, keepdim=True).expand(len(last), 1),
    }.get(how, lambda: last.argmax(-1, keepdim=True))()


class MLP(nn.Module):
    """As given."""

    def __init__(self, n_embd, bias=True):
        super().__init__()
        self.c_fc = nn.Linear(n_embd, 4 * n_embd, bias=bias)
        self.c_proj = nn.Linear(4 * n_embd, n_embd, bias=bias)

    def forward(self, x):
        """As given."""
        return self.c_proj(F.gelu(self.c_fc(x), approximate="tanh"))


def config_of(**sizes):
    """A GPTConfig."""
    return SimpleNamespace(**({"dropout": 0.0, "bias": True} | sizes))


_OF_MODELS = {"positions", "caches", "logits", "gpt returns", "length", "text", "fits"}


def faulty(**faults):
    """The function and the classes of problem 09 with these faults."""
    on = SimpleNamespace(**(RIGHT | faults))
    found = SimpleNamespace(GPTConfig=config_of)

    def kv_cache_bytes(*arguments, **named):
        return counted(on.bytes, *arguments, **named)

    class CachedAttention(nn.Module):
        def __init__(self, n_embd=768, n_head=12, bias=on.layers != "no default bias"):
            super().__init__()
            if on.layers == "other default" and (n_embd, n_head) == (768, 12):
                n_embd, n_head = 512, 8
            self.n_head, self.kept, self.room = n_head, None, None
            # Of a large one only its sizes are asked for.
            with torch.device("meta") if n_embd > 100 else nullcontext():
                self.c_attn, self.c_proj = linear_layers(on.layers, n_embd, bias)

        def past_of(self, past, batch):
            kept = self.kept if self.kept and len(self.kept[0]) == batch else None
            return {
                "module": lambda: kept,
                "module after a past": lambda: past and kept,
                "module without a past": lambda: past or kept,
            }.get(on.state, lambda: past)()

        def in_buffer(self, *new):
            batch, _, size, _ = new[0].shape
            if self.room is None or len(self.room[0]) != batch or self.room[0].shape[2] < size:
                more = (0, 0, 0, 16)
                self.room = [F.pad(torch.zeros_like(each), more).detach() for each in new]
            for room, each in zip(self.room, new, strict=True):
                room[:, :, :size] = each.detach()
            return tuple(room[:, :, :size] for room in self.room)

        def seen(self, q, k, v, n_past):
            if on.seen == "new only":
                return k[:, :, n_past:], v[:, :, n_past:]
            if on.seen == "past only" and n_past:
                return k[:, :, :n_past], v[:, :, :n_past]
            return k, v

        def forward(self, x, past=None):
            past = self.past_of(past, len(x))
            no_bias = on.output in ("no bias of c_attn", "no biases")
            qkv = F.linear(x, self.c_attn.weight) if no_bias else self.c_attn(x)
            thirds = in_heads(on.split, qkv, self.n_head)
            given = dict(zip("qkv", thirds, strict=True))
            q, k, v = (given[role] for role in on.roles)
            if on.present == "scaled once":
                k, q = k / math.sqrt(k.shape[-1]), q * math.sqrt(k.shape[-1])
            new = q if on.present == "queries" else k, v
            k, n_past = (q if on.present == "queries" and past else k), 0
            if past is not None:
                past = taken(on.present, past)
                n_past = past[0].shape[2]
                k, v = joined(on.join, past, k, v)
            kept = k if past is not None or on.present != "queries" else q
            present = held(on.present, q, kept, v, past, new)
            if on.present == "x":
                present = (x, x)
            if on.state == "buffer":
                present = self.in_buffer(k, v)
            if on.state.startswith("module"):
                self.kept = (k.detach(), v.detach())
            if on.cost == "square":
                q = F.pad(q, (0, 0, n_past, 0))
            k, v = self.seen(q, k, v, n_past)
            if on.seen == "past only" and n_past:
                weights = (q @ k.mT / divisor(on.scale, q, k)).softmax(-1)
            else:
                weights = weighed(on, q @ k.mT / divisor(on.scale, q, k))
            mixed = weights @ v
            y = merged(on.merge, mixed[:, :, n_past:] if on.cost == "square" else mixed)
            y = self.projected(y, x, past)
            return {
                "output": lambda: y,
                "present first": lambda: (present, y),
                "flat": lambda: (y, *present),
            }.get(on.returned, lambda: (y, present))()

        def projected(self, y, x, past):
            return {
                "no c_proj": lambda: y,
                "no bias": lambda: F.linear(y, self.c_proj.weight),
                "no biases": lambda: F.linear(y, self.c_proj.weight),
                "residual": lambda: x + self.c_proj(y),
                "last": lambda: self.c_proj(y[:, -1:]),
                "last after a past": lambda: self.c_proj(y[:, -1:] if past else y),
                "dropout": lambda: F.dropout(self.c_proj(y), 0.5, self.training),
                "first": lambda: self.c_proj(y[:, :1]),
            }.get(on.output, lambda: self.c_proj(y))()

    class Block(nn.Module):
        def __init__(self, n_embd, n_head, bias=True):
            super().__init__()
            self.ln_1 = nn.LayerNorm(n_embd, bias=bias)
            self.attn = CachedAttention(n_embd, n_head, bias)
            self.ln_2 = nn.LayerNorm(n_embd, bias=bias)
            self.mlp = MLP(n_embd, bias)

        def forward(self, x, past=None):
            if on.returned == "output":
                y, present = self.attn(self.ln_1(x), past), None
            elif on.returned == "present first":
                present, y = self.attn(self.ln_1(x), past)
            else:
                y, *present = self.attn(self.ln_1(x), past)
                present = present[0] if len(present) == 1 else tuple(present)
            x = x + y
            return x + self.mlp(self.ln_2(x)), present

    class CachedGPT(nn.Module):
        def __init__(self, config):
            super().__init__()
            self.config = config
            sizes = config.n_embd, config.n_head, config.bias
            self.transformer = nn.ModuleDict(
                {
                    "wte": nn.Embedding(config.vocab_size, config.n_embd),
                    "wpe": nn.Embedding(config.n_positions, config.n_embd),
                    "h": nn.ModuleList([Block(*sizes) for _ in range(config.n_layer)]),
                    "ln_f": nn.LayerNorm(config.n_embd, bias=config.bias),
                }
            )
            self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)
            self.lm_head.weight = self.transformer["wte"].weight

        def length_of(self, past):
            if not past or past[0] is None:
                return 0
            return taken(on.present, past[0])[0].shape[2]

        def embedded(self, idx, past):
            n_past, n_new = self.length_of(past), idx.shape[1]
            n_positions = self.config.n_positions
            if on.length not in ("unchecked", "cut"):
                check_length(on.length, n_past + n_new, n_new, n_positions)
            if on.length == "cut":
                idx = idx[:, : n_positions - n_past]
                n_new = idx.shape[1]
            if on.logits == "last input" and past:
                idx, n_new = idx[:, -1:], 1
            x = self.transformer["wte"](idx)
            if on.logits == "scaled embeddings":
                x = x * math.sqrt(self.config.n_embd)
            if on.positions == "none" or on.positions == "none after a past" and n_past:
                return x
            where = places(on.positions, n_past, n_new, past)
            if on.length == "new only, accepted":
                where = where.clamp(max=n_positions - 1)
            return x + self.transformer["wpe"](where)

        def pasts(self, past):
            n_layer = self.config.n_layer
            if past is None:
                return [None] * n_layer
            return {
                "first": lambda: [past[0]] * n_layer,
                "last": lambda: [past[-1]] * n_layer,
                "detached": lambda: [tuple(each.detach() for each in pair) for pair in past],
                "shared": lambda: [past[0]] * n_layer,
                "ignored": lambda: [None] * n_layer,
                "read reversed": lambda: list(reversed(past)),
                "next layer": lambda: [*past[1:], past[0]],
                "layer before": lambda: [past[-1], *past[:-1]],
                "only last": lambda: list(past) * n_layer,
            }.get(on.caches, lambda: list(past))()

        def presents(self, past, present):
            n_layer = self.config.n_layer
            return {
                "last kept": lambda: [present[-1]] * n_layer,
                "only last": lambda: present[-1:],
                "reversed": lambda: present[::-1],
                "old": lambda: present if past is None else past,
                "behind": lambda: [*(past or []), *present],
            }.get(on.caches, lambda: present)()

        def forward(self, idx, past=None):
            x, present = self.embedded(idx, past), []
            ln_f = self.transformer["ln_f"]
            x = ln_f(x) if on.logits == "ln_f first" else x
            layer_past = None
            for number, block in enumerate(self.transformer["h"]):
                layer_past = (
                    layer_past if on.caches == "shared" and number else self.pasts(past)[number]
                )
                x, layer_past = block(x, layer_past)
                present.append(layer_past)
            present = self.presents(past, present)
            logits = self.logits(x, ln_f)
            return {
                "logits": lambda: logits,
                "present first": lambda: (present, logits),
                "loss": lambda: (logits, present, None),
            }.get(on.__dict__["gpt returns"], lambda: (logits, present))()

        def logits(self, x, ln_f):
            x = x if on.logits in ("no ln_f", "ln_f first") else ln_f(x)
            return {
                "last": lambda: self.lm_head(x[:, -1:]),
                "softmax": lambda: self.lm_head(x).softmax(-1),
                "no lm_head": lambda: x,
                "detached": lambda: self.lm_head(x).detach(),
                "dropout": lambda: self.lm_head(F.dropout(x, 0.5, self.training)),
            }.get(on.logits, lambda: self.lm_head(x))()

        def ask(self, idx, past=None):
            answer = self(idx, past)
            how = on.__dict__["gpt returns"]
            if how == "logits":
                answer = (answer, None)
            logits, present = reversed(answer) if how == "present first" else answer[:2]
            return logits, present

        @torch.no_grad()
        def generate(self, idx, max_new_tokens):
            n_positions, text = self.config.n_positions, idx
            check_text(on.fits, idx.shape[1], max_new_tokens, n_positions)
            if on.fits == "cut":
                max_new_tokens = min(max_new_tokens, n_positions - idx.shape[1])
            n_new = {
                "one less": max_new_tokens - 1,
                "one more": max_new_tokens + 1,
            }.get(on.text, max_new_tokens)
            past, made = None, []
            for _ in range(n_new):
                if on.fits == "cropped" and text.shape[1] > n_positions:
                    past, text = None, text[:, -n_positions:]
                logits, past = self.read(text, past)
                made.append(chosen(on.text, logits, text, idx.shape[1]))
                text = torch.cat([text, made[-1]], dim=1)
                last = {"ends at 0": 0, "ends at last": self.config.vocab_size - 1}
                if on.text in last and bool((made[-1] == last[on.text]).all()):
                    break
                if on.fits.startswith("late") and text.shape[1] > n_positions:
                    raise ValueError("too long")
            found = self.returned(idx, made)
            if on.text == "prompts changed":
                idx[:] = found[:, -idx.shape[1] :]
            return found

        def read(self, text, past):
            first, n_prompt = past is None, text.shape[1]
            if on.text == "no cache":
                return self.ask(text)
            if on.text == "end only" and first:
                return self.ask(text[:, -1:])
            if on.text == "not without its end" and first and n_prompt > 1:
                return self.ask(text[:, :-1])
            if first:
                logits, past = self.ask(text)
                return self.ask(text[:, -1:], past) if on.text == "end twice" else (logits, past)
            new = {
                "all with past": text,
            }.get(on.text, text[:, -1:])
            if on.text == "no past":
                past = None
            logits, present = self.ask(new, past)
            return logits, past if on.text == "prompt's past" else present

        def returned(self, idx, made):
            parts = {
                "new only": made,
                "last only": made[-1:],
            }.get(on.text, [idx, *made])
            return torch.cat(parts, dim=1)

    # Only what a fault is in. That a model with it goes wrong too says nothing more.
    if not faults or "bytes" in faults:
        found.kv_cache_bytes = kv_cache_bytes
    if not faults or not faults.keys() <= {"bytes", *_OF_MODELS}:
        found.CachedAttention = CachedAttention
    if not faults or faults.keys() & _OF_MODELS:
        found.CachedGPT = CachedGPT
    return found
