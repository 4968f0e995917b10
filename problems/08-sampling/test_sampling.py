"""Tests of problem 08. Run them with `uv run pytest` in this folder."""

import math
from contextlib import contextmanager
from functools import partial

import pytest
import torch

from grader.run import checks
from grader.run.calls import answers
from shared import robust
from shared import worked_example as example
from shared.oracles import sampling as oracles

INF = math.inf

LOGITS = [1.0, 4.0, 0.0, 2.0, 3.0]
"""The README's example: logits of the words moon, mat, idea, roof and sofa."""

SHAPES = [(7,), (3, 5), (1, 6), (2, 3, 5), (2, 1, 2, 4)]
"""Shapes of logits. The last size is V, the number of tokens."""


NO_FILTER = {"temperature": 1.0, "top_k": None, "top_p": None}
"""The defaults of sample. One test checks them; the others pass all options."""


# Inputs and results


def clear_logits(rng, *shape, p, dtype=torch.float32):
    """Return random, distinct logits for which no sum of the largest probabilities is near p.

    They are multiples of 1/2048, which float32 represents exactly, also near 2000.
    """
    rows = []
    while len(rows) < math.prod(shape[:-1]):
        row = (3000 * rng.normal(shape[-1])).round() / 2048
        sums = row.double().softmax(-1).sort(descending=True).values.cumsum(-1)
        if len(row.unique()) == len(row) and (p == 1 or (abs(sums - p) > 1e-3).all()):
            rows.append(row.to(dtype))
    return torch.stack(rows).reshape(shape)


def named(**arguments):
    """Return a call of sample, as text."""
    return f"sample({', '.join(['logits', *(f'{k}={v}' for k, v in arguments.items())])})"


def draws(problem, rng, calls):
    """Return the results of sample for some calls, each after a different seed.

    So no result depends on the random numbers of earlier calls.

    Args:
        problem: the student's code.
        rng: draws the seeds.
        calls: for each call, the logits, which are copied, and the other arguments by name.
    """
    arguments = [{"logits": logits.clone(), **options} for logits, options in calls]
    return answers(problem.sample, arguments, example.random_seeds(rng, len(arguments)))


@contextmanager
def all_from_generator(call):
    """Require that the code in the `with` block draws nothing from torch's global generator."""
    before = torch.get_rng_state()
    yield
    same = torch.equal(torch.get_rng_state(), before)
    message = "The global random state changed; all numbers should come from the generator."
    checks.require(same, f"{call}\n{message}")


def check_kept(actual, logits, expected, call, **near):
    """Compare a filter's result with the expected one: first the kept tokens, then their logits."""
    checks.check_that(actual, oracles.keeps, call, logits, expected, near)


def check_call(problem, name, logits, amount, what=""):
    """Compare a function of logits and one number with the definition.

    Args:
        problem: the student's code.
        name: the name of the function, such as keep_top_k.
        logits: the first argument, which is copied.
        amount: the second argument.
        what: a description of the logits; by default their shape.
    """
    call = f"{name}(logits, {amount}) with {what or f'logits of shape {tuple(logits.shape)}'}"
    expected = getattr(oracles, name)(logits, amount)
    check_kept(getattr(problem, name)(logits.clone(), amount), logits, expected, call)


def check_slopes(actual, logits, kept, slope, upstream, call, **near):
    """Compare the gradients of a filter for kept tokens. Other gradients may have any value."""
    gradient = checks.gradients(actual, {"logits": logits}, upstream, call)["logits"]
    what = f"the gradient of {call}, where tokens are kept"
    checks.check_that(gradient, oracles.passes_gradients, what, kept, slope, near)


def whole(drawn):
    """Return tokens as int64 if they are whole numbers. Another test checks their dtype."""
    is_whole = torch.is_tensor(drawn) and torch.equal(drawn.long().to(drawn.dtype), drawn)
    return drawn.long() if is_whole else drawn


def check_drawn(drawn, row, shape, call, **options):
    """Check how often each token was drawn for many equal rows.

    Args:
        drawn: the tokens that the student's code drew for copies of `row`.
        row: a list of logits.
        shape: the shape of `drawn`.
        call: the call, as text.
        options: temperature, top_k and top_p.
    """
    right = oracles.probabilities(row, **options)
    checks.check_that(whole(drawn), oracles.has_frequencies, f"{call} of {row}", shape, right)


