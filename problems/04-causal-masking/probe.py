"""The questions by which a mistake in problem 04 is told. An instrument, not a lesson."""

import math

import torch

from grader.errors import Mismatch
from grader.testing.compare import parameters, set_weights
from grader.testing.diagnosis import estimate_weights
from grader.testing.diagnosis.estimate_shapes import about_names
from grader.testing.diagnosis.probe import Part
from shown_weights import LOOK, about_layers, about_names_of_layers, names_of_layers
from worked_example import LAYERS, holding, left_alone

HUGE = 4e307


def wave(*shape, start=0.0):
    """Numbers between -1.5 and 1.5 that look random and are the same everywhere."""
    steps = torch.arange(math.prod(shape), dtype=torch.float64)
    return (1.5 * torch.sin(1.7 * (steps + 100 * start) ** 2)).reshape(shape)


def pattern(*shape):
    """A mask with True and False along every dimension of 3 or more, other than its transpose."""
    places = torch.meshgrid(*map(torch.arange, shape), indexing="ij")
    return sum((1 + n % 2) * place for n, place in enumerate(reversed(places))) % 3 != 1


def numbers(rows):
    """A tensor in float64."""
    return torch.tensor(rows, dtype=torch.float64)


def slope(output, leaf, upstream, size=2.0**-20):
    """The gradient of an output, by what comes in.

    That is made so small that nobody clips it, and is made up for afterwards.
    """
    found = torch.autograd.grad(output, leaf, size * upstream, allow_unused=True)[0]
    return found if found is None else found / size


def probe(problem):
    """Return the questions about each function and class."""
    return {
        "causal_mask": about_mask(problem),
        "masked_softmax": about_softmax(problem),
        "CausalAttention": about_module(problem),
    }


def about_mask(problem):
    """The questions about `causal_mask`."""

    def ignores_device():
        problem.causal_mask(3, device="cpu")
        try:
            problem.causal_mask(3, device="nowhere")
        except Exception:
            return False
        return True

    def what_is_seen():
        masks = [problem.causal_mask(size) for size in (1, 3, 4, 6)]
        is_plain = all(m.dtype == torch.bool and m.dim() == 2 for m in masks)
        if not is_plain:
            return ()
        return estimate_weights.about_mask(masks, estimate_weights.CAUSAL, LOOK["sight"])

    def global_state_moves():
        before = torch.get_rng_state()
        problem.causal_mask(3)
        return not torch.equal(before, torch.get_rng_state())

    return Part(
        main={f"of {size}": lambda size=size: problem.causal_mask(size) for size in (1, 3, 4, 6)},
        edges={
            "is bool": lambda: problem.causal_mask(3).dtype == torch.bool,
            "by name": lambda: problem.causal_mask(seq_len=3, device=None).double(),
            "on a device": lambda: problem.causal_mask(3, "cpu").double(),
            "ignores device": ignores_device,
            "global state moves": global_state_moves,
        },
        estimators=(what_is_seen,),
    )


