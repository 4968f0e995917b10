"""The questions by which a mistake in problem 07 is told. An instrument, not a lesson."""

import functools
import math

import torch

from grader.code.cost import counting
from grader.diagnose import edges
from grader.diagnose.answers import attempt
from grader.diagnose.numbers import numbers
from grader.diagnose.probe import Part
from grader.run.compare import parameters, set_weights
from shared.ordinary_weights import filled as filled_with
from shared.ordinary_weights import gpt_weights, quiet
from shared.small_gpt import batched, gpt_by_hand


def tokens(vocab_size, *shape, start=3):
    """Tokens that need no chance, for each start others."""
    steps = torch.arange(math.prod(shape)) + start
    return (steps * steps * 7 + steps * 5 + steps // 3).remainder(vocab_size).reshape(shape)


def sizes(vocab_size, n_positions, n_embd, n_layer, n_head, **other):
    """The arguments of a GPTConfig."""
    return {
        "vocab_size": vocab_size,
        "n_positions": n_positions,
        "n_embd": n_embd,
        "n_layer": n_layer,
        "n_head": n_head,
    } | other


ORDINARY = sizes(7, 6, 8, 2, 2)
EVEN = sizes(4, 4, 4, 2, 4)
EVEN_3 = sizes(3, 3, 3, 1, 3)


def shapes(given):
    """The shapes that the parameters of a model of these sizes should have."""
    return {name: tuple(each.shape) for name, each in gpt_weights(given).items()}


def named_once(model, given):
    """A model's parameters by name, without second names of those that are expected."""
    found, wanted = parameters(model), shapes(given)
    expected = {id(each) for name, each in found.items() if name in wanted}
    return {n: each for n, each in found.items() if n in wanted or id(each) not in expected}


def models(problem):
    """Return a function that gives a model for sizes, each of which is made once."""
    made = functools.cache(lambda given: filled(problem, dict(given)))
    return lambda given: made(tuple(given.items())).eval()


def filled(problem, given, weights=None, dtype=torch.float64):
    """A model of the student's in evaluation that holds weights, as far as it has a place for them.

    What is missing or too much is told by another part; here it must not count.
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


def logits_of(model, *arguments):
    """The logits of a model, in whatever order they come back."""
    answer = model(*arguments)
    if not isinstance(answer, tuple | list):
        return answer
    return next((each for each in answer if each is not None and each.dim() > 1), answer)


def probe(problem):
    """Return the questions about the class, from several sides, and about each function."""
    by_chance = generates_by_chance(problem)
    return {
        "GPT: what it is made of": about_parts(problem),
        "GPT: initial weights": about_start(problem),
        "GPT: logits": about_logits(problem),
        "GPT: positions": about_positions(problem),
        "GPT: loss": about_loss(problem),
        "GPT: dropout": about_dropout(problem),
        "GPT: generate": about_generate(problem, by_chance),
        "GPT: context": about_context(problem, by_chance),
        "GPT: modes": about_modes(problem, by_chance),
        "get_batch": about_batches(problem),
        "bigram_loss": about_bigram(problem),
    }


def about_parts(problem):
    """Questions about what a model is made of."""

    def sizes_of(given):
        """How many numbers each expected parameter has, and the others in all."""
        found = named_once(problem.GPT(problem.GPTConfig(**given)), given)
        wanted = shapes(given)
        own = [found[name].numel() if name in found else -1 for name in wanted]
        others = sum(each.numel() for name, each in found.items() if name not in wanted)
        return torch.tensor([*own, others], dtype=torch.float64)

    def tied():
        found = parameters(problem.GPT(problem.GPTConfig(**ORDINARY)))
        wte, lm_head = found["transformer.wte.weight"], found["lm_head.weight"]
        return torch.tensor([wte is lm_head, torch.equal(wte, lm_head)])

    def how_many():
        model = problem.GPT(problem.GPTConfig(**ORDINARY))
        return sum(each.numel() for each in model.parameters())

    def config():
        model = problem.GPT(problem.GPTConfig(**ORDINARY))
        return torch.tensor([getattr(model.config, name) for name in ORDINARY])

    return Part(
        main={
            "ordinary": lambda: sizes_of(ORDINARY),
            "all of size 4": lambda: sizes_of(EVEN),
            "without bias": lambda: sizes_of(ORDINARY | {"bias": False}),
            "many positions": lambda: sizes_of(sizes(5, 9, 4, 3, 1)),
            "tied": tied,
            "how many": how_many,
            "config": config,
        },
    )


SPREADS = torch.tensor(
    [1e-6, 0.005, 0.03, 0.06, 0.11, 0.155, 0.187, 0.25, 0.31, 0.37, 0.45, 0.53, 0.65, 0.79, 0.88]
    + [1.2, 1.6, 2.5, 3, 4.35, 4.8, 6, 8, 14, 30, 70],
    dtype=torch.float64,
)
"""Between these, as shares of 0.02, lie the standard deviations that known faults start with."""


def about_start(problem):
    """Questions about the initial weights, as coarse as chance has it."""
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
            "head": lambda: spread(3, "lm_head.weight"),
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
    """Questions about the logits, with and without targets."""
    model_of = models(problem)

    def logits(given, batch, length, *, train=False, targets=False):
        model = model_of(given).train(train)
        idx = tokens(given["vocab_size"], batch, length)
        return logits_of(model, idx, *([idx.flip(0)] if targets else []))

    def kind(targets):
        """What comes back: 0 for a pair as it should be."""
        model, idx = model_of(ORDINARY), tokens(7, 2, 5)
        answer = model(idx, *([idx.flip(0)] if targets else []))
        if not isinstance(answer, tuple | list) or len(answer) != 2:
            return 1
        if answer[0] is None or answer[0].dim() == 0:
            return 2
        return 3 if (answer[1] is None) == targets else 0

    def in_float32():
        return logits_of(filled(problem, ORDINARY, dtype=torch.float32), tokens(7, 2, 5))

    def digits_lost():
        found = logits_of(model_of(ORDINARY), tokens(7, 2, 5))
        right = batched(gpt_by_hand, tokens(7, 2, 5), gpt_weights(ORDINARY), 2, dtype=torch.float64)
        return edges.loses_digits(found, right)

    def keeps_weights():
        """Whether a model whose weights are changed goes on as if they weren't."""
        model, idx = filled(problem, ORDINARY), tokens(7, 2, 5)
        before = logits_of(model, idx)
        for name in ("transformer.wte.weight", "transformer.wpe.weight"):
            found = parameters(model)[name]
            set_weights(model, {name: found.detach() + numbers(*found.shape)})
        fresh = filled(problem, ORDINARY)
        fresh.load_state_dict(model.state_dict())
        after = logits_of(model, idx)
        return torch.equal(after, before) or not torch.equal(after, logits_of(fresh, idx))

    def remembers():
        model = filled(problem, ORDINARY)
        first, again = tokens(7, 2, 5), tokens(7, 2, 5)
        before = logits_of(model, first)
        logits_of(model, tokens(7, 3, 6, start=9))
        return torch.equal(before, logits_of(model, again))

    def draws():
        model = filled(problem, ORDINARY | {"dropout": 0.5})
        return edges.moves_random_state(lambda: model(tokens(7, 2, 5)))

    return Part(
        main={
            "all of size 4": lambda: logits(EVEN, 4, 4),
            "all of size 3": lambda: logits(EVEN_3, 3, 3),
            "ordinary": lambda: logits(ORDINARY, 2, 5),
            "in training": lambda: logits(ORDINARY, 3, 6, train=True),
            "with targets": lambda: logits(ORDINARY, 2, 5, targets=True),
            "1 block": lambda: logits(sizes(5, 9, 6, 1, 3), 4, 7),
            "3 blocks": lambda: logits(sizes(9, 8, 10, 3, 5), 2, 4),
            "no bias": lambda: logits(ORDINARY | {"bias": False}, 2, 5),
            "1 token": lambda: logits(ORDINARY, 3, 1),
            "kind": lambda: torch.tensor([kind(False), kind(True)]),
            "too long": lambda: edges.refusals(
                lambda length: model_of(ORDINARY)(tokens(7, 2, length)), 5, (6, 7, 9)
            ),
        },
        edges={
            "float32": in_float32,
            "digits lost": digits_lost,
            "keeps weights": keeps_weights,
            "remembers": remembers,
            "draws in evaluation": draws,
        },
    )


def plain_weights(given):
    """Weights of blocks that add nothing."""
    return quiet(gpt_weights(given))


def about_positions(problem):
    """A question about what the position of a token hangs on, of blocks that add nothing."""

    def special():
        """How many tokens, standing before one and the same token, change its position."""
        idx = torch.cat([torch.arange(7)[:, None].expand(7, 3), torch.full((7, 1), 5)], dim=1)
        last = logits_of(filled(problem, ORDINARY, plain_weights(ORDINARY)), idx)[:, -1]
        alike = (last[:, None] - last[None]).abs().amax(-1) < 1e-9
        return (alike.sum(1) < 4).sum()

    return Part(main={"special tokens": special})


def about_loss(problem):
    """Questions about the loss of logits that hang on nothing but ln_f's bias and lm_head."""

    @functools.cache
    def model_of(vocab_size):
        given = {3: EVEN_3, 4: EVEN, 7: ORDINARY}[vocab_size]
        weights = gpt_weights(given)
        weights["transformer.ln_f.weight"] = 0 * weights["transformer.ln_f.weight"]
        weights["transformer.ln_f.bias"] = numbers(given["n_embd"], start=0.4)
        return filled(problem, given, weights)

    def loss_in(answer):
        """The loss that came back, in whatever order."""
        if not isinstance(answer, tuple | list):
            return answer
        return min(answer, key=lambda each: each.dim() if isinstance(each, torch.Tensor) else 0)

    def loss(given, targets):
        idx = tokens(given["vocab_size"], *targets.shape, start=8)
        return loss_in(model_of(given["vocab_size"])(idx, targets))

    def of_unlikely(gap):
        """The loss of a token whose logit is `gap` below the largest ones."""
        weights = {name: 0 * each for name, each in gpt_weights(ORDINARY).items()}
        rows = weights["transformer.wte.weight"]
        rows[3:, 0] = -gap
        weights["lm_head.weight"] = rows
        weights["transformer.ln_f.bias"][0] = 1
        return loss_in(filled(problem, ORDINARY, weights)(tokens(7, 1, 4), torch.full((1, 4), 5)))

    def with_ignored(targets, places):
        targets = targets.clone()
        targets.flatten()[places] = -100
        return targets

    def reached():
        """Whether the loss has a gradient by the first weights, to which the way is longest."""
        model, idx = filled(problem, ORDINARY), tokens(7, 2, 5)
        _, found = model(idx, idx.flip(0))
        names = ("wte.weight", "wpe.weight", "h.0.attn.c_attn.weight")
        held = parameters(model)
        weights = [held[f"transformer.{name}"] for name in names]
        slopes = [edges.slope(found, weight) for weight in weights]
        return all(each is not None and bool(each.any()) for each in slopes)

    def of_logits():
        """The loss of logits that differ from position to position, by its own logits."""
        model, idx = filled(problem, ORDINARY), tokens(7, 3, 5)
        logits, found = model(idx, idx.flip(0))
        wanted = torch.nn.functional.cross_entropy(logits.flatten(0, 1), idx.flip(0).flatten())
        return found - wanted

    def digits_lost():
        return edges.loses_digits(of_logits(), torch.zeros(()))

    def changes():
        targets = with_ignored(mixed, [1, 5])
        loss(ORDINARY, targets)
        return not torch.equal(targets, with_ignored(mixed, [1, 5]))

    four, mixed, most = tokens(4, 4, 4), tokens(7, 3, 5), [*range(11), 12, 13, 14]
    return Part(
        main={
            "all of size 4": lambda: loss(EVEN, four),
            "all of size 3": lambda: loss(EVEN_3, tokens(3, 3, 3)),
            "ordinary": lambda: loss(ORDINARY, mixed),
            "1 sequence": lambda: loss(ORDINARY, tokens(7, 1, 6, start=5)),
            "1 token, always 0": lambda: loss(ORDINARY, 0 * tokens(7, 4, 1)),
            "ignored": lambda: loss(ORDINARY, with_ignored(mixed, [1, 5, 6, 14])),
            "all but one ignored": lambda: loss(ORDINARY, with_ignored(mixed, most)),
            "of its logits": of_logits,
            "digits lost": digits_lost,
            "logits far apart": lambda: of_unlikely(40),
            "logits thousands apart": lambda: of_unlikely(2000),
        },
        edges={
            "transposed": lambda: loss(ORDINARY, mixed.T.contiguous().T),
            "gradients reach": reached,
            "changes targets": changes,
        },
    )


DROPPING = sizes(49, 4, 48, 1, 1)
"""The last of these tokens has the same number everywhere, and so has each position, another."""


def about_dropout(problem):
    """Questions about what is dropped, as the last norm shows it."""

    def model_with(dropout, of_block=0.1):
        given = DROPPING | {"dropout": dropout}
        weights = {name: torch.zeros(shape).double() for name, shape in shapes(given).items()}
        for name, weight in weights.items():
            if ".ln_" in name and name.endswith("weight"):
                weight += 1
        eye = torch.eye(48, dtype=torch.float64)
        kinds = torch.cat([0.01 * eye, torch.full((1, 48), 0.007, dtype=torch.float64)])
        weights["transformer.wte.weight"] = weights["lm_head.weight"] = kinds
        weights["transformer.wpe.weight"] += 0.003
        weights["transformer.h.0.mlp.c_proj.bias"] += of_block
        return filled(problem, given, weights)

    def attention_reads_all():
        """Whether what the attention reads of a token is whole: then its sums are all alike."""
        given = DROPPING | {"dropout": 0.3}
        weights = {name: torch.zeros(shape).double() for name, shape in shapes(given).items()}
        weights["transformer.h.0.ln_1.bias"] += 1
        uneven = numbers(48, 48)
        values = 0.1 / 48 + uneven - uneven.mean(-1, keepdim=True)
        weights["transformer.h.0.attn.c_attn.weight"][-48:] = values
        weights["transformer.h.0.attn.c_proj.weight"] += torch.eye(48)
        weights["transformer.ln_f.weight"] += 1
        kinds = 0.01 * torch.eye(49, 48, dtype=torch.float64)
        weights["transformer.wte.weight"] = weights["lm_head.weight"] = kinds
        model = filled(problem, given, weights).train()
        found = logits_of(model, torch.full((4, 4), 48)).detach().flatten(0, 1)[:, :48]
        return bool(((found.sort(-1).values.diff() > 1e-6).sum(-1) <= 1).all())

    def rows(dropout, *, train=True, of_block=0.1):
        torch.default_generator.manual_seed(2)
        model = model_with(dropout, of_block).train(train)
        found = logits_of(model, torch.full((40, 4), 48)).detach()
        return found.flatten(0, 1).double()[:, :48]

    def levels(dropout, *, train=True, of_block=0.1):
        """How many different entries the rows have, mostly and at most."""
        found = rows(dropout, train=train, of_block=of_block)
        counts = (found.sort(-1).values.diff() > 1e-7).sum(-1) + 1
        return torch.stack([counts.median(), counts.max()]).clamp(max=9)

    def small_step(dropout):
        """How far the two lowest entries of a row are apart, beside the lowest and the highest."""
        kinds = [row[row.diff(prepend=row[:1] - 1) > 1e-7] for row in rows(dropout).sort(-1).values]
        return torch.stack([(row[1] - row[0]) / (row[-1] - row[0]) for row in kinds]).median()

    def shares(dropout):
        """About which share of a row is at its lowest, and at its highest entry."""
        found = rows(dropout)
        lowest = (found < found.amin(-1, keepdim=True) + 1e-6).double().mean()
        highest = (found > found.amax(-1, keepdim=True) - 1e-6).double().mean()
        bounds = torch.tensor([0.015, 0.06, 0.12, 0.2, 0.31, 0.42, 0.53, 0.68, 0.85]).double()
        return torch.bucketize(torch.stack([lowest, highest]), bounds)

    return Part(
        main={
            "levels": lambda: levels(0.3),
            "small step": lambda: small_step(0.3),
            "embeddings alone": lambda: levels(0.3, of_block=0.0),
            "shares": lambda: shares(0.3),
            "shares, more": lambda: shares(0.6),
            "in evaluation": lambda: levels(0.3, train=False),
            "rate 0": lambda: levels(0.0),
            "attention reads all": attention_reads_all,
        },
    )


def draws(problem):
    """Whether generate draws random numbers in evaluation."""
    model = filled(problem, ORDINARY)
    return edges.moves_random_state(lambda: model.generate(tokens(7, 2, 3), 2))


def generates_by_chance(problem):
    """The same; where code stops it doesn't."""
    return attempt(lambda: draws(problem)).numbers[:1] == (1.0,)


def about_generate(problem, by_chance):
    """Questions about which tokens are generated, in evaluation and without dropout."""
    model_of = models(problem)

    def generated(given, batch, length, n_new, start=3, blocks=True):
        model = model_of(given) if blocks else filled(problem, given, plain_weights(given))
        torch.default_generator.manual_seed(4)
        found = model.generate(tokens(given["vocab_size"], batch, length, start=start), n_new)
        return found.double() if isinstance(found, torch.Tensor) else found

    def nothing(length):
        generated(short, 3, length, 1)  # what stops there says nothing here
        return generated(short, 3, length, 0)

    def dtype():
        found = model_of(ORDINARY).generate(tokens(7, 2, 3), 2)
        return torch.tensor([found.dtype == each for each in (torch.int64, torch.int32)])

    def always(token):
        """What is generated where the same token is always by far the most probable."""
        weights = plain_weights(wide)
        rows = weights["transformer.wte.weight"]
        rows = rows / rows.norm(dim=1, keepdim=True)
        weights["transformer.wte.weight"] = weights["lm_head.weight"] = rows
        weights["transformer.ln_f.weight"] = torch.zeros(8, dtype=torch.float64)
        weights["transformer.ln_f.bias"] = 9 * rows[token]
        model = filled(problem, wide, weights)
        torch.default_generator.manual_seed(4)
        return model.generate(tokens(13, 2, 2, start=token), 3)

    def repeated():
        """What is generated where each token follows itself, for one sequence of token 0."""
        weights = {name: 0 * each for name, each in plain_weights(wide).items()}
        rows = torch.eye(13, 8, dtype=torch.float64)
        weights["transformer.wte.weight"] = weights["lm_head.weight"] = rows
        weights["transformer.ln_f.weight"] = torch.ones(8, dtype=torch.float64)
        return filled(problem, wide, weights).generate(torch.tensor([[5], [0], [3]]), 3)

    def others(gap):
        """Whether anything but the most probable token comes, where the next best is this near."""
        weights = {name: 0 * each for name, each in plain_weights(wide).items()}
        rows = weights["transformer.wte.weight"]
        rows[5, 0], rows[2, 0] = 3, 3 - gap
        weights["lm_head.weight"] = rows
        weights["transformer.ln_f.bias"][0] = 1
        torch.default_generator.manual_seed(4)
        found = filled(problem, wide, weights).generate(tokens(13, 30, 2), 2)[:, 2:]
        return (found != 5).double().mean() > 0.02

    def changes():
        idx = tokens(7, 2, 6)
        filled(problem, ORDINARY).generate(idx, 2)
        return not torch.equal(idx, tokens(7, 2, 6))

    wide, short = sizes(13, 12, 8, 1, 2), sizes(13, 4, 8, 1, 2)
    chance = {
        "draws": lambda: draws(problem),
        "another one, as probable": lambda: others(1e-6),
        "another one": lambda: others(1.0),
    }
    if by_chance:
        return Part(main=chance)  # all tokens hang on it
    return Part(
        main=chance
        | {
            "all of size 4": lambda: generated(EVEN, 4, 2, 2),
            "short prompt": lambda: generated(wide, 6, 2, 5),
            "longer prompt": lambda: generated(wide, 6, 5, 3, start=11),
            "without blocks": lambda: generated(wide, 8, 4, 3, start=5, blocks=False),
            "1 token": lambda: generated(wide, 5, 1, 2),
            "beyond n_positions": lambda: generated(short, 6, 3, 5),
            "beyond, without blocks": lambda: generated(short, 8, 2, 6, start=6, blocks=False),
            "long prompt": lambda: generated(short, 6, 9, 3),
            "nothing": lambda: nothing(3),
            "nothing, long prompt": lambda: nothing(7),
            "always token 0": lambda: always(0),
            "always token 5": lambda: always(5),
            "always the last token": lambda: always(12),
            "token 0 in one sequence": repeated,
            "one sequence": lambda: generated(wide, 1, 3, 2),
            "dtype": dtype,
        },
        edges={"changes idx": changes},
    )


def about_context(problem, by_chance):
    """Questions about how much generate reads: each new token tells the last position there was."""
    if by_chance:
        return Part(main={})
    given, idx = sizes(8, 6, 8, 1, 2), tokens(8, 2, 3)

    @functools.cache
    def model():
        weights = plain_weights(given)
        rows = torch.eye(8, dtype=torch.float64)
        weights["transformer.wte.weight"] = weights["lm_head.weight"] = rows
        weights["transformer.wpe.weight"] = 10 * rows[:6]
        weights["transformer.ln_f.weight"] = torch.ones(8, dtype=torch.float64)
        weights["transformer.ln_f.bias"] = torch.zeros(8, dtype=torch.float64)
        return filled(problem, given, weights)

    @functools.cache
    def positions():
        return model().generate(idx, 10)[:, -10:].double()

    def full():
        """How much of a full context is left out; 8 where it begins anew, 9 where it is cut."""
        found = positions()[0, 4:]
        if bool((found == found[0]).all()):
            return 5 - found[0]
        return 9.0 if found.min() > 0 else 8.0

    def operations(n_new):
        with counting() as cost:
            model().generate(idx, n_new)
        return cost.operations

    def reads_all():
        """Whether each step at a full context costs as much as one of 6 tokens, by one of 3."""
        return (operations(10) - operations(4)) / 6 > 0.9 * 2 * operations(1)

    return Part(
        main={
            "while it fits": lambda: positions()[:, :4],
            "after token 0": lambda: model().generate(idx[:, :1], 4)[:, -4:].double(),
            "when full": full,
            "reads all": reads_all,
        },
    )


def about_modes(problem, by_chance):
    """Questions about what generate switches off, and whether it is as before afterwards."""
    given = sizes(13, 12, 8, 1, 2, dropout=0.5)

    def is_dropping(model):
        torch.default_generator.manual_seed(5)
        idx = tokens(13, 4, 6)
        return not torch.equal(logits_of(model, idx), logits_of(model, idx))

    def alike():
        """Whether two runs in training give the same text: nothing is dropped there."""
        model, idx = filled(problem, given).train(), tokens(13, 12, 6)
        torch.default_generator.manual_seed(6)
        first, second = (model.train().generate(idx, 3) for _ in range(2))
        return torch.equal(first, second)

    def as_in_evaluation():
        model, idx = filled(problem, given), tokens(13, 12, 6)
        wanted = model.eval().generate(idx, 3)
        torch.default_generator.manual_seed(6)
        return torch.equal(model.train().generate(idx, 3), wanted)

    def after(train):
        model = filled(problem, given).train(train)
        model.generate(tokens(13, 3, 6), 2)
        return is_dropping(model)

    def drops_as_before():
        """Whether a seed drops in training what it dropped before, after 2 new tokens and 0."""
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

    def draws():
        model = filled(problem, given).train()
        return edges.moves_random_state(lambda: model.generate(tokens(13, 3, 6), 2))

    dropping = {"alike": alike, "as in evaluation": as_in_evaluation}
    return Part(
        main=({} if by_chance else dropping)
        | {
            "after training": lambda: after(True),
            "after evaluation": lambda: after(False),
            "drops as before": drops_as_before,
            "gradients": gradients,
        },
        edges={} if by_chance else {"draws": draws},
    )


def about_batches(problem):
    """Questions about what get_batch draws."""

    def batch(length, n_positions, batch_size, *, seed=1, generator=None):
        torch.default_generator.manual_seed(seed)
        data = torch.arange(length) * 3 + 100
        x, y = problem.get_batch(data, n_positions, batch_size, generator)
        return (x - 100) / 3, (y - 100) / 3

    def only_start():
        """All that can be drawn where one start is possible."""
        return torch.stack([each.double() for each in batch(6, 5, 3)])

    def dtypes():
        torch.default_generator.manual_seed(1)
        drawn = problem.get_batch(torch.arange(30), 4, 3)
        return torch.tensor([each.dtype == torch.int64 for each in drawn])

    def forms(length, n_positions, batch_size):
        x, y = batch(length, n_positions, batch_size)
        return torch.tensor([*x.shape, -1, *y.shape], dtype=torch.float64)

    def steps():
        """From token to token within rows, and from x to y."""
        x, y = batch(40, 4, 60)
        ends = [(each[:, 1:] - each[:, :-1]).flatten() for each in (x, y)]
        far = y[:, -1] - x[:, -1] if y.dim() == x.dim() else y - x[:, -1]
        first = y[:, 0] - x[:, 0] if y.dim() == x.dim() else y - x[:, 0]
        return torch.stack([each.amin() for each in (*ends, far, first)]
                           + [each.amax() for each in (*ends, far, first)])  # fmt: skip

    def starts(length, n_positions, batch_size=400):
        x, _ = batch(length, n_positions, batch_size)
        return x[:, 0]

    def ends(length, n_positions):
        found = starts(length, n_positions)
        return torch.stack([found.amin(), found.amax()])

    def evenness():
        """About how often each of five starts comes up, far from any bound."""
        counts = torch.bincount(starts(9, 4, 4000).long(), minlength=5)
        bounds = torch.tensor([1, 300, 650, 900, 1600, 2500])
        return torch.bucketize(counts, bounds)

    def neighbours():
        """How rows hang together: steps from row to row, and whether all are alike or differ."""
        found = starts(24, 4, 20)
        step = found.diff()
        alike = [(step == each).double().mean() > 0.7 for each in (0, 1, 4)]
        return torch.tensor([*alike, bool((step >= 0).all()), len(found.unique()) == len(found)])

    def seeds():
        """Which draws are the same: by a generator, by torch's seed, the next, first rows."""
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
            if "expected" in str(exception):  # torch's own
                raise AssertionError from None
            raise

    def global_state():
        generator = torch.Generator().manual_seed(1)
        return edges.moves_random_state(
            lambda: problem.get_batch(torch.arange(30), 3, 4, generator)
        )

    return Part(
        main={
            "one start": only_start,
            "form": lambda: forms(30, 4, 7),
            "form, one row": lambda: forms(30, 9, 1),
            "dtypes": dtypes,
            "steps": steps,
            "ends": lambda: ends(9, 4),
            "ends, two starts": lambda: ends(5, 3),
            "evenness": evenness,
            "neighbours": neighbours,
            "many rows": lambda: forms(12, 4, 50),
            "seeds": seeds,
            "too short": lambda: edges.refusals(too_short, 30, (5, 4, 6, 7)).clamp(max=2),
        },
        edges={"global state": global_state},
    )


def about_bigram(problem):
    """Questions about the loss of the bigram model."""

    def loss(text, vocab_size=None):
        letters = sorted(set(text))
        data = torch.tensor([letters.index(letter) for letter in text])
        return problem.bigram_loss(data, vocab_size or len(letters))

    def of_the_ends():
        """Whether a long text is read at one of its ends only, where all pairs are certain."""
        found = loss("ab" * 1500 + "abracadabra" * 20 + "cd" * 1500)
        return bool(abs(found) < 1e-9)

    def kind():
        return isinstance(loss("abracadabra"), float)

    return Part(
        main={
            "abracadabra": lambda: loss("abracadabra"),
            "certain": lambda: loss("abababab"),
            "aaab": lambda: loss("aaab"),
            "longer": lambda: loss("she sells sea shells by the sea shore"),
            "more tokens": lambda: loss("abracadabra", 9),
            "ends with a new letter": lambda: loss("aabbaabc"),
            "of the ends": of_the_ends,
            "kind": kind,
        },
    )