def check_distribution(problem, row, shape, **options):
    """Draw a token for each of many equal rows, and check the frequencies of the tokens."""
    logits = torch.tensor(row).repeat(*shape, 1)
    torch.default_generator.manual_seed(11)
    options = NO_FILTER | options
    drawn = problem.sample(logits, **options)
    check_drawn(drawn, row, shape, named(**options), **options)


# apply_temperature


@pytest.mark.points(0.25)
def test_temperature_in_numbers(problem):
    """apply_temperature divides the logits of the README's example by the temperature"""
    for temperature in (0.5, 1.0, 1, 2.0):
        call = f"apply_temperature(tensor({LOGITS}), {temperature})"
        actual = problem.apply_temperature(torch.tensor(LOGITS), temperature)
        checks.check(actual, oracles.AT_TEMPERATURE[temperature], call)
        probabilities = oracles.PROBABILITIES_AT[temperature]
        checks.check(actual.softmax(-1), probabilities, f"{call}.softmax(-1)", atol=0.6e-4)


@pytest.mark.points(0.25)
@pytest.mark.parametrize("temperature", [0.7, 3, 1e-3, 1e4])
def test_temperature_of_any_shape(problem, rng, temperature):
    """apply_temperature is right for logits of any shape, and for temperatures far from 1"""
    for shape in SHAPES:
        check_call(problem, "apply_temperature", rng.normal(*shape), temperature)


@pytest.mark.points(0.25)
@pytest.mark.parametrize("temperature", [0, 0.0, -1, -0.25])
def test_impossible_temperatures_are_refused(problem, temperature):
    """apply_temperature raises ValueError unless the temperature is above 0"""
    logits, call = torch.tensor(LOGITS), f"apply_temperature(logits, {temperature})"
    example.check_refused(call, lambda: problem.apply_temperature(logits, temperature))


# keep_top_k


@pytest.mark.points(0.25)
def test_top_k_in_numbers(problem):
    """keep_top_k keeps the k largest logits of the README's example, or all if k is V or more"""
    for k in (1, 2, 3, 5, 8):
        logits, call = torch.tensor(LOGITS), f"keep_top_k(tensor({LOGITS}), {k})"
        check_kept(problem.keep_top_k(logits.clone(), k), logits, oracles.TOP_K[k], call)


@pytest.mark.points(0.5)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_top_k_of_any_shape(problem, rng, shape):
    """keep_top_k is right for each row, for any shape and any k"""
    for k in range(1, shape[-1] + 3):
        logits = rng.normal(*shape) + 5 * rng.normal(*shape[:-1], 1)
        check_call(problem, "keep_top_k", logits, k)
        check_call(problem, "keep_top_k", logits[..., :1], k)


@pytest.mark.points(0.25)
def test_top_k_keeps_ties(problem):
    """keep_top_k keeps all tokens that tie with the k-th largest"""
    rows = [[2.0, 5.0, 2.0, 1.0, 2.0], [3.0, 3.0, 3.0, 3.0, 3.0], [0.0, 1.0, 0.0, 1.0, -1.0]]
    logits = torch.tensor(rows)
    for k in range(1, 7):
        check_call(problem, "keep_top_k", logits, k, "ties")


@pytest.mark.points(0.25)
@pytest.mark.parametrize("k", [0, -1, -5])
def test_impossible_k_is_refused(problem, k):
    """keep_top_k raises ValueError if k is less than 1"""
    logits, call = torch.tensor(LOGITS), f"keep_top_k(logits, {k})"
    example.check_refused(call, lambda: problem.keep_top_k(logits, k))


# keep_top_p


@pytest.mark.points(0.5)
def test_top_p_in_numbers(problem):
    """keep_top_p keeps the most probable tokens until the sum of their probabilities reaches p"""
    cold = ([2.0, 8.0, 0.0, 4.0, 6.0], 0.999, oracles.COLD_TOP_P)  # at T = 0.5
    sizes = (0.05, 0.63, 0.64, 0.9, 0.96, 0.999, 1.0)
    for row, p, expected in [*((LOGITS, p, oracles.TOP_P[p]) for p in sizes), cold]:
        logits, call = torch.tensor(row), f"keep_top_p(tensor({row}), {p})"
        check_kept(problem.keep_top_p(logits.clone(), p), logits, expected, call)


