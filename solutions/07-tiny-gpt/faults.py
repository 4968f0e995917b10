"""Problem 07 with faults that can be switched on, one or several at a time."""

import math
from pathlib import Path
from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import nn

from grader.loading import load_module

given = load_module(Path(__file__).with_name("problem.py"), "given_for_07")

_MADE = "Compare the parts with the list in the README: which is missing, double, or too much?"
_TIED = "One parameter under two names. What does an optimizer see when there are two tensors?"
_START = "Which layers start from which numbers? And does anything overwrite them afterwards?"
_STEP = "A model of n_layer blocks adds to the residual stream 2 · n_layer times."
_PLACE = "Which row of wpe belongs to token t of a sequence, whichever sequence it is?"
_SUM = "Into the first block goes the sum of both embeddings, as they are. Where else are they?"
_WAY = "Follow x through forward: embeddings, each block once, ln_f, lm_head."
_SHAPE = "Which shape do the logits have, with targets and without?"
_LOSS = "What is averaged, over which positions, and what does cross_entropy do by itself?"
_TARGETS = "get_batch has moved the targets already. What is target t the target of?"
_MASK = "Who may look at whom? A token that sees the next one need not guess it."
_DROP = "Dropout acts on the sum of both embeddings, and in each Block."
_LONG = "What should happen when there is no row of wpe left?"
_NEXT = "Which position of the logits tells what comes after the last token?"
_CHANCE_LEFT = "Greedy text has the largest logit at each step. What does chance decide in yours?"
_CONTEXT = "What does the model read at each step, and what is returned in the end?"
_MODE = "What has generate to switch off, and what has to be as before when it returns?"
_STARTS = "A piece of n_positions tokens and the one after it: which starts are possible?"
_CHANCE = "Where does each row begin, and where does the chance for that come from?"
_PAIR = "Where in the text does the target of x[b, t] stand?"
_COUNT = "Count on paper for abracadabra: which pairs are there, and how many begin with a?"


def _all(look, whens):
    """The same nudge for all members of a family."""
    return {value: (when, look) for value, when in whens.items()}


