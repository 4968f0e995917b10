"""Define the questions of problem 07: calls whose answers identify mistakes."""

import functools
import math

import torch

from grader.code.cost import counting
from grader.diagnose import edges
from grader.diagnose.answers import attempt
from grader.diagnose.numbers import numbers
from grader.diagnose.probe import Part
from grader.run.compare import parameters, set_weights
from shared.oracles.gpt import batched, gpt_by_hand
from shared.probe_weights import filled as filled_with
from shared.probe_weights import gpt_weights


def tokens(vocab_size, *shape, start=3):
    """Return fixed tokens, different for each start."""
    steps = torch.arange(math.prod(shape)) + start
    return (steps * steps * 7 + steps * 5 + steps // 3).remainder(vocab_size).reshape(shape)


def sizes(*given, **other):
    """Return the arguments of a GPTConfig by name."""
    names = ("vocab_size", "n_positions", "n_embd", "n_layer", "n_head")
    return dict(zip(names, given, strict=True)) | other


ORDINARY = sizes(7, 6, 8, 2, 2)


def shapes(given):
    """Return the expected shape of each parameter by name, for a model of these sizes."""
    return {name: tuple(each.shape) for name, each in gpt_weights(given).items()}


def named_once(model, given):
    """Return a model's parameters by name, without other names of the expected parameters."""
    found, wanted = parameters(model), shapes(given)
    expected = {id(each) for name, each in found.items() if name in wanted}
    return {n: each for n, each in found.items() if n in wanted or id(each) not in expected}


def models(problem):
    """Return a function that returns a model of given sizes, and creates each model only once."""
    made = functools.cache(lambda given: filled(problem, dict(given)))
    return lambda given: made(tuple(given.items())).eval()


def filled(problem, given, weights=None, dtype=torch.float64):
    """Return the student's model in evaluation mode, with the weights for which it has parameters.

    Missing and extra parameters must have no effect here, as `about_parts` asks about them.
    """
    model = problem.GPT(problem.GPTConfig(**given))
    weights = gpt_weights(given) if weights is None else weights
    found = parameters(model)
    fitting = {
        name: each for name, each in weights.items()
        if name in found and found[name].shape == each.shape
    }  # fmt: skip
    if "transformer.wte.weight" not in fitting:
        raise AttributeError("no embeddings")
    return filled_with(model, fitting, dtype).eval()


def with_logits(problem, given, logits):
    """Return a model with the same logits at every position.

    Args:
        problem: the student's code.
        given: the sizes of the model.
        logits: the logits of some tokens, by token; all other tokens have the logit 0.
    """
    weights = {name: 0 * each for name, each in gpt_weights(given).items()}
    rows = weights["transformer.wte.weight"]
    for token, logit in logits.items():
        rows[token, 0] = logit
    weights["lm_head.weight"] = rows
    weights["transformer.ln_f.bias"][0] = 1
    return filled(problem, given, weights)


def with_own_token(problem, given, of_position=0):
    """Return a model for which the most probable next token is the last token again.

    If `of_position` is large, the most probable token is the number of the last position.
    """
    weights = {name: 0 * each for name, each in gpt_weights(given).items()}
    rows = torch.eye(given["vocab_size"], given["n_embd"], dtype=torch.float64)
    weights["transformer.wte.weight"] = weights["lm_head.weight"] = rows
    weights["transformer.wpe.weight"] = of_position * torch.eye(
        given["n_positions"], given["n_embd"], dtype=torch.float64
    )
    weights["transformer.ln_f.weight"] += 1
    return filled(problem, given, weights)


def logits_of(model, *arguments):
    """Return the logits from a model's result, at any index of a tuple."""
    answer = model(*arguments)
    if not isinstance(answer, tuple | list):
        return answer
    return next((each for each in answer if each is not None and each.dim() > 1), answer)


def probe(problem):
    """Return the questions about several aspects of the class and about each function."""
    by_chance = generates_by_chance(problem)
    return {
        "GPT: what it is made of": about_parts(problem),
        "GPT: initial weights": about_start(problem),
        "GPT: logits": about_logits(problem),
        "GPT: loss": about_loss(problem),
        "GPT: dropout": about_dropout(problem),
        "GPT: generate": about_generate(problem, by_chance),
        "GPT: context": about_context(problem, by_chance),
        "GPT: modes": about_modes(problem, by_chance),
        "get_batch": about_batches(problem),
        "bigram_loss": about_bigram(problem),
    }


def about_parts(problem):
    """Return questions about the parameters of a model."""

    def sizes_of(given):
        """Return the size of each expected parameter, and the total size of all others.

        A missing parameter has the size -1.
        """
        found = named_once(problem.GPT(problem.GPTConfig(**given)), given)
        wanted = shapes(given)
        own = [found[name].numel() if name in found else -1 for name in wanted]
        others = sum(each.numel() for name, each in found.items() if name not in wanted)
        return torch.tensor([*own, others], dtype=torch.float64)

    def tied():
        found = parameters(problem.GPT(problem.GPTConfig(**ORDINARY)))
        wte, lm_head = found["transformer.wte.weight"], found["lm_head.weight"]
        return torch.tensor([wte is lm_head, torch.equal(wte, lm_head)])

    def config():
        model = problem.GPT(problem.GPTConfig(**ORDINARY))
        return torch.tensor([getattr(model.config, name) for name in ORDINARY])

    return Part(
        main={
            "ordinary": lambda: sizes_of(ORDINARY),
            "without bias": lambda: sizes_of(ORDINARY | {"bias": False}),
            "tied": tied,
            "config": config,
        },
    )


SPREADS = torch.tensor(
    [1e-6, 0.005, 0.03, 0.06, 0.11, 0.155, 0.187, 0.25, 0.31, 0.37, 0.45, 0.53, 0.65, 0.79, 0.88]
    + [1.2, 1.6, 2.5, 3, 4.35, 4.8, 6, 8, 14, 30, 70],
    dtype=torch.float64,
)
"""Bounds that separate the initial standard deviations of known mistakes, in units of 0.02."""


def about_start(problem):
    """Return questions about initial weights. The answers are coarse, as weights are random."""
    given = sizes(90, 48, 48, 3, 4)

    @functools.cache
    def started(n_layer):
        torch.default_generator.manual_seed(1)
        these = given | {"n_layer": n_layer}
        return named_once(problem.GPT(problem.GPTConfig(**these)), these)

    def spread(n_layer, *names):
        found = [started(n_layer)[name].detach().double() for name in names]
        return torch.bucketize(torch.stack([each.std() / 0.02 for each in found]), SPREADS)

    def linear(n_layer):
        parts = ("attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj")
        return spread(n_layer, *(f"transformer.h.{n_layer - 1}.{part}.weight" for part in parts))

    def means():
        weights = {name: each for name, each in started(3).items() if each.dim() == 2}
        return torch.tensor([each.mean().abs() > 0.3 * each.std() for each in weights.values()])

    def constant(kind):
        found = [each for name, each in started(3).items() if each.dim() == 1 and kind in name]
        return torch.tensor([[bool((each == 0).all()), bool((each == 1).all())] for each in found])

    return Part(
        main={
            "embeddings": lambda: spread(3, "transformer.wte.weight", "transformer.wpe.weight"),
            "3 blocks": lambda: linear(3),
            "1 block": lambda: linear(1),
            "means": means,
            "biases": lambda: constant("bias"),
            "norms": lambda: constant("ln_"),
        },
        edges={
            "starts alike": lambda: edges.starts_alike(
                lambda: problem.GPT(problem.GPTConfig(**ORDINARY))
            )
        },
    )


def about_logits(problem):
    """Return questions about the logits, with and without targets."""
    model_of = models(problem)

    def logits(given, batch, length, *, targets=False):
        idx = tokens(given["vocab_size"], batch, length)
        return logits_of(model_of(given), idx, *([idx.flip(0)] if targets else []))

    def kind(targets):
        """Return a code for the type of the result: 0 for a pair as expected."""
        model, idx = model_of(ORDINARY), tokens(7, 2, 5)
        answer = model(idx, *([idx.flip(0)] if targets else []))
        if not isinstance(answer, tuple | list) or len(answer) != 2:
            return 1
        if answer[0] is None or answer[0].dim() == 0:
            return 2
        return 3 if (answer[1] is None) == targets else 0

    def digits_lost():
        found = logits_of(model_of(ORDINARY), tokens(7, 2, 5))
        right = batched(gpt_by_hand, tokens(7, 2, 5), gpt_weights(ORDINARY), 2, dtype=torch.float64)
        return edges.loses_digits(found, right)

    def keeps_weights():
        """Return whether a model ignores later changes of its weights."""
        model, idx = filled(problem, ORDINARY), tokens(7, 2, 5)
        before = logits_of(model, idx)
        for name in ("transformer.wte.weight", "transformer.wpe.weight"):
            found = parameters(model)[name]
            set_weights(model, {name: found.detach() + numbers(*found.shape)})
        fresh = filled(problem, ORDINARY)
        fresh.load_state_dict(model.state_dict())
        after = logits_of(model, idx)
        return torch.equal(after, before) or not torch.equal(after, logits_of(fresh, idx))

    return Part(
        main={
            "all of size 3": lambda: logits(sizes(3, 3, 3, 1, 3), 3, 3),
            "ordinary": lambda: logits(ORDINARY, 2, 5),
            "with targets": lambda: logits(ORDINARY, 2, 5, targets=True),
            "no bias": lambda: logits(ORDINARY | {"bias": False}, 2, 5),
            "kind": lambda: torch.tensor([kind(False), kind(True)]),
            "too long": lambda: edges.refusals(
                lambda length: model_of(ORDINARY)(tokens(7, 2, length)), 5, (6, 7, 9)
            ),
        },
        edges={"digits lost": digits_lost, "keeps weights": keeps_weights},
    )


def about_loss(problem):
    """Return questions about the loss, for logits that depend only on ln_f's bias and lm_head."""

    @functools.cache
    def model():
        weights = gpt_weights(ORDINARY)
        weights["transformer.ln_f.weight"] = 0 * weights["transformer.ln_f.weight"]
        weights["transformer.ln_f.bias"] = numbers(8, start=0.4)
        return filled(problem, ORDINARY, weights)

    def loss_in(answer):
        """Return the loss from a model's result, at any index of a tuple."""
        if not isinstance(answer, tuple | list):
            return answer
        return min(answer, key=lambda each: each.dim() if isinstance(each, torch.Tensor) else 0)

    def loss(targets):
        return loss_in(model()(tokens(7, *targets.shape, start=8), targets))

    def of_unlikely(gap):
        """Return the loss of a token with a logit that is `gap` below the largest one."""
        unlikely = with_logits(problem, ORDINARY, dict.fromkeys((3, 4, 5, 6), -gap))
        return loss_in(unlikely(tokens(7, 1, 4), torch.full((1, 4), 5)))

    def with_ignored(*places):
        targets = tokens(7, 3, 5)
        targets.flatten()[list(places)] = -100
        return targets

    def reached():
        """Return whether gradients of the loss reach the embeddings and the first block."""
        model, idx = filled(problem, ORDINARY), tokens(7, 2, 5)
        _, found = model(idx, idx.flip(0))
        names = ("wte.weight", "wpe.weight", "h.0.attn.c_attn.weight")
        held = parameters(model)
        weights = [held[f"transformer.{name}"] for name in names]
        slopes = [edges.slope(found, weight) for weight in weights]
        return all(each is not None and bool(each.any()) for each in slopes)

    def digits_lost():
        """Return whether the loss is less exact than the logits in the same result."""
        model, idx = filled(problem, ORDINARY), tokens(7, 3, 5)
        logits, found = model(idx, idx.flip(0))
        wanted = torch.nn.functional.cross_entropy(logits.flatten(0, 1), idx.flip(0).flatten())
        return edges.loses_digits(found - wanted, torch.zeros(()))

    def changes():
        targets = with_ignored(1, 5)
        loss(targets)
        return not torch.equal(targets, with_ignored(1, 5))

    return Part(
        main={
            "ordinary": lambda: loss(tokens(7, 3, 5)),
            "1 token, always 0": lambda: loss(0 * tokens(7, 4, 1)),
            "ignored": lambda: loss(with_ignored(1, 5, 6, 14)),
            "all but one ignored": lambda: loss(with_ignored(*range(11), 12, 13, 14)),
            "digits lost": digits_lost,
            "logits far apart": lambda: of_unlikely(40),
            "logits thousands apart": lambda: of_unlikely(2000),
        },
        edges={
            "transposed": lambda: loss(edges.turned(tokens(7, 3, 5))),
            "gradients reach": reached,
            "changes targets": changes,
        },
    )


DROPPING = sizes(49, 4, 48, 1, 1, dropout=0.3)
"""Sizes of a model for questions about dropout."""


def about_dropout(problem):
    """Return questions about dropout, which is visible in the output of the last norm."""

    def zeros():
        return {name: torch.zeros(shape).double() for name, shape in shapes(DROPPING).items()}

    def rows(*, train=True, of_block=0.1):
        weights = zeros()
        for name, weight in weights.items():
            if ".ln_" in name and name.endswith("weight"):
                weight += 1
        eye = torch.eye(48, dtype=torch.float64)
        kinds = torch.cat([0.01 * eye, torch.full((1, 48), 0.007, dtype=torch.float64)])
        weights["transformer.wte.weight"] = weights["lm_head.weight"] = kinds
        weights["transformer.wpe.weight"] += 0.003
        weights["transformer.h.0.mlp.c_proj.bias"] += of_block
        model = filled(problem, DROPPING, weights).train(train)
        torch.default_generator.manual_seed(2)
        found = logits_of(model, torch.full((40, 4), 48)).detach()
        return found.flatten(0, 1).double()[:, :48]

    def attention_reads_all():
        """Return whether the attention reads all entries of a token.

        If it does, all entries of its output are equal or dropped.
        """
        weights = zeros()
        weights["transformer.h.0.ln_1.bias"] += 1
        uneven = numbers(48, 48)
        values = 0.1 / 48 + uneven - uneven.mean(-1, keepdim=True)
        weights["transformer.h.0.attn.c_attn.weight"][-48:] = values
        weights["transformer.h.0.attn.c_proj.weight"] += torch.eye(48)
        weights["transformer.ln_f.weight"] += 1
        kinds = 0.01 * torch.eye(49, 48, dtype=torch.float64)
        weights["transformer.wte.weight"] = weights["lm_head.weight"] = kinds
        model = filled(problem, DROPPING, weights).train()
        found = logits_of(model, torch.full((4, 4), 48)).detach().flatten(0, 1)[:, :48]
        return bool(((found.sort(-1).values.diff() > 1e-6).sum(-1) <= 1).all())

    def levels(**options):
        """Return the median and the maximum number of distinct values per row."""
        counts = (rows(**options).sort(-1).values.diff() > 1e-7).sum(-1) + 1
        return torch.stack([counts.median(), counts.max()]).clamp(max=9)

    def small_step():
        """Return the median over rows of (difference of the two lowest values) / (range)."""
        kinds = [row[row.diff(prepend=row[:1] - 1) > 1e-7] for row in rows().sort(-1).values]
        return torch.stack([(row[1] - row[0]) / (row[-1] - row[0]) for row in kinds]).median()

    def shares():
        """Return the approximate shares of entries that have their row's lowest and highest value.

        Each share is the index of an interval.
        """
        found = rows()
        lowest = (found < found.amin(-1, keepdim=True) + 1e-6).double().mean()
        highest = (found > found.amax(-1, keepdim=True) - 1e-6).double().mean()
        bounds = torch.tensor([0.015, 0.06, 0.12, 0.2, 0.31, 0.42, 0.53, 0.68, 0.85]).double()
        return torch.bucketize(torch.stack([lowest, highest]), bounds)

    return Part(
        main={
            "small step": small_step,
            "embeddings alone": lambda: levels(of_block=0.0),
            "shares": shares,
            "in evaluation": lambda: levels(train=False),
            "attention reads all": attention_reads_all,
        },
    )


def draws(problem):
    """Return whether generate draws random numbers in evaluation mode."""
    model = filled(problem, ORDINARY)
    return edges.moves_random_state(lambda: model.generate(tokens(7, 2, 3), 2))


def generates_by_chance(problem):
    """Return whether generate draws random numbers, or False if it raises an exception."""
    return attempt(lambda: draws(problem)).numbers[:1] == (1.0,)


def about_generate(problem, by_chance):
    """Return questions about generated tokens, in evaluation mode and without dropout."""
    model_of = models(problem)

    def generated(given, batch, length, n_new, start=3):
        torch.default_generator.manual_seed(4)
        idx = tokens(given["vocab_size"], batch, length, start=start)
        found = model_of(given).generate(idx, n_new)
        return found.double() if isinstance(found, torch.Tensor) else found

    def nothing():
        generated(short, 3, 3, 1)  # an error here is not caused by 0 new tokens
        return generated(short, 3, 3, 0)

    def dtype():
        found = model_of(ORDINARY).generate(tokens(7, 2, 3), 2)
        return torch.tensor([found.dtype == each for each in (torch.int64, torch.int32)])

    def always(token):
        """Return the generated tokens if one token is always by far the most probable."""
        model = with_logits(problem, wide, {token: 9})
        torch.default_generator.manual_seed(4)
        return model.generate(tokens(13, 2, 2, start=token), 3)

    def repeated():
        """Return the generated tokens if the most probable next token is always the last token."""
        return with_own_token(problem, wide).generate(torch.tensor([[5], [0], [3]]), 3)

    def others(gap):
        """Return whether generate returns other tokens than the most probable one.

        The second largest logit is `gap` below the largest.
        """
        model = with_logits(problem, wide, {5: 3, 2: 3 - gap})
        torch.default_generator.manual_seed(4)
        return (model.generate(tokens(13, 30, 2), 2)[:, 2:] != 5).double().mean() > 0.02

    wide, short = sizes(13, 12, 8, 1, 2), sizes(13, 4, 8, 1, 2)
    chance = {
        "draws": lambda: draws(problem),
        "another one, as probable": lambda: others(1e-6),
        "another one": lambda: others(1.0),
    }
    if by_chance:
        return Part(main=chance)  # all generated tokens depend on chance
    return Part(
        main=chance
        | {
            "longer prompt": lambda: generated(wide, 6, 5, 3, start=11),
            "beyond n_positions": lambda: generated(short, 6, 3, 5),
            "long prompt": lambda: generated(short, 6, 9, 3),
            "nothing": nothing,
            "always token 0": lambda: always(0),
            "always the last token": lambda: always(12),
            "token 0 in one sequence": repeated,
            "one sequence": lambda: generated(wide, 1, 3, 2),
            "dtype": dtype,
        },
    )


def about_context(problem, by_chance):
    """Return questions about the context of generate.

    Each new token is the number of the last position that the model read.
    """
    if by_chance:
        return Part(main={})
    idx = tokens(8, 2, 3)

    @functools.cache
    def model():
        return with_own_token(problem, sizes(8, 6, 8, 1, 2), of_position=10)

    def operations(n_new):
        with counting() as cost:
            model().generate(idx, n_new)
        return cost.operations

    def reads_all():
        """Return whether a step with a full context costs as much as reading all 6 tokens."""
        return (operations(10) - operations(4)) / 6 > 0.9 * 2 * operations(1)

    return Part(
        main={
            "while it fits": lambda: model().generate(idx, 4)[:, -4:].double(),
            "after token 0": lambda: model().generate(idx[:, :1], 4)[:, -4:].double(),
            "reads all": reads_all,
        },
    )


def about_modes(problem, by_chance):
    """Return questions about training and evaluation mode, during generate and after it."""
    given = sizes(13, 12, 8, 1, 2, dropout=0.5)

    def is_dropping(model):
        torch.default_generator.manual_seed(5)
        idx = tokens(13, 4, 6)
        return not torch.equal(logits_of(model, idx), logits_of(model, idx))

    def alike():
        """Return whether generate, called twice in training mode, returns the same tokens.

        The tokens are the same if nothing is dropped.
        """
        model, idx = filled(problem, given).train(), tokens(13, 12, 6)
        torch.default_generator.manual_seed(6)
        first, second = (model.train().generate(idx, 3) for _ in range(2))
        return torch.equal(first, second)

    def after(train):
        model = filled(problem, given).train(train)
        model.generate(tokens(13, 3, 6), 2)
        return is_dropping(model)

    def drops_as_before():
        """Return whether dropout drops the same entries for one seed before and after generate.

        The first answer is for a call with 2 new tokens, the second for a call with none.
        """
        model, idx, found = filled(problem, given).train(), tokens(13, 3, 6), []
        for n_new in (None, 2, 0):
            if n_new is not None:
                model.train().generate(idx, n_new)
            torch.default_generator.manual_seed(5)
            found.append(logits_of(model, idx))
        return torch.tensor([torch.allclose(found[0], each) for each in found[1:]])

    def gradients():
        model = filled(problem, given)
        model.generate(tokens(13, 3, 6), 2)
        enabled = torch.is_grad_enabled()
        found = logits_of(model, tokens(13, 3, 6)).requires_grad
        with_gradients = torch.tensor([enabled, found])
        torch.set_grad_enabled(True)
        return with_gradients

    return Part(
        main=({} if by_chance else {"alike": alike})
        | {
            "after training": lambda: after(True),
            "after evaluation": lambda: after(False),
            "drops as before": drops_as_before,
            "gradients": gradients,
        },
    )


def about_batches(problem):
    """Return questions about the batches of get_batch."""

    def batch(length, n_positions, batch_size, *, seed=1, generator=None):
        torch.default_generator.manual_seed(seed)
        data = torch.arange(length) * 3 + 100
        x, y = problem.get_batch(data, n_positions, batch_size, generator)
        return (x - 100) / 3, (y - 100) / 3

    def dtypes():
        torch.default_generator.manual_seed(1)
        drawn = problem.get_batch(torch.arange(30), 4, 3)
        return torch.tensor([each.dtype == torch.int64 for each in drawn])

    def forms():
        x, y = batch(30, 4, 7)
        return torch.tensor([*x.shape, -1, *y.shape], dtype=torch.float64)

    def steps():
        """Return the least and largest differences of neighbouring tokens, and of x and y."""
        x, y = batch(40, 4, 60)
        found = [each[:, 1:] - each[:, :-1] for each in (x, y)]
        found += [y[:, -1] - x[:, -1], y[:, 0] - x[:, 0]]
        return torch.stack([each.amin() for each in found] + [each.amax() for each in found])

    def starts(length, n_positions, batch_size=400):
        x, _ = batch(length, n_positions, batch_size)
        return x[:, 0]

    def ends():
        found = starts(9, 4)
        return torch.stack([found.amin(), found.amax()])

    def evenness():
        """Return approximately how often each of five starts is drawn, as indices of intervals."""
        counts = torch.bincount(starts(9, 4, 4000).long(), minlength=5)
        bounds = torch.tensor([1, 300, 650, 900, 1600, 2500])
        return torch.bucketize(counts, bounds)

    def neighbours():
        """Return how the starts of successive rows are related.

        The first three answers are whether most differences are 0, 1 and 4. The other two answers
        are whether the starts never decrease, and whether all are distinct.
        """
        found = starts(24, 4, 20)
        step = found.diff()
        alike = [(step == each).double().mean() > 0.7 for each in (0, 1, 4)]
        return torch.tensor([*alike, bool((step >= 0).all()), len(found.unique()) == len(found)])

    def seeds():
        """Return which pairs of batches are equal.

        The first four pairs have equal or different seeds, of a generator or of torch. The other
        pairs are two successive batches, and the first rows of batches with different seeds.
        """
        generators = [torch.Generator().manual_seed(seed) for seed in (1, 1, 2)]
        given = [batch(300, 3, 8, seed=n, generator=g)[0] for n, g in enumerate(generators)]
        without = [batch(300, 3, 8, seed=seed)[0] for seed in (1, 1, 2)]
        pairs = [(e[0], e[i]) for e in (given, without) for i in (1, 2)]
        pairs.append((given[0], batch(300, 3, 8, generator=generators[0])[0]))
        pairs.append((given[0][:1], given[2][:1]))
        return torch.tensor([torch.equal(*pair) for pair in pairs])

    def too_short(length):
        torch.default_generator.manual_seed(1)
        try:
            problem.get_batch(torch.arange(length), 5, 2)
        except ValueError as exception:
            if "expected" in str(exception):  # torch's error, not the student's
                raise AssertionError from None
            raise

    return Part(
        main={
            "form": forms,
            "dtypes": dtypes,
            "steps": steps,
            "ends": ends,
            "evenness": evenness,
            "neighbours": neighbours,
            "seeds": seeds,
            "too short": lambda: edges.refusals(too_short, 30, (5, 4, 6, 7)).clamp(max=2),
        },
    )


def about_bigram(problem):
    """Return questions about the loss of the bigram model."""

    def loss(text, vocab_size=None):
        letters = sorted(set(text))
        data = torch.tensor([letters.index(letter) for letter in text])
        return problem.bigram_loss(data, vocab_size or len(letters))

    def of_the_ends():
        """Return whether only one end of a long text is read.

        At each end, every token has only one successor. So the loss of an end is 0.
        """
        found = loss("ab" * 1500 + "abracadabra" * 20 + "cd" * 1500)
        return bool(abs(found) < 1e-9)

    return Part(
        main={
            "abracadabra": lambda: loss("abracadabra"),
            "more tokens": lambda: loss("abracadabra", 9),
            "ends with a new letter": lambda: loss("aabbaabc"),
            "of the ends": of_the_ends,
            "kind": lambda: isinstance(loss("abracadabra"), float),
        },
    )
