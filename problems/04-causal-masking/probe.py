"""The questions by which a mistake in problem 04 is told. An instrument, not a lesson."""

import math

import torch

from grader.diagnose import edges
from grader.diagnose.numbers import numbers
from grader.diagnose.probe import Part
from grader.errors import Mismatch
from grader.run.calls import answers
from grader.run.compare import parameters, set_weights
from shared.three_layers import (
    about_parameters,
    filled,
    layer_weights,
    like_layer_weights,
    steps_of_queries_lost,
)
from shared.worked_example import LAYERS, left_alone, loops_over_pairs

HUGE = 4e307


def pattern(*shape):
    """A mask with True and False along every dimension of 3 or more, other than its transpose."""
    places = torch.meshgrid(*map(torch.arange, shape), indexing="ij")
    return sum((1 + n % 2) * place for n, place in enumerate(reversed(places))) % 3 != 1


def double(rows):
    """A tensor in float64."""
    return torch.tensor(rows, dtype=torch.float64)


def probe(problem):
    """Return the questions about each function and class."""
    return {
        "causal_mask": about_mask(problem),
        "masked_softmax": about_softmax(problem),
        **about_module(problem),
        "CausalAttention: layers": about_parameters(
            lambda width, bias: problem.CausalAttention(width, 3, bias),
            lambda: problem.CausalAttention(n_positions=2),
        ),
    }


def about_mask(problem):
    """The questions about `causal_mask`."""

    def ignores_device():
        problem.causal_mask(3, device="cpu")
        return edges.refusal(lambda: problem.causal_mask(3, device="nowhere")) == 0

    def far_back():
        """Whether the last of many positions sees the first one, and whether all are there."""
        many = 270 if loops_over_pairs(problem.causal_mask) else 1030
        mask = problem.causal_mask(many)
        return torch.tensor([float(mask[-1, 0]), len(mask) / many])

    return Part(
        main={f"of {size}": lambda size=size: problem.causal_mask(size) for size in (1, 3, 4, 6)},
        edges={
            "is bool": lambda: problem.causal_mask(3).dtype == torch.bool,
            "by name": lambda: problem.causal_mask(seq_len=3, device=None).double(),
            "on a device": lambda: problem.causal_mask(3, "cpu").double(),
            "ignores device": ignores_device,
            "far back": far_back,
            "random state moves": lambda: edges.moves_random_state(lambda: problem.causal_mask(3)),
        },
    )


def share(weights, right):
    """The sum of two weights less 1, and how far the share of the first is off."""
    return float(weights.sum()) - 1, float(weights[0] / weights.sum()) - right


def falls_short(less, off):
    """Whether only the sum is off."""
    return abs(off) < 1e-13 and 1e-14 < -less < 1e-3