SWITCHES = {
    "tie": _all(
        _TIED,
        {
            "copied": "lm_head has a copy of wte's weight, and not the weight itself",
            "none": "lm_head has a weight of its own, not that of wte",
            "after the start": "the weight is tied, but to another table than the one that starts",
        },
    ),
    "made": _all(
        _MADE,
        {
            "head bias": "lm_head has a bias",
            "one block": "there is one block, whatever n_layer is",
            "same block": "the blocks are one and the same block, n_layer times",
            "plain list": "the blocks stand in a plain list, so that PyTorch doesn't know them",
            "one block more": "there is one block too many",
            "blocks with bias": "the blocks have biases even with bias=False",
            "norm with bias": "ln_f has a bias even with bias=False",
            "all with bias": "config.bias is not handed on to any part",
            "no bias": "the blocks and ln_f never have biases",
            "wide wpe": "wpe has vocab_size rows in place of n_positions",
            "narrow wte": "wte has n_positions rows in place of vocab_size",
            "swapped": "n_head and n_layer are swapped",
            "one head": "the blocks have one head, whatever n_head is",
            "no ln_f": "there is no ln_f",
            "12 blocks": "there are 12 blocks, whatever n_layer is",
            "own names": "the parts have names of their own, not GPT-2's",
            "all but lm_head": "the parts have names of their own, all but lm_head",
            "no transformer": "the parts don't stand under transformer",
            "more": "there is a further layer with weights",
            "config lost": "the model doesn't keep its config",
        },
    ),
    "start": {
        **_all(
            _START,
            {
                "torch's": "the initial weights are PyTorch's own ones, not N(0, 0.02²)",
                "embeddings only": "only the embeddings start from N(0, 0.02²)",
                "linear only": "only the linear layers start from N(0, 0.02²)",
                "biases": "the biases don't start from 0",
                "wpe forgotten": "wpe starts from PyTorch's own numbers",
                "wte forgotten": "wte and lm_head start from PyTorch's own numbers",
                "variance": "the weights start with a standard deviation of 0.02² = 0.0004",
                "variance, c_proj too": "variances are taken for standard deviations at the start",
                "0.2": "the weights start with a standard deviation of 0.2",
                "1": "the weights start with a standard deviation of 1",
                "uniform": "the weights start from numbers between -0.02 and 0.02, all as likely",
                "xavier": "the weights start from Xavier's numbers",
                "xavier, c_proj right": "all but c_proj start from Xavier's numbers",
                "xavier normal": "the weights start from Xavier's normal numbers",
                "xavier normal, c_proj right": "all but c_proj start from Xavier's numbers",
                "kaiming": "the weights start from Kaiming's numbers",
                "torch's, tied by lm_head": "the initial weights are PyTorch's own ones",
                "torch's, c_proj right": "all but c_proj start from PyTorch's own numbers",
                "uniform, c_proj right": (
                    "all weights but c_proj's start from numbers between -0.02 and 0.02, all as "
                    "likely"
                ),
                "truncated": "the numbers that weights start from are cut off at ±0.02",
                "0": "the weights start from 0",
                "mean": "the weights start from numbers around 0.02 in place of 0",
                "norms too": "the layer norms start from N(0, 0.02²), too",
                "positions apart": "wpe starts from other numbers than wte",
            },
        ),
        **_all(
            _STEP,
            {
                "not scaled": "the weights of c_proj start as large as all others",
                "n_layer": "c_proj's start is divided by √n_layer, without the 2",
                "no root": "c_proj's start is divided by 2 n_layer, not by its root",
                "n_layer, no root": "c_proj's start is divided by n_layer",
                "root, then 2": "c_proj's start is divided by 2 √n_layer",
                "fixed": "c_proj's start is divided by √24, which is right for 12 layers only",
                "attention only": "only the attention's c_proj starts smaller",
                "mlp only": "only the MLP's c_proj starts smaller",
                "c_fc too": "all linear layers start smaller, not only c_proj",
                "2 over the root": "c_proj's start is multiplied by 2 / √n_layer",
                "by width": "c_proj's start is divided by √n_embd",
                "c_proj at 0": "the weights of c_proj start from 0",
                "scaled twice": "c_proj's start is divided by √(2 n_layer) twice",
                "multiplied": "c_proj's start is multiplied by √(2 n_layer)",
            },
        ),
    },
    "positions": _all(
        _SUM,
        {
            "before each block": "the positions are added before every block, and not once",
            "before each block, too": "the positions are added before every block, and not once",
            "multiplied": "the embeddings are multiplied in place of added",
            "subtracted": "the position's embedding is taken away in place of added",
            "only": "the tokens' own embeddings are left out",
            "averaged": "the embeddings are averaged in place of added",
            "scaled": "the tokens' embeddings are multiplied by √n_embd",
            "scaled, both": "the sum of the embeddings is multiplied by √n_embd",
        },
    )
    | _all(
        _PLACE,
        {
            "none": "the positions are left out: nothing of wpe is added",
            "along the batch": "the positions run along the batch, not along the sequence",
            "from 1": "the first token is at position 1",
            "all 0": "all tokens are at position 0",
            "backwards": "the positions run backwards",
            "last rows": "the last rows of wpe are used in place of the first",
            "by token": "wpe is asked for the tokens in place of the positions",
            "last": "all tokens are at the last position",
            "sinusoids too": "sines and cosines are added beside wpe",
            "sinusoids": "sines and cosines are added in place of wpe",
            "padding": "token 0 has no embedding of its own, as if it were padding",
            "padding skipped": "a token is taken for padding, and gets no position of its own",
        },
    ),
    "way": _all(
        _WAY,
        {
            "no ln_f": "the last norm, ln_f, is left out",
            "ln_f first": "ln_f stands before the blocks",
            "ln_f after each": "ln_f stands after each block",
            "ln_f twice": "ln_f is applied twice",
            "ln_f also first": "ln_f stands before the blocks, too",
            "no blocks": "the blocks are left out, or what they return is not kept",
            "first block": "x goes through the first block only",
            "first block again": "x goes through the first block again and again",
            "not the last": "x doesn't go through the last block",
            "backwards": "the blocks come in reversed order",
            "added again": "x is added to what a block returns, which has it already",
            "same input": "each block gets the embeddings, not what the block before it returned",
            "summed": "what all blocks make of the embeddings is added up",
            "twice": "x goes through all blocks twice",
            "normalised embeddings": "the embeddings are normalised before the blocks",
            "gelu": "a gelu stands before lm_head",
            "post-norm": "the norms of a block stand after its two sums, not before its layers",
        },
    ),
    "mask": _all(
        _MASK,
        {
            "none": "the attention has no mask, so each token sees the future",
            "future": "each token sees itself and the future in place of the past",
            "next": "each token also sees the next one",
            "not itself": "a token may not see itself",
        },
    )
    | {
        "unscaled": (
            "the attention's scores are not divided by √head_dim",
            "How large do dot products get as vectors get longer? Problem 03 has the answer.",
        )
    },
    "logits": {
        "softmax": (
            "softmax is applied to what forward returns and to what cross_entropy gets",
            "cross_entropy takes logits: it has its own softmax.",
        ),
        **_all(
            _SHAPE,
            {
                "softmax returned": "probabilities are returned in place of logits",
                "log_softmax": "logarithms of probabilities are returned in place of logits",
                "last only": "without targets there are logits for the last position only",
                "always last": "there are logits for the last position only",
                "flat": "with targets the logits come back as (B·T, vocab_size)",
                "always flat": "the logits come back as (B·T, vocab_size)",
                "transposed": "the logits come back as (B, vocab_size, T)",
                "loss only": "with targets only the loss comes back",
                "loss first": "loss and logits come back in the other order",
                "alone": "without targets the logits come back alone, not with None",
                "zero loss": "without targets the loss is 0 in place of None",
                "one less": "the last position has no logits",
                "detached": "the logits are taken out of PyTorch's graph",
                "by root": "the logits are divided by √n_embd",
                "dict": "logits and loss come back in a dict, not as two",
            },
        ),
    },
    "loss": {
        **_all(
            _TARGETS,
            {
                "shifted": "the targets are moved by one position again in forward",
                "shifted back": "the targets are moved by one position the wrong way",
                "last target only": "the loss is about the last position only",
                "first target only": "the loss is about the first position only",
                "tokens": "the logits are compared with idx, not with targets",
                "tokens moved": "the logits are compared with idx moved by one, not with targets",
            },
        ),
        **_all(
            _LOSS,
            {
                "softmax first": "softmax comes before cross_entropy, which has its own",
                "log_softmax, then softmax": "the loss is minus a probability, not its logarithm",
                "summed": "the loss is the sum over all positions, not the mean",
                "by sequence": "the losses of a sequence are added up, and the sums averaged",
                "by position": "the losses of a position are added up, and the sums averaged",
                "each": "the loss of each position comes back, not their mean",
                "each sequence": "the loss of each sequence comes back, not one mean",
                "bits": "the loss is in bits, by the logarithm to base 2",
                "reshaped for classes": (
                    "the logits are reshaped to (B, vocab_size, T), where they should be transposed"
                ),
                "reshaped": "the logits are reshaped as if vocab_size stood before the positions",
                "perplexity": "e to the power of the loss comes back",
                "smoothed": "the targets are smoothed",
                "over positions": "softmax runs over the positions in place of the vocabulary",
                "ignores -1": "targets of -1 are left out, and not those of -100",
                "ignores 0": "token 0 is left out, and not the targets of -100",
                "counted as 0": "targets of -100 count as token 0",
                "divided by all": "the sum is divided by the number of all positions, with -100",
                "loss in float32": "the loss is computed in float32, whatever the logits are",
                "mean of counted means": (
                    "each sequence's own mean is averaged, over the sequences in which any counts"
                ),
                "mean of means": "each sequence's own mean is averaged, with -100 left out",
                "as number": "the loss is a Python number, so that nothing can learn from it",
                "negative": "the sign of the loss is wrong",
                "squared": "the loss is the mean squared error, not the cross entropy",
                "by vocabulary": "the loss is divided by vocab_size, too",
                "shape 1": "the loss has the shape (1,) in place of ()",
            },
        ),
    },
    "long": _all(
        _LONG,
        {
            "index": "a sequence longer than n_positions raises IndexError, not ValueError",
            "asserted": "a sequence longer than n_positions raises AssertionError, not ValueError",
            "cut": "a sequence longer than n_positions is cut in silence",
            "wraps": "positions begin at 0 again after n_positions",
            "last again": "all positions after the last use the last row of wpe",
            "equal": "n_positions tokens are refused, though they fit",
            "one more": "one token more than n_positions is let through",
        },
    ),
    "dropout": _all(
        _DROP,
        {
            "no drop": "the embeddings are not dropped",
            "blocks without": "config.dropout is not handed on to the blocks",
            "none": "nothing is dropped, whatever config.dropout is",
            "tokens only": "only the tokens' embeddings are dropped, not the positions'",
            "positions only": "only the positions' embeddings are dropped, not the tokens'",
            "before the head": "what goes into lm_head is dropped, too",
            "after each block": "what a block returns is dropped, too",
            "0.1": "a tenth of the embeddings is dropped, whatever config.dropout is",
            "0.5": "half of the embeddings is dropped, whatever config.dropout is",
            "in evaluation": "the embeddings are dropped in evaluation, too",
            "logits": "the logits are dropped, too",
            "embeddings twice": "the embeddings are dropped twice",
            "each": "the embeddings of tokens and positions are dropped each by itself",
        },
    ),
    "context": _all(
        _CONTEXT,
        {
            "not cut": "generate hands on more than n_positions tokens",
            "first": "generate reads the first n_positions tokens in place of the last",
            "one less": "generate reads one token less than n_positions",
            "last token": "generate reads the last token only",
            "prompt": "generate reads the prompt at each step, without the new tokens",
            "cut in the result": "a prompt longer than n_positions comes back cut",
            "absolute": "tokens keep their positions while the context is cut",
            "new only": "generate returns the new tokens without the prompt",
            "in front": "new tokens are put before the prompt",
            "one more": "generate adds one token too many",
            "one less token": "generate adds one token too few",
            "at least one": "generate adds a token even where none is asked for",
            "one step": "generate adds one token, however many are asked for",
            "up to": "generate takes max_new_tokens for the whole length",
            "ends at 0": "generate ends where token 0 comes, as if that closed the text",
            "ends at the last": "generate ends where the last token of the vocabulary comes",
            "each may end": "a sequence goes on with zeros once token 0 came",
            "anew": "generate begins a new context after every n_positions tokens",
            "half anew": (
                "generate goes on with a part of a full context, not with its last n_positions "
                "tokens"
            ),
            "padded": "generate fills a short context up with zeros in front",
            "padded behind": "generate fills a short context up with zeros behind",
            "one sequence": "generate works for a single sequence only",
        },
    ),
    "choice": {
        **_all(
            _CHANCE_LEFT,
            {
                "sampled": "the next token is drawn by chance, not the most probable one",
                "nearly greedy": (
                    "the next token is drawn from a sharp softmax, so it isn't always the most "
                    "probable one"
                ),
                "drawn from one": "generate moves the random state, though nothing hangs on chance",
            },
        ),
        "whole batch": (
            "all sequences get the token of the first one",
            "Each sequence has logits of its own. Whose decide here?",
        ),
        **_all(
            "The largest logit decides, and nothing else. What else decides in yours?",
            {
                "no repeats": "tokens that were read can't come again",
                "not twice": "the same token can't come twice in a row",
                "not 0": "token 0 is never generated",
            },
        ),
        **_all(
            _NEXT,
            {
                "first position": "the next token is read at the first position",
                "one before": "the next token is read at the last position but one",
                "smallest": "the least probable token is taken",
                "batch flat": "argmax runs over all sequences at once",
                "over positions": "argmax runs over the positions in place of the vocabulary",
                "over the batch": "argmax runs over the sequences in place of the vocabulary",
                "batch flat, folded": "argmax runs over all sequences at once, and is folded back",
                "second best": "the second most probable token is taken",
                "as float": "tokens come back as floating point numbers",
                "as int32": "tokens come back as int32",
            },
        ),
    },
    "mode": _all(
        _MODE,
        {
            "dropout on": "dropout stays on while text is generated",
            "eval after": "the model is in evaluation after generate, though it was in training",
            "train after": "the model is in training after generate, though it was in evaluation",
            "dropout on, eval after": "generate turns dropout off only when it is done",
            "no gradients": "gradients stay switched off after generate",
            "frozen": "the weights need no gradient any more after generate",
            "part": "generate puts a part of the model into evaluation, and not all",
        },
    ),
    "starts": _all(
        _STARTS,
        {
            "last never": "get_batch never begins at the last possible place",
            "first never": "get_batch never begins at the first token",
            "one too many": "get_batch may begin one place too late, where the text ends too soon",
            "first half": "get_batch begins in the first half of the text only",
            "begins at 0": "get_batch always begins at the first token",
            "multiples": "get_batch begins at multiples of n_positions only",
            "pieces": "get_batch cuts the text into pieces once, and draws among these only",
            "batch too": "get_batch leaves out as many places at the end as there are rows",
            "rounded": "the first and the last start are half as likely as the others",
            "bell": "starts in the middle are more likely than those at the ends",
        },
    ),
    "rows": _all(
        _CHANCE,
        {
            "shared": "all rows of a batch begin at the same place",
            "in a row": "the rows of a batch begin one token after the other",
            "side by side": "the rows of a batch follow each other in the text",
            "different": "no two rows of a batch may begin at the same place",
            "sorted": "the rows of a batch are sorted by where they begin",
            "generator ignored": "get_batch doesn't use the generator that it is given",
            "seeded": "get_batch sets a seed, so that each batch is the same",
            "seeded without": "without a generator, get_batch sets a seed: each batch is the same",
            "other chance": "without a generator, chance doesn't come from torch's global one",
            "foreign chance": "the chance comes from elsewhere: Python's random, or numpy",
            "scattered": "the tokens of a row are drawn one by one, not as a piece of the text",
            "swapped": "the batch comes as (n_positions, batch_size)",
            "short": "a text that is too short is not refused with a ValueError",
            "asserted": "a text that is too short raises another error, not ValueError",
            "just enough": "a text of exactly n_positions tokens is not refused",
            "refused": "a text of n_positions + 1 tokens is refused, though one piece fits",
        },
    ),
    "pair": _all(
        _PAIR,
        {
            "not moved": "y is the same as x, not one token further",
            "moved twice": "y is two tokens further than x",
            "moved back": "y is one token before x, not after it",
            "last only": "y has the one token after each piece only",
            "rolled": "the last target of a row is its first token: x is rolled round",
            "twice, wrapped": "y is two tokens further than x, and begins again at the text's end",
            "apart": "x and y are drawn apart from each other",
            "as int32": "x and y are int32",
            "as float": "x and y are floating point numbers",
            "arguments": "batch_size comes before n_positions among the arguments of get_batch",
            "swapped": "x and y are swapped",
            "short": "x and y have one token less than n_positions",
            "long": "x has one token more than n_positions",
            "next piece": "y is the piece that follows x",
            "together": "x and y come back as one tensor",
            "marked": "the last target is -100 in place of the token after the piece",
        },
    ),
    "bigram": _all(
        _COUNT,
        {
            "smoothed": "bigram_loss adds 1 to each count",
            "smoothed a little": "bigram_loss adds something to each count or share",
            "keepdim": "a pair's count is divided by how many pairs begin with its second token",
            "counted once": "repeated pairs are counted once: the counts are all 0 or 1",
            "counted once, divided by all": "repeated pairs count once, but in full as begins",
            "both ways": "each pair is counted in both directions",
            "smoothed above": "bigram_loss adds 1 to a pair's count, but not to what it divides by",
            "smoothed by 0.1": "bigram_loss adds 0.1 to each count",
            "smoothed by 0.5": "bigram_loss adds 0.5 to each count",
            "smoothed by 0.001": "bigram_loss adds 0.001 to each count",
            "added 0.1": "bigram_loss adds 0.1 to each share before the logarithm",
            "added 0.01": "bigram_loss adds 0.01 to each share before the logarithm",
            "added 0.001": "bigram_loss adds 0.001 to each share before the logarithm",
            "added 0.0001": "bigram_loss adds 0.0001 to each share before the logarithm",
            "smoothed, in bits": "bigram_loss adds 1 to each count, and is in bits",
            "base 10": "bigram_loss takes the logarithm to base 10",
            "rows unweighted": "the mean is over all tokens, as if each began as many pairs",
            "unigram of all": "bigram_loss looks at all single tokens, not at pairs",
            "unigram of seconds": "bigram_loss looks at the second tokens alone, not at pairs",
            "softmax of shares": "a softmax is applied to the shares",
            "three": "bigram_loss looks at two tokens before each, not at one",
            "without last pair": "the last pair is left out",
            "bits": "bigram_loss is in bits, by the logarithm to base 2",
            "last counted": "the last token counts as the begin of a pair, which it isn't",
            "joint": "bigram_loss divides each pair's count by the number of all pairs",
            "unigram": "bigram_loss looks at single tokens, not at pairs",
            "by kind": "each kind of pair counts once in the mean, however often it comes up",
            "over firsts": "the mean is over the kinds of first tokens, however often they come up",
            "two apart": "the pairs are of tokens that are two apart",
            "every other": "every other pair is left out",
            "backwards": "pairs are divided by the count of their second token",
            "all tokens": "the sum is divided by the number of tokens, not of pairs",
            "summed": "bigram_loss is a sum, not a mean",
            "perplexity": "bigram_loss is e to the power of what it should be",
            "tensor": "bigram_loss returns a tensor, not a float",
            "negative": "the sign of bigram_loss is wrong",
            "uniform": "bigram_loss is ln(vocab_size)",
            "wraps": "the last token and the first count as a pair, too",
            "sequence softmax": "the counts themselves are handed to cross_entropy, as if logits",
            "no logarithm": "bigram_loss averages the shares, not their logarithms",
        },
    )
    | _all(
        "Which of the pairs of a long text are counted, and which ones are averaged?",
        {
            "first thousand": "bigram_loss looks at a part of a long text only",
            "last thousand": "bigram_loss looks at a part of a long text only",
        },
    ),
}

