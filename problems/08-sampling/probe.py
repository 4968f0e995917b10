"""Define the questions of problem 08: calls whose answers identify mistakes."""

import math
from functools import cache, partial

import torch

from grader.diagnose import edges
from grader.diagnose.numbers import numbers as any_numbers
from grader.diagnose.probe import Part

INF = math.inf

numbers = partial(any_numbers, size=2.0)
"""A function that returns distinct numbers between -2 and 2."""


def probe(problem):
    """Return the questions about each function and about several aspects of sample."""
    return {
        "apply_temperature": about_temperature(problem),
        "keep_top_k": about_top_k(problem),
        "keep_top_p": about_top_p(problem),
        "sample": about_sample(problem),
        "sample: arguments": about_arguments(problem),
        "sample: chance": about_chance(problem),
    }


def finite_logits(logits):
    """Return logits with 50 in place of -inf, so that their sum is finite.

    Other logits are below 50.
    """
    if not isinstance(logits, torch.Tensor) or not logits.is_floating_point():
        return logits
    return torch.where(logits == -INF, 50.0, logits.clamp(min=-5000.0))


DTYPES = (torch.int64, torch.float32, torch.float64, torch.int32, torch.bool)


def kind(value):
    """Return a number for the dtype of a tensor, or a negative number for any other result."""
    if not isinstance(value, torch.Tensor):
        return -1 - edges.kind(value)
    return DTYPES.index(value.dtype) if value.dtype in DTYPES else -1


def edges_of(function):
    """Return the edge questions for a function that takes and returns logits."""

    def call(x):
        return finite_logits(function(x))

    def after_others():
        call(numbers(3, 5))
        return call(-numbers(3, 5))

    questions = edges.of_function(call, {"logits": numbers(3, 5)})
    return questions | {"1-D": lambda: call(numbers(6)), "after others": after_others}


def about_temperature(problem):
    """Return questions about apply_temperature."""

    def apply(shape, temperature):
        return finite_logits(problem.apply_temperature(numbers(*shape), temperature))

    return Part(
        main={
            "0.5": lambda: apply((4, 4), 0.5),
            "3, batches": lambda: apply((2, 3, 4), 3.0),
            "refused": lambda: edges.refusals(
                lambda t: problem.apply_temperature(numbers(3, 5), t), 1.0, (0, 0.0, -1, -0.5)
            ),
        },
        edges=edges_of(lambda x: problem.apply_temperature(x, 0.7))
        | {
            "0.001": lambda: problem.apply_temperature(numbers(3, 5), 0.001) / 1000,
            "digits are lost": lambda: edges.loses_digits(
                problem.apply_temperature(numbers(3, 5), 0.7), numbers(3, 5) / 0.7
            ),
        },
    )


def about_top_k(problem):
    """Return questions about keep_top_k."""

    def keep(shape, k):
        return finite_logits(problem.keep_top_k(numbers(*shape) + 3 * numbers(*shape[:-1], 1), k))

    def ties():
        rows = [[2.0, 5, 2, 1, 2], [3, 3, 3, 3, 3], [0.5, 1, 0.5, 1, -1]]
        return finite_logits(problem.keep_top_k(torch.tensor(rows, dtype=torch.float64), 2))

    return Part(
        main={
            "k 2 of 3, cube": lambda: keep((3, 3, 3), 2),
            "k 3": lambda: keep((3, 5), 3),
            "k is V": lambda: keep((3, 4), 4),
            "k above V": lambda: keep((3, 4), 7),
            "ties": ties,
            "refused": lambda: edges.refusals(
                lambda k: problem.keep_top_k(numbers(3, 5), k), 2, (0, -1, -3)
            ),
        },
        edges=edges_of(lambda x: problem.keep_top_k(x, 2))
        | {"far apart": lambda: finite_logits(problem.keep_top_k(800 * numbers(3, 6), 4))},
    )


