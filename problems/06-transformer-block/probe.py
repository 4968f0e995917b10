"""Define the questions of problem 06: calls whose answers identify mistakes."""

import functools

import torch

from grader.diagnose import edges
from grader.diagnose.answers import attempt
from grader.diagnose.numbers import numbers
from grader.diagnose.probe import Part
from grader.run.compare import parameters, set_weights
from shared.oracles.gpt import batched, block_by_hand, gelu_by_hand, layer_norm_by_hand
from shared.probe_weights import filled
from shared.small_gpt import block_weights, mlp_weights, norm_weights


class Waves:
    """A replacement for `rng` that returns the same numbers in each run."""

    def __init__(self):
        self.start = 0.0

    def normal(self, *shape):
        """Return fixed numbers, different for each call."""
        self.start += 0.7
        return numbers(*shape, start=self.start)


def probe(problem):
    """Return the questions about the function and about several aspects of the classes."""
    return {
        "gelu": about_gelu(problem),
        "LayerNorm": about_norm(problem),
        "LayerNorm: parameters": about_parameters(problem),
        "MLP": about_mlp(problem),
        "MLP: layers": about_layers(problem),
        "MLP: dropout": about_dropout_of_mlp(problem),
        "Block": about_block(problem),
        "Block: parts": about_parts(problem),
        "Block: dropout": about_dropout_of_block(problem),
        "Block: defaults": about_defaults(problem),
    }


def by_hand(x):
    """Return GPT-2's GELU of each number."""
    found = [gelu_by_hand(number) for number in x.flatten().tolist()]
    return torch.tensor(found, dtype=torch.float64).view_as(x)


def normed_by_hand(x, weights):
    """Return the LayerNorm of each row of x, by the definition."""
    return torch.tensor(layer_norm_by_hand(x.tolist(), weights), dtype=torch.float64)


def about_gelu(problem):
    """Return questions about gelu."""

    def fine():
        """Return 1000 times the error of gelu, to distinguish nearly equal formulas."""
        x = torch.linspace(-4, 4, 33, dtype=torch.float64)
        return 1000 * (problem.gelu(x.clone()) - by_hand(x))

    def digits_lost():
        x = numbers(4, 6) * 2
        return edges.loses_digits(problem.gelu(x.clone()), by_hand(x))

    def huge():
        """Return a code for gelu of each large number: 0 for zero, 1 for too small, 2 for right."""
        x = torch.tensor([1e8, 1e13, 1e20, 1e30])
        beside = problem.gelu(x.clone()) / x.abs()
        coarse = torch.bucketize(beside, torch.tensor([0, 0.9, 1.1])).float()
        return torch.where(beside.isfinite(), coarse, beside)

    def slope_of_large():
        x = torch.tensor([1e4, 1e6, -1e4, -1e6], dtype=torch.float64, requires_grad=True)
        return torch.autograd.grad(problem.gelu(x).sum(), x)[0]

    return Part(
        main={
            "ordinary": lambda: problem.gelu(numbers(3, 4) * 2),
            "fine": fine,
            "one number": lambda: problem.gelu(numbers(1, start=0.5)[0]),
        },
        edges=edges.of_function(lambda x: problem.gelu(x), {"x": numbers(3, 4) * 2})
        | {
            "huge, float32": huge,
            "slope of large": slope_of_large,
            "digits lost": digits_lost,
        },
    )


def made(problem, name, weights, *arguments, dtype=torch.float64, **options):
    """Return the student's module with these weights, in evaluation mode."""
    bias = any("bias" in each for each in weights)
    module = getattr(problem, name)(*arguments, **({"bias": bias} | options))
    module = filled(module, weights, dtype).eval()
    torch.default_generator.manual_seed(0)  # so that all modules draw the same random numbers
    return module