@pytest.mark.points(0.75)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_top_p_of_any_shape(problem, rng, shape):
    """keep_top_p is right for each row, for any shape and any p"""
    for p in (0.02, 0.3, 0.5, 0.8, 0.9, 0.97, 1.0):
        logits = clear_logits(rng, *shape, p=p)
        check_call(problem, "keep_top_p", logits, p)
        check_call(problem, "keep_top_p", logits[..., :1], p)


@pytest.mark.points(0.25)
def test_top_p_of_one_keeps_all(problem, rng):
    """keep_top_p with p = 1 keeps all tokens, also very improbable ones"""
    steps = torch.arange(16)[:, None] / 7  # so that the sums of each row are rounded differently
    unlikely = torch.tensor([0.0, -20.0, -40.0, -800.0]) + steps * torch.arange(4)
    many = 3 * rng.normal(8, 1000)
    for logits, what in [(unlikely, "one likely token of four in each row"), (many, "1000 tokens")]:
        for p in (1.0, 1):
            check_call(problem, "keep_top_p", logits, p, what)


@pytest.mark.points(0.25)
@pytest.mark.parametrize("p", [0, -0.1, -1, 1.01, 2, 90])
def test_impossible_p_is_refused(problem, p):
    """keep_top_p raises ValueError unless p is above 0 and at most 1"""
    logits, call = torch.tensor(LOGITS), f"keep_top_p(logits, {p})"
    example.check_refused(call, lambda: problem.keep_top_p(logits, p))


# All three functions


@pytest.mark.points(0.25)
def test_minus_infinity_stays(problem):
    """In all three functions a logit of -inf stays -inf, and the other logits are right"""
    rows = [[1.0, -INF, 3.0, 2.0, -INF], [-INF, -INF, -INF, 0.5, -INF]]
    for name, amounts in [
        ("apply_temperature", [0.5]),
        ("keep_top_k", [1, 2, 3, 4, 9]),
        ("keep_top_p", [0.3, 0.8, 0.95, 1]),
    ]:
        for amount in amounts:
            check_call(problem, name, torch.tensor(rows), amount, f"logits = {rows}")


# sample


@pytest.mark.points(0.25)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_greedy(problem, rng, shape):
    """With temperature=0, sample returns the token of the largest logit, the first one of a tie"""
    logits = rng.normal(*shape)
    ties = (2 * logits).round()
    several = {"temperature": 0, "top_k": 3, "top_p": 0.5, "generator": example.seeded(1)}
    zeros = {"temperature": 0}, {"temperature": 0.0}
    calls = [
        *((logits, options, f"{named(**options)} with logits") for options in zeros),
        *((ties, options, f"{named(**options)} with ties, logits") for options in zeros),
        (logits, several, "sample(logits, temperature=0, top_k=3, top_p=0.5, ...) with logits"),
    ]
    results = draws(problem, rng, [call[:2] for call in calls])
    for drawn, (inputs, _, call) in zip(results, calls, strict=True):
        checks.check(whole(drawn), oracles.first_largest(inputs), f"{call} of shape {shape}")


@pytest.mark.points(0.25)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_one_token_for_each_row(problem, rng, shape):
    """sample returns one token number (int64) for each row, for any number of dimensions"""
    logits = rng.normal(*shape)
    certain = torch.where(logits == logits.amax(-1, keepdim=True), logits + 1000, logits)
    several = {}, {"temperature": 2.0}, {"top_p": 0.9, "top_k": 3}, {"generator": example.seeded(1)}
    results = draws(problem, rng, [(certain, options) for options in several])
    for drawn, options in zip(results, several, strict=True):
        shown = {name: "g" if name == "generator" else value for name, value in options.items()}
        call = f"{named(**shown)} with logits of shape {shape} in which one token is certain"
        checks.check(drawn, oracles.first_largest(logits), call)


@pytest.mark.points(0.75)
@pytest.mark.parametrize("options", [{}, {"temperature": 0.5}, {"temperature": 2.0}], ids=str)
def test_draws(problem, options):
    """sample draws each token with its probability, the softmax of logits / temperature"""
    check_distribution(problem, LOGITS, (6000,), **options)
    check_distribution(problem, [0.5, -INF, 1.0, -INF, 0.0, 0.3], (1500,), **options)