def about_top_p(problem):
    """Return questions about keep_top_p."""

    def keep(shape, p):
        return finite_logits(problem.keep_top_p(1.3 * numbers(*shape), p))

    def far_above():
        x = (numbers(3, 5) * 64).round() / 64 + torch.tensor([[120.0], [0.0], [-120.0]])
        return finite_logits(problem.keep_top_p(x.float(), 0.7)).double() - 60

    def many():
        """Return whether keep_top_p drops any of thousands of tokens if p is 1."""
        return bool((problem.keep_top_p((12 * numbers(6, 1000)).float(), 1.0) == -INF).any())

    def alike():
        """Return how many of 1500 nearly equal logits are kept if p is 0.9."""
        found = problem.keep_top_p((numbers(1, 1500) / 100).double(), 0.9)
        return float((found > -INF).sum())

    def unlikely():
        row = torch.tensor([0.0, -20.0, -40.0, -800.0, 1.0])
        return finite_logits(problem.keep_top_p(row.double(), 1.0))

    return Part(
        main={
            "0.9, cube": lambda: keep((3, 3, 3), 0.9),
            "0.5": lambda: keep((2, 6), 0.5),
            "0.999": lambda: finite_logits(problem.keep_top_p(4 * numbers(3, 7), 0.999)),
            "0.3": lambda: keep((3, 4), 0.3),
            "0.02": lambda: keep((3, 5), 0.02),
            "1": lambda: keep((3, 5), 1.0),
            "refused, too small": lambda: edges.refusals(
                lambda p: problem.keep_top_p(numbers(3, 5), p), 0.5, (0, -0.1, -1)
            ),
            "refused, too large": lambda: edges.refusals(
                lambda p: problem.keep_top_p(numbers(3, 5), p), 0.5, (1.01, 2, 90)
            ),
        },
        edges=edges_of(lambda x: problem.keep_top_p(x, 0.7))
        | {
            "minus infinity": lambda: finite_logits(
                problem.keep_top_p(torch.tensor([0.5, -INF, 1.0, 0.0]), 0.7)
            ),
            "above 0, float32": far_above,
            "1 drops of many, float32": many,
            "1 and unlikely": unlikely,
            "many alike": alike,
        },
    )


# Random results are computed many times, so that the answers do not depend on chance.

ROW = [1.0, 4.0, 0.0, 2.0, 3.0]
ROWS = 2000
NEAR = 0.045
"""The largest accepted difference between the frequency of a token and its probability."""


def equal_rows(row, shape):
    """Return logits in which all rows are equal to this one."""
    return torch.tensor(row, dtype=torch.float64).repeat(*shape, 1)


def drawn_often(problem, row=ROW, shape=(ROWS,), seed=5, **options):
    """Return the tokens that sample draws for many equal rows of logits."""
    logits = equal_rows(row, shape)
    torch.default_generator.manual_seed(seed)
    return problem.sample(logits, **options)


def counted(tokens, vocab_size=5):
    """Return how often each token occurs."""
    if not isinstance(tokens, torch.Tensor) or tokens.is_floating_point():
        raise TypeError("these are no tokens")
    return tokens.flatten().clamp(0, vocab_size - 1).bincount(minlength=vocab_size)


def nearest(shares):
    """Return the index of the known distribution that is nearest to these shares of tokens.

    Return -1 if no known distribution is near.
    """
    logits = torch.tensor(ROW, dtype=torch.float64)
    known = [(logits / t).softmax(-1) for t in (1, 0.5, 0.25, 0.7, 2, 4, -1, INF)]
    known += [known[0].softmax(-1), logits.clamp(min=1e-9) / logits.sum()]
    gaps = [float((shares - each).abs().max()) for each in known]
    return gaps.index(min(gaps)) if min(gaps) < NEAR else -1


def probabilities_before_draw(problem, logits, temperature=1.0, top_k=None, top_p=None):
    """Return the probabilities that the student's functions compute, without `sample`.

    Return None if one of these functions fails. `sample` is compared with these probabilities, so
    that mistakes in the other functions do not count as mistakes in `sample`.
    """
    try:
        found = problem.apply_temperature(logits.clone(), temperature)
        found = found if top_k is None else problem.keep_top_k(found, top_k)
        found = found if top_p is None else problem.keep_top_p(found, top_p)
        found = found.softmax(-1)
    except NotImplementedError:
        raise
    except Exception:
        return None
    return found if found.shape == logits.shape and not found.isnan().any() else None


