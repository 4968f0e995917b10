"""Problem 06 with faults that can be switched on, one or several at a time."""

import math
from contextlib import nullcontext
from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import nn

_FORMULA = "Compare each sign and each factor with the formula of gelu in the README."
_ROOT = "Which root stands before the bracket in the formula, and how large is it?"
_CUBE = "Which number stands before the cube, and what is cubed?"
_OTHER = "There are several smooth relatives of ReLU. Which formula has GPT-2?"
_VARIANCE = "How is the variance of a whole row defined, and what is added to it before the root?"
_MEAN = "What should the mean of each row be after the norm, before weight and bias?"
_DIMS = "Every token is a row of its own. Over which dimension are its numbers?"
_AFFINE = (
    "The row is normalised first. What do weight and bias do with it then, and in which order?"
)
_START = "What must weight and bias be for a fresh norm to change nothing more?"
_KEPT = "Compare the parameters with the list in the README, with a bias and without one."
_EPS = "What is eps by default, and where does forward take it from?"
_STEPS = "An MLP has four steps. Which one is where?"
_LAYERS = "Compare the layers of the MLP with the list in the README."
_PLACES = "There is one dropout in an MLP. What does it drop, and after which step?"
_GROWTH = "What is kept grows by 1/(1 - dropout), in training only. Who sees to that in your code?"
_RESIDUAL = "What goes on along the residual path, and what is added to it?"
_NORMS = "Each half has a norm of its own. What does it normalise?"
_ORDER = "There are two halves. What does the second one start from?"
_IN_ORDER = "In which order does each part take its arguments? By name they can't go astray."
_TOLD = "Which of the parts have to know about this argument?"
_ATTENTION = "The attention that is given is right. What does yours do otherwise than it?"
_DEFAULTS = "What should Block() be like when nobody asked for anything?"


def _all(look, whens):
    """The same nudge for all members of a family."""
    return {value: (when, look) for value, when in whens.items()}