@pytest.mark.points(0.25)
def test_each_row_has_its_own_draw(problem):
    """Each row has its own probabilities and its own draw"""
    rows = [LOGITS, [2.0, 0.0, 1.0, 2.0, -1.0], [0.0] * 5, [0.0, 0.0, 3.0, -INF, 1.0]]
    logits, call = torch.tensor(rows)[:, None].repeat(1, 1200, 1), "sample(logits)"
    torch.default_generator.manual_seed(12)
    drawn, expected = problem.sample(logits), [*map(oracles.probabilities, rows)]
    call = f"{call} of {rows}"
    checks.check_that(whole(drawn), oracles.have_frequencies, call, (1200,), expected)
    torch.default_generator.manual_seed(11)
    drawn = problem.sample(torch.tensor(LOGITS).repeat(4, 1200, 1))
    probabilities = oracles.probabilities(LOGITS)
    checks.check_that(
        whole(drawn), oracles.has_own_draws, f"{call} of {LOGITS}", (4, 1200), probabilities
    )


@pytest.mark.points(0.5)
@pytest.mark.parametrize(
    "options", [{"top_k": 3}, {"top_p": 0.9}, {"top_k": 4, "top_p": 0.8}, {"top_k": 9}], ids=str
)
def test_draws_from_what_is_kept(problem, options):
    """With top_k and top_p only kept tokens are drawn, with probabilities that sum to 1"""
    check_distribution(problem, LOGITS, (3000,), **options)


@pytest.mark.points(0.5)
def test_order_of_the_steps(problem):
    """sample applies the temperature first, then top_k, then top_p"""
    for options in (
        {"temperature": 2.0, "top_p": 0.8},
        {"temperature": 0.5, "top_p": 0.9},
        {"top_k": 2, "top_p": 0.7},
        {"temperature": 2.0, "top_k": 3, "top_p": 0.8},
    ):
        check_distribution(problem, LOGITS, (3000,), **options)


@pytest.mark.points(0.25)
@pytest.mark.parametrize(
    "options",
    [
        {"temperature": -1},
        {"temperature": -0.1, "top_k": 2},
        {"top_k": 0},
        {"top_k": -1},
        {"top_p": 0},
        {"top_p": -0.5},
        {"top_p": 1.5},
    ],
    ids=str,
)
def test_impossible_requests_are_refused(problem, options):
    """sample raises ValueError for a temperature below 0 and for an impossible top_k or top_p"""
    logits = torch.tensor([LOGITS, LOGITS])
    example.check_refused(named(**options), lambda: problem.sample(logits, **options))


def check_seeds(again, drawn, call, logits, same, different):
    """Check that an equal seed gives equal tokens, and that not all draws are equal.

    Args:
        again: a draw with the same seed as the first of `drawn`.
        drawn: draws with different seeds, or successive draws of one generator.
        call: the call, as text.
        logits: the logits of each draw.
        same: the message if `again` differs from the first of `drawn`.
        different: the message if all of `drawn` are equal.
    """
    checks.check_that(
        (again, torch.stack(drawn)), oracles.are_seeded, call, logits.shape, same, different
    )


@pytest.mark.points(0.25)
@pytest.mark.parametrize(
    "options", [{}, {"temperature": 1.5, "top_k": 150, "top_p": 0.95}], ids=["plain", "all options"]
)
def test_generator(problem, rng, options):
    """All random numbers come from the generator, and its next draw is different"""
    logits, (seed, other) = rng.normal(4, 60, 200), example.random_seeds(rng, 2)
    call = named(**options, generator="generator")

    def draw(generator, global_seed):
        torch.default_generator.manual_seed(global_seed)
        with all_from_generator(call):
            return whole(problem.sample(logits.clone(), generator=generator, **options))

    generator, used = example.seeded(seed), example.seeded(seed)
    torch.rand(5, generator=used)
    first, second, again = draw(generator, 1), draw(generator, 1), draw(example.seeded(seed), 2)
    same = "Two generators with the same seed gave different tokens."
    for drawn, message in [
        (second, "Two calls with the same generator object drew the same tokens."),
        (draw(example.seeded(other), 1), "Generators with different seeds gave the same tokens."),
        (draw(used, 1), "A generator that was used before gave the same tokens as a new one."),
    ]:
        check_seeds(again, [first, drawn], call, logits, same, message)