def about_softmax(problem):
    """The questions about `masked_softmax`."""

    def called(scores, mask):
        # In grading, code that changes a mask of bools returns nothing at all; so it is here.
        with left_alone("masked_softmax", mask=mask):
            return problem.masked_softmax(scores, mask)

    def weigh(scores, mask):
        return called(scores.clone(), mask.clone()).double()

    def full(*shape):
        return weigh(2 * numbers(*shape, start=0.3), pattern(*shape))

    def plain_row_below():
        mask = torch.cat([pattern(3, 5), torch.ones(1, 5).bool()])
        return weigh(2 * numbers(4, 5, start=0.3), mask)

    def row(scores, allowed):
        """Weights of one row, with two decimals: 1 stands for True in `allowed`."""
        weights = weigh(double([scores]), torch.tensor([[place == "1" for place in allowed]]))
        return weights.mul(100).round().div(100)

    def padding(*shape):
        mask = torch.tensor([[True, True, False, True, False], [False, True, True, False, True]])
        return weigh(2 * numbers(2, 3, 4, 5), mask[: shape[0]].reshape(shape))

    def gradient_beside(hidden):
        scores = double([[0.5, hidden, -0.25, 1.0], [hidden, 1.5, 0.75, -hidden]]).requires_grad_()
        mask = torch.tensor([[True, False, True, True], [False, True, True, False]])
        return edges.slope(called(scores.clone(), mask), scores)

    def hidden_ones_count():
        """Whether a hidden score has any weight: among ordinary ones, and far below the others."""
        mask, far = pattern(3, 5), torch.tensor([[True, True, False]])
        weights = [weigh(numbers(3, 5), mask)[~mask], weigh(double([[0.0, 2e3, -1.0]]), far)[~far]]
        return torch.tensor([bool((each != 0).any()) for each in weights])

    def beside_what_is_right():
        weights = weigh(double([[0.5, 9.0, 0.25]]), torch.tensor([[True, False, True]]))[0]
        return share(weights[[0, 2]], 1 / (1 + math.exp(-0.25)))

    def kept(dtype):
        return called(numbers(3, 5).to(dtype), pattern(3, 5)).dtype == dtype

    def rows_far_apart():
        mask = torch.tensor([[True, True, False]]).repeat(2, 1)
        return weigh(double([[0.5, 1.0, 3.0], [2000.0, 2001.0, 1e3]]), mask)

    given = {"scores": numbers(2, 4, 3), "mask": pattern(4, 3)}
    return Part(
        main={
            "all 4": lambda: full(4, 4),
            "all 3, 3-D": lambda: full(3, 3, 3),
            "all 3, 4-D": lambda: full(3, 3, 3, 3),
            "a plain row": plain_row_below,
            "3-D": lambda: full(3, 5, 4),
            "4-D": lambda: full(3, 4, 6, 5),
        },
        edges=edges.of_function(called, given)
        | {
            "padding": lambda: padding(2, 1, 1, 5),
            "one mask for all": lambda: padding(1, 5),
            "a mask of one dimension": lambda: padding(1, 5)[0, 0],
            "a mask for each of a batch": lambda: weigh(numbers(3, 2, 4, 5), pattern(3, 1, 4, 5)),
            "a mask for each head": lambda: weigh(numbers(2, 2, 4, 5), pattern(2, 4, 5)),
            "a causal mask": lambda: weigh(2 * numbers(2, 4, 4), torch.ones(4, 4).tril().bool()),
            "sizes of one": lambda: weigh(numbers(1, 3, 1, 4), pattern(1, 4)),
            "nothing hidden": lambda: row([0.5, 1.5, -0.5], "111"),
            "scores of 0": lambda: row([0.0, 0.0, 0.0, 1.0], "1101"),
            "one place left": lambda: row([0.5, 1.5, -0.5], "010"),
            "by name": lambda: problem.masked_softmax(scores=numbers(3, 4), mask=pattern(3, 4)),
            "allowed far below": lambda: row([-1e12, 0.5, -2e12, 1.5], "1010"),
            "allowed farther below": lambda: row([-1e45, 0.5, -2e45, 1.5], "1010"),
            "allowed near the lowest": lambda: row([-HUGE, 0.5, -2 * HUGE, 1.5], "1010"),
            "allowed at -1000": lambda: row([-1000.0, 0.5, -1001.0, 1.5], "1010"),
            "allowed at 1000": lambda: row([1000.0, 0.5, 1001.0, 1.5], "1010"),
            "hidden at 720": lambda: row([0.0, 720.0, 1.0, 720.5], "1010"),
            "hidden at 1000": lambda: row([0.0, 1000.0, 1.0, 1000.5], "1010"),
            "hidden far above": lambda: row([0.0, 1e12, 1.0, 2e12], "1010"),
            "hidden farther above": lambda: row([0.0, 1e45, 1.0, 2e45], "1010"),
            "hidden near the highest": lambda: row([-HUGE, 2 * HUGE, -3 * HUGE, 4 * HUGE], "1010"),
            "rows far apart": rows_far_apart,
            "hidden ones count": hidden_ones_count,
            "small weights are 0": lambda: (
                weigh(double([[0, 16]]), pattern(1, 2) | True)[0, 0] == 0
            ),
            "rows fall short": lambda: falls_short(*beside_what_is_right()),
            "float32 is kept": lambda: kept(torch.float32),
            "float64": lambda: kept(torch.float64),
            "half precision": lambda: kept(torch.bfloat16),
            "digits are lost": lambda: 1e-12 < abs(beside_what_is_right()[1]) < 1e-5,
            "gradient, hidden at 1000": lambda: gradient_beside(1000.0),
            "gradient, hidden near the highest": lambda: gradient_beside(HUGE),
        },
    )