def about_norm(problem):
    """Return questions about the output of LayerNorm."""

    def output(*shape, bias=True):
        weights = norm_weights(Waves(), shape[-1], bias=bias)
        return made(problem, "LayerNorm", weights, shape[-1])(numbers(*shape, start=0.5) + 0.3)

    def of_narrow_rows(**options):
        module = made(problem, "LayerNorm", norm_weights(Waves(), 6), 6, **options)
        return module(numbers(2, 4, 6, start=0.5) / 1000)

    def plain(dtype=torch.float64):
        weights = {"weight": torch.ones(8), "bias": torch.zeros(8)}
        return made(problem, "LayerNorm", weights, 8, dtype=dtype)

    def far_off():
        """Return whether the error for float32 rows with values near 10,000 is too large."""
        x = (numbers(6, 8, start=0.5) + 1e4).float()
        right = normed_by_hand(x, {"weight": torch.ones(8)})
        far = (plain(torch.float32)(x).double() - right).abs().max()
        return not bool(far <= 2e-2)  # also true for NaN

    def slope_of_constant():
        x = torch.tensor([3.0, 0, -1, 7]).double()[:, None].repeat(1, 8).requires_grad_()
        return edges.slope(plain()(x.clone()), x).isfinite().all()

    def digits_lost():
        weights, x = norm_weights(Waves(), 6), numbers(4, 6, start=0.5)
        found = made(problem, "LayerNorm", weights, 6)(x.clone())
        return edges.loses_digits(found, normed_by_hand(x, weights))

    def ordinary(dtype=torch.float64):
        return made(problem, "LayerNorm", norm_weights(Waves(), 6), 6, dtype=dtype)

    def by_position():
        weights = norm_weights(Waves(), 6, bias=False)
        module = problem.LayerNorm(6, False, 0.3).double()
        set_weights(module, weights)
        return module(numbers(2, 4, 6, start=0.5))

    return Part(
        main={
            "threes": lambda: output(3, 3, 3),
            "ordinary": lambda: output(2, 4, 6),
            "no bias": lambda: output(2, 3, 5, bias=False),
            "narrow rows": of_narrow_rows,
            "eps": lambda: of_narrow_rows(eps=1e-3),
            "eps 0": lambda: of_narrow_rows(eps=0),
            "by position": by_position,
        },
        edges=edges.of_module(
            ordinary, numbers(2, 4, 6, start=0.5), other=numbers(2, 3, 6), weights=("weight",)
        )
        | {
            "digits lost": digits_lost,
            "far, float32": far_off,
            "slope of constant": slope_of_constant,
        },
    )


def shape_of(module, name):
    """Return how many dimensions and how many entries a parameter has, or -1 if it is missing."""
    weight = parameters(module).get(name)
    return [-1.0] if weight is None else [float(weight.dim()), float(weight.numel())]


def about_parameters(problem):
    """Return questions about the parameters of LayerNorm."""

    def shapes(bias):
        module = problem.LayerNorm(6, bias=bias)
        found = [*shape_of(module, "weight"), *shape_of(module, "bias")]
        return torch.tensor([*found, float(len(list(module.parameters())))])

    def start(name):
        """Return the initial value of all entries of a parameter, or -9 if they differ."""
        found = parameters(problem.LayerNorm(6))[name].detach().double()
        return found.mean() if bool((found == found.flatten()[0]).all()) else -9.0

    def without():
        """Return a code for the attribute `bias` if bias=False: 1 for None, -1 for no attribute."""
        module = problem.LayerNorm(6, bias=False)
        return float(module.bias is None) if hasattr(module, "bias") else -1.0

    return Part(
        main={
            "with bias": lambda: shapes(True),
            "without bias": lambda: shapes(False),
            "weight at first": lambda: start("weight"),
            "bias at first": lambda: start("bias"),
            "bias is None": without,
        },
    )


def about_mlp(problem):
    """Return questions about the output of MLP without dropout."""

    def ordinary(width=6, *, bias=True, dtype=torch.float64):
        return made(problem, "MLP", mlp_weights(Waves(), width, bias=bias), width, dtype=dtype)

    def output(*shape, bias=True):
        return ordinary(shape[-1], bias=bias)(numbers(*shape, start=0.5))

    return Part(
        main={
            "ordinary": lambda: output(2, 4, 6),
            "no bias": lambda: output(2, 3, 5, bias=False),
        },
        edges=edges.of_module(
            lambda *dtype: ordinary(6, dtype=dtype[0] if dtype else torch.float64),
            numbers(2, 4, 6, start=0.5),
            weights=("c_fc.weight", "c_proj.weight"),
        ),
    )


def about_layers(problem):
    """Return questions about the layers of MLP."""

    def layers(bias):
        module = problem.MLP(6, bias=bias)
        sizes = torch.tensor(edges.linear_sizes(module, "c_fc", "c_proj")).flatten()
        return torch.tensor([*sizes, float(len(list(module.parameters())))])

    def rate_of(module):
        return edges.dropout_rates(module, "dropout")[0]

    return Part(
        main={
            "with bias": lambda: layers(True),
            "without bias": lambda: layers(False),
            "dropout 0.25": lambda: rate_of(problem.MLP(6, dropout=0.25)),
            "dropout by default": lambda: rate_of(problem.MLP(6)),
        },
        edges={"starts alike": lambda: edges.starts_alike(lambda: problem.MLP(6))},
    )


RATE = 0.25