SWITCHES = {
    "gelu": {
        **_all(
            _OTHER,
            {
                "erf": "gelu is the GELU with the error function, not the one with tanh",
                "quick": "gelu is x σ(1.702 x), a coarser relative of GPT-2's GELU",
                "silu": "gelu is x σ(x), which is called SiLU",
                "relu": "gelu is a ReLU",
                "tanh": "gelu is the tanh of x",
                "sigmoid": "gelu is the sigmoid of x",
                "leaky": "gelu is a leaky ReLU",
                "elu": "gelu is an ELU",
                "softplus": "gelu is a softplus",
                "mish": "gelu is x tanh(log(1 + exp(x))), which is called Mish",
                "x": "gelu returns x as it is",
                "derivative": "gelu returns the slope of GELU in place of its value",
            },
        ),
        **_all(
            _FORMULA,
            {
                "no half": "gelu lacks the factor 1/2",
                "half twice": "gelu has the factor 1/2 twice",
                "no one": "gelu lacks the 1 that is added to the tanh",
                "one minus": "gelu subtracts the tanh from 1 in place of adding it",
                "minus one": "gelu subtracts 1 from the tanh in place of adding it",
                "no x": "gelu lacks the x before the bracket",
                "x squared": "gelu has x twice before the bracket",
                "brackets": "gelu adds the tanh to x/2, and does not multiply them",
                "absolute": "gelu works with the absolute value of x",
                "sigmoid without 2": "gelu is x σ(u) with the u of tanh, where it should be 2u",
                "sigmoid in place of tanh": "a sigmoid stands in gelu where tanh should be",
                "erf in place of tanh": "the error function stands in gelu where tanh should be",
                "sine": "a sine stands in gelu where tanh should be",
                "hyperbolic sine": "sinh stands in gelu where tanh should be",
                "arc": "arctan stands in gelu where tanh should be",
                "minus cube": "gelu subtracts the cube in place of adding it",
                "hard": "gelu has straight pieces where the tanh should bend",
                "3": "gelu is exactly 0 below -3 and exactly x above 3",
                "above 3": "gelu is exactly x above 3",
                "below -3": "gelu is exactly 0 below -3",
            },
        ),
        **_all(
            _ROOT,
            {
                "root upside down": "gelu has √(π/2) in place of √(2/π)",
                "no root": "gelu has 2/π in place of its root",
                "root of 2 only": "gelu has √2/π in place of √(2/π)",
                "root of pi only": "gelu has 2/√π in place of √(2/π)",
                "root left out": "gelu has no √(2/π)",
                "root of 2": "gelu has √2 in place of √(2/π)",
                "one over root of 2": "gelu has 1/√2 in place of √(2/π)",
                "root of pi": "gelu has √π in place of √(2/π)",
                "root of 2 pi": "gelu has √(2π) in place of √(2/π)",
                "0.8": "gelu has a rounded number in place of √(2/π): 0.8",
                "0.79": "gelu has a rounded number in place of √(2/π): 0.79",
                "0.798": "gelu has a rounded number in place of √(2/π): 0.798",
                "0.7979": "gelu has a rounded number in place of √(2/π): 0.7979",
                "0.79788": "gelu has a rounded number in place of √(2/π): 0.79788",
            },
        ),
        **_all(
            _CUBE,
            {
                "square": "gelu has x² where x³ should be",
                "fourth": "gelu has x⁴ where x³ should be",
                "times 3": "gelu has 3x where x³ should be",
                "no cube": "gelu lacks the cube of x",
                "cube only": "gelu lacks the x beside its cube",
                "cube outside": "gelu multiplies only x by √(2/π), and not the cube",
                "cube of product": "gelu cubes 0.044715 x, the product, in place of x",
                "cube of sum": "gelu cubes the whole sum in place of x",
                "cube without number": "gelu lacks the 0.044715 before the cube",
                "0.44715": "gelu has another number than 0.044715 before the cube: 0.44715",
                "0.0044715": "gelu has another number than 0.044715 before the cube: 0.0044715",
                "0.04715": "gelu has another number than 0.044715 before the cube: 0.04715",
                "0.04475": "gelu has another number than 0.044715 before the cube: 0.04475",
                "0.0447": "gelu has another number than 0.044715 before the cube: 0.0447",
                "0.045": "gelu has another number than 0.044715 before the cube: 0.045",
                "0.04": "gelu has another number than 0.044715 before the cube: 0.04",
                "0.047715": "gelu has another number than 0.044715 before the cube: 0.047715",
                "0.0477": "gelu has another number than 0.044715 before the cube: 0.0477",
                "0.044175": "gelu has another number than 0.044715 before the cube: 0.044175",
                "0.4": "gelu has another number than 0.044715 before the cube: 0.4",
            },
        ),
    },
    "variance": _all(
        _VARIANCE,
        {
            "unbiased": "LayerNorm divides the sum of squares by n - 1, not by n",
            "outside": "LayerNorm adds eps to the root of the variance, not to the variance",
            "unbiased, outside": (
                "LayerNorm adds eps to the standard deviation, and that has n - 1 in it, not n"
            ),
            "eps twice": "LayerNorm adds eps to the variance, and to its root once more",
            "no eps": "LayerNorm doesn't add eps",
            "unbiased, no eps": "LayerNorm doesn't add eps, and has n - 1 in its variance, not n",
            "eps squared": "LayerNorm adds eps² to the variance",
            "eps rooted": "LayerNorm adds the root of eps to the variance",
            "eps to quotient": "LayerNorm adds eps to what it has divided, not to the variance",
            "eps to x": "LayerNorm adds eps to x, not to the variance",
            "one over and eps": "LayerNorm adds eps to one over the root, not below the root",
            "eps taken away": "LayerNorm subtracts eps from the variance",
            "largest of both": "LayerNorm takes the larger of variance and eps, not their sum",
            "no root": "LayerNorm divides by the variance, not by its root",
            "root twice": "LayerNorm takes the root of the variance twice",
            "squared": "LayerNorm divides by the square of the variance",
            "sum": "LayerNorm has the sum of squares where their mean should be",
            "uncentred": "LayerNorm has the mean of x² where the variance should be",
            "absolute": "LayerNorm has the mean distance from the mean where the root should be",
            "range": "LayerNorm divides by the largest less the smallest number of a row",
            "largest": "LayerNorm divides by the largest distance from the mean",
            "length": "LayerNorm divides by the length of the row",
            "not divided": "LayerNorm takes the mean away and divides by nothing",
            "multiplied": "LayerNorm multiplies by the root of the variance",
            "n plus one": "LayerNorm divides the sum of squares by n + 1, not by n",
            "by 768": "LayerNorm divides its sums by 768, however long a row is",
            "softmax": "LayerNorm takes the softmax of a row",
        },
    ),
    "mean": _all(
        _MEAN,
        {
            "none": "LayerNorm doesn't take the mean away",
            "none at all": "LayerNorm divides by the root of the mean of x², without any mean",
            "median": "LayerNorm takes the median away, not the mean",
            "added": "LayerNorm adds the mean in place of taking it away",
            "after": "LayerNorm divides x first and takes the mean of x away then",
            "brackets": "LayerNorm divides only the mean by the root: a bracket is missing",
            "back": "LayerNorm adds the mean again at the end",
            "sign": "LayerNorm takes x away from the mean, and not the mean from x",
            "twice": "LayerNorm takes the mean away twice",
        },
    ),
    "dims": _all(
        _DIMS,
        {
            "all": "LayerNorm takes one mean and variance of the whole tensor",
            "tokens": "LayerNorm works across the tokens of a sequence, not along each of them",
            "batch": "LayerNorm works across the sequences of the batch",
            "last two": "LayerNorm takes one mean and variance of a whole sequence",
            "all but last": "LayerNorm works across all tokens, like a batch norm",
            "by size": "LayerNorm takes the first dimension that is as large as n_embd",
            "mean of all": "LayerNorm takes the mean of the whole tensor",
            "variance of all": "LayerNorm takes the variance of the whole tensor",
        },
    ),
    "affine": _all(
        _AFFINE,
        {
            "none": "LayerNorm uses neither its weight nor its bias",
            "no weight": "LayerNorm doesn't use its weight",
            "no bias": "LayerNorm doesn't use its bias",
            "added": "LayerNorm adds its weight in place of multiplying by it",
            "plus one": "LayerNorm multiplies by 1 + weight",
            "bias first": "LayerNorm adds the bias first and multiplies by the weight then",
            "before": "LayerNorm multiplies x by the weight before it normalises",
            "both before": "LayerNorm applies weight and bias before it normalises",
            "swapped": "LayerNorm multiplies by its bias and adds its weight",
            "divided": "LayerNorm divides by its weight",
            "subtracted": "LayerNorm subtracts its bias",
            "weight twice": "LayerNorm multiplies by its weight twice",
            "bias twice": "LayerNorm adds its bias twice",
        },
    ),
    "start": _all(
        _START,
        {
            "weight zeros": "the weight of LayerNorm starts with zeros",
            "bias ones": "the bias of LayerNorm starts with ones",
            "swapped": "the weight of LayerNorm starts with zeros and its bias with ones",
            "random": "the weight of LayerNorm starts with random numbers",
            "random bias": "the bias of LayerNorm starts with random numbers",
            "both random": "weight and bias of LayerNorm start with random numbers",
            "small": "the weight of LayerNorm starts with numbers around 0, as linear layers do",
        },
    ),
    "kept": _all(
        _KEPT,
        {
            "always a bias": "LayerNorm has a bias even with bias=False",
            "never a bias": "LayerNorm never has a bias",
            "opposite": "LayerNorm has a bias with bias=False only",
            "no attribute": "LayerNorm has no attribute bias when it has no bias",
            "zeros": "with bias=False the bias of LayerNorm is a tensor of zeros, not None",
            "one weight": "the weight of LayerNorm is a single number",
            "one bias": "the bias of LayerNorm is a single number",
            "with sizes of 1": "weight and bias of LayerNorm have sizes of 1 before n_embd",
            "columns": "weight and bias of LayerNorm have the shape (n_embd, 1)",
            "single": "weight and bias of LayerNorm are single numbers",
            "no weight": "LayerNorm has no parameter called weight",
            "no parameters": "weight and bias of LayerNorm are no parameters",
        },
    ),
    "eps": _all(
        _EPS,
        {
            "fixed": "LayerNorm always has an eps of 0.00001, whatever was given",
            "1e-6": "eps is 0.000001 by default",
            "1e-8": "eps is 0.00000001 by default",
            "1e-12": "eps is 1e-12 by default",
            "1e-3": "eps is 0.001 by default",
            "1e-4": "eps is 0.0001 by default",
            "0": "eps is 0 by default",
            "second": "eps comes before bias among the arguments of LayerNorm",
        },
    ),
    "mlp": _all(
        _STEPS,
        {
            "no gelu": "there is no gelu in the MLP",
            "gelu last": "gelu comes after c_proj in the MLP",
            "gelu first": "gelu comes before c_fc in the MLP",
            "gelu twice": "gelu comes after both layers of the MLP",
            "gelu of gelu": "gelu is applied twice after c_fc",
            "relu": "there is a ReLU in the MLP in place of gelu",
            "silu": "there is a SiLU in the MLP in place of gelu",
            "tanh": "there is a tanh in the MLP in place of gelu",
            "erf": "there is another GELU in the MLP, with the error function",
            "sigmoid": "there is a sigmoid in the MLP in place of gelu",
            "residual": "the MLP adds x to what it makes of x",
            "no c_proj": "the MLP returns what c_fc gives, without c_proj",
            "gated": "the MLP multiplies what c_fc gives by its gelu",
            "second layer": "the MLP has a third linear layer, such as a gate",
            "softmax": "there is a softmax in the MLP in place of gelu",
            "tied": "the MLP uses the weight of c_fc a second time, in place of that of c_proj",
            "normed": "the MLP normalises x itself",
        },
    ),
    "width": _all(
        _LAYERS,
        {
            "1": "the hidden layer of the MLP is as wide as n_embd, not four times as wide",
            "2": "the hidden layer of the MLP is twice as wide as n_embd, not four times",
            "3": "the hidden layer of the MLP is three times as wide as n_embd, not four times",
            "8": "the hidden layer of the MLP is eight times as wide as n_embd, not four times",
            "plus 4": "the hidden layer of the MLP has n_embd + 4 numbers, not four times n_embd",
            "3072": "the hidden layer of the MLP has 3072 numbers, whatever n_embd is",
        },
    ),
    "mlp_bias": _all(
        _LAYERS,
        {
            "both": "both layers of the MLP have a bias even with bias=False",
            "c_fc": "c_fc has a bias even with bias=False",
            "c_proj": "c_proj of the MLP has a bias even with bias=False",
            "none": "neither layer of the MLP ever has a bias",
            "no c_fc": "c_fc never has a bias",
            "no c_proj": "c_proj of the MLP never has a bias",
            "opposite": "the layers of the MLP have a bias with bias=False only",
        },
    ),
    "rate": _all(
        _LAYERS,
        {
            "0.5": "the MLP's nn.Dropout has its own rate of 0.5",
            "0.1": "the MLP drops a tenth, whatever was asked for",
            "0": "the MLP's nn.Dropout has the rate 0, whatever was asked for",
            "opposite": "the MLP's nn.Dropout has the rate 1 - dropout",
            "bias": "the MLP's nn.Dropout gets bias in the place of dropout",
            "none": "the MLP has no nn.Dropout called dropout",
            "0.1 by default": "the MLP has a dropout of 0.1 by default",
            "0.5 by default": "the MLP has a dropout of 0.5 by default",
        },
    ),
    "dropped": {
        **_all(
            _PLACES,
            {
                "none": "the MLP never drops anything",
                "hidden": "the MLP drops hidden numbers, before c_proj, and not its output",
                "hidden too": "the MLP drops hidden numbers, too, before c_proj",
                "projected": "the MLP drops what c_fc gives, before gelu, and not its output",
                "input": "the MLP drops its input, and not its output",
                "twice": "the MLP drops its output twice",
            },
        ),
        **_all(
            _GROWTH,
            {
                "in evaluation": "the MLP drops after eval(), too",
                "in evaluation only": "the MLP drops after eval() only",
                "not rescaled": "what the MLP keeps is not divided by 1 - dropout",
                "inverted": "the MLP drops a share of 1 - dropout",
            },
        ),
        **_all(
            "Each number is dropped or kept by itself. Which ones share their fate in your code?",
            {
                "whole tokens": "the MLP drops whole tokens, not single numbers",
                "whole sequences": "the MLP drops all or nothing of a sequence",
                "by batch": "all sequences of a batch drop the same in the MLP",
                "by channel": "all tokens of a sequence drop the same in the MLP",
            },
        ),
    },
    "residual": _all(
        _RESIDUAL,
        {
            "none": "Block adds nothing to x: it has no residual path",
            "not first": "Block doesn't add x to what attention gives",
            "not second": "Block doesn't add to the MLP's output what went into its half",
            "normed": "Block adds to the normalised x in both halves, not to x itself",
            "first normed": "Block adds what attention gives to the normalised x, not to x itself",
            "second normed": "Block adds what the MLP gives to the normalised x, not to x itself",
            "from the start": "Block adds the MLP to the x that came in, and loses attention",
            "doubled": "Block adds x once more at the end",
            "minus": "Block subtracts what its parts give",
            "halved": "Block halves its sums",
            "root": "Block divides its sums by √2",
            "times": "Block multiplies x by what its parts give",
            "first twice": "Block adds what attention gives twice",
            "back twice": "Block adds x twice in each half",
            "gelu": "Block applies gelu to its output",
            "squeezed": "Block takes away dimensions of size 1",
        },
    ),
    "order": _all(
        _ORDER,
        {
            "parallel": "Block gives the MLP the same x as attention, in place of their sum",
            "mlp first": "Block has the MLP first and attention second",
            "no mlp": "Block has no MLP in its forward",
            "no attention": "Block has no attention in its forward",
            "attention twice": "Block has attention in both halves",
            "mlp of attention": "Block gives the MLP what attention found, without x",
        },
    ),
    "norm": {
        **_all(
            "A norm may stand before a part or after the sum. Where does GPT-2 have it?",
            {
                "after": "Block normalises the sums, and not what goes into its parts (post-norm)",
                "after parts": "Block normalises what its parts give, and not what goes into them",
                "before and after": "Block normalises what goes into its parts, and its sums too",
                "last": "Block normalises its output once more",
                "around": "Block normalises what goes into its parts, and what they give, too",
                "after the first": "Block normalises its first sum, and the MLP's input not at all",
                "last by ln_1": "Block normalises its output once more, by ln_1",
            },
        ),
        **_all(
            _NORMS,
            {
                "none": "Block uses neither of its norms",
                "no ln_1": "Block gives attention x itself, without ln_1",
                "no ln_2": "Block gives the MLP the sum itself, without ln_2",
                "ln_1 twice": "Block uses ln_1 for both halves",
                "ln_2 twice": "Block uses ln_2 for both halves",
                "swapped": "Block uses ln_2 for attention and ln_1 for the MLP",
                "once for both": "Block normalises x once and goes on with that alone",
            },
        ),
    },
    "block_dropout": _all(
        "Each number is dropped or kept by itself. Which ones share their fate in your Block?",
        {
            "whole sequences": "Block drops all or nothing of what a half gives for a sequence",
            "whole tokens": "Block drops all or nothing of what a half gives for a token",
            "by channel": "Block drops the same for all tokens of a sequence",
            "by batch": "Block drops the same for all sequences of a batch",
        },
    )
    | _all(
        _TOLD,
        {
            "not told": "neither attention nor MLP hears of dropout in Block",
            "attn not told": "attention doesn't hear of dropout in Block",
            "mlp not told": "the MLP doesn't hear of dropout in Block",
            "0.1": "Block gives its parts a dropout of 0.1, whatever was asked for",
            "sums": "Block drops of its sums, too",
            "first sum": "Block drops of its first sum, too, and so of x itself",
            "second sum": "Block drops of its last sum, too, and so of x itself",
            "twice": "Block drops once more what its parts give",
            "halves": "Block drops what a part gives as a whole, sequence by sequence",
            "input": "Block drops of x before anything else",
            "normed": "Block drops what the norms give",
        },
    ),
    "block_bias": {
        **_all(
            _TOLD,
            {
                "not told": "no part of Block hears of bias=False",
                "norms not told": "the norms of Block don't hear of bias=False",
                "ln_1 not told": "ln_1 doesn't hear of bias=False",
                "ln_2 not told": "ln_2 doesn't hear of bias=False",
                "attn not told": "attention doesn't hear of bias=False in Block",
                "mlp not told": "the MLP doesn't hear of bias=False in Block",
                "attn and mlp not told": "attention and MLP don't hear of bias=False in Block",
                "none": "no part of Block ever has a bias",
                "attn none": "attention never has a bias in Block",
                "mlp none": "the MLP never has a bias in Block",
                "norms none": "the norms of Block never have a bias",
            },
        ),
        **_all(
            _IN_ORDER,
            {
                "swapped": "attention gets dropout and bias in each other's place",
                "mlp swapped": "the MLP gets dropout and bias in each other's place",
                "both swapped": "attention and MLP get dropout and bias in each other's place",
                "attn for dropout": "attention gets bias in the place of dropout",
                "mlp for dropout": "the MLP gets bias in the place of dropout",
                "both for dropout": "attention and MLP get bias in the place of dropout",
            },
        ),
    },
    "attention": _all(
        _ATTENTION,
        {
            "unscaled": "attention doesn't divide its scores by √head_dim",
            "by width": "attention divides its scores by √n_embd, not by √head_dim",
            "not rooted": "attention divides its scores by head_dim, not by its root",
            "multiplied": "attention multiplies its scores by √head_dim",
            "not itself": "a token doesn't see itself in attention",
            "next": "a token sees the next one in attention, too",
            "future": "a token sees itself and later ones in attention, not earlier ones",
            "zeros": "attention multiplies its scores by the mask, so that hidden ones become 0",
            "weights masked": "attention hides tokens after the softmax, so weights don't sum to 1",
            "k q v": "c_attn is cut into k, q, v in place of q, k, v",
            "q v k": "c_attn is cut into q, v, k in place of q, k, v",
            "v k q": "c_attn is cut into v, k, q in place of q, k, v",
            "k v q": "c_attn is cut into k, v, q in place of q, k, v",
            "v q k": "c_attn is cut into v, q, k in place of q, k, v",
            "cut by heads": "c_attn is cut into heads first, and each head into q, k, v",
            "every third": "each three numbers of c_attn in a row are taken for q, k and v",
            "not split": "attention reshapes into heads without transposing",
            "not merged": "attention merges its heads without transposing back",
            "one head": "attention doesn't cut into heads",
            "strided": "attention deals numbers out to heads in turn, not in runs",
            "over queries": "the softmax of attention runs over the queries, not over the keys",
            "no softmax": "attention has no softmax",
            "no c_proj": "attention returns its heads without c_proj",
            "in evaluation": "attention drops its weights after eval(), too",
        },
    ),
    "heads": _all(
        _TOLD,
        {
            "swapped": "attention gets n_embd and n_head in each other's place",
            "1": "attention has one head in Block, whatever n_head is",
            "default 8": "Block has 8 heads by default",
            "default 1": "Block has one head by default",
            "default 6": "Block has 6 heads by default",
        },
    ),
    "defaults": _all(
        _DEFAULTS,
        {
            "512": "Block has the width 512 by default",
            "dropout 0.1": "Block has a dropout of 0.1 by default",
            "dropout 0.5": "Block has a dropout of 0.5 by default",
            "bias before dropout": "bias comes before dropout among the arguments of Block",
            "heads first": "n_head comes before n_embd among the arguments of Block",
        },
    ),
}