COMMON = {
    "positions": ("none", "along the batch"),
    "way": ("no ln_f",),
    "starts": ("last never",),
    "rows": ("short", "generator ignored"),
    "pair": ("not moved",),
}

RIGHT = dict.fromkeys(SWITCHES, "right")

PLACES = dict.fromkeys(("starts", "rows", "pair"), "get_batch") | {"bigram": "bigram_loss"}
"""In which function a switch is, where it isn't in GPT."""


class Attention(given.CausalSelfAttention):
    """The given attention with another mask."""

    how = "none"

    def forward(self, x):
        """Attend."""
        q, k, v = self.c_attn(x).unflatten(-1, (3, self.n_head, -1)).permute(2, 0, 3, 1, 4)
        length = x.shape[1]
        ones = torch.ones(length, length, dtype=torch.bool)
        mask = {
            "none": ones,
            "future": ones.triu(),
            "next": ones.tril(1),
            "not itself": ones.tril(-1) | torch.eye(length, 1, dtype=torch.bool),
            "unscaled": ones.tril(),
        }[self.how]
        scale = 1.0 if self.how == "unscaled" else None
        p = self.dropout if self.training else 0.0
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=p, scale=scale)
        return self.resid_dropout(self.c_proj(y.transpose(1, 2).flatten(2)))