def about_softmax(problem):
    """The questions about `masked_softmax`."""

    def called(scores, mask):
        # In grading, code that changes a mask of bools returns nothing at all; so it is here.
        with left_alone("masked_softmax(scores, mask)", mask=mask):
            return problem.masked_softmax(scores, mask)

    def weigh(scores, mask):
        return called(scores.clone(), mask.clone()).double()

    def full(*shape):
        return weigh(2 * wave(*shape, start=0.3), pattern(*shape))

    def plain_row_below():
        mask = torch.cat([pattern(3, 5), torch.ones(1, 5).bool()])
        return weigh(2 * wave(4, 5, start=0.3), mask)

    def row(scores, allowed):
        """Weights of one row, with two decimals: 1 stands for True in `allowed`."""
        weights = weigh(numbers([scores]), torch.tensor([[place == "1" for place in allowed]]))
        return weights.mul(100).round().div(100)

    def padding(*shape):
        mask = torch.tensor([[True, True, False, True, False], [False, True, True, False, True]])
        return weigh(2 * wave(2, 3, 4, 5), mask[: shape[0]].reshape(shape))

    def gradient(scores, mask, upstream, size=2.0**-20):
        scores = scores.clone().requires_grad_()
        return slope(called(scores, mask.clone()), scores, upstream, size)

    def ordinary_gradient(size=2.0**-20):
        return gradient(wave(2, 4, 3), pattern(4, 3), wave(2, 4, 3, start=0.7), size)

    def gradient_beside(hidden):
        scores = numbers([[0.5, hidden, -0.25, 1.0], [hidden, 1.5, 0.75, -hidden]])
        mask = torch.tensor([[True, False, True, True], [False, True, True, False]])
        return gradient(scores, mask, wave(2, 4))

    def changes(name):
        given = {"scores": wave(3, 4), "mask": pattern(3, 4)}
        before = given[name].clone()
        try:
            problem.masked_softmax(**given)
        except Mismatch as found:  # in grading a change is noticed at once
            return name in str(found)
        return not torch.equal(before, given[name])

    def hidden_ones_count():
        """Whether a hidden score has any weight: among ordinary ones, and far below the others."""
        mask, far = pattern(3, 5), torch.tensor([[True, True, False]])
        weights = [weigh(wave(3, 5), mask)[~mask], weigh(numbers([[0.0, 2e3, -1.0]]), far)[~far]]
        return torch.tensor([bool((each != 0).any()) for each in weights])

    def beside_what_is_right():
        """The sum of a row less 1, and how far one share of it is off."""
        row = weigh(numbers([[0.5, 9.0, 0.25]]), torch.tensor([[True, False, True]]))[0]
        return float(row.sum()) - 1, float(row[0] / row.sum()) - 1 / (1 + math.exp(-0.25))

    def rows_fall_short():
        less, off = beside_what_is_right()
        return abs(off) < 1e-13 and 1e-14 < -less < 1e-3

    def digits_lost():
        return 1e-12 < abs(beside_what_is_right()[1]) < 1e-5

    def kept(dtype):
        return called(wave(3, 5).to(dtype), pattern(3, 5)).dtype == dtype

    def second_call():
        full(3, 5)
        return weigh(wave(2, 4), ~pattern(2, 4))

    def turned(scores, mask):
        weights = called(scores.mT.contiguous().mT, mask.mT.contiguous().mT)
        return weights.double()

    return Part(
        main={
            "all 4": lambda: full(4, 4),
            "all 3, 3-D": lambda: full(3, 3, 3),
            "all 3, 4-D": lambda: full(3, 3, 3, 3),
            "a plain row": plain_row_below,
            "3-D": lambda: full(3, 5, 4),
            "4-D": lambda: full(3, 4, 6, 5),
        },
        edges={
            "padding": lambda: padding(2, 1, 1, 5),
            "one mask for all": lambda: padding(1, 5),
            "a mask of one dimension": lambda: padding(1, 5)[0, 0],
            "a mask for each of a batch": lambda: weigh(wave(3, 2, 4, 5), pattern(3, 1, 4, 5)),
            "a mask for each head": lambda: weigh(wave(2, 2, 4, 5), pattern(2, 4, 5)),
            "a causal mask": lambda: weigh(2 * wave(2, 4, 4), torch.ones(4, 4).tril().bool()),
            "sizes of one": lambda: weigh(wave(1, 3, 1, 4), pattern(1, 4)),
            "nothing hidden": lambda: row([0.5, 1.5, -0.5], "111"),
            "scores of 0": lambda: row([0.0, 0.0, 0.0, 1.0], "1101"),
            "one place left": lambda: row([0.5, 1.5, -0.5], "010"),
            "by name": lambda: problem.masked_softmax(scores=wave(3, 4), mask=pattern(3, 4)),
            "allowed far below": lambda: row([-1e12, 0.5, -2e12, 1.5], "1010"),
            "allowed farther below": lambda: row([-1e45, 0.5, -2e45, 1.5], "1010"),
            "allowed near the lowest": lambda: row([-HUGE, 0.5, -2 * HUGE, 1.5], "1010"),
            "two alike far below": lambda: row([-1e20, -3e20, -1e20, -2e20], "1010"),
            "allowed at -1000": lambda: row([-1000.0, 0.5, -1001.0, 1.5], "1010"),
            "allowed at 1000": lambda: row([1000.0, 0.5, 1001.0, 1.5], "1010"),
            "hidden at 1000": lambda: row([0.0, 1000.0, 1.0, 1000.5], "1010"),
            "hidden far above": lambda: row([0.0, 1e12, 1.0, 2e12], "1010"),
            "hidden farther above": lambda: row([0.0, 1e45, 1.0, 2e45], "1010"),
            "hidden near the highest": lambda: row([-HUGE, 2 * HUGE, -3 * HUGE, 4 * HUGE], "1010"),
            "rows far apart": lambda: weigh(
                numbers([[0.5, 1.0, 3.0], [2000.0, 2001.0, 1e3]]),
                torch.tensor([[True, True, False], [True, True, False]]),
            ),
            "hidden ones count": hidden_ones_count,
            "rows fall short": rows_fall_short,
            "float32": lambda: kept(torch.float32),
            "float64": lambda: kept(torch.float64),
            "half precision": lambda: kept(torch.bfloat16),
            "digits are lost": digits_lost,
            "gradient": ordinary_gradient,
            "gradient grows": lambda: torch.allclose(
                ordinary_gradient(), ordinary_gradient(2.0**20)
            ),
            "gradient, hidden at 1000": lambda: gradient_beside(1000.0),
            "gradient, hidden near the highest": lambda: gradient_beside(HUGE),
            "changes scores": lambda: changes("scores"),
            "changes mask": lambda: changes("mask"),
            "second call": second_call,
            "laid out in another order": lambda: turned(wave(2, 4, 3), pattern(4, 3)),
        },
    )