COMMON = {
    "gelu": ("erf", "square", "no half"),
    "variance": ("unbiased", "outside"),
    "dims": ("tokens",),
    "affine": ("no bias",),
    "kept": ("always a bias",),
    "mlp": ("gelu last", "no gelu"),
    "residual": ("none", "normed"),
    "order": ("parallel",),
    "norm": ("after", "ln_1 twice", "no ln_2"),
}

ROOT = math.sqrt(2 / math.pi)

ROOTS = {
    "root upside down": math.sqrt(math.pi / 2),
    "no root": 2 / math.pi,
    "root of 2 only": math.sqrt(2) / math.pi,
    "root of pi only": 2 / math.sqrt(math.pi),
    "root left out": 1.0,
    "root of 2": math.sqrt(2),
    "one over root of 2": math.sqrt(0.5),
    "root of pi": math.sqrt(math.pi),
    "root of 2 pi": math.sqrt(2 * math.pi),
}

OTHER_CURVES = {
    "erf": F.gelu,
    "quick": lambda x: x * torch.sigmoid(1.702 * x),
    "silu": F.silu,
    "relu": F.relu,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "leaky": F.leaky_relu,
    "elu": F.elu,
    "softplus": F.softplus,
    "mish": F.mish,
    "x": lambda x: 1 * x,
}