def attention(how, block, config):
    """The block, with another attention if asked."""
    if how != "right":
        block.attn = Attention(config.n_embd, config.n_head, config.dropout, config.bias)
        block.attn.how = how
    return block


def blocks(on, config, dropout):
    """The blocks of a model."""
    n_layer, n_head = config.n_layer, config.n_head
    n_layer, n_head = {
        "one block": (1, n_head),
        "one block more": (n_layer + 1, n_head),
        "swapped": (n_head, n_layer),
        "one head": (n_layer, 1),
        "12 blocks": (12, n_head),
    }.get(on.made, (n_layer, n_head))
    bias = {"blocks with bias": True, "all with bias": True, "no bias": False}.get(
        on.made, config.bias
    )
    made = [given.Block(config.n_embd, n_head, dropout, bias) for _ in range(n_layer)]
    made = [attention(on.mask, block, config) for block in made]
    return [made[0]] * n_layer if on.made == "same block" else made


OWN_NAMES = {
    "no transformer": {name: name for name in ("wte", "wpe", "h", "ln_f")},
    "all but lm_head": {"wte": "tokens", "wpe": "places", "h": "blocks_", "ln_f": "norm"},
}
OWN_NAMES["own names"] = OWN_NAMES["all but lm_head"] | {"lm_head": "head"}


class Hidden:
    """Keeps modules where PyTorch doesn't look."""

    def __init__(self, modules):
        self.modules = modules

    def __iter__(self):
        return iter(self.modules)