@pytest.mark.points(0.25)
def test_without_a_generator(problem, rng):
    """Without a generator, sample draws from torch's global generator"""
    logits, (seed, other) = rng.normal(4, 60, 200), example.random_seeds(rng, 2)

    def draw(global_seed=None):
        if global_seed is not None:
            torch.default_generator.manual_seed(global_seed)
        return whole(problem.sample(logits.clone()))

    first, second, again, another = draw(seed), draw(), draw(seed), draw(other)
    same = "After torch.manual_seed with the same seed it drew other tokens."
    for drawn, message in [
        (second, "Two calls, one after the other, drew the same tokens."),
        (another, "After torch.manual_seed with another seed it drew the same tokens."),
    ]:
        check_seeds(again, [first, drawn], "sample(logits)", logits, same, message)


@pytest.mark.points(0.25)
def test_large_logits(problem, rng):
    """Results are right for logits near 2000 and near -2000, also in one batch"""
    shift = torch.tensor([[2000.0], [-2000.0], [0.0]])
    for p in (0.4, 0.9):
        logits = clear_logits(rng, 3, 6, p=p) + shift
        check_call(problem, "keep_top_p", logits, p, "rows near 2000, -2000 and 0")
    logits = rng.normal(3, 6) + shift
    check_call(problem, "keep_top_k", logits, 2, "rows near 2000, -2000 and 0")
    logits = torch.tensor([[-300.0, 0.0, -400.0, -200.0], [600.0, 150.0, 300.0, 900.0]])
    check_call(problem, "keep_top_k", logits, 2, "logits in a row that are hundreds apart")
    row = [2001.0, 2003.0, 2000.0, 2002.0, 2003.5]
    check_distribution(problem, row, (1000,), top_p=0.95)
    row = [logit - 4004 for logit in row]
    check_distribution(problem, row, (1000,), temperature=2.0)


# Rules for all problems


@pytest.mark.points(0.25)
def test_gradients_flow(problem, rng):
    """Gradients flow through all three functions; gradients of a filter are 1 for kept tokens"""
    logits, upstream = clear_logits(rng, 3, 6, p=0.8).requires_grad_(), rng.normal(3, 6)
    plain, call = logits.detach(), "apply_temperature(logits, 0.5)"
    actual = problem.apply_temperature(logits.clone(), 0.5)
    gradients = checks.gradients(actual, {"logits": logits}, upstream, call)
    expected = oracles.apply_temperature(upstream, 0.5)
    checks.check(gradients["logits"], expected, f"the gradient of {call}")
    sizes = [("keep_top_k", 3), ("keep_top_k", 9), ("keep_top_p", 0.8), ("keep_top_p", 1)]
    for name, size in sizes:
        call, expected = f"{name}(logits, {size})", getattr(oracles, name)(plain, size)
        actual = getattr(problem, name)(logits.clone(), size)
        check_slopes(actual, logits, expected, upstream, upstream, call)


FILTERS = {
    "apply_temperature": ("temperature", 0.6),
    "keep_top_k": ("k", 2),
    "keep_top_p": ("p", 0.6),
}
"""The functions that return logits, with the name of their second argument and a value for it."""


def call_of(problem, right, rng, name, lead=(2, 3), n=5, dtype=torch.float32):
    """Return a `robust.Call` of one of FILTERS; `right` is the module with the oracles."""
    argument, amount = FILTERS[name]
    logits = clear_logits(rng, *lead, n, p=0.6, dtype=dtype) + 1 / 3
    arguments = {"logits": logits, argument: amount}
    functions = getattr(problem, name), arguments, getattr(right, name)
    return robust.Call(f"{name}(logits, {amount})", *functions)


PARTS = "float32", "float64", "sizes of one", "transposed memory", "nothing changed", "second call"


@pytest.mark.points(0.625)
@robust.parts(*PARTS)
@pytest.mark.parametrize("name", FILTERS)
def test_filters_in_use(problem, rng, name, part):
    """The first three functions follow the rules for all problems"""
    call = partial(call_of, problem, oracles, rng, name)
    robust.check_part(part, rng, call, sizes="n", other={"lead": (), "n": 7})


@pytest.mark.points(0.125)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_sample_in_use(problem, rng, dtype):
    """sample does not change the logits, which may be transposed and in float32 or float64"""
    several = NO_FILTER | {"temperature": 0.7, "top_k": 4, "top_p": 0.8}
    for shape in ((2, 3, 5), (7,), (2, 3, 5)):
        logits = clear_logits(rng, *shape, p=0.8, dtype=dtype)
        logits[..., 2] = -INF
        for options in (NO_FILTER, several, several | {"temperature": 0}):
            with example.unchanged(named(**options), logits=logits):
                problem.sample(logits, **options)
        torch.default_generator.manual_seed(13)
        drawn = problem.sample(example.turned(logits), top_k=1)
        call = "sample(logits, top_k=1) with transposed logits"
        checks.check(whole(drawn), oracles.first_largest(logits), call)