def asked_of_sample(problem, questions, **options):
    """Return the questions, or no questions if another function fails for these arguments."""
    try:
        runs = probabilities_before_draw(problem, numbers(3, 5), **options) is not None
    except NotImplementedError:
        runs = True  # the answers show that a function is not written yet
    return questions if runs else {}


AS_ITS_STEPS = -9.0
"""The answer if sample agrees with the student's other functions, or if one of them fails."""


def about_sample(problem):
    """Return questions about drawn tokens, with answers that do not depend on chance."""

    def greedy(*shape, ties=False):
        """Return the tokens at temperature 0, or -1 if they are random."""
        logits, drawn = numbers(*shape), []
        logits = (logits * 1.2).round() if ties else logits
        for seed in range(6):
            torch.default_generator.manual_seed(seed)
            drawn.append(problem.sample(logits.clone(), temperature=0))
        by_chance = any(not torch.equal(drawn[0], other) for other in drawn)
        return torch.tensor(-1.0) if by_chance else drawn[0]

    def clear(*shape):
        """Return logits with one logit in each row that is far above the others."""
        logits = numbers(*shape)
        largest = logits == logits.amax(-1, keepdim=True)
        return torch.where(largest, logits + 1000, logits)

    def certain(*shape, **options):
        """Return the tokens for rows in which one token is certain, or -1 if they are random.

        Return AS_ITS_STEPS if they are as expected.
        """
        steps, drawn = probabilities_before_draw(problem, clear(*shape), **options), []
        if steps is None or steps.amax(-1).min() < 0.99:
            return AS_ITS_STEPS
        for seed in range(6):
            torch.default_generator.manual_seed(seed)
            drawn.append(problem.sample(clear(*shape), **options).double())
        if any(not torch.equal(drawn[0], other) for other in drawn):
            return -1.0
        return AS_ITS_STEPS if torch.equal(drawn[0], steps.argmax(-1).double()) else drawn[0]

    def kept(row=ROW, **options):
        """Return which tokens are drawn at least once, or AS_ITS_STEPS if as expected."""
        if (
            steps := probabilities_before_draw(problem, equal_rows(row, (1000,)), **options)
        ) is None:
            return AS_ITS_STEPS
        found, may = counted(drawn_often(problem, row, (1000,), **options)) > 0, steps.amax(0)
        as_steps = not found[may == 0].any() and found[may > 0.01].all()
        return AS_ITS_STEPS if as_steps else found.double()

    def shape(**options):
        """Return the result of `nearest` for drawn tokens, or AS_ITS_STEPS if as expected."""
        if (
            steps := probabilities_before_draw(problem, equal_rows(ROW, (ROWS,)), **options)
        ) is None:
            return AS_ITS_STEPS
        counts = counted(drawn_often(problem, **options))
        shares = counts / counts.sum()
        as_steps = (shares - steps.mean(0)).abs().max() < NEAR
        return AS_ITS_STEPS if as_steps else nearest(shares)

    def changes():
        logits = numbers(3, 5)
        problem.sample(logits, 0.7, 4, 0.8)
        return not torch.equal(logits, numbers(3, 5))

    return Part(
        main={
            "greedy, batches": lambda: greedy(2, 3, 4).double(),
            "greedy, ties": lambda: greedy(6, 7, ties=True).double(),
            "certain, batches": lambda: certain(2, 3, 4),
            "certain, one row": lambda: certain(6),
            "plain": lambda: kept(),
            "top_k": lambda: kept(top_k=3),
            "top_k, then top_p": lambda: kept(top_k=2, top_p=0.7),
            # One of top_k and top_p keeps all tokens, so only a mistake in the other has an effect.
            "top_k, and all of top_p": lambda: kept(top_k=2, top_p=0.99),
            "all of top_k, and top_p": lambda: kept(top_k=5, top_p=0.8),
            "warm, then top_p": lambda: kept(temperature=2.0, top_p=0.8),
            "distribution": lambda: shape(),
            "distribution at 0.5": lambda: shape(temperature=0.5),
            "distribution at 2": lambda: shape(temperature=2.0),
            "distribution at 2, top_k": lambda: shape(temperature=2.0, top_k=9),
            "distribution at 2, top_p": lambda: shape(temperature=2.0, top_p=1.0),
        }
        | asked_of_sample(problem, {"kind": lambda: kind(problem.sample(clear(3, 5)))}),
        edges={
            "four dimensions": lambda: certain(2, 1, 2, 4),
            "tied first": lambda: kept([2.0, 0.5, 2.0, -1.0, 0.0], top_k=1),
            "cold": lambda: kept([1.0, 1.01, 0.0, 1.02, 0.5], temperature=0.05),
        }
        | asked_of_sample(
            problem, {"changes its argument": changes}, temperature=0.7, top_k=4, top_p=0.8
        ),
    )