def start(how, model, config):
    """Set the initial weights."""
    if how == "torch's":
        return
    if how == "torch's, tied by lm_head":
        nn.init.kaiming_uniform_(model.lm_head.weight, a=math.sqrt(5))
        return
    depth = math.sqrt(2 * config.n_layer)
    std = {
        "variance": 0.0004,
        "variance, c_proj too": 0.0004,
        "0.2": 0.2,
        "1": 1.0,
        "uniform": 0.02 / math.sqrt(3),
        "uniform, c_proj right": 0.02 / math.sqrt(3),
        "truncated": 0.54 * 0.02,
        "0": 0.0,
    }
    std = std.get(how, 0.02)
    c_proj = {
        "not scaled": 1,
        "n_layer": math.sqrt(config.n_layer),
        "no root": 2 * config.n_layer,
        "variance, c_proj too": 2 * config.n_layer,
        "n_layer, no root": config.n_layer,
        "root, then 2": 2 * math.sqrt(config.n_layer),
        "fixed": math.sqrt(24),
        "2 over the root": math.sqrt(config.n_layer) / 2,
        "by width": math.sqrt(config.n_embd),
        "c_proj at 0": math.inf,
        "scaled twice": depth**2,
        "multiplied": 1 / depth,
        "1": 1.0,
    }.get(how, depth)
    for name, weight in model.named_parameters():
        embedding = name.split(".")[1] in ("wte", "wpe")
        if how == "embeddings only" and not embedding or how == "linear only" and embedding:
            continue
        if how in ("wpe forgotten", "wte forgotten") and how[:3] in name:
            continue
        if weight.dim() == 1:
            if "ln_" in name:
                if how == "norms too" and name.endswith("weight"):
                    nn.init.normal_(weight, std=0.02)
            elif how != "biases":
                nn.init.zeros_(weight)
        elif how.endswith("c_proj right") and "c_proj" in name:
            nn.init.normal_(weight, std=0.02 / depth)
        elif how.startswith("xavier") or how == "kaiming":
            drawn = {"xavier": nn.init.xavier_uniform_, "xavier normal": nn.init.xavier_normal_}
            drawn.get(how.partition(",")[0], nn.init.kaiming_normal_)(weight)
        elif how == "torch's, c_proj right":
            continue
        elif how == "positions apart" and "wpe" in name:
            nn.init.normal_(weight, std=0.01)
        else:
            small = "c_proj" in name or (how == "c_fc too" and not embedding)
            small &= not (how == "attention only" and "mlp" in name)
            small &= not (how == "mlp only" and "attn" in name)
            mean = 0.02 if how == "mean" else 0.0
            nn.init.normal_(weight, mean=mean, std=std / c_proj if small else std)


def place(on, model, idx):
    """The embeddings, and what they are made of."""
    wte, wpe = model.transformer["wte"], model.transformer["wpe"]
    rows_in_batch, length = idx.shape
    longest = model.sizes.n_positions
    steps = torch.arange(length)
    if on.long == "wraps":
        steps = steps % longest
    if on.long == "last again":
        steps = steps.clamp(max=longest - 1)
    if on.context == "absolute":
        steps = (steps + model.offset) % longest
    rows = {
        "along the batch": lambda: (torch.arange(rows_in_batch) % longest)[:, None].expand(
            idx.shape
        ),
        "from 1": lambda: steps + 1,
        "all 0": lambda: 0 * steps,
        "backwards": lambda: steps.flip(0),
        "last rows": lambda: steps + longest - length,
        "padding skipped": lambda: ((idx != 0).cumsum(1) - 1).clamp(min=0),
        "by token": lambda: idx,
        "last": lambda: 0 * steps + length - 1,
    }.get(on.positions, lambda: steps)()
    tokens = wte(idx)
    if on.positions == "none":
        return tokens, torch.zeros_like(tokens)
    places = wpe(rows).expand_as(tokens)
    if on.positions.startswith("scaled"):
        tokens = tokens * math.sqrt(tokens.shape[-1])
    if on.positions == "scaled, both":
        places = places * math.sqrt(tokens.shape[-1])
    if on.positions == "padding":
        tokens = tokens * (idx != 0)[..., None]
    if on.positions.startswith("sinusoids"):
        waves = sinusoids(length, tokens)
        places = waves.expand_as(tokens) if on.positions == "sinusoids" else places + waves
    return tokens, places


def sinusoids(length, like):
    """The positions of the first transformer."""
    width = like.shape[-1]
    angles = torch.arange(length, dtype=like.dtype)[:, None]
    angles = angles * 10000 ** (-torch.arange(0, width, 2, dtype=like.dtype) / width)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)[:, :width]


def added(how, tokens, places):
    """Both embeddings together."""
    match how:
        case "multiplied":
            return tokens * places
        case "subtracted":
            return tokens - places
        case "only":
            return places
        case "averaged":
            return (tokens + places) / 2
        case "before each block":
            return tokens
    return tokens + places


def cross_entropy(on, logits, idx, targets):
    """The loss."""
    vocab_size = logits.shape[-1]
    how = on.loss
    if on.logits == "softmax" or how == "softmax first":
        logits = logits.softmax(-1)
    if how == "shifted":
        logits, targets = logits[:, :-1], targets[:, 1:]
    elif how == "shifted back":
        logits, targets = logits[:, 1:], targets[:, :-1]
    elif how == "last target only":
        logits, targets = logits[:, -1:], targets[:, -1:]
    elif how == "first target only":
        logits, targets = logits[:, :1], targets[:, :1]
    elif how == "tokens":
        targets = idx
    elif how == "tokens moved":
        logits, targets = logits[:, :-1], idx[:, 1:]
    elif how == "reshaped for classes":
        return F.cross_entropy(logits.reshape(len(logits), vocab_size, -1), targets)
    elif how == "loss in float32":
        logits = logits.float()
    elif how == "reshaped":
        logits = logits.mT.reshape(logits.shape)
    elif how == "over positions":
        picked = logits.log_softmax(1).gather(2, targets.clamp(min=0)[..., None])[..., 0]
        return -picked[targets != -100].mean()
    if how == "ignores -1":
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-1)
    if how == "ignores 0":
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=0)
    if how == "counted as 0":
        targets = targets.clamp(min=0)
    if how == "smoothed":
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), label_smoothing=0.1)
    if how == "squared":
        wanted = F.one_hot(targets.clamp(min=0), vocab_size).to(logits.dtype)
        return F.mse_loss(logits, wanted)
    if how == "log_softmax, then softmax":
        return F.nll_loss(logits.softmax(-1).flatten(0, 1), targets.flatten())
    each = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none")
    each, counts = each.view_as(targets), targets != -100
    mean = each.sum() / counts.sum()
    return {
        "summed": lambda: each.sum(),
        "by sequence": lambda: each.sum(1).mean(),
        "by position": lambda: each.sum(0).mean(),
        "each": lambda: each.flatten(),
        "each sequence": lambda: each.mean(1),
        "bits": lambda: mean / math.log(2),
        "perplexity": lambda: mean.exp(),
        "divided by all": lambda: each.mean(),
        "mean of means": lambda: (each.sum(1) / counts.sum(1).clamp(min=1)).mean(),
        "mean of counted means": lambda: (each.sum(1) / counts.sum(1)).nanmean(),
        "as number": lambda: mean.item(),
        "negative": lambda: -mean,
        "by vocabulary": lambda: mean / vocab_size,
        "shape 1": lambda: mean[None],
    }.get(how, lambda: mean)()