@pytest.mark.points(0.25)
def test_defaults(problem, rng):
    """By default, sample uses temperature 1 and no filter"""
    logits = rng.normal(240, 200)
    torch.default_generator.manual_seed(15)
    checks.check_that(
        whole(problem.sample(logits)), oracles.comes_from_all, "sample(logits)", logits
    )


@pytest.mark.points(0.25)
def test_names_and_positions(problem, rng):
    """All arguments can be passed by name or by position, in the order of the docstrings"""
    logits = clear_logits(rng, 2, 5, p=0.6)
    for name, (argument, amount) in FILTERS.items():
        call = f"{name}({argument}={amount}, logits=logits)"
        expected = getattr(oracles, name)(logits, amount)
        actual = getattr(problem, name)(**{argument: amount, "logits": logits.clone()})
        checks.check(actual, expected, call)
    options = {"temperature": 2.0, "top_k": 4, "top_p": 0.7}
    rows, by_name = torch.tensor([LOGITS]).repeat(1500, 1), dict(reversed(options.items()))
    torch.default_generator.manual_seed(14)
    drawn = problem.sample(rows.clone(), *options.values(), example.seeded(3))
    check_drawn(drawn, LOGITS, (1500,), "sample(logits, 2.0, 4, 0.7, generator)", **options)
    call = "sample(generator=generator, top_p=0.7, top_k=4, temperature=2.0, logits=logits)"
    torch.default_generator.manual_seed(14)
    drawn = problem.sample(generator=example.seeded(3), **by_name, logits=rows.clone())
    check_drawn(drawn, LOGITS, (1500,), call, **options)


# --- hidden tests ---


from shared.oracles import hidden_sampling as hidden_judges  # noqa: E402

MORE_SHAPES = [(9,), (2, 8), (5, 1, 6), (3, 2, 2, 4), (2, 20)]
LARGE_SHAPES = [(2, 1000), (70, 3)]


@pytest.mark.points(0.75)
@pytest.mark.parametrize("temperature", [0.31, 0.7, 2, 17.5, 0.004])
def test_hidden_temperature(problem, solution, rng, temperature):
    """apply_temperature is right for other shapes and temperatures, and so are its gradients"""
    for shape in MORE_SHAPES + LARGE_SHAPES:
        logits = rng.normal(*shape)
        check_filter(problem, solution, "apply_temperature", logits, temperature, rng)
        logits[..., 0] = -INF
        expected = solution.apply_temperature(logits, temperature)
        call = f"apply_temperature(logits, {temperature}) with entries of -inf"
        checks.check(problem.apply_temperature(example.turned(logits), temperature), expected, call)


def check_filter(problem, solution, name, logits, amount, rng, **near):
    """Compare one of the first three functions and its gradients with the reference."""
    call = f"{name}(logits, {amount}) with logits of shape {tuple(logits.shape)}"
    function, expected = getattr(problem, name), getattr(solution, name)(logits, amount)
    check_kept(function(example.turned(logits), amount), logits, expected, call, **near)
    leaf, upstream = logits.clone().requires_grad_(), rng.normal(*logits.shape, dtype=logits.dtype)
    actual = function(leaf.clone(), amount)
    check_kept(actual, logits, expected, call, **near)
    slope = upstream / amount if name == "apply_temperature" else upstream
    check_slopes(actual, leaf, expected, slope, upstream, call, **near)


@pytest.mark.points(0.5)
@pytest.mark.parametrize("shape", MORE_SHAPES + LARGE_SHAPES, ids=str)
def test_hidden_top_k(problem, solution, rng, shape):
    """keep_top_k is right for other shapes, with ties and -inf, and so are its gradients"""
    for k in (1, 2, 3, 5, 19, 1000):
        logits = rng.normal(*shape)
        if k % 2:
            logits = (1.5 * logits).round()
        if k in (3, 19) and shape[-1] > 1:
            logits[..., random_index(rng, shape[-1])] = -INF
        check_filter(problem, solution, "keep_top_k", logits, k, rng)


def random_index(rng, number):
    """Return a random integer from 0 to `number` - 1."""
    return int(torch.randint(number, (), generator=rng.generator))