OUTSIDE = {
    "no half": lambda x, t: x * (1 + t),
    "half twice": lambda x, t: 0.25 * x * (1 + t),
    "no one": lambda x, t: 0.5 * x * t,
    "one minus": lambda x, t: 0.5 * x * (1 - t),
    "minus one": lambda x, t: 0.5 * x * (t - 1),
    "no x": lambda x, t: 0.5 * (1 + t),
    "x squared": lambda x, t: 0.5 * x * x * (1 + t),
    "brackets": lambda x, t: 0.5 * x * 1 + t,
}

INSTEAD_OF_TANH = {
    "sigmoid in place of tanh": torch.sigmoid,
    "erf in place of tanh": torch.erf,
    "sine": torch.sin,
    "hyperbolic sine": torch.sinh,
    "arc": torch.arctan,
    "hard": F.hardtanh,
}

CUT = ("3", "above 3", "below -3")


def is_number(text):
    """Whether a text is a number."""
    return text.replace(".", "").isdigit()


def inside(how, x):
    """What the tanh is taken of."""
    before_cube = float(how) if is_number(how) and float(how) < 0.7 else 0.044715
    before_cube = 0.4 if how == "0.4" else before_cube
    root = float(how) if is_number(how) and float(how) > 0.7 else ROOTS.get(how, ROOT)
    if how == "0.44715":
        before_cube = 0.44715
    return {
        "square": lambda: ROOT * (x + 0.044715 * x**2),
        "fourth": lambda: ROOT * (x + 0.044715 * x**4),
        "times 3": lambda: ROOT * (x + 0.044715 * x * 3),
        "no cube": lambda: ROOT * x,
        "cube only": lambda: ROOT * 0.044715 * x**3,
        "cube outside": lambda: ROOT * x + 0.044715 * x**3,
        "cube of product": lambda: ROOT * (x + (0.044715 * x) ** 3),
        "cube of sum": lambda: ROOT * (x + 0.044715 * x) ** 3,
        "cube without number": lambda: ROOT * (x + x**3),
        "minus cube": lambda: ROOT * (x - 0.044715 * x**3),
    }.get(how, lambda: root * (x + before_cube * x**3))()