def shares(entries):
    """Return the factor by which dropout multiplies each entry, (batch, T, C).

    Args:
        entries: a function that returns the entries to which dropout applies. Its argument is True
            for training mode and False for evaluation mode.
    """
    torch.default_generator.manual_seed(3)
    return entries(True) / entries(False)


def values(factors):
    """Return the distinct finite factors, or a tensor of 9 ones if there are more than 8."""
    finite = factors[factors.isfinite()]
    seen = (finite.mul(1e4).round() + 0.0).unique() / 1e4
    return seen if len(seen) <= 8 else torch.full((9,), 1.0, dtype=torch.float64)


def how_often(factors):
    """Return the approximate rate of dropped entries, as the index of an interval."""
    bounds = torch.tensor([0.03, 0.17, 0.36, 0.42, 0.62, 0.9], dtype=torch.float64)
    return torch.bucketize((factors.abs() < 1e-6).double().mean(), bounds)


def together(factors):
    """Return for each axis whether neighbours are dropped together."""
    zero = factors.abs() < 1e-6
    if not 0.02 < zero.double().mean() < 0.98:
        return torch.zeros(3)
    alike = [(zero.diff(dim=axis) == 0).double().mean() > 0.95 for axis in range(3)]
    return torch.tensor([float(each) for each in alike])


def about_dropping(entries):
    """Return questions about dropout. For the argument `entries`, see `shares`."""
    found = functools.cache(lambda: shares(entries))

    def often():
        """Return the approximate rate of dropped entries.

        Return -1 if all sequences have the same dropped entries, or if each sequence is dropped
        as a whole. The rate then depends on a few random numbers.
        """
        batch, length, width = together(found()).bool().tolist()
        few = batch or (length and width)
        return torch.tensor(-1) if few else how_often(found())

    return {
        "values": lambda: values(found()),
        "how often": often,
        "together": lambda: together(found()),
    }


def call(module, x, train):
    """Return the module's output for x, in training mode if `train`, else in evaluation mode."""
    return module.train(train)(x.clone()).detach()


def about_dropout_of_mlp(problem):
    """Return questions about dropout in the MLP."""
    x = numbers(1, 4, 6, start=0.5).repeat(30, 1, 1)

    def entries(train, weights=None):
        weights = mlp_weights(Waves(), 6) if weights is None else weights
        return call(made(problem, "MLP", weights, 6, dropout=RATE), x, train)

    def of_single():
        """Return the distinct factors by which dropout multiplies entries, for special weights.

        With them, each entry of the output is one hidden entry plus 1, and does not depend on x.
        """
        weights = {name: torch.zeros_like(w) for name, w in mlp_weights(Waves(), 6).items()}
        ones = {"c_fc.bias": torch.ones(24), "c_proj.bias": torch.ones(6)}
        weights |= ones | {"c_proj.weight": torch.eye(6, 24)}
        return values(shares(lambda train: entries(train, weights)))

    return Part(main=about_dropping(entries) | {"single numbers": of_single})


def silenced(weights, name):
    """Return the weights with zeros for c_proj of a part, so that the part returns 0."""
    zeros = {n: torch.zeros_like(w) for n, w in weights.items() if n.startswith(f"{name}.c_proj")}
    return weights | zeros


def about_dropout_of_block(problem):
    """Return questions about dropout in both halves of a Block."""
    x, weights = numbers(1, 4, 6, start=0.5), block_weights(Waves(), 6)
    weights["attn.c_proj.weight"] = torch.zeros(6, 6)  # so the attention's output is its bias

    def readable(silent):
        """Return whether a Block is right without dropout if the part `silent` returns 0."""
        module = made(problem, "Block", silenced(weights, silent), 6, 2)
        right = batched(block_by_hand, x, silenced(weights, silent), 2)
        return torch.allclose(module(x.clone()), right)

    for silent in ("mlp", "attn"):
        answer = attempt(lambda silent=silent: readable(silent))
        if not answer.is_value or answer.numbers[0] != 1:
            return Part(main={})

    def added(silent):
        many = x.repeat(30, 1, 1)

        def output(train):
            module = made(problem, "Block", silenced(weights, silent), 6, 2, dropout=RATE)
            return call(module, many, train)

        asked = about_dropping(lambda train: output(train) - many)
        return asked | {"of the sums": lambda: how_often(output(True))}

    def of_one_token():
        """Return the distinct factors by which dropout multiplies entries, for a single token."""
        held = silenced(block_weights(Waves(), 6), "mlp")
        held["attn.c_proj.bias"] = torch.zeros(6)
        one = numbers(1, 1, 6, start=0.5).repeat(30, 1, 1)
        module = made(problem, "Block", held, 6, 1, dropout=RATE)
        return values(shares(lambda train: call(module, one, train) - one))

    def weights_in_evaluation():
        """Return whether dropout changes the output of a Block in evaluation mode."""
        plain, dropping = (
            made(problem, "Block", block_weights(Waves(), 6), 6, 2, dropout=rate)
            for rate in (0.0, 0.5)
        )
        return not torch.allclose(plain(x.clone()), dropping(x.clone()))

    questions = {f"attn, {name}": ask for name, ask in added("mlp").items()}
    questions["in evaluation"] = weights_in_evaluation
    questions["attn, of one token"] = of_one_token
    return Part(main=questions | {f"mlp, {name}": ask for name, ask in added("attn").items()})