@pytest.mark.points(1.25)
@pytest.mark.parametrize("shape", MORE_SHAPES, ids=str)
def test_hidden_top_p(problem, solution, rng, shape):
    """keep_top_p is right for other shapes, with -inf and far from 0, and so are its gradients"""
    for p in (0.01, 0.17, 0.45, 0.66, 0.95, 1.0):
        logits = clear_logits(rng, *shape, p=p)
        if p in (0.45, 0.95, 1.0):
            logits = logits + 500 * torch.sign(rng.normal(*shape[:-1], 1))
        if p in (0.17, 0.66, 1.0):  # tokens with the probability 0
            out = torch.full((*shape[:-1], 2), -INF)
            logits = torch.cat([out[..., :1], logits, out[..., 1:]], dim=-1)
        check_filter(problem, solution, "keep_top_p", logits, p, rng)


@pytest.mark.points(0.25)
def test_hidden_top_p_of_many(problem, solution, rng):
    """keep_top_p is right for thousands of tokens, and keeps all of them when p is 1"""
    for spread in (1, 4):
        logits = spread * rng.normal(4, 3000)
        call = "keep_top_p(logits, 1.0) with 3000 tokens"
        expected = solution.keep_top_p(logits, 1.0)
        check_kept(problem.keep_top_p(logits.clone(), 1.0), logits, expected, call)
    many = torch.full((2, 2000), -9.0)  # 1000 tokens in groups of nearly equal probability
    many[:, ::2] = torch.arange(1000).div(200).floor() - 4
    many += 1e-4 * torch.rand(many.shape, generator=rng.generator)
    probabilities = many.double().softmax(-1).sort(descending=True).values.cumsum(-1)
    p = float(probabilities[0, 299] + probabilities[0, 300]) / 2
    call = f"keep_top_p(logits, {p:.4f}) with 2000 tokens"
    checks.check_that(problem.keep_top_p(many.clone(), p), hidden_judges.keeps_about, call, many, p)
    alike = rng.normal(2, 3000) / 100
    call = "keep_top_p(logits, 0.9) with 3000 nearly equal logits"
    kept = problem.keep_top_p(alike.clone(), 0.9)
    checks.check_that(kept, hidden_judges.keeps_about, call, alike, 0.9)


@pytest.mark.points(0.25)
@pytest.mark.parametrize("name", FILTERS)
def test_hidden_digits(problem, solution, rng, name):
    """For other shapes too, results and gradients keep all digits of float64"""
    for shape in [(6,), (2, 3, 5)]:
        logits = clear_logits(rng, *shape, p=0.6, dtype=torch.float64) + 1 / 3
        check_filter(problem, solution, name, logits, FILTERS[name][1], rng, all_digits=True)


@pytest.mark.points(0.5)
def test_hidden_other_logits(problem, solution, rng):
    """Results are right for logits near 5000 and near -5000, with and without gradients"""
    for name, (_, amount) in FILTERS.items():
        for shift in (5000, -5000):
            logits = clear_logits(rng, 3, 6, p=0.6) + shift
            check_filter(problem, solution, name, logits, amount, rng)
    logits, seeds = clear_logits(rng, 300, 1, 3, p=0.6), [*example.random_seeds(rng, 1)] * 2
    calls = [(logits.clone(),), (logits.clone().requires_grad_(),)]
    drawn, learning = answers(problem.sample, calls, seeds)
    with torch.no_grad():
        again = answers(problem.sample, calls, seeds)[1]
    call = "sample(logits) with logits that require a gradient, after the same torch.manual_seed"
    for other, what in [(learning, call), (again, f"{call}, under torch.no_grad()")]:
        checks.check_that((whole(drawn), whole(other)), hidden_judges.are_alike, what)


@pytest.mark.points(0.25)
@pytest.mark.parametrize(
    "options",
    [{}, {"temperature": 1, "top_k": 8, "top_p": None}, {"top_p": 1.0}],
    ids=str,
)
def test_hidden_large_vocabulary(problem, rng, options):
    """sample is right for 200 tokens, and an option that is None has no effect"""
    row = torch.full((200,), -60.0)
    row[torch.randperm(200, generator=rng.generator)[:12]] = torch.arange(12) / 10
    check_distribution(problem, row.tolist(), (1000,), **options)