def bent(how, x):
    """What gelu makes of x."""
    if how in OTHER_CURVES:
        return OTHER_CURVES[how](x)
    if how == "absolute":
        return bent("right", x.abs())
    if how == "sigmoid without 2":
        return x * torch.sigmoid(inside("right", x))
    if how == "derivative":
        t = torch.tanh(inside("right", x))
        return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * ROOT * (1 + 3 * 0.044715 * x * x)
    if how in CUT:
        return cut(how, x, bent("right", x))
    t = INSTEAD_OF_TANH.get(how, torch.tanh)(inside(how, x))
    return OUTSIDE.get(how, lambda x, t: 0.5 * x * (1 + t))(x, t)


def cut(how, x, y):
    """What becomes of gelu's answers below -3 and above 3."""
    if how in ("3", "above 3"):
        y = torch.where(x > 3, x, y)
    return torch.where(x < -3, 0.0, y) if how in ("3", "below -3") else y


def dims_of(how, x, what):
    """Over which dimensions a mean or a variance goes."""
    every = tuple(range(x.dim()))
    return {
        "all": every,
        "tokens": -2,
        "batch": 0,
        "last two": every[-2:],
        "all but last": every[:-1],
        "by size": list(x.shape).index(x.shape[-1]),
        "mean of all": every if what == "mean" else -1,
        "variance of all": every if what == "variance" else -1,
    }.get(how, -1)


def divisor(on, x, centred, mean, eps):
    """By what a row is divided."""
    dim = dims_of(on.dims, x, "variance")
    over = dim if isinstance(dim, tuple) else (dim,)
    n = math.prod(x.shape[each] for each in over)
    if on.mean == "none at all":
        centred = x
    if on.dims == "variance of all":
        centred = x - x.mean()
    total = centred.square().sum(over, keepdim=True)
    variance = total / n
    if on.variance == "by 768":
        return (
            (x - x.sum(over, keepdim=True) / 768).square().sum(over, keepdim=True) / 768 + eps
        ).sqrt()
    return {
        "eps twice": lambda: (variance + eps).sqrt() + eps,
        "unbiased": lambda: (total / (n - 1) + eps).sqrt(),
        "outside": lambda: variance.sqrt() + eps,
        "unbiased, outside": lambda: (total / (n - 1)).sqrt() + eps,
        "no eps": lambda: variance.sqrt(),
        "unbiased, no eps": lambda: (total / (n - 1)).sqrt(),
        "eps squared": lambda: (variance + eps**2).sqrt(),
        "eps rooted": lambda: (variance + eps**0.5).sqrt(),
        "eps taken away": lambda: (variance - eps).sqrt(),
        "eps to quotient": lambda: variance.sqrt(),
        "eps to x": lambda: variance.sqrt(),
        "one over and eps": lambda: 1 / (1 / variance.sqrt() + eps),
        "largest of both": lambda: variance.clamp(min=eps).sqrt(),
        "no root": lambda: variance + eps,
        "root twice": lambda: (variance + eps) ** 0.25,
        "squared": lambda: (variance + eps) ** 2,
        "sum": lambda: (total + eps).sqrt(),
        "uncentred": lambda: (x.square().mean(over, keepdim=True) + eps).sqrt(),
        "absolute": lambda: centred.abs().mean(over, keepdim=True) + eps,
        "range": lambda: x.amax(over, keepdim=True) - x.amin(over, keepdim=True) + eps,
        "largest": lambda: centred.abs().amax(over, keepdim=True) + eps,
        "length": lambda: x.square().sum(over, keepdim=True).sqrt() + eps,
        "not divided": lambda: 1.0,
        "multiplied": lambda: 1 / (variance + eps).sqrt(),
        "n plus one": lambda: (total / (n + 1) + eps).sqrt(),
    }.get(on.variance, lambda: (variance + eps).sqrt())()