def about_module(problem):
    """The questions about what `CausalAttention` computes, in two parts.

    Where the three layers are alike, it is the same which is which. So what is made of them can be
    told, also where that is a second mistake.
    """

    def made(n_embd=3, n_positions=6, bias=True, dtype=torch.float64):
        module = problem.CausalAttention(n_embd, n_positions, bias).eval()
        if not bias and any("bias" in name for name in parameters(module)):
            raise ValueError("nobody asked for a bias")
        return filled(module, layer_weights(n_embd, 1.8 / math.sqrt(n_embd), bias), dtype)

    def output(*shape, n_positions, bias=True):
        return made(shape[-1], n_positions, bias)(numbers(*shape, start=0.2)).double()

    def of_like_layers(*shape):
        alike = like_layer_weights(shape[-1], 1.8 / math.sqrt(shape[-1]))
        module = filled(problem.CausalAttention(shape[-1], 8).eval(), alike)
        return module(numbers(*shape, start=0.2)).double()

    def between(*shape, n_positions, bias=True):
        """Without the first and the last position, in which some masks leave nothing."""
        return output(*shape, n_positions=n_positions, bias=bias)[:, 1:-1]

    def plain(n_embd, n_positions, query=1):
        """A module in which a token's query, key and value are the token itself, times `query`."""
        weights = {f"{name}.weight": torch.eye(n_embd, dtype=torch.float64) for name in LAYERS}
        weights["query.weight"] *= query
        return filled(problem.CausalAttention(n_embd, n_positions, bias=False).eval(), weights)

    def tokens(size, later=1.0):
        """Twice three tokens: the first of the size `size`, the others of the size `later`."""
        rows = [[size, 0.0, 0.0], [0.0, 0.5 * later, 0.0], [later, 0.0, 0.25 * later]]
        return double([rows, rows])

    def first_of(x):
        """The first output where a token meets itself with a score far below all others."""
        return plain(3, 6, -1)(x)[:, :1].double() / x[:, :1].abs().max()

    def gradient_before(later):
        x = tokens(1.0, later).requires_grad_()
        output = plain(3, 6, -1)(x)[:, :1].sum()
        return torch.autograd.grad(output, x)[0][:, :1]

    def buffer(n_positions):
        module = problem.CausalAttention(3, n_positions)
        return dict(module.named_buffers())["mask"].double()

    def no_buffer():
        """0 for a buffer `mask`, 1 for an attribute of this name that is none, 2 for nothing."""
        module = problem.CausalAttention(3, 4)
        if "mask" in dict(module.named_buffers()):
            return 0
        return 1 if hasattr(module, "mask") else 2

    def by_name():
        module = problem.CausalAttention(n_embd=3, n_positions=6, bias=True).eval()
        return filled(module, layer_weights(3, 1.0))(x=numbers(2, 5, 3)).double()

    def how_refused(length, training=True):
        """What a sequence longer than n_positions meets, as a number."""
        module = made(3, 4).train(training)
        try:
            output = module(numbers(2, length, 3))
        except Exception as error:
            if type(error) is RuntimeError and "tensor" in str(error):
                return 3  # PyTorch's own
            return {ValueError: 1, AssertionError: 2}.get(type(error), 4)
        return 0 if output.shape[1] == length else 5

    def after(first, second):
        module = made()
        module(numbers(*first))
        return module(numbers(*second, start=0.5)).double()

    def kept(dtype):
        return made(dtype=dtype)(numbers(2, 5, 3).to(dtype)).dtype == dtype

    def beside_what_is_right(width=2):
        module, nothing = plain(width, 3), [0.0] * (width - 2)
        rows = [[1.0, 1.0, *nothing], [0.7, 1.0, *nothing]]
        mixed, total = module(double([rows, rows]))[0, 1, :2].tolist()
        first = 1 / (1 + math.exp((0.7 * 0.7 - 0.7) / math.sqrt(width)))
        return total - 1, mixed / total - first - 0.7 * (1 - first)

    def digits_lost(width):
        return 1e-12 < abs(beside_what_is_right(width)[1]) < 1e-5

    def scores_of_0():
        module, x = made(), numbers(2, 4, 3)
        x[:, 1] = 0  # a token like any other
        no_query = {n: 0 * each for n, each in layer_weights(3, 1.0).items() if "query" in n}
        set_weights(module, no_query)
        return module(x).double()

    @torch.no_grad()
    def earlier_output_changes():
        try:
            answers(made(), [(x.clone(),), (x.flip(1),)])
        except Mismatch:
            return True
        return False

    x, far = numbers(2, 5, 3), double([[[1.0]], [[1e3]], [[30.0]]])
    of_all = Part(
        main={
            "all 4": lambda: between(4, 4, 4, n_positions=4),
            "all 3": lambda: output(3, 3, 3, n_positions=3)[:, 1:],
            "longest": lambda: between(3, 5, 4, n_positions=5),
            "T = C": lambda: between(2, 5, 5, n_positions=8),
            "B = T": lambda: between(6, 6, 2, n_positions=8),
            "wide": lambda: between(3, 4, 11, n_positions=12),
            "no bias": lambda: between(2, 6, 3, n_positions=7, bias=False),
        },
        edges=edges.of_module(
            lambda *dtype: made(3, 6, True, *dtype),
            x,
            weights=(*(f"{name}.weight" for name in LAYERS), "value.bias"),
            large=100,
        )
        | {
            "by name": by_name,
            "no buffer": no_buffer,
            "the buffer": lambda: buffer(4),
            "the buffer, one position": lambda: buffer(1),
            "trains the mask": lambda: "mask" in parameters(problem.CausalAttention(3, 4)),
            "the first": lambda: output(2, 5, 3, n_positions=6)[:, :1],
            "the last": lambda: output(2, 5, 3, n_positions=6)[:, -1:],
            "one sequence": lambda: output(1, 4, 3, n_positions=6),
            "one token": lambda: output(2, 1, 3, n_positions=6),
            "wider than the mask": lambda: output(2, 3, 5, n_positions=4),
            "more sequences than positions": lambda: output(6, 3, 2, n_positions=4),
            "the longest": lambda: output(2, 4, 3, n_positions=4),
            "one position in all": lambda: output(2, 1, 3, n_positions=1),
            "one too many": lambda: how_refused(5),
            "many too many": lambda: how_refused(9),
            "one too many, in eval": lambda: how_refused(5, training=False),
            "scores of 0": scores_of_0,
            "scores at -1e6": lambda: first_of(tokens(1e3)),
            "scores at -1e12": lambda: first_of(tokens(1e6)),
            "scores at -1e60": lambda: first_of(tokens(1e30)),
            "scores at -1e200": lambda: first_of(tokens(1e100)),
            "scores far apart": lambda: made()(numbers(3, 4, 3) * far).double(),
            "before a future at 720": lambda: first_of(tokens(1.0, -1250.0)),
            "before a large future": lambda: first_of(tokens(1.0, -1e4)),
            "before a huge future": lambda: first_of(tokens(1.0, -1e100)),
            "gradient before a large future": lambda: gradient_before(-1e4),
            "gradient before a huge future": lambda: gradient_before(-1e100),
            "float32 is kept": lambda: kept(torch.float32),
            "float64": lambda: kept(torch.float64),
            "half precision": lambda: kept(torch.bfloat16),
            "digits are lost": lambda: digits_lost(2),
            "digits are lost, width 4": lambda: digits_lost(4),
            "steps of queries are lost": lambda: steps_of_queries_lost(made, numbers(2, 4, 3)),
            "rows fall short": lambda: falls_short(*beside_what_is_right()),
            "a longer one after": lambda: after((2, 3, 3), (2, 5, 3)),
            "a shorter one after": lambda: after((2, 5, 3), (2, 3, 3)),
            "an earlier output changes": earlier_output_changes,
            "training answers by chance": lambda: edges.varies(
                lambda: made(3, 8).train()(numbers(5, 8, 3))
            ),
        },
    )
    like_layers = {
        "2x5x3": lambda: of_like_layers(2, 5, 3)[:, 1:-1],
        "4x4x4": lambda: of_like_layers(4, 4, 4)[:, 1:-1],
        "1x6x3": lambda: of_like_layers(1, 6, 3)[:, 1:-1],
    }
    return {
        "CausalAttention": of_all,
        "CausalAttention: like layers": Part(main=like_layers),
    }