@pytest.mark.points(0.25)
@pytest.mark.parametrize("shape", [*MORE_SHAPES, (3, 1)], ids=str)
def test_hidden_certain_tokens(problem, solution, rng, shape):
    """With temperature 0, k = 1 or a small p, sample returns the most probable token"""
    logits = clear_logits(rng, *shape, p=0.001)
    greedy = solution.sample(logits, temperature=0)
    ties = torch.zeros(shape)
    ties[..., shape[-1] // 3 :] = 2
    ties[..., 2 * shape[-1] // 3 + 1 :] = -INF
    several = (
        {"temperature": 0},
        {"temperature": 0.0, "top_k": 2},
        {"top_k": 1},
        {"top_p": 0.001},
        {"temperature": 0.8, "top_k": 1, "top_p": 0.9},
    )
    calls = [(example.turned(logits), options) for options in several]
    *results, of_ties = draws(problem, rng, [*calls, (ties, several[0])])
    for drawn, options in zip(results, several, strict=True):
        checks.check(whole(drawn), greedy, f"{named(**options)} with logits of shape {shape}")
    call = f"sample(logits, temperature=0) with ties, logits of shape {shape}"
    checks.check(whole(of_ties), solution.sample(ties, temperature=0), call)


@pytest.mark.points(1.25)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"temperature": 0.7},
        {"temperature": 3.0},
        {"top_k": 4},
        {"top_p": 0.75},
        {"temperature": 1.6, "top_k": 5, "top_p": 0.75},
    ],
    ids=str,
)
def test_hidden_draws(problem, rng, options):
    """sample draws with the right probabilities for other logits, shapes and options"""
    row = clear_logits(rng, 7, p=0.75)
    while "top_p" in options and not is_clear_for(row, options):
        row = clear_logits(rng, 7, p=0.75)
    check_distribution(problem, row.tolist(), (2, 900), **options)


def is_clear_for(row, options):
    """Return whether p keeps several tokens of a row and no sum of probabilities is near p."""
    p, number = options["top_p"], options.get("top_k", len(row))
    largest = (row / options.get("temperature", 1)).topk(number).values
    sums = largest.softmax(-1).cumsum(-1)
    return bool(sums[0] < p and ((sums - p).abs() > 2e-3).all())


@pytest.mark.points(0.25)
@pytest.mark.parametrize(
    ("row", "options"),
    [
        ([0.0, 2.0, 1.0, -1.0, 3.0, -2.0], {"temperature": 3.0, "top_p": 0.75}),
        ([0.0, 2.0, 1.0, -1.0, 3.0, -2.0], {"temperature": 0.4, "top_p": 0.93}),
        ([1.0, 1.2, 1.4, 1.6, 1.8, 2.0], {"top_k": 3, "top_p": 0.6}),
        ([1.0, 1.2, 1.4, 1.6, 1.8, 2.0], {"temperature": 0.5, "top_k": 4, "top_p": 0.8}),
        ([1.0, 1.02, 0.0, 1.05], {"temperature": 0.05}),
        ([1.0, 1.002, 0.0, 1.001], {"temperature": 0.001, "top_k": 2}),
        ([0.5, 2.0, -1.0, 2.0, 2.0], {"top_k": 1}),
    ],
    ids=str,
)
def test_hidden_order(problem, row, options):
    """sample applies temperature, top_k and top_p in this order for other logits and ties, too"""
    check_distribution(problem, row, (1500,), **options)


@pytest.mark.points(0.5)
@pytest.mark.parametrize(
    ("shape", "options"),
    [((300, 160), {"top_p": 0.9}), ((2, 150, 160), {"top_k": 120}), ((160,), {"temperature": 0.8})],
    ids=str,
)
def test_hidden_generator(problem, rng, shape, options):
    """Generators with equal seeds give equal draws, and the next draw is different"""
    logits, many = rng.normal(*shape) / 4, 40 if len(shape) == 1 else 2
    seeds, call = example.random_seeds(rng, many), named(**options, generator="generator")

    def draw(generator):
        return whole(problem.sample(logits.clone(), generator=generator, **options))

    generator = example.seeded(seeds[0])
    with all_from_generator(call):
        following = [draw(generator) for _ in seeds]
        others = [draw(example.seeded(seed)) for seed in seeds]
    torch.default_generator.manual_seed(2)
    again = draw(example.seeded(seeds[0]))
    same = "Generators with the same seed gave different tokens."
    message = "Calls with the same generator object all drew the same tokens."
    check_seeds(again, following, call, logits, same, message)
    message = f"{many} generators with different seeds gave the same tokens."
    check_seeds(again, others, call, logits, same, message)