def normalised(on, x, eps):
    """Rows after the norm, before weight and bias."""
    mean = x.mean(dims_of(on.dims, x, "mean"), keepdim=True)
    if on.mean == "median":
        mean = x.median(-1, keepdim=True).values
    if on.variance == "softmax":
        return x.softmax(-1)
    if on.variance == "by 768":
        mean = x.sum(-1, keepdim=True) / 768
    centred = x - mean
    by = divisor(on, x, centred, mean, eps)
    if on.variance in ("eps to x", "eps to quotient"):
        return (centred + eps) / by if on.variance == "eps to x" else centred / by + eps
    return {
        "none": lambda: x / by,
        "none at all": lambda: x / by,
        "added": lambda: (x + mean) / by,
        "after": lambda: x / by - mean,
        "brackets": lambda: x - mean / by,
        "back": lambda: centred / by + mean,
        "sign": lambda: -centred / by,
        "twice": lambda: (centred - mean) / by,
    }.get(on.mean, lambda: centred / by)()


def applied(how, normal, x, weight, bias):
    """Rows after weight and bias."""
    zero = 0 if bias is None else bias
    return {
        "none": lambda: normal(x),
        "no weight": lambda: normal(x) + zero,
        "no bias": lambda: normal(x) * weight,
        "added": lambda: normal(x) + weight + zero,
        "plus one": lambda: normal(x) * (1 + weight) + zero,
        "bias first": lambda: (normal(x) + zero) * weight,
        "before": lambda: normal(x * weight) + zero,
        "both before": lambda: normal(x * weight + zero),
        "swapped": lambda: normal(x) * (1 if bias is None else bias) + weight,
        "divided": lambda: normal(x) / weight + zero,
        "subtracted": lambda: normal(x) * weight - zero,
        "weight twice": lambda: normal(x) * weight * weight + zero,
        "bias twice": lambda: normal(x) * weight + zero + zero,
    }.get(how, lambda: normal(x) * weight + zero)()


def keep(module, how, start, n_embd, bias):
    """Give a norm its weight and bias."""
    ones, zeros = torch.ones(n_embd), torch.zeros(n_embd)
    weight = zeros if start in ("weight zeros", "swapped") else ones
    shift = ones if start in ("bias ones", "swapped") else zeros
    if start in ("random", "both random", "small"):
        weight = torch.randn(n_embd) * (0.02 if start == "small" else 1)
    if start in ("random bias", "both random"):
        shift = torch.randn(n_embd)
    if how in ("with sizes of 1", "columns"):
        weight, shift = (
            each[None, None] if how == "with sizes of 1" else each[:, None]
            for each in (weight, shift)
        )
    weight = weight[:1] if how in ("one weight", "single") else weight
    shift = shift[:1] if how in ("one bias", "single") else shift
    if how == "no parameters":
        module.weight, module.bias = weight, shift if bias else None
        return
    name = "scale" if how == "no weight" else "weight"
    setattr(module, name, nn.Parameter(weight.clone()))
    has = {"always a bias": True, "never a bias": False, "opposite": not bias}.get(how, bias)
    if has:
        module.bias = nn.Parameter(shift.clone())
    elif how == "zeros":
        module.register_buffer("bias", shift.clone())
    elif how != "no attribute":
        module.bias = None


def drop(how, x, rate, training):
    """X after a dropout."""
    kept = torch.rand_like(x) >= rate
    return {
        "none": lambda: x,
        "hidden": lambda: x,
        "projected": lambda: x,
        "input": lambda: x,
        "twice": lambda: F.dropout(F.dropout(x, rate, training), rate, training),
        "in evaluation": lambda: F.dropout(x, rate),
        "in evaluation only": lambda: F.dropout(x, rate, not training),
        "not rescaled": lambda: x * kept if training else x,
        "inverted": lambda: F.dropout(x, 1 - rate if rate else 0.0, training),
        "whole tokens": lambda: x * F.dropout(torch.ones_like(x[..., :1]), rate, training),
        "whole sequences": lambda: x * F.dropout(torch.ones_like(x[:, :1, :1]), rate, training),
        "by batch": lambda: x * F.dropout(torch.ones_like(x[:1]), rate, training),
        "by channel": lambda: x * F.dropout(torch.ones_like(x[:, :1]), rate, training),
    }.get(how, lambda: F.dropout(x, rate, training))()


THIRDS = {
    "k q v": (1, 0, 2),
    "q v k": (0, 2, 1),
    "v k q": (2, 1, 0),
    "k v q": (2, 0, 1),
    "v q k": (1, 2, 0),
}
"""Which third of c_attn is taken for q, k and v."""


def thirds_of(how, x, n_head):
    """What is taken for q, k and v, each (B, n_head, T, head_dim)."""
    if how == "cut by heads":
        return x.unflatten(-1, (n_head, 3, -1)).permute(3, 0, 2, 1, 4)
    parts = x.unflatten(-1, (-1, 3)).unbind(-1) if how == "every third" else x.chunk(3, dim=-1)
    parts = [parts[place] for place in THIRDS.get(how, (0, 1, 2))]
    if how == "not split":
        return [part.reshape(len(x), n_head, x.shape[1], -1) for part in parts]
    if how == "strided":
        return [part.unflatten(-1, (-1, n_head)).permute(0, 3, 1, 2) for part in parts]
    return [part.unflatten(-1, (n_head, -1)).transpose(1, 2) for part in parts]


def weights_of(how, scores):
    """What attention makes of its scores."""
    seen = torch.ones(scores.shape[-2:], dtype=torch.bool)
    seen = {
        "not itself": seen.tril(-1)
        | torch.eye(*seen.shape, dtype=torch.bool) & (seen.cumsum(0) == 1),
        "next": seen.tril(1),
        "future": seen.triu(),
    }.get(how, seen.tril())
    if how == "zeros":
        return (scores * seen).softmax(-1)
    if how == "weights masked":
        return scores.softmax(-1) * seen
    if how == "no softmax":
        return scores * seen
    return scores.masked_fill(~seen, -torch.inf).softmax(-2 if how == "over queries" else -1)