def about_arguments(problem):
    """Return questions about valid and invalid arguments of sample."""

    def refused(question, name, fine, *amounts):
        def asked():
            found = edges.refusals(
                lambda amount: problem.sample(numbers(3, 5), **{name: amount}), fine, amounts
            )
            if name == "temperature":
                return found
            # If the filter alone has the same result, the mistake is not in sample.
            keep = getattr(problem, f"keep_{name}")
            alone = [edges.refusal(partial(keep, numbers(3, 5), amount)) for amount in amounts]
            return torch.where(found == torch.tensor(alone), 1.0, found)

        return asked_of_sample(problem, {question: asked}, **{name: fine})

    def only_best():
        """Return whether only the most probable of many nearly equal tokens are drawn."""
        logits = numbers(300, 120) / 20
        if (steps := probabilities_before_draw(problem, logits)) is None or steps.amax() > 0.02:
            return AS_ITS_STEPS
        torch.default_generator.manual_seed(5)
        drawn = logits.gather(-1, problem.sample(logits.clone())[:, None])
        return AS_ITS_STEPS if ((logits > drawn).sum(-1) > 100).any() else 1.0

    return Part(
        main=refused("temperature below 0", "temperature", 1.0, -1, -0.1)
        | refused("temperature 0", "temperature", 1.0, 0, 0.0)
        | refused("top_k", "top_k", 2, 0, -1)
        | refused("top_p below", "top_p", 0.5, 0, -0.5)
        | refused("top_p above", "top_p", 0.5, 1.5, 50)
        | asked_of_sample(problem, {"only the best": only_best})
    )


def about_chance(problem):
    """Return questions about the source of random numbers, and about rows with equal tokens."""
    logits = numbers(4, 40, 12) / 4

    def draw(seed=None, global_seed=1, generator=None):
        if global_seed is not None:
            torch.default_generator.manual_seed(global_seed)
        if seed is not None:
            generator = torch.Generator().manual_seed(seed)
        return problem.sample(logits.clone(), generator=generator)

    @cache
    def by_chance():
        """Return True if tokens are random. Otherwise raise ArithmeticError."""
        found = [draw(seed, seed) for seed in range(3)] + [draw(None, seed) for seed in range(3)]
        if all(torch.equal(tokens, found[0]) for tokens in found):
            raise ArithmeticError("it is always the same")
        return True

    def same(one, other):
        by_chance()
        return torch.equal(one, other)

    def following():
        generator = torch.Generator().manual_seed(1)
        return same(draw(generator=generator), draw(generator=generator))

    def used():
        generator = torch.Generator().manual_seed(1)
        torch.rand(3, generator=generator)
        return same(draw(generator=generator), draw(1))

    def shared(axis):
        """Return whether neighbours along an axis nearly always get the same token."""
        by_chance()
        tokens = drawn_often(problem, [0.0] * 6, (30, 30)).movedim(axis, 0)
        return float((tokens[1:] == tokens[:-1]).double().mean()) > 0.9

    questions = {
        "same seed": lambda: same(draw(1), draw(1, global_seed=2)),
        "following": following,
        "used before": used,
        "global state moves": lambda: edges.moves_random_state(lambda: draw(1, None)),
        "none, same seed": lambda: same(draw(), draw()),
        "none, other seed": lambda: same(draw(), draw(global_seed=2)),
        "none, following": lambda: same(draw(), draw(global_seed=None)),
        "shared along 0": lambda: shared(0),
        "shared along 1": lambda: shared(1),
    }
    return Part(main=asked_of_sample(problem, questions))