def wave_weights(n_embd, bias=True):
    """Weights for the three layers, by name, that make scores of ordinary size."""
    weights = {}
    for start, name in enumerate(LAYERS):
        weights[f"{name}.weight"] = 1.2 * wave(n_embd, n_embd, start=start) / math.sqrt(n_embd)
        if bias:
            weights[f"{name}.bias"] = 0.5 * wave(n_embd, start=2.0 + start)
    return weights


def about_module(problem):
    """The questions about `CausalAttention`."""

    def made(n_embd, n_positions, bias=True, dtype=torch.float64):
        module = problem.CausalAttention(n_embd, n_positions, bias).eval()
        if not bias and any("bias" in name for name in parameters(module)):
            raise ValueError("nobody asked for a bias")
        return holding(module, wave_weights(n_embd, bias), dtype)

    def output(*shape, n_positions, bias=True):
        return made(shape[-1], n_positions, bias)(wave(*shape, start=0.2)).double()

    def between(*shape, n_positions, bias=True):
        """Without the first and the last position, in which some masks leave nothing."""
        return output(*shape, n_positions=n_positions, bias=bias)[:, 1:-1]

    def opposite():
        """A module in which a token meets itself with a score far below all others."""
        weights = {f"{name}.weight": torch.eye(3, dtype=torch.float64) for name in LAYERS}
        weights["query.weight"] = -weights["query.weight"]
        return holding(problem.CausalAttention(3, 6, bias=False).eval(), weights)

    def tokens(size, later=1.0):
        """Twice three tokens: the first of the size `size`, the others of the size `later`."""
        rows = [[size, 0.0, 0.0], [0.0, 0.5 * later, 0.0], [later, 0.0, 0.25 * later]]
        return numbers([rows, rows])

    sizes = numbers([[[1.0]], [[1e3]], [[30.0]]])

    def first_of(module, x):
        return module(x)[:, :1].double() / x[:, :1].abs().max()

    def gradient(name):
        module, x = made(3, 6), wave(2, 5, 3).requires_grad_()
        leaves = {"x": x, **parameters(module)}
        return slope(module(x), leaves[name], wave(2, 5, 3, start=0.7))

    def gradient_before(later):
        x = tokens(1.0, later).requires_grad_()
        output = opposite()(x)[:, :1].sum()
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

    def what_it_is_called():
        found = dict(problem.CausalAttention(3, 4).named_buffers())
        shapes = {name: tuple(each.shape) for name, each in found.items()}
        return about_names(shapes, {"mask": (4, 4)}, "Others look for it by its name.")

    def names(bias):
        return names_of_layers(problem.CausalAttention(4, 3, bias=bias))

    def by_name():
        module = problem.CausalAttention(n_embd=3, n_positions=6, bias=True).eval()
        return holding(module, wave_weights(3))(x=wave(2, 5, 3)).double()

    def starts_alike():
        starts = []
        for seed in (1, 2):
            torch.default_generator.manual_seed(seed)
            starts.append(problem.CausalAttention(4, 3).query.weight.detach().clone())
        return torch.equal(*starts)

    def how_refused(length, training=True):
        """What a sequence longer than n_positions meets, as a number."""
        module = made(3, 4).train(training)
        try:
            output = module(wave(2, length, 3))
        except Exception as error:
            if type(error) is RuntimeError and "tensor" in str(error):
                return 3  # PyTorch's own
            return {ValueError: 1, AssertionError: 2}.get(type(error), 4)
        return 0 if output.shape[1] == length else 5

    def second_call(first, second):
        module = made(3, 6)
        module(wave(*first))
        return module(wave(*second, start=0.5)).double()

    def eval_differs():
        module, x = made(3, 6), wave(2, 5, 3)
        return not torch.equal(module.train()(x), module.eval()(x))

    def answers_by_chance():
        module, x = made(3, 6).train(), wave(2, 5, 3)
        return not torch.equal(module(x), module(x))

    def changes():
        x = wave(2, 5, 3)
        try:
            made(3, 6)(x)
        except Mismatch as found:  # in grading a change is noticed at once
            return "x" in str(found)
        return not torch.equal(x, wave(2, 5, 3))

    def global_state_moves():
        module = made(3, 6)
        before = torch.get_rng_state()
        module(wave(2, 5, 3))
        return not torch.equal(before, torch.get_rng_state())

    def kept(dtype):
        return made(3, 6, dtype=dtype)(wave(2, 5, 3).to(dtype)).dtype == dtype

    def beside_what_is_right():
        """The sum of the weights of a token less 1, and how far one share of it is off."""
        weights = {f"{name}.weight": torch.eye(2, dtype=torch.float64) for name in LAYERS}
        module = holding(problem.CausalAttention(2, 3, bias=False).eval(), weights)
        rows = [[1.0, 1.0], [0.7, 1.0]]
        share, total = module(numbers([rows, rows]))[0, 1].tolist()
        first = 1 / (1 + math.exp((0.7 * 0.7 - 0.7) / math.sqrt(2)))
        return total - 1, share / total - first - 0.7 * (1 - first)

    def rows_fall_short():
        less, off = beside_what_is_right()
        return abs(off) < 1e-13 and 1e-14 < -less < 1e-3

    def digits_lost():
        return 1e-12 < abs(beside_what_is_right()[1]) < 1e-5

    def scores_of_0():
        module = made(3, 6)
        no_query = {name: 0 * weight for name, weight in wave_weights(3).items() if "query" in name}
        set_weights(module, no_query)
        return module(wave(2, 4, 3)).double()

    return Part(
        main={
            "all 4": lambda: between(4, 4, 4, n_positions=4),
            "all 3": lambda: output(3, 3, 3, n_positions=3)[:, 1:],
            "longest": lambda: between(3, 5, 4, n_positions=5),
            "T = C": lambda: between(2, 5, 5, n_positions=8),
            "B = T": lambda: between(6, 6, 2, n_positions=8),
            "wide": lambda: between(3, 4, 11, n_positions=12),
            "no bias": lambda: between(2, 6, 3, n_positions=7, bias=False),
        },
        edges={
            "parameters with bias": lambda: names(True),
            "parameters without bias": lambda: names(False),
            "default width": lambda: len(problem.CausalAttention(n_positions=2).query.weight),
            "by name": by_name,
            "starts alike": starts_alike,
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
            "scores at -1e6": lambda: first_of(opposite(), tokens(1e3)),
            "scores at -1e12": lambda: first_of(opposite(), tokens(1e6)),
            "scores at -1e60": lambda: first_of(opposite(), tokens(1e30)),
            "scores at -1e200": lambda: first_of(opposite(), tokens(1e100)),
            "scores at 1000": lambda: made(3, 6)(100 * wave(2, 4, 3)).double() / 100,
            "scores far apart": lambda: made(3, 6)(wave(3, 4, 3) * sizes).double(),
            "before a large future": lambda: first_of(opposite(), tokens(1.0, -1e4)),
            "before a huge future": lambda: first_of(opposite(), tokens(1.0, -1e100)),
            "gradient before a large future": lambda: gradient_before(-1e4),
            "gradient before a huge future": lambda: gradient_before(-1e100),
            "float32": lambda: kept(torch.float32),
            "float64": lambda: kept(torch.float64),
            "half precision": lambda: kept(torch.bfloat16),
            "digits are lost": digits_lost,
            "rows fall short": rows_fall_short,
            "second call": lambda: second_call((2, 5, 3), (2, 5, 3)),
            "a longer one after": lambda: second_call((2, 3, 3), (2, 5, 3)),
            "a shorter one after": lambda: second_call((2, 5, 3), (2, 3, 3)),
            "eval differs": eval_differs,
            "training answers by chance": answers_by_chance,
            "changes x": changes,
            "global state moves": global_state_moves,
            "laid out in another order": lambda: made(3, 6)(
                wave(2, 5, 3).mT.contiguous().mT
            ).double(),
            "gradient by x": lambda: gradient("x"),
            "gradient by query": lambda: gradient("query.weight"),
            "gradient by key": lambda: gradient("key.weight"),
            "gradient by value": lambda: gradient("value.weight"),
            "gradient by value's bias": lambda: gradient("value.bias"),
        },
        estimators=(
            about_layers(lambda width: problem.CausalAttention(width, 12), causal=True),
            about_names_of_layers(lambda width, bias: problem.CausalAttention(width, 3, bias)),
            what_it_is_called,
        ),
    )