class CausalSelfAttention(nn.Module):
    """The attention that is given, or one with a fault."""

    def __init__(self, n_embd, n_head, dropout, bias, how="right"):
        super().__init__()
        self.n_head, self.dropout, self.how = 1 if how == "one head" else n_head, dropout, how
        self.c_attn = nn.Linear(n_embd, 3 * n_embd, bias=bias)
        self.c_proj = nn.Linear(n_embd, n_embd, bias=bias)

    def forward(self, x):
        """Let every token gather from itself and earlier ones."""
        q, k, v = thirds_of(self.how, self.c_attn(x), self.n_head)
        scale = {
            "unscaled": 1.0,
            "by width": x.shape[-1] ** -0.5,
            "not rooted": 1 / q.shape[-1],
            "multiplied": q.shape[-1] ** 0.5,
        }.get(self.how, q.shape[-1] ** -0.5)
        weights = weights_of(self.how, scale * q @ k.mT)
        y = F.dropout(weights, self.dropout, self.training or self.how == "in evaluation") @ v
        if self.how == "strided":
            y = y.permute(0, 2, 3, 1)
        elif self.how not in ("not split", "not merged"):
            y = y.transpose(1, 2)
        y = y.reshape(x.shape)
        return F.dropout(
            y if self.how == "no c_proj" else self.c_proj(y), self.dropout, self.training
        )


RIGHT = dict.fromkeys(SWITCHES, "right")

_OF_NORMS = ("variance", "mean", "dims", "affine", "start", "kept", "eps")
_OF_MLP = ("mlp", "width", "mlp_bias", "rate", "dropped")
SHOWS_IN = {
    "gelu": {"gelu", "MLP", "Block"},
    **dict.fromkeys(_OF_NORMS, {"LayerNorm", "Block"}),
    **dict.fromkeys(_OF_MLP, {"MLP", "Block"}),
}
"""What a switch makes a difference to; the others do to Block alone."""

DEFAULT_EPS = {"1e-6": 1e-6, "1e-8": 1e-8, "1e-12": 1e-12, "1e-3": 1e-3, "1e-4": 1e-4, "0": 0.0}

LINEAR_BIASES = {
    "both": lambda bias: (True, True),
    "c_fc": lambda bias: (True, bias),
    "c_proj": lambda bias: (bias, True),
    "none": lambda bias: (False, False),
    "no c_fc": lambda bias: (False, bias),
    "no c_proj": lambda bias: (bias, False),
    "opposite": lambda bias: (not bias, not bias),
}

ARGUMENTS = {
    "bias before dropout": "n_embd n_head bias dropout",
    "heads first": "n_head n_embd dropout bias",
}

ACTIVATIONS = {
    "relu": F.relu,
    "silu": F.silu,
    "tanh": torch.tanh,
    "erf": F.gelu,
    "sigmoid": torch.sigmoid,
    "softmax": lambda x: x.softmax(-1),
}


def rate_of(how, rate, bias):
    """The rate of the MLP's dropout; None for no nn.Dropout."""
    if how in ("0.5", "0.1", "0"):
        return float(how)
    return {"opposite": 1 - rate, "bias": float(bias), "none": None}.get(how, rate)


SHARED = ("whole sequences", "whole tokens", "by channel", "by batch")
"""What may share its fate, where Block drops in place of its parts."""


def given_to(on, part, dropout, bias):
    """The dropout and the bias that a part of a Block is told of."""
    rate = {
        "not told": 0.0,
        f"{part} not told": 0.0,
        **dict.fromkeys(SHARED, 0.0),
        "0.1": 0.1,
    }.get(on.block_dropout, dropout)
    among = on.block_bias.removesuffix(" not told").split(" and ")
    among += ["ln_1", "ln_2"] if among == ["norms"] else []
    told = not (on.block_bias == "not told" or part in among)
    kind = "norms" if part.startswith("ln") else part
    both = ("attn", "mlp")
    swapped = {"swapped": ("attn",), "mlp swapped": ("mlp",), "both swapped": both}
    if part in swapped.get(on.block_bias, ()):
        return float(bias), bool(rate)
    if on.block_bias in (f"{part} for dropout", "both for dropout") and part in both:
        return float(bias), True
    return rate, on.block_bias not in ("none", f"{kind} none") and (bias if told else True)