def returned(on, logits, loss, has_targets):
    """What forward gives back."""
    if on.logits == "softmax" or on.logits == "softmax returned":
        logits = logits.softmax(-1)
    logits = {
        "log_softmax": lambda: logits.log_softmax(-1),
        "last only": lambda: logits if has_targets else logits[:, -1:],
        "always last": lambda: logits[:, -1:],
        "flat": lambda: logits.flatten(0, 1) if has_targets else logits,
        "always flat": lambda: logits.flatten(0, 1),
        "transposed": lambda: logits.mT,
        "one less": lambda: logits[:, :-1],
        "detached": lambda: logits.detach(),
    }.get(on.logits, lambda: logits)()
    if on.logits == "dict":
        return {"logits": logits, "loss": loss}
    if has_targets:
        return {"loss only": loss, "loss first": (loss, logits)}.get(on.logits, (logits, loss))
    return {
        "alone": logits,
        "zero loss": (logits, logits.new_zeros(())),
        "loss first": (None, logits),
    }.get(on.logits, (logits, None))


def chosen(how, logits, n, read):
    """The next token of each sequence."""
    if logits.dim() == 2:
        logits = logits.unflatten(0, (n, -1))
    last = logits[:, -1]
    if how in ("no repeats", "not twice"):
        last = last.scatter(1, read if how == "no repeats" else read[:, -1:], -1e9)
    elif how == "not 0":
        last = torch.cat([last[:, :1] - 1e9, last[:, 1:]], dim=1)
    return {
        "over the batch": lambda: last.argmax(0)[:1].expand(n),
        "batch flat, folded": lambda: (last.argmax() % last.shape[-1]).expand(n),
        "second best": lambda: last.topk(2).indices[:, 1],
        "first position": lambda: logits[:, 0].argmax(-1),
        "one before": lambda: logits[:, -2].argmax(-1),
        "sampled": lambda: torch.multinomial(last.softmax(-1), 1)[:, 0],
        "nearly greedy": lambda: torch.multinomial((10_000 * last).softmax(-1), 1)[:, 0],
        "drawn from one": lambda: last.argmax(-1) + 0 * torch.randint(2, (n,)),
        "smallest": lambda: last.argmin(-1),
        "whole batch": lambda: last[:1].argmax(-1).expand(n),
        "batch flat": lambda: last.argmax().expand(n),
        "over positions": lambda: logits.argmax(1)[:, -1],
        "as float": lambda: last.argmax(-1).to(last.dtype),
        "as int32": lambda: last.argmax(-1).int(),
    }.get(how, lambda: last.argmax(-1))()