def about_block(problem):
    """Return questions about the output of a Block without dropout."""

    def ordinary(width=6, n_head=2, *, bias=True, silent="", dtype=torch.float64):
        weights = silenced(block_weights(Waves(), width, bias=bias), silent)
        return made(problem, "Block", weights, width, n_head, dtype=dtype)

    def output(*shape, n_head, **options):
        return ordinary(shape[-1], n_head, **options)(numbers(*shape, start=0.5))

    x = numbers(2, 4, 6, start=0.5)
    return Part(
        main={
            "threes": lambda: output(3, 3, 3, n_head=3),
            "ordinary": lambda: output(2, 4, 6, n_head=2),
            "attention only": lambda: output(2, 4, 6, n_head=2, silent="mlp"),
            "mlp only": lambda: output(2, 4, 6, n_head=2, silent="attn"),
            "no bias": lambda: output(2, 3, 4, n_head=2, bias=False),
            "one token": lambda: output(1, 1, 4, n_head=2),
            "kind": lambda: edges.kind(ordinary()(x.clone())),
        },
        edges=edges.of_module(
            lambda *dtype: ordinary(dtype=dtype[0] if dtype else torch.float64),
            x,
            weights=("attn.c_attn.weight", "mlp.c_fc.weight", "ln_1.weight"),
        ),
    )


def expected_parts(bias):
    """Return the expected names of the parameters of a Block."""
    return list(block_weights(Waves(), 6, bias=bias))


def about_parts(problem):
    """Return questions about the parameters of a Block."""

    def there():
        """Return which parameters a Block with bias=False has, and how many it has in total."""
        found = parameters(problem.Block(6, 2, bias=False))
        number = float(len({id(weight) for weight in found.values()}))
        return torch.tensor([*(float(name in found) for name in expected_parts(True)), number])

    def by_position():
        found = parameters(problem.Block(6, 3, 0.25, False))
        return torch.tensor([float(name in found) for name in expected_parts(True)])

    def sizes():
        found, right = parameters(problem.Block(6, 2)), expected_parts(True)
        named = {id(found[name]) for name in right if name in found}
        own = [name for name in sorted(found) if name in right or id(found[name]) not in named]
        return torch.tensor([float(found[name].numel()) for name in own])

    return Part(
        main={
            "without bias": there,
            "by position": by_position,
            "sizes": sizes,
        },
    )


def about_defaults(problem):
    """Return questions about a Block with default arguments."""

    def filled(module, width):
        set_weights(module.double(), block_weights(Waves(), width))
        return module

    def heads():
        """Return the number of heads with which a Block has the same output as Block(24).

        Return -1 if there is no such number.
        """
        x, found = numbers(1, 5, 24, start=0.5), filled(problem.Block(24), 24).eval()
        output = found(x.clone())
        for n_head in (12, 8, 1, 2, 3, 4, 6, 24):
            with_heads = filled(problem.Block(24, n_head), 24).eval()
            if torch.allclose(with_heads(x.clone()), output):
                return n_head
        return -1

    def drops():
        """Return the approximate rate at which Block(12, 2) drops entries of the MLP's output."""
        x, module = numbers(1, 5, 12, start=0.5).repeat(9, 1, 1), problem.Block(12, 2).double()
        set_weights(module, silenced(block_weights(Waves(), 12), "attn"))
        return how_often(call(module, x, True) - x)

    def width():
        weight = parameters(problem.Block()).get("ln_1.weight")
        return 0.0 if weight is None else float(weight.numel())

    def unless_it_stops(question, right):
        """Return the answer to a question, or `right` if the code raises an exception.

        Other questions report the exception, which is not a mistake in the defaults.
        """
        found = functools.cache(question)
        answer = attempt(found)
        unwritten = answer.instead == "NotImplementedError"
        return found() if answer.is_value or unwritten else right

    return Part(
        main={
            "width": width,
            "heads": lambda: unless_it_stops(heads, 12),
            "drops": lambda: unless_it_stops(drops, torch.tensor(0)),
        }
    )