def faulty(**faults):
    """The function and the classes of problem 06 with these faults."""
    on = SimpleNamespace(**(RIGHT | faults))

    def gelu(x):
        return bent(on.gelu, x)

    class LayerNorm(nn.Module):
        def __init__(self, n_embd, *arguments, **named):
            super().__init__()
            order = ("eps", "bias") if on.eps == "second" else ("bias", "eps")
            default = {"bias": True, "eps": DEFAULT_EPS.get(on.eps, 1e-5)}
            given = default | dict(zip(order, arguments, strict=False)) | named
            self.eps = 1e-5 if on.eps == "fixed" else float(given["eps"])
            keep(self, on.kept, on.start, n_embd, bool(given["bias"]))

        def forward(self, x):
            weight = self.scale if on.kept == "no weight" else self.weight
            bias = getattr(self, "bias", None)
            bias = bias if isinstance(bias, torch.Tensor) else None
            return applied(on.affine, lambda x: normalised(on, x, self.eps), x, weight, bias)

    class MLP(nn.Module):
        def __init__(self, n_embd, dropout=None, bias=True):
            super().__init__()
            default = float(on.rate.split()[0]) if on.rate.endswith("by default") else 0.0
            self.rate = rate_of(on.rate, default if dropout is None else dropout, bias)
            hidden = {"plus 4": n_embd + 4, "3072": 3072}.get(on.width)
            if hidden is None:
                hidden = n_embd * (int(on.width) if is_number(on.width) else 4)
            biases = LINEAR_BIASES.get(on.mlp_bias, lambda bias: (bias, bias))(bias)
            self.c_fc = nn.Linear(n_embd, hidden, bias=biases[0])
            self.c_proj = nn.Linear(hidden, n_embd, bias=biases[1])
            if on.mlp == "second layer":
                self.c_gate = nn.Linear(n_embd, hidden, bias=biases[0])
            if self.rate is not None:
                self.dropout = nn.Dropout(self.rate)

        def drops(self, how, x):
            return F.dropout(x, self.rate or 0.0, self.training) if on.dropped in how else x

        def forward(self, x):
            act, how = ACTIVATIONS.get(on.mlp, gelu), on.mlp
            y = self.drops(("input",), F.layer_norm(x, x.shape[-1:]) if how == "normed" else x)
            y = self.drops(("projected",), self.c_fc(gelu(y) if how == "gelu first" else y))
            if how == "gated":
                y = y * gelu(y)
            elif how not in ("no gelu", "gelu first", "gelu last"):
                y = gelu(act(y)) if how == "gelu of gelu" else act(y)
            y = self.drops(("hidden", "hidden too"), y)
            y = y * self.c_gate(x) if how == "second layer" else y
            if how == "tied":
                y = F.linear(y, self.c_fc.weight.T, self.c_proj.bias)
            else:
                y = y[..., : x.shape[-1]] if how == "no c_proj" else self.c_proj(y)
            y = gelu(y) if how in ("gelu last", "gelu twice") else y
            y = x + y if how == "residual" else y
            return drop(on.dropped, y, self.rate or 0.0, self.training)

    class Block(nn.Module):
        def __init__(self, *arguments, **named):
            super().__init__()
            default = {
                "n_embd": 512 if on.defaults == "512" else 768,
                "n_head": int(on.heads.split()[1]) if on.heads.startswith("default") else 12,
                "dropout": float(on.defaults.split()[1]) if "dropout 0" in on.defaults else 0.0,
                "bias": True,
            }
            if default["n_embd"] % default["n_head"]:
                default["n_head"] = 8
            order = ARGUMENTS.get(on.defaults, "n_embd n_head dropout bias").split()
            given = default | dict(zip(order, arguments, strict=False)) | named
            n_embd, n_head, self.rate, bias = (given[name] for name in default)
            # Of a large one only its sizes are asked for.
            with torch.device("meta") if n_embd > 100 else nullcontext():
                self.ln_1 = LayerNorm(n_embd, bias=given_to(on, "ln_1", 0.0, bias)[1])
                self.ln_2 = LayerNorm(n_embd, bias=given_to(on, "ln_2", 0.0, bias)[1])
                self.mlp = MLP(n_embd, *given_to(on, "mlp", self.rate, bias))
                attention = given_to(on, "attn", self.rate, bias)
                n_head = 1 if on.heads == "1" else int(n_head)
                sizes = (n_head, n_embd) if on.heads == "swapped" else (n_embd, n_head)
                self.attn = CausalSelfAttention(*sizes, *attention, on.attention)

        def drops(self, how, x):
            return F.dropout(x, self.rate, self.training) if on.block_dropout == how else x

        def norms(self):
            same = lambda x: x  # noqa: E731
            return {
                "none": (same, same),
                "no ln_1": (same, self.ln_2),
                "no ln_2": (self.ln_1, same),
                "ln_1 twice": (self.ln_1, self.ln_1),
                "ln_2 twice": (self.ln_2, self.ln_2),
                "swapped": (self.ln_2, self.ln_1),
                "after": (same, same),
                "after parts": (same, same),
                "after the first": (self.ln_1, same),
            }.get(on.norm, (self.ln_1, self.ln_2))

        def added(self, x, y, normed, place):
            """What stands on the residual path after a half."""
            y = self.drops("twice", y)
            if on.block_dropout in SHARED:
                y = drop(on.block_dropout, y, self.rate, self.training)
            if on.block_dropout == "halves":
                y = y * F.dropout(torch.ones_like(y[:, :1, :1]), self.rate, self.training)
            if on.residual in ("none", f"not {place}"):
                return y
            if on.residual in ("normed", f"{place} normed"):
                return normed + y
            return {
                "minus": lambda: x - y,
                "halved": lambda: (x + y) / 2,
                "root": lambda: (x + y) / math.sqrt(2),
                "times": lambda: x * y,
                "first twice": lambda: x + y + (y if place == "first" else 0),
                "back twice": lambda: 2 * x + y,
            }.get(on.residual, lambda: x + y)()

        def half(self, x, norm, after, part, place, into=None):
            normed = self.drops("normed", norm(x if into is None else into))
            y = part(normed)
            y = after(y) if on.norm in ("after parts", "around") else y
            x = self.drops("sums", self.added(x, y, normed, place))
            x = self.drops(f"{place} sum", x)
            after_first = on.norm == "after the first" and place == "first"
            return after(x) if on.norm in ("after", "before and after") or after_first else x

        def forward(self, x):
            x = self.drops("input", x)
            start, (norm_1, norm_2) = x, self.norms()
            first, second = {
                "mlp first": (self.mlp, self.attn),
                "no mlp": (self.attn, None),
                "no attention": (None, self.mlp),
                "attention twice": (self.attn, self.attn),
            }.get(on.order, (self.attn, self.mlp))
            if on.norm == "once for both":
                x = self.ln_1(x)
                norm_1 = norm_2 = lambda x: x  # noqa: E731
            if on.order == "mlp first":
                norm_1, norm_2 = norm_2, norm_1
            if first is not None:
                x = self.half(x, norm_1, self.ln_1, first, "first")
            if second is not None:
                into = {"parallel": start, "mlp of attention": x - start}.get(on.order, x)
                onto = start if on.residual == "from the start" else x
                x = self.half(onto, norm_2, self.ln_2, second, "second", into)
            x = x + start if on.residual == "doubled" else x
            x = gelu(x) if on.residual == "gelu" else x
            x = x.squeeze() if on.residual == "squeezed" else x
            last = {"last": self.ln_2, "last by ln_1": self.ln_1}.get(on.norm)
            return x if last is None else last(x)

    parts = {"gelu": gelu, "LayerNorm": LayerNorm, "MLP": MLP, "Block": Block}
    having = set().union(*(SHOWS_IN.get(switch, {"Block"}) for switch in faults)) or set(parts)
    return SimpleNamespace(**{name: parts[name] for name in having})