def context(how, tokens, prompt, longest):
    """What the model reads."""
    return {
        "not cut": lambda: tokens,
        "first": lambda: tokens[:, :longest],
        "one less": lambda: tokens[:, -max(1, longest - 1) :],
        "last token": lambda: tokens[:, -1:],
        "prompt": lambda: prompt[:, -longest:],
        "anew": lambda: tokens[:, (tokens.shape[1] - 1) // longest * longest :],
        "half anew": lambda: tokens[:, half_anew(tokens.shape[1], prompt.shape[1], longest) :],
        "padded": lambda: F.pad(tokens, (max(0, longest - tokens.shape[1]), 0))[:, -longest:],
        "padded behind": lambda: F.pad(tokens, (0, longest - tokens.shape[1]))[:, -longest:],
        "one sequence": lambda: tokens[:, -longest:].squeeze(0)[None],
    }.get(how, lambda: tokens[:, -longest:])()


def half_anew(length, prompt, longest):
    """Where the context begins, when a full one is cut to its second half."""
    begin = max(0, prompt - longest)
    while length - begin > longest:
        begin += longest + 1 - max(1, longest // 2)
    return begin


def bigram(how, data, vocab_size):
    """The loss of the bigram model."""
    data = {"first thousand": data[:1000], "last thousand": data[-1000:]}.get(how, data)
    before, after = data[:-1], data[1:]
    if how == "three":
        before, after, vocab_size = data[:-2] * vocab_size + data[1:-1], data[2:], vocab_size**2
    elif how == "without last pair":
        before, after = before[:-1], after[:-1]
    elif how == "two apart":
        before, after = data[:-2], data[2:]
    elif how == "every other":
        before, after = before[::2], after[::2]
    elif how == "wraps":
        before, after = data, data.roll(-1)
    elif how == "backwards":
        before, after = after, before
    counts = torch.zeros(vocab_size, vocab_size, dtype=torch.float64)
    counts.index_put_((before, after), torch.ones(len(before)).double(), accumulate=True)
    all_firsts = counts.sum(1)
    if how in ("smoothed", "smoothed, in bits"):
        counts += 1
    elif how.startswith("smoothed by"):
        counts += float(how.split()[-1])
    elif how.startswith("counted once"):
        counts = (counts > 0).double()
    elif how == "both ways":
        counts = counts + counts.T
    firsts = all_firsts if how.endswith("divided by all") else counts.sum(1)
    if how == "smoothed above":
        counts = counts + 1
    if how == "last counted":
        firsts = torch.bincount(data, minlength=vocab_size).double()
    shares = counts / firsts[:, None]
    if how == "smoothed a little":
        shares = (counts + 0.01) / (firsts[:, None] + 0.01 * vocab_size)
    elif how == "joint":
        shares = counts / counts.sum()
    elif how == "unigram":
        single = torch.bincount(data, minlength=vocab_size).double()
        shares = (single / single.sum()).expand(vocab_size, vocab_size)
    elif how == "keepdim":
        shares = counts / firsts
    elif how.startswith("added"):
        shares = shares + float(how.split()[-1])
    elif how == "softmax of shares":
        shares = shares.nan_to_num().softmax(-1)
    elif how == "unigram of all":
        single = torch.bincount(data, minlength=vocab_size).double() / len(data)
        return -single[data].log().mean().item()
    elif how == "unigram of seconds":
        single = torch.bincount(after, minlength=vocab_size).double() / len(after)
        return -single[after].log().mean().item()
    elif how == "sequence softmax":
        shares = counts.softmax(-1)
    each = -shares[before, after].log()
    kinds = (counts > 0).nonzero(as_tuple=True)
    by_first = torch.nan_to_num(-(shares * shares.clamp(min=1e-300).log()).sum(1))
    value = {
        "bits": lambda: each.mean() / math.log(2),
        "smoothed, in bits": lambda: each.mean() / math.log(2),
        "base 10": lambda: each.mean() / math.log(10),
        "rows unweighted": lambda: by_first.sum() / vocab_size,
        "by kind": lambda: -shares[kinds].log().mean(),
        "over firsts": lambda: by_first[firsts > 0].mean(),
        "all tokens": lambda: each.sum() / len(data),
        "summed": lambda: each.sum(),
        "perplexity": lambda: each.mean().exp(),
        "negative": lambda: -each.mean(),
        "uniform": lambda: torch.tensor(math.log(vocab_size)),
        "no logarithm": lambda: shares[before, after].mean(),
    }.get(how, lambda: each.mean())()
    return value if how == "tensor" else value.item()


def possible(how, data, n_positions, batch_size):
    """From where to where pieces may begin."""
    n = len(data) - n_positions
    return {
        "last never": (0, n - 1),
        "first never": (1, n),
        "one too many": (0, n + 1),
        "first half": (0, max(1, n // 2)),
        "batch too": (0, n - batch_size),
    }.get(how, (0, n))


def draw_starts(on, data, n_positions, batch_size, generator):
    """Where the rows begin."""
    low, high = possible(on.starts, data, n_positions, batch_size)
    if on.rows == "generator ignored":
        generator = None
    elif on.rows == "seeded" or (on.rows == "seeded without" and generator is None):
        generator = torch.Generator().manual_seed(1)
    elif on.rows == "foreign chance" or (on.rows == "other chance" and generator is None):
        generator = torch.Generator()
        generator.seed()
    draw = {"generator": generator}
    starts = torch.randint(low, high, (batch_size,), **draw)
    if on.rows == "shared":
        starts = starts[:1].expand(batch_size)
    elif on.rows == "in a row":
        starts = (starts[:1] + torch.arange(batch_size)) % (high - low) + low
    elif on.rows == "side by side":
        starts = (starts[:1] + n_positions * torch.arange(batch_size)) % (high - low) + low
    elif on.rows == "different":
        starts = torch.randperm(high - low, **draw)[:batch_size] + low
    elif on.rows == "sorted":
        starts = starts.sort().values
    if on.starts == "begins at 0":
        starts = 0 * starts
    elif on.starts == "multiples":
        starts = starts // n_positions * n_positions
    elif on.starts == "pieces":
        kinds = max(1, (high - low + n_positions - 1) // n_positions)
        starts = torch.randint(kinds, (batch_size,), **draw) * n_positions
    elif on.starts == "rounded":
        starts = (torch.rand(batch_size, **draw) * (high - low - 1)).round().long()
    elif on.starts == "bell":
        starts = (starts + torch.randint(low, high, (batch_size,), **draw)) // 2
    return starts


def refuse_short(how, data, n_positions):
    """Raise what a text that is too short raises."""
    missing = n_positions + 1 - len(data)
    if how == "asserted":
        assert missing <= 0
    if how == "refused" and missing >= 0 or how not in ("short", "just enough") and missing > 0:
        raise ValueError("too short")
    if how == "just enough" and missing > 1:
        raise ValueError("too short")


def batch(on, data, n_positions, batch_size, generator=None):
    """X and y."""
    if on.pair == "arguments":
        n_positions, batch_size = batch_size, n_positions
    refuse_short(on.rows, data, n_positions)
    if on.rows in ("short", "just enough") and len(data) <= n_positions:
        return data[None, :n_positions], data[None, 1 : n_positions + 1]
    starts = draw_starts(on, data, n_positions, batch_size, generator)
    length = {"short": n_positions - 1, "long": n_positions + 1}.get(on.pair, n_positions)
    if on.pair == "twice, wrapped":
        data = torch.cat([data, data[:1]])
    moved = {
        "not moved": 0,
        "moved twice": 2,
        "twice, wrapped": 2,
        "moved back": -1,
        "next piece": n_positions,
    }
    moved = moved.get(on.pair, 1)
    x, y = (
        torch.stack([data[i + step : i + step + length] for i in starts.tolist()])
        for step in (0, moved)
    )
    if on.rows == "scattered":
        at = torch.randint(len(data) - 1, x.shape, generator=generator)
        x, y = data[at], data[at + 1]
    if on.pair == "apart":
        others = draw_starts(on, data, n_positions, batch_size, generator)
        y = torch.stack([data[i + 1 : i + 1 + length] for i in others.tolist()])
    elif on.pair == "rolled":
        y = x.roll(-1, dims=1)
    elif on.pair == "as int32":
        x, y = x.int(), y.int()
    elif on.pair == "as float":
        x, y = x.float(), y.float()
    elif on.pair == "last only":
        y = y[:, -1]
    elif on.pair == "swapped":
        x, y = y, x
    elif on.pair == "marked":
        y = torch.cat([y[:, :-1], torch.full_like(y[:, :1], -100)], dim=1)
    if on.rows == "swapped":
        x, y = x.T, y.T
    return torch.stack([x, y]) if on.pair == "together" else (x, y)


def faulty(**faults):
    """The class and the functions of problem 07 with these faults."""
    on = SimpleNamespace(**(RIGHT | faults))

    class GPT(nn.Module):
        def __init__(self, config):
            super().__init__()
            self.sizes, self.offset = config, 0
            if on.made != "config lost":
                self.config = config
            width, drops = config.n_embd, config.dropout
            in_blocks = 0.0 if on.dropout in ("blocks without", "none") else drops
            made = blocks(on, config, in_blocks)
            norm_bias = {"norm with bias": True, "all with bias": True, "no bias": False}
            rows = {"wide wpe": (config.vocab_size, config.vocab_size)}
            rows["narrow wte"] = (config.n_positions, config.n_positions)
            rows = rows.get(on.made, (config.vocab_size, config.n_positions))
            parts = {
                "wte": nn.Embedding(rows[0], width),
                "wpe": nn.Embedding(rows[1], width),
                "h": nn.ModuleList([] if on.made == "plain list" else made),
                "ln_f": nn.LayerNorm(width, bias=norm_bias.get(on.made, config.bias)),
            }
            if on.made == "no ln_f":
                parts["ln_f"] = nn.Identity()
            self.transformer = nn.ModuleDict(parts)
            if on.made == "more":
                self.more = nn.Linear(width, width)
            self.blocks = Hidden(made)
            self.lm_head = nn.Linear(width, config.vocab_size, bias=on.made == "head bias")
            if on.tie == "right":
                self.lm_head.weight = self.transformer["wte"].weight
            start(on.start, self, config)
            if on.tie == "copied":
                self.lm_head.weight = nn.Parameter(self.transformer["wte"].weight.detach().clone())
            if on.made in OWN_NAMES:
                self.rename(OWN_NAMES[on.made])
            elif on.tie == "after the start":
                self.lm_head.weight = nn.Embedding(*self.transformer["wte"].weight.shape).weight
                self.transformer["wte"].weight = self.lm_head.weight

        def rename(self, names):
            """Keep the parts under other names; such a model need not work."""
            for old, new in names.items():
                module = self.lm_head if old == "lm_head" else self.transformer[old]
                setattr(self, new, module)
            del self.transformer
            if "lm_head" in names:
                del self.lm_head

        def drops(self, x, where):
            p = self.sizes.dropout
            if where not in {
                "right": ("sum",),
                "blocks without": ("sum",),
                "tokens only": ("tokens",),
                "positions only": ("places",),
                "before the head": ("sum", "head"),
                "after each block": ("sum", "block"),
                "0.1": ("sum",),
                "0.5": ("sum",),
                "in evaluation": ("sum",),
                "logits": ("sum", "logits"),
                "embeddings twice": ("sum",),
                "each": ("tokens", "places"),
            }.get(on.dropout, ()):
                return x
            p = {"0.1": 0.1, "0.5": 0.5}.get(on.dropout, p)
            x = F.dropout(x, p, self.training or on.dropout == "in evaluation")
            return F.dropout(x, p, self.training) if on.dropout == "embeddings twice" else x

        def check_length(self, idx):
            longest, length = self.sizes.n_positions, idx.shape[1]
            if on.long in ("index", "cut", "wraps", "last again"):
                return
            if on.long == "asserted":
                assert length <= longest
            limit = longest + {"equal": -1, "one more": 1}.get(on.long, 0)
            if length > limit:
                raise ValueError("too long")

        def through(self, x, places):
            norm, all_blocks = self.transformer["ln_f"], list(self.blocks)
            if on.way in ("ln_f first", "ln_f also first"):
                x = norm(x)
            if on.way == "normalised embeddings":
                x = F.layer_norm(x, x.shape[-1:])
            all_blocks = {
                "no blocks": [],
                "first block": all_blocks[:1],
                "first block again": all_blocks[:1] * len(all_blocks),
                "not the last": all_blocks[:-1],
                "backwards": all_blocks[::-1],
                "same input": all_blocks[-1:],
                "twice": all_blocks * 2,
            }.get(on.way, all_blocks)
            if on.way == "summed":
                return norm(sum(block(x) for block in all_blocks))
            for block in all_blocks:
                if on.way == "post-norm":
                    x = block.ln_1(x + block.attn(x))
                    x = block.ln_2(x + block.mlp(x))
                    continue
                x = x + places if on.positions.startswith("before each block") else x
                x = x + block(x) if on.way == "added again" else block(x)
                x = norm(x) if on.way == "ln_f after each" else x
                x = self.drops(x, "block")
            if on.way in ("no ln_f", "ln_f first", "ln_f after each"):
                return x
            x = norm(x)
            x = norm(x) if on.way == "ln_f twice" else x
            return F.gelu(x) if on.way == "gelu" else x

        def forward(self, idx, targets=None):
            self.check_length(idx)
            if on.long == "cut":
                idx = idx[:, : self.sizes.n_positions]
            tokens, places = place(on, self, idx)
            tokens, places = self.drops(tokens, "tokens"), self.drops(places, "places")
            x = self.drops(added(on.positions, tokens, places), "sum")
            logits = self.lm_head(self.drops(self.through(x, places), "head"))
            logits = self.drops(logits, "logits")
            if on.logits == "by root":
                logits = logits / math.sqrt(self.sizes.n_embd)
            has_targets = targets is not None
            loss = cross_entropy(on, logits, idx, targets) if has_targets else None
            return returned(on, logits, loss, has_targets)

        def generate(self, idx, max_new_tokens):
            was_training, longest = self.training, self.sizes.n_positions
            if on.mode == "part":
                self.transformer["h"].eval()
                self.blocks.modules[0].train(was_training)
            elif not on.mode.startswith("dropout on"):
                self.eval()
            with torch.no_grad():
                tokens = self.extended(idx, max_new_tokens, longest)
            after = {"eval after": False, "dropout on, eval after": False, "train after": True}
            self.train(after.get(on.mode, was_training))
            if on.mode == "no gradients":
                torch.set_grad_enabled(False)
            if on.mode == "frozen":
                self.requires_grad_(False)
            return tokens[:, idx.shape[1] :] if on.context == "new only" else tokens

        def extended(self, idx, n, longest):
            n += {"one more": 1, "one less token": -1}.get(on.context, 0)
            n = {"one step": min(n, 1), "at least one": max(n, 1), "up to": n - idx.shape[1]}.get(
                on.context, n
            )
            tokens = idx
            for _ in range(n):
                if on.context == "cut in the result":
                    tokens = tokens[:, -longest:]
                self.offset = max(0, tokens.shape[1] - longest)
                answer = self(context(on.context, tokens, idx, longest))
                logits = answer[on.logits == "loss first"] if isinstance(answer, tuple) else answer
                following = chosen(on.choice, logits, len(idx), tokens)[:, None]
                if on.context == "each may end":
                    ended = (tokens[:, idx.shape[1] :] == 0).any(1, keepdim=True)
                    following = following.masked_fill(ended, 0)
                ends = {"ends at 0": 0, "ends at the last": self.sizes.vocab_size - 1}
                if on.context in ends and bool((following == ends[on.context]).all()):
                    break
                both = [following, tokens] if on.context == "in front" else [tokens, following]
                tokens = torch.cat(both, dim=1)
                tokens = tokens.int() if on.choice == "as int32" else tokens
                if on.choice == "as float":
                    tokens = tokens.long()
            self.offset = 0
            return tokens.double() if on.choice == "as float" else tokens

    def get_batch(data, n_positions, batch_size, generator=None):
        return batch(on, data, n_positions, batch_size, generator)

    def bigram_loss(data, vocab_size):
        return bigram(on.bigram, data, vocab_size)

    parts = {"GPT": GPT, "get_batch": get_batch, "bigram_loss": bigram_loss}
    having = {PLACES.get(switch, "GPT") for switch in faults} or set(parts)
    return SimpleNamespace(GPTConfig=given.GPTConfig, **{name: parts[name] for name in having})
