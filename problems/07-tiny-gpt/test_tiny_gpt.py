"""Tests of problem 07. Run them with `uv run pytest` in this folder."""

from functools import partial

import pytest
import torch

from grader.code.tensors import parameters
from grader.run import checks
from shared import robust
from shared import worked_example as example
from shared.oracles import tiny_gpt as oracles
from shared.small_gpt import gpt_weights

FIELDS = ("vocab_size", "n_positions", "n_embd", "n_layer", "n_head", "dropout", "bias")
"""The fields of a GPTConfig, in order."""

GPT2_DEFAULTS = (50257, 1024, 768, 12, 12, 0.0, True)

NEAR = {"rtol": 1e-3, "atol": 1e-4}
"""Tolerances for logits in float32: rounding errors add up over the blocks."""


# Models with known weights.


def named(sizes):
    """Return the call that makes a model of these sizes, as text."""
    arguments = ", ".join(f"{name}={value}" for name, value in sizes.items())
    return f"GPT(GPTConfig({arguments}))"


def new_model(problem, sizes):
    """Return a new model of the student's class, of these sizes, in training mode."""
    return problem.GPT(problem.GPTConfig(**sizes))


SMALL = {"vocab_size": 7, "n_positions": 6, "n_embd": 8, "n_layer": 2, "n_head": 2}


def drawn_weights(rng, sizes):
    """Return random weights for a model of these sizes, in which every part has an effect."""
    names = ("vocab_size", "n_positions", "n_embd", "n_layer")
    return gpt_weights(rng, *(sizes[name] for name in names), bias=sizes.get("bias", True))


def make_model(problem, weights, sizes, dtype=None):
    """Return the student's model of these sizes with these weights, after eval()."""
    return example.load_weights(new_model(problem, sizes), weights, dtype).eval()


def draw_tokens(rng, sizes, *shape):
    """Return random tokens, all equally likely."""
    return torch.randint(sizes["vocab_size"], shape, generator=rng.generator)


def answer(model, call, *arguments):
    """Call a model and return its logits and its loss."""
    result = model(*(each.clone() for each in arguments))
    return example.unpack(result, 2, "the logits and the loss", call)


def check_both(result, expected, call, **near):
    """Compare the logits and the loss of a result with the expected ones."""
    logits, loss = example.unpack(result, 2, "the logits and the loss", call)
    right, right_loss = checks.parts(expected, 2)
    checks.check(logits, right, f"the logits of {call}", **near)
    checks.require(
        loss is not None, f"{call}\nThe loss is None; with targets it should be a tensor."
    )
    checks.check(loss, right_loss, f"the loss of {call}", **near)


# The parts of a GPT


def shapes_of(rng, sizes):
    """Return the shapes of all parameters of a model of these sizes, by GPT-2's names."""
    return {name: tuple(weight.shape) for name, weight in drawn_weights(rng, sizes).items()}


@pytest.mark.points(1)
@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
def test_layers(problem, rng, bias):
    """A GPT has GPT-2's parameters, with their names and shapes, and no others"""
    sizes = SMALL | {"bias": bias}
    model, call = new_model(problem, sizes), named(sizes)
    every, expected = parameters(model), shapes_of(rng, sizes)
    shapes = {name: tuple(weight.shape) for name, weight in every.items()}
    ids = {id(every[name]) for name in expected if name in every}  # they may have other names, too
    more = [name for name, weight in every.items() if id(weight) not in ids]
    checks.check_that((shapes, more), oracles.are_parameters_of_gpt, call, expected)


def check_config(model, fields):
    """Require that a model keeps the config that it was made from."""
    checks.require(hasattr(model, "config"), "The model has no attribute `config`.")
    for name, value in fields.items():
        actual = getattr(model.config, name, None)
        checks.require(actual == value, f"model.config.{name} is {actual}; expected {value}.")


# Initial weights

WIDE = {"vocab_size": 80, "n_positions": 64, "n_embd": 64, "n_layer": 3, "n_head": 4}


def check_start(model, sizes, call, names):
    """Require that a new model has GPT-2's initial weights, under all these names."""
    for name, weight in checks.parameters_of(model, names).items():
        what = f"`{name}` of {call}"
        checks.check_that(weight, oracles.is_initial_weight, what, name, sizes["n_layer"])


@pytest.mark.points(0.75)
@pytest.mark.parametrize("n_layer", [1, 3])
def test_initial_weights(problem, rng, n_layer):
    """Initial weights are N(0, 0.02²), smaller in c_proj; those of norms are 1, and biases 0"""
    sizes = WIDE | {"n_layer": n_layer}
    torch.default_generator.manual_seed(11)
    check_start(new_model(problem, sizes), sizes, named(sizes), shapes_of(rng, sizes))


@pytest.mark.points(0.25)
def test_first_loss(problem, rng):
    """The loss of a new model is about ln(vocab_size)"""
    torch.default_generator.manual_seed(12)
    model = new_model(problem, WIDE).eval()
    call = f"{named(WIDE)}(idx, targets) with idx of shape (8, 40), a new model"
    idx, targets = (draw_tokens(rng, WIDE, 8, 40) for _ in range(2))
    _, loss = answer(model, call, idx, targets)
    checks.check_form(loss, torch.zeros(()), f"the loss of {call}")
    what = f"the loss of {call}"
    checks.check_that(loss.item(), oracles.is_first_loss, what, WIDE["vocab_size"])


# forward: logits


@pytest.mark.points(1)
def test_embeddings(problem, rng):
    """The input of the blocks is wte[token] + wpe[position]; after them come ln_f and lm_head"""
    weights = drawn_weights(rng, SMALL)
    for name in weights:
        if ".c_proj." in name:
            weights[name] = torch.zeros_like(weights[name])
    idx = torch.tensor([[3, 3, 3, 0], [6, 0, 3, 3]])
    model = make_model(problem, weights, SMALL)
    call = f"the logits of {named(SMALL)}(idx) with idx = {idx.tolist()} and blocks that add 0"
    logits, _ = answer(model, call, idx)
    checks.check(logits, oracles.logits(idx, weights, SMALL["n_head"]), call, **NEAR)


SIZES = [
    (2, 5, {}),
    (3, 6, {"n_layer": 4}),
    (1, 4, {"n_layer": 3, "n_head": 1}),
    (4, 2, {"n_head": 8}),
    (3, 3, {"vocab_size": 3, "n_positions": 3}),
    (2, 4, {"bias": False}),
]
"""The number of sequences, their length, and the sizes that differ from SMALL."""


@pytest.mark.points(3)
@pytest.mark.parametrize(("batch", "seq_len", "other"), SIZES)
def test_logits_by_hand(problem, rng, batch, seq_len, other):
    """The logits are right at every position, for several sizes"""
    sizes = SMALL | other
    weights, idx = drawn_weights(rng, sizes), draw_tokens(rng, sizes, batch, seq_len)
    model = make_model(problem, weights, sizes)
    call = f"the logits of {named(sizes)}(idx) with idx of shape {tuple(idx.shape)}"
    logits, loss = answer(model, call, idx)
    checks.check(logits, oracles.logits(idx, weights, sizes["n_head"]), call, **NEAR)
    checks.require(loss is None, f"{call}\nWithout targets the loss should be None.")


@pytest.mark.points(1)
def test_weight_is_tied(problem, rng):
    """The weights of lm_head and wte are one parameter, not two equal ones"""
    model, call = new_model(problem, SMALL), named(SMALL)
    weights = checks.parameters_of(model, shapes_of(rng, SMALL))
    wte, lm_head = weights["transformer.wte.weight"], weights["lm_head.weight"]
    equal = " They have the same numbers, but training changes them separately."
    checks.require(
        wte is lm_head,
        f"{call}\n`lm_head.weight` and `transformer.wte.weight` are two parameters; they should be "
        f"one.{equal if wte.equal(lm_head) else ''}",
    )
    check_weights_stay_tied(model, call, rng)


def check_weights_stay_tied(model, call, rng):
    """Require that a step of an optimizer changes the tied weight in both layers."""
    checks.set_weights(model, drawn_weights(rng, SMALL))
    idx = draw_tokens(rng, SMALL, 2, 5)
    _, loss = answer(model, f"{call}(idx, targets)", idx, draw_tokens(rng, SMALL, 2, 5))
    loss.backward()
    with torch.no_grad():
        for weight in model.parameters():
            if weight.grad is not None:
                weight -= 0.5 * weight.grad
    logits, _ = answer(model.eval(), f"{call}(idx)", idx)
    weights = parameters(model)
    del weights["lm_head.weight"]  # wte has the same parameter
    call, n_head = f"the logits of {call}(idx) after a step of an optimizer", SMALL["n_head"]
    checks.check_that((logits, weights), oracles.are_logits_of_weights, call, idx, n_head, NEAR)


@pytest.mark.points(1)
def test_future_is_hidden(problem, rng):
    """Later tokens do not change earlier logits"""
    weights, idx = drawn_weights(rng, SMALL), draw_tokens(rng, SMALL, 2, 6)
    model = make_model(problem, weights, SMALL)
    call = f"the logits of {named(SMALL)}(idx) with idx of shape (2, 6)"
    before, _ = answer(model, call, idx)
    before = checks.check_form(before, torch.empty(2, 6, 7), call)
    for kept in (1, 3, 5):
        changed = torch.cat([idx[:, :kept], (idx[:, kept:] + 1) % SMALL["vocab_size"]], dim=1)
        after, _ = answer(model, call, changed)
        after = checks.check_form(after, before, call)[:, :kept]
        what = f"{call} at the first {kept} of 6 positions, when all later tokens are changed"
        checks.check_same(after, before[:, :kept], what, **NEAR)


@pytest.mark.points(0.5)
def test_too_long_sequences_are_refused(problem, rng):
    """n_positions tokens are accepted, and more tokens raise ValueError"""
    sizes = SMALL | {"n_positions": 4}
    weights, idx = drawn_weights(rng, sizes), draw_tokens(rng, sizes, 2, 6)
    model = make_model(problem, weights, sizes)
    for length in (5, 6):
        example.check_refused(
            f"{named(sizes)}(idx) with {length} tokens", partial(model, idx[:, :length].clone())
        )
    idx = idx[:, :4]
    call = f"the logits of {named(sizes)}(idx) with n_positions tokens"
    logits, _ = answer(model, call, idx)
    checks.check(logits, oracles.logits(idx, weights, sizes["n_head"]), call, **NEAR)


# forward: loss


def check_loss(problem, rng, targets, what, sizes=SMALL):
    """Compare logits and loss with the definition, for these targets of at most 6 positions."""
    weights, idx = drawn_weights(rng, sizes), draw_tokens(rng, sizes, *targets.shape)
    model = make_model(problem, weights, sizes)
    call = f"{named(sizes)}(idx, targets) with {what}"
    logits, loss = answer(model, call, idx, targets)
    expected = oracles.logits(idx, weights, sizes["n_head"])
    checks.check(logits, expected, f"the logits of {call}", **NEAR)
    checks.require(
        loss is not None, f"{call}\nThe loss is None; with targets it should be a tensor."
    )
    checks.check(loss, oracles.loss(expected, targets), f"the loss of {call}")


@pytest.mark.points(1.5)
@pytest.mark.parametrize(("batch", "seq_len"), [(2, 5), (1, 6), (4, 3), (1, 1)])
def test_loss_by_hand(problem, rng, batch, seq_len):
    """The loss is the mean, over all positions, of -ln of the target's probability"""
    targets = draw_tokens(rng, SMALL, batch, seq_len)
    if targets.numel() == 1:
        targets *= 0  # a target of 0 counts like any other
    check_loss(problem, rng, targets, f"targets of shape {tuple(targets.shape)}")


@pytest.mark.points(0.5)
def test_loss_of_large_logits(problem, rng):
    """The loss is right and its gradients are finite when logits are thousands apart"""
    weights, idx = drawn_weights(rng, SMALL), draw_tokens(rng, SMALL, 2, 5)
    kinds, targets = 1000 * weights["lm_head.weight"], draw_tokens(rng, SMALL, 2, 5)
    weights |= {"transformer.wte.weight": kinds, "lm_head.weight": kinds}
    model = make_model(problem, weights, SMALL)
    call = (
        f"{named(SMALL)}(idx, targets) with idx of shape (2, 5), where logits are thousands apart"
    )
    _, loss = answer(model, call, idx, targets)
    logits = oracles.logits(idx, weights, SMALL["n_head"])
    checks.check(loss, oracles.loss(logits, targets), f"the loss of {call}")
    slopes = checks.gradients(loss, parameters(model), torch.ones_like(loss), f"the loss of {call}")
    for name, slope in slopes.items():
        finite = bool(slope.isfinite().all())
        checks.require(finite, f"{call}\nThe gradient with respect to {name} has NaN or inf in it.")


@pytest.mark.points(1)
def test_targets_that_do_not_count(problem, rng):
    """Targets of -100 are ignored: the loss is the mean over the other positions"""
    targets = draw_tokens(rng, SMALL, 3, 5)
    targets[0, 2:] = targets[1, 0] = targets[2, 4] = -100
    check_loss(problem, rng, targets, "targets that are -100 at 5 of 15 places")
    targets = torch.full((2, 4), -100)
    targets[1, 2] = 3
    check_loss(problem, rng, targets, "targets that are -100 at 7 of 8 places")


# Dropout

RATE = 0.4
# With 256 entries, nearly every row has one that is dropped in the embeddings and in the MLP.
DROPPING = {"vocab_size": 257, "n_positions": 4, "n_embd": 256, "n_layer": 1, "n_head": 1}


def dropping_model(problem, rng, dropout):
    """Return a model whose logits show which entries dropout drops, and the text of its call.

    In the embeddings of the last token and of the positions, each entry is 0.005. The MLP adds 0.1
    to each entry, and the attention adds 0. The logits of the other tokens are 0.01 times the
    output of the last norm.
    """
    sizes = DROPPING | {"dropout": dropout}
    n_embd, size = sizes["n_embd"], 0.01
    shapes = shapes_of(rng, sizes)
    weights = {name: torch.zeros(shape) for name, shape in shapes.items()}
    for name, weight in weights.items():
        if ".ln_" in name and name.endswith("weight"):
            weight += 1
    kinds = size * torch.cat([torch.eye(n_embd), torch.full((1, n_embd), 0.5)])
    weights["transformer.wte.weight"] = weights["lm_head.weight"] = kinds
    weights["transformer.wpe.weight"] += size / 2
    weights["transformer.h.0.mlp.c_proj.bias"] += 10 * size
    model = make_model(problem, weights, sizes)
    return model, f"{named(sizes)}(idx)"


def reading_model(problem, rng, dropout):
    """Return a model whose logits show what its attention reads, and the text of its call.

    Each entry of the attention's input is 1, and each row of the weight for the values sums to
    0.1. So values are 0.1 if the attention reads all entries of a token, and differ from 0.1 if
    it reads only some of them. The embeddings and the output of the MLP are 0.
    """
    sizes = DROPPING | {"dropout": dropout}
    n_embd = sizes["n_embd"]
    weights = {name: torch.zeros(shape) for name, shape in shapes_of(rng, sizes).items()}
    weights["transformer.h.0.ln_1.bias"] += 1
    uneven = rng.normal(n_embd, n_embd) / 50
    weights["transformer.h.0.attn.c_attn.weight"][-n_embd:] = (
        0.1 / n_embd + uneven - uneven.mean(-1, keepdim=True)
    )
    weights["transformer.h.0.attn.c_proj.weight"] += torch.eye(n_embd)
    weights["transformer.ln_f.weight"] += 1
    kinds = 0.01 * torch.eye(n_embd + 1, n_embd)
    weights["transformer.wte.weight"] = weights["lm_head.weight"] = kinds
    return make_model(problem, weights, sizes), f"{named(sizes)}(idx)"


def check_attention_reads_all(problem, rng, dropout, batch):
    """Require that a Block drops no entries of the attention's input."""
    model, call = reading_model(problem, rng, dropout)
    call = f"{call} in training, where only the attention adds numbers, which are all equal"
    checks.check_that(dropped_logits(model.train(), call, batch), oracles.reads_all, call)


def dropped_logits(model, call, batch):
    """Return the logits that show dropped entries, (batch, 4, C)."""
    logits, _ = answer(model, call, torch.full((batch, 4), DROPPING["vocab_size"] - 1))
    form = torch.empty(batch, 4, DROPPING["vocab_size"])
    return checks.check_form(logits, form, f"the logits of {call}")[..., :-1]


@pytest.mark.points(0.75)
def test_dropout_in_training(problem, rng):
    """In training, entries of the embeddings are dropped, and every Block drops entries, too"""
    model, call = dropping_model(problem, rng, RATE)
    even = oracles.zeros(80, 4, DROPPING["n_embd"])
    what = f"the logits of {call} in evaluation, where all entries are equal"
    checks.check(dropped_logits(model, call, 80), even, what)
    torch.default_generator.manual_seed(3)
    call = f"{call} in training"
    logits = dropped_logits(model.train(), call, 80)
    checks.check_that(logits, oracles.drops_embeddings_and_mlp, call, RATE)
    check_attention_reads_all(problem, rng, RATE, 5)


@pytest.mark.points(0.5)
def test_no_dropout_in_evaluation(problem, rng):
    """After eval(), and with dropout=0.0 also in training, nothing is dropped"""
    weights, idx = drawn_weights(rng, SMALL), draw_tokens(rng, SMALL, 2, 5)
    expected = oracles.logits(idx, weights, SMALL["n_head"])
    for dropout, training in [(0.0, True), (0.6, False)]:
        sizes = SMALL | {"dropout": dropout}
        model = make_model(problem, weights, sizes).train(training)
        mode = "train" if training else "eval"
        call = f"the logits of {named(sizes)}.{mode}()(idx) with idx of shape (2, 5)"
        logits, _ = answer(model, call, idx)
        checks.check(logits, expected, call, **NEAR)


# generate


def weights_and_prompts(rng, sizes, batch, length):
    """Return weights and prompts.

    The continuation of a single short prompt is token 0 and then a different token. So code that
    stops after token 0 fails.
    """
    if batch > 1 or length > 10:  # the search for such weights takes too long
        return drawn_weights(rng, sizes), draw_tokens(rng, sizes, batch, length)
    return checks.prepared(lambda numbers: followed_by_0(numbers, sizes, length), rng)


def followed_by_0(rng, sizes, length):
    """Return weights and a prompt that is continued by token 0 and then a different token."""
    weights, idx = drawn_weights(rng, sizes), draw_tokens(rng, sizes, 1, length)
    limits = sizes["n_head"], sizes["n_positions"]
    first, lead = oracles.greedy(idx[0].tolist(), weights, *limits)
    second, next_lead = oracles.greedy([*idx[0].tolist(), first], weights, *limits)
    if first == second or min(lead, next_lead) < oracles.CLEAR:
        return followed_by_0(rng, sizes, length)
    numbers = torch.arange(sizes["vocab_size"])  # swap tokens: the first new one becomes 0
    numbers[0], numbers[first] = first, 0
    kinds = weights["lm_head.weight"][numbers]
    return weights | {"transformer.wte.weight": kinds, "lm_head.weight": kinds}, numbers[idx]


def check_generated(problem, rng, sizes, prompt_length, n_new, batch):
    """Compare the student's generated tokens with the definition, token by token."""
    weights, idx = weights_and_prompts(rng, sizes, batch, prompt_length)
    model = make_model(problem, weights, sizes)
    call = f"{named(sizes)}.generate(idx, {n_new}) with a prompt of {prompt_length} tokens"
    torch.default_generator.manual_seed(8)  # for wrong code that uses random numbers
    tokens = model.generate(idx.clone(), n_new)
    checks.check_that(tokens, oracles.continues, call, idx, n_new, weights, sizes)


@pytest.mark.points(1.25)
@pytest.mark.parametrize(("prompt_length", "n_new", "batch"), [(2, 4, 1), (3, 3, 3), (4, 1, 2)])
def test_generate_by_hand(problem, rng, prompt_length, n_new, batch):
    """generate appends the most probable token again and again"""
    check_generated(problem, rng, SMALL | {"vocab_size": 11}, prompt_length, n_new, batch)


@pytest.mark.points(1)
def test_generate_any_token(problem, rng):
    """Any token may be generated, also repeatedly; there is no end-of-text token"""
    weights = drawn_weights(rng, SMALL)
    kinds = weights["transformer.wte.weight"]
    kinds = kinds - kinds.mean(1, keepdim=True)  # ln_f does not change their directions
    kinds = kinds / kinds.norm(dim=1, keepdim=True)
    weights["transformer.wte.weight"] = weights["lm_head.weight"] = kinds
    weights["transformer.ln_f.weight"] = torch.ones(SMALL["n_embd"])
    weights["transformer.ln_f.bias"] = torch.zeros(SMALL["n_embd"])
    for token, kind in enumerate(kinds):
        places = 1000 * kind.repeat(SMALL["n_positions"], 1)  # so only positions have an effect
        places[0] = 1000 * kinds[token - 1]
        weights["transformer.wpe.weight"] = places
        model = make_model(problem, weights, SMALL)
        call = f"{named(SMALL)}.generate(idx, 3), where {token} is always the most probable token"
        idx = torch.tensor([[token, 1], [2, token]])
        expected = oracles.followed_by(idx, token, 3)
        torch.default_generator.manual_seed(9)
        checks.check(model.generate(idx.clone(), 3), expected, call)


@pytest.mark.points(1)
@pytest.mark.parametrize(("prompt_length", "n_new", "batch"), [(2, 6, 3), (4, 3, 2), (7, 4, 1)])
def test_generate_beyond_n_positions(problem, rng, prompt_length, n_new, batch):
    """The model reads the last n_positions tokens, from position 0; all tokens are returned"""
    sizes = SMALL | {"vocab_size": 11, "n_positions": 4}
    check_generated(problem, rng, sizes, prompt_length, n_new, batch)


@pytest.mark.points(0.25)
def test_generate_nothing(problem, rng):
    """For 0 new tokens, generate returns the prompt, also one longer than n_positions"""
    weights = drawn_weights(rng, SMALL)
    model = make_model(problem, weights, SMALL)
    for length in (3, 9):
        idx = draw_tokens(rng, SMALL, 2, length)
        call = f"{named(SMALL)}.generate(idx, 0) with a prompt of {length} tokens"
        checks.check_that(
            model.generate(idx.clone(), 0), oracles.continues, call, idx, 0, weights, SMALL
        )


@pytest.mark.points(1)
def test_generate_leaves_the_mode(problem, rng):
    """generate drops nothing, and afterwards the model is in the same mode as before"""
    sizes = SMALL | {"dropout": 0.5, "vocab_size": 11}
    weights, idx = drawn_weights(rng, sizes), draw_tokens(rng, sizes, 4, 5)
    model, call = make_model(problem, weights, sizes), named(sizes)
    before = seeded_logits(model.train(), idx, f"{call}.train()(idx)")
    for mode in ("train", "eval"):
        model.train(mode == "train")
        torch.default_generator.manual_seed(5)
        what = f"{call}.{mode}().generate(idx, 2)"
        tokens = model.generate(idx.clone(), 2)
        checks.check_that(tokens, oracles.continues, what, idx, 2, weights, sizes)
        with example.state_unchanged(what):
            model.generate(idx, 2)
        check_mode(model, idx, mode == "train", f"{what}, then model(idx) twice")
    model.train().generate(idx, 0)
    call = f"{call}.train().generate(idx, 0), then model(idx)"
    check_mode(model, idx, True, f"{call} twice")
    after = (
        f"the logits of {call}. With the same seed, dropout should drop the same entries as before "
        "the call of generate"
    )
    checks.check_same(seeded_logits(model, idx, call), before, after, **NEAR)


def seeded_logits(model, idx, call):
    """Return logits after a fixed seed, so that dropout drops the same entries each time."""
    torch.default_generator.manual_seed(6)
    return answer(model, call, idx)[0]


def check_mode(model, idx, training, call):
    """Require that dropout makes two calls differ in training mode, but not in evaluation mode."""
    first, (second, _) = seeded_logits(model, idx, call), answer(model, call, idx)
    form = torch.empty(*idx.shape, 11)
    differ = not torch.equal(
        checks.check_form(first, form, call), checks.check_form(second, form, call)
    )
    after, before = [("evaluation", "training"), ("training", "evaluation")][differ]
    message = f"The model is in {after} afterwards; it was in {before} before."
    checks.require(differ == training, f"{call}\n{message}")


@pytest.mark.points(0.25)
def test_no_seed_is_set(problem, rng):
    """Models start from random weights, and evaluation does not change the random state"""
    sizes, starts = SMALL | {"dropout": 0.3}, []
    for seed in (1, 2):
        torch.default_generator.manual_seed(seed)
        model = new_model(problem, sizes)
        starts.append(checks.parameters_of(model, shapes_of(rng, sizes)))
    for name, weight in starts[0].items():
        same = weight.dim() == 2 and torch.equal(weight, starts[1][name])
        message = f"`{name}` starts with the same weights after another seed. "
        message += "Does your code set a seed?"
        checks.require(not same, f"{named(sizes)}, made twice\n{message}")
    model, idx = model.eval(), draw_tokens(rng, SMALL, 2, 4)
    call = f"{named(sizes)}.eval()(idx)"
    with example.state_unchanged(call):
        answer(model, call, idx)
    call = f"{named(sizes)}.eval().generate(idx, 3)"
    with example.state_unchanged(call):
        tokens = model.generate(idx.clone(), 3)
    checks.check_form(tokens, torch.empty(2, 7, dtype=torch.int64), call)


@pytest.mark.points(0.5)
def test_names_and_defaults(problem, rng):
    """All arguments can be passed by name or by position; GPTConfig() has GPT-2's sizes"""
    weights, idx = drawn_weights(rng, SMALL), draw_tokens(rng, SMALL, 2, 5)
    by_position = problem.GPT(problem.GPTConfig(*SMALL.values(), 0.25, True))
    by_name = problem.GPT(config=problem.GPTConfig(**SMALL))
    expected = oracles.logits(idx, weights, SMALL["n_head"])
    for model in (by_position, by_name):
        model = example.load_weights(model, weights).eval()
        logits, _ = model(idx=idx.clone(), targets=None)
        checks.check(
            logits, expected, f"the logits of {named(SMALL)}(idx=idx, targets=None)", **NEAR
        )
        tokens = model.generate(idx=idx.clone(), max_new_tokens=2)
        checks.check_form(
            tokens, torch.empty(2, 7, dtype=torch.int64), "generate(idx, max_new_tokens=2)"
        )
    check_config(by_position, dict(zip(FIELDS, (*SMALL.values(), 0.25, True), strict=True)))
    default = problem.GPTConfig()
    for name, value in zip(FIELDS, GPT2_DEFAULTS, strict=True):
        actual = getattr(default, name)
        message = f"GPTConfig() has {name} = {actual}; in the stub it has {value}."
        checks.require(actual == value, message)
    x, y = problem.get_batch(
        data=torch.arange(9), n_positions=3, batch_size=2, generator=example.seeded(1)
    )
    checks.check_form(x, torch.empty(2, 3, dtype=torch.int64), "get_batch(data, 3, 2, generator)")
    problem.bigram_loss(data=torch.tensor([0, 1, 0]), vocab_size=2)


@pytest.mark.points(0.5)
def test_gradients_flow(problem, rng):
    """Gradients of the loss flow to every weight, also after a call of generate"""
    sizes = SMALL | {"n_embd": 4}
    weights, idx = drawn_weights(rng, sizes), draw_tokens(rng, sizes, 2, 4)
    idx[:, 0] = torch.tensor([0, sizes["vocab_size"] - 1])  # the lowest and the highest token
    targets = draw_tokens(rng, sizes, 2, 4)
    model, call = make_model(problem, weights, sizes), f"{named(sizes)}(idx, targets)"
    model.generate(idx.clone(), 1)
    call = f"the loss of {call}, after generate"
    check_slopes_of_loss(model, weights, idx, targets, sizes, call, rng)


def check_slopes_of_loss(model, weights, idx, targets, sizes, call, rng):
    """Compare gradients of the loss with numerical slopes along random directions."""

    def by_hand(moved):
        doubles = {name: weight.double() for name, weight in (weights | moved).items()}
        logits = oracles.logits(idx, doubles, sizes["n_head"], dtype=torch.float64)
        return oracles.loss(logits, targets)

    _, loss = answer(model, call, idx, targets)
    checks.check(loss, by_hand({}).float(), call)
    learning = {name: w for name, w in parameters(model).items() if name in weights}
    gradients = checks.gradients(loss, learning, torch.ones(()), call)
    numbers = {name: w for name, w in weights.items() if name != "lm_head.weight"}  # it is wte's
    example.check_slopes(gradients, by_hand, numbers, call, rng, rtol=1e-3, atol=1e-4)


# get_batch


def draw_batch(problem, data, n_positions, batch_size, *generator):
    """Return x and y from the student's code, and the text of the call."""
    call = f"get_batch(data, {n_positions}, {batch_size}) with {len(data)} tokens"
    returned = problem.get_batch(data.clone(), n_positions, batch_size, *generator)
    return example.unpack(returned, 2, "x and y", call), call


def marked_text(rng, length):
    """Return a text of distinct tokens, so that a piece shows its place in the text."""
    return torch.randperm(length, generator=rng.generator) + 100


@pytest.mark.points(0.75)
@pytest.mark.parametrize(
    ("length", "n_positions", "batch_size"), [(30, 4, 5), (9, 1, 3), (50, 20, 1)]
)
def test_batches(problem, rng, length, n_positions, batch_size):
    """The rows of x are pieces of the text, and those of y start one token later"""
    data = marked_text(rng, length)
    torch.default_generator.manual_seed(21)
    batch, call = draw_batch(problem, data, n_positions, batch_size)
    checks.check_that(batch, oracles.are_pieces, call, data, n_positions, batch_size)


def check_starts(problem, data, n_positions, batch_size, *generator):
    """Require that all possible starts are equally frequent, and that rows are independent."""
    batch, call = draw_batch(problem, data, n_positions, batch_size, *generator)
    checks.check_that(batch, oracles.have_even_starts, call, data, n_positions, batch_size)


@pytest.mark.points(0.75)
@pytest.mark.parametrize(("length", "n_positions"), [(12, 5), (6, 5), (7, 5), (8, 2)])
def test_batch_starts(problem, rng, length, n_positions):
    """All possible starts are equally likely, also the last one, and rows are independent"""
    torch.default_generator.manual_seed(22)
    check_starts(problem, marked_text(rng, length), n_positions, 400 * (length - n_positions))


@pytest.mark.points(0.25)
@pytest.mark.parametrize("length", [5, 4, 1])
def test_too_short_texts_are_refused(problem, length):
    """get_batch raises ValueError if the text is shorter than one piece and the token after it"""
    data = torch.arange(length)
    call = f"get_batch(data, 5, 2) with {length} tokens"
    example.check_refused(call, partial(problem.get_batch, data, 5, 2))


@pytest.mark.points(0.25)
def test_batches_by_generator(problem, rng):
    """All random numbers come from the generator, or from torch's global one if it is None"""
    data, call, drawn = marked_text(rng, 200), "get_batch(data, 3, 6, generator)", []

    def draw(generator, global_seed):
        torch.default_generator.manual_seed(global_seed)
        before = torch.get_rng_state()
        batch, _ = draw_batch(problem, data, 3, 6, generator)
        checks.check_that(batch, oracles.are_pieces, call, data, 3, 6)
        kept = torch.equal(torch.get_rng_state(), before)
        message = "The global random state changed; all numbers should come from the generator."
        checks.require(generator is None or kept, f"{call}\n{message}")
        drawn.append(batch[0])
        return batch

    for kind, first, again, other in [
        (call, (example.seeded(1), 1), (example.seeded(1), 2), (example.seeded(2), 1)),
        ("get_batch(data, 3, 6)", (None, 1), (None, 1), (None, 2)),
    ]:
        batch = draw(*first)
        checks.check_that((batch, draw(*again)), oracles.same_again, kind)
        x, _ = draw(*other)
        checks.require(not torch.equal(x, batch[0]), f"{kind}\nAnother seed gave the same batch.")
    used = example.seeded(3)
    both = [draw(used, 1)[0] for _ in range(2)]
    message = "Two batches drawn one after the other from a generator are the same."
    checks.require(not torch.equal(*both), f"{call}\n{message}")
    for row in range(6):
        differ = any(not torch.equal(x[row], drawn[0][row]) for x in drawn)
        message = f"Row {row}, counted from 0, is the same piece in each of {len(drawn)} batches."
        checks.require(differ, f"{call}\n{message} Every row should be drawn at random.")


# bigram_loss


@pytest.mark.points(0.25)
def test_bigram_is_a_float(problem):
    """bigram_loss returns a Python float"""
    loss = problem.bigram_loss(torch.tensor([0, 0, 0, 1]), 2)
    call = 'bigram_loss(data, 2) with the letters of "aaab" as tokens'
    checks.check_that(loss, oracles.is_float_in_nats, call, oracles.BIGRAM_IN_NUMBERS["aaab"])


@pytest.mark.points(0.5)
@pytest.mark.parametrize("text", ["abracadabra", "abababab", "aaab", "aabb", "ab", "aabacaaabc"])
def test_bigram_in_numbers(problem, text):
    """bigram_loss is the mean of -ln p, where p is the share of y among the tokens after x"""
    letters = sorted(set(text))
    data = torch.tensor([letters.index(letter) for letter in text])
    call = f'bigram_loss(data, {len(letters)}) with the letters of "{text}" as tokens'
    loss = problem.bigram_loss(data, len(letters))
    checks.check_that(loss, oracles.is_in_nats, call, oracles.BIGRAM_IN_NUMBERS[text])


@pytest.mark.points(0.25)
def test_bigram_of_a_long_text(problem, rng):
    """bigram_loss is right for a long text, and for tokens that do not occur"""
    # Token t is followed by t + 1 or t + 2, both equally often.
    steps = torch.tensor([1, 2]).repeat(2000)
    rounds = torch.cat([torch.tensor([0]), steps.cumsum(0)]) % 3
    data = torch.cat([rounds * 5, torch.tensor([0])])
    expected = oracles.bigram_loss(data)
    for vocab_size in (11, 40):
        call = f"bigram_loss(data, {vocab_size}) with {len(data)} tokens, three of them different"
        loss = problem.bigram_loss(data.clone(), vocab_size)
        checks.check_that(loss, oracles.is_in_nats, call, expected)


# Learning

LEARNER = {"vocab_size": 12, "n_positions": 8, "n_embd": 16, "n_layer": 2, "n_head": 2}
STEPS, ENOUGH = 300, 0.1


def check_learning(problem, rng, seed):
    """Require that a small model learns four sequences by heart.

    Training stops when the loss is low enough, or if it has hardly fallen after 60 steps.
    """
    rows = draw_tokens(rng, LEARNER, 4, 9)
    rows[:, 0] = torch.arange(4)  # different first tokens determine all later ones
    idx, targets = rows[:, :-1].clone(), rows[:, 1:].clone()
    check_first_loss(problem, rng, idx, targets)
    torch.default_generator.manual_seed(seed)
    model = new_model(problem, LEARNER).train()
    call, losses = f"the loss of {named(LEARNER)}(idx, targets)", []
    for step in range(STEPS):
        _, loss = model(idx, targets)
        losses.append(loss.item())
        hopeless = step == 60 and losses[-1] > 0.7 * losses[0]
        if losses[-1] < ENOUGH or hopeless:
            break
        model.zero_grad()
        loss.backward()
        with torch.no_grad():
            for weight in model.parameters():
                if weight.grad is not None:
                    weight -= 0.003 * weight.grad.sign()  # like Adam's first step
    checks.check_that(losses[-1], oracles.has_learned, call, ENOUGH, STEPS)


def check_first_loss(problem, rng, idx, targets):
    """Require the right loss before training, as training with a wrong loss would be useless."""
    weights = drawn_weights(rng, LEARNER)
    model, call = make_model(problem, weights, LEARNER).train(), f"{named(LEARNER)}(idx, targets)"
    _, loss = answer(model, call, idx, targets)
    logits = oracles.logits(idx, weights, LEARNER["n_head"])
    checks.check(loss, oracles.loss(logits, targets), f"the loss of {call}, before the first step")


@pytest.mark.points(0.75)
def test_learns_by_heart(problem, rng):
    """A small model learns four sequences by heart (its loss falls below 0.1)"""
    check_learning(problem, rng, seed=31)


# Rules for all problems


def call_of(problem, right, rng, sizes, batch=2, seq_len=5, dtype=torch.float32):
    """Return a `robust.Call` of a model with random weights, in evaluation mode.

    `right` takes the weights and returns the oracle, a function of tokens and targets.
    """
    weights = {name: weight.to(dtype) for name, weight in drawn_weights(rng, sizes).items()}
    idx, targets = (draw_tokens(rng, sizes, batch, seq_len) for _ in range(2))
    return robust.Call(
        f"{named(sizes)}(idx, targets)",
        make_model(problem, weights, sizes),
        {"idx": idx, "targets": targets},
        right(weights),
        weights=weights,
        near=NEAR if dtype == torch.float32 else {},
        compare=check_both,
    )


@pytest.mark.points(1.25)
@robust.parts("float32", "float64", "transposed memory", "nothing changed", "second call")
def test_model_in_use(problem, rng, part):
    """GPT follows the rules for all problems"""

    def right(weights):
        dtype = weights["lm_head.weight"].dtype

        def logits_and_loss(idx, targets):
            logits = oracles.logits(idx, weights, SMALL["n_head"], dtype=dtype)
            return logits, oracles.loss(logits, targets)

        return logits_and_loss

    call = partial(call_of, problem, right, rng, SMALL)
    robust.check_part(part, rng, call, other={"batch": 3, "seq_len": 6})


@pytest.mark.points(0.25)
def test_functions_change_nothing(problem, rng):
    """No function changes its arguments, and no targets are kept for a later call"""
    weights, idx = drawn_weights(rng, SMALL), draw_tokens(rng, SMALL, 2, 5)
    model, data = make_model(problem, weights, SMALL), marked_text(rng, 20)
    targets = torch.where(torch.arange(5) == 1, -100, idx)
    for call, function, arguments in [
        (f"{named(SMALL)}(idx, targets)", model, {"idx": idx, "targets": targets}),
        ("get_batch(data, 4, 3)", problem.get_batch, {"data": data, "n": 4, "batch_size": 3}),
        ("bigram_loss(data, 120)", problem.bigram_loss, {"data": data, "vocab_size": 120}),
        (f"{named(SMALL)}.generate(idx, 2)", model.generate, {"idx": idx, "n_new": 2}),
    ]:
        with example.unchanged(call, **{n: v for n, v in arguments.items() if torch.is_tensor(v)}):
            result = function(*arguments.values())
    checks.check_form(result, torch.empty(2, 7, dtype=torch.int64), call)
    example.check_weights_are_kept(model, weights, call)
    call = f"{named(SMALL)}(idx) after a call with targets"
    answer(model, call, idx, idx)
    logits, loss = answer(model, call, idx)
    checks.check(
        logits, oracles.logits(idx, weights, SMALL["n_head"]), f"the logits of {call}", **NEAR
    )
    checks.require(loss is None, f"{call}\nWithout targets the loss should be None.")


@pytest.mark.points(0.25)
@pytest.mark.inspection_only
def test_model_is_your_own(problem, rng):
    """The model is written without nn.MultiheadAttention and nn.Transformer"""
    weights, idx = drawn_weights(rng, SMALL), draw_tokens(rng, SMALL, 2, 4)
    model = make_model(problem, weights, SMALL | {"dropout": 0.1})
    answer(model.train(), "model.train()(idx)", idx)
    answer(model.eval(), "model.eval()(idx, targets)", idx, idx)
    tokens = model.generate(idx.clone(), 2)
    checks.check_form(tokens, torch.empty(2, 6, dtype=torch.int64), "model.generate(idx, 2)")


# --- hidden tests ---


from shared.oracles import hidden_tiny_gpt as hidden_oracles  # noqa: E402
from shared.oracles import modules  # noqa: E402


def both_models(problem, solution, weights, sizes):
    """Return the student's model and the reference's, with the same weights."""
    reference = modules.build(weights, solution.GPT, solution.GPTConfig(**sizes)).eval()
    return make_model(problem, weights, sizes), reference


OTHER_SIZES = [
    (3, 9, {"vocab_size": 23, "n_positions": 10, "n_embd": 12, "n_layer": 3, "n_head": 3}),
    (1, 7, {"vocab_size": 5, "n_positions": 7, "n_embd": 10, "n_layer": 2, "n_head": 5}),
    (5, 3, {"vocab_size": 31, "n_positions": 3, "n_embd": 6, "n_layer": 2, "n_head": 1}),
    (2, 12, {"vocab_size": 9, "n_positions": 20, "n_embd": 16, "n_layer": 2, "n_head": 4}),
    (1, 130, {"vocab_size": 300, "n_positions": 140, "n_embd": 8, "n_layer": 2, "n_head": 2}),
    (1, 1100, {"vocab_size": 3, "n_positions": 1100, "n_embd": 6, "n_layer": 1, "n_head": 1}),
    (300, 2, {"vocab_size": 3, "n_positions": 3, "n_embd": 8, "n_layer": 2, "n_head": 2}),
]


@pytest.mark.points(5.5)
@pytest.mark.parametrize(
    ("batch", "seq_len", "sizes", "bias"),
    [(*each, number % 2 == 0) for number, each in enumerate(OTHER_SIZES)],
)
def test_hidden_model(problem, solution, rng, batch, seq_len, sizes, bias):
    """Logits and loss are right for other sizes, and so are all gradients"""
    sizes = sizes | {"bias": bias}
    weights = drawn_weights(rng, sizes)
    student, reference = both_models(problem, solution, weights, sizes)
    student.train(bias)  # Without dropout, train() and eval() are the same.
    idx, targets = (draw_tokens(rng, sizes, batch, seq_len) for _ in range(2))
    call = f"{named(sizes)}(idx, targets) with idx of shape {tuple(idx.shape)}"
    check_model(student, reference, idx, targets, rng, call)


def check_model(student, reference, idx, targets, rng, call):
    """Compare logits, loss and gradients of two models, then logits and loss without gradients."""
    logits, loss = answer(student, call, idx, targets)
    expected, expected_loss = checks.parts(reference(idx, targets), 2)
    checks.check(logits, expected, f"the logits of {call}", **NEAR)
    checks.check(loss, expected_loss, f"the loss of {call}")
    upstream = rng.normal(*logits.shape)
    total = (logits * upstream).sum() + loss
    gradients = checks.gradients(total, parameters(student), torch.ones(()), call)
    slopes = hidden_oracles.slopes((expected * upstream).sum() + expected_loss, reference)
    checks.check_that(gradients, hidden_oracles.has_gradients, call, slopes)
    with torch.no_grad():
        logits, loss = answer(student, f"{call}, under torch.no_grad()", idx, targets)
    checks.check(logits, expected, f"the logits of {call}, under torch.no_grad()", **NEAR)
    checks.check(loss, expected_loss, f"the loss of {call}, under torch.no_grad()")


@pytest.mark.points(1)
@robust.parts("sizes of one", "transposed memory", "nothing changed", "second call", "float64")
def test_hidden_model_in_use(problem, solution, rng, part):
    """For other sizes, too, GPT follows the rules for all problems"""
    sizes = OTHER_SIZES[0][2] | {"dropout": 0.2}

    def right(weights):
        return modules.build(weights, solution.GPT, solution.GPTConfig(**sizes)).eval()

    call = partial(call_of, problem, right, rng, sizes, batch=3, seq_len=7)
    other = {"batch": 40, "seq_len": 9}
    robust.check_part(part, rng, call, sizes="batch seq_len", other=other)


@pytest.mark.points(1.5)
@pytest.mark.parametrize("ignored", [0.0, 0.3, 0.9])
@pytest.mark.parametrize(("batch", "seq_len"), [(6, 5), (2, 10)])
def test_hidden_loss(problem, solution, rng, batch, seq_len, ignored):
    """The loss and its gradients are right for any share of targets of -100"""
    sizes = OTHER_SIZES[0][2] | {"n_layer": 2}
    weights = drawn_weights(rng, sizes)
    student, reference = both_models(problem, solution, weights, sizes)
    idx, targets = (draw_tokens(rng, sizes, batch, seq_len) for _ in range(2))
    targets[rng.normal(batch, seq_len).sigmoid() < ignored] = -100
    targets[-1, -1] = 4
    call = f"the loss of {named(sizes)}(idx, targets) with {(targets < 0).sum()} targets of -100"
    _, loss = student(example.turned(idx), example.turned(targets))
    _, expected = checks.parts(reference(example.turned(idx), example.turned(targets)), 2)
    checks.check(loss, expected, call)
    gradients = checks.gradients(loss, parameters(student), torch.ones(()), call)
    slopes = hidden_oracles.slopes(expected, reference)
    checks.check_that(gradients, hidden_oracles.has_gradients, call, slopes)


@pytest.mark.points(1)
@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
@pytest.mark.parametrize("n_layer", [2, 6])
def test_hidden_initial_weights(problem, rng, n_layer, bias):
    """Initial weights and first loss are right for other sizes"""
    sizes = {"vocab_size": 130, "n_positions": 80, "n_embd": 64, "n_layer": n_layer, "n_head": 2}
    sizes |= {"bias": bias, "dropout": 0.1}
    torch.default_generator.manual_seed(n_layer)
    model = new_model(problem, sizes)
    check_start(model, sizes, named(sizes), shapes_of(rng, sizes))
    idx, targets = (draw_tokens(rng, sizes, 4, 60) for _ in range(2))
    _, loss = answer(model.eval(), f"{named(sizes)}(idx, targets)", idx, targets)
    call = f"the loss of {named(sizes)}(idx, targets), a new model"
    checks.check_that(loss.item(), oracles.is_first_loss, call, sizes["vocab_size"])


@pytest.mark.points(2.75)
@pytest.mark.parametrize(
    ("prompt_length", "n_new", "n_positions", "batch"),
    [
        (1, 9, 5, 1),
        (5, 5, 5, 4),
        (12, 4, 5, 3),
        (3, 4, 12, 1),
        (2, 5, 1, 4),
        (8, 1, 3, 2),
        (20, 8, 24, 1),
    ],
)
def test_hidden_generate(problem, rng, prompt_length, n_new, n_positions, batch):
    """generate is right for other lengths of prompts and contexts"""
    sizes = OTHER_SIZES[0][2] | {"n_positions": n_positions}
    check_generated(problem, rng, sizes, prompt_length, n_new, batch)


@pytest.mark.points(0.75)
def test_hidden_generate_of_certain_tokens(problem, rng):
    """A large vocabulary has no end-of-text token, either, and logits may be nearly equal"""
    sizes = {"vocab_size": 50_257, "n_positions": 4, "n_embd": 2, "n_layer": 1, "n_head": 1}
    weights = drawn_weights(rng, sizes)
    angles = torch.linspace(0, 1, sizes["vocab_size"])
    ring = torch.stack([angles.cos(), angles.sin()], dim=1)
    weights["transformer.ln_f.weight"] *= 0  # so that the output of ln_f is its bias
    for token, other in [(50_256, 50_255), (0, 1), (13, 12), (198, 197)]:
        kinds = 0.9 * ring
        kinds[token], kinds[other] = ring[token], (1 - 1e-4) * ring[token]
        weights["transformer.wte.weight"] = weights["lm_head.weight"] = kinds
        weights["transformer.ln_f.bias"] = 9 * ring[token]
        model = make_model(problem, weights, sizes)
        idx = torch.tensor([[5, 1]])
        call = f"{named(sizes)}.generate(idx, 3), where {token} is always the most probable token"
        expected = oracles.followed_by(idx, token, 3)
        checks.check(model.generate(idx, 3), expected, call)


@pytest.mark.points(0.75)
def test_hidden_dropout(problem, rng):
    """Dropout is right for another rate and another seed"""
    model, call = dropping_model(problem, rng, 0.5)
    torch.default_generator.manual_seed(41)
    call = f"{call} in training"
    logits = dropped_logits(model.train(), call, 90)
    checks.check_that(logits, oracles.drops_embeddings_and_mlp, call, 0.5)
    check_attention_reads_all(problem, rng, 0.5, 10)
    check_gradients_with_dropout(problem, rng)


def check_gradients_with_dropout(problem, rng):
    """Require that gradients in training flow only through entries that are not dropped."""
    sizes = SMALL | {"dropout": 0.4}
    weights = {name: weight.double() for name, weight in drawn_weights(rng, sizes).items()}
    model, idx = make_model(problem, weights, sizes).train(), draw_tokens(rng, sizes, 3, 6)
    call = f"{named(sizes)}(idx) in training"
    names = ("transformer.wpe.weight", "transformer.h.0.mlp.c_fc.weight")
    upstream = rng.normal(3, 6, sizes["vocab_size"], dtype=torch.float64)

    def value(moved):
        checks.set_weights(model, weights | moved)
        torch.default_generator.manual_seed(42)
        return (answer(model, call, idx)[0] * upstream).sum()

    inputs = {name: parameters(model)[name] for name in names}
    gradients = checks.gradients(value({}), inputs, torch.ones((), dtype=torch.float64), call)
    call = f"{call}, when the same seed drops the same entries each time,"
    numbers = {name: weights[name] for name in names}

    def detached(moved):
        return value(moved).detach()

    example.check_slopes(gradients, detached, numbers, call, rng, compare=checks.check_same)


@pytest.mark.points(1.25)
@pytest.mark.parametrize(("length", "n_positions"), [(13, 9), (9, 8), (10, 1), (14, 8)])
def test_hidden_batches(problem, rng, length, n_positions):
    """Pieces and their starts are right for other lengths, with and without a generator"""
    data = marked_text(rng, length)
    torch.default_generator.manual_seed(51)
    check_starts(problem, data, n_positions, 100 * (length - n_positions))
    check_starts(problem, data, n_positions, 450 * (length - n_positions), example.seeded(52))


@pytest.mark.points(0.75)
@pytest.mark.parametrize(
    ("length", "vocab_size"),
    [(300, 7), (40, 40), (2500, 90), (2, 3), (90_000, 2), (900, 300), (20, 1)],
)
def test_hidden_bigram(problem, solution, rng, length, vocab_size):
    """bigram_loss is right for other texts"""
    data = torch.randint(vocab_size, (length,), generator=rng.generator)
    data = (data * data) % vocab_size
    if length > 40_000:  # a pair occurs more often than 16 bits can count
        data *= torch.rand(length, generator=rng.generator) < 0.1
    expected = solution.bigram_loss(data, vocab_size)
    call = f"bigram_loss(data, {vocab_size}) with {length} tokens"
    with example.state_unchanged(call), example.unchanged(call, data=data):
        loss = problem.bigram_loss(data, vocab_size)
    checks.check_that(loss, oracles.is_in_nats, call, expected)


@pytest.mark.points(0.75)
def test_hidden_precision(problem, solution, rng):
    """The loss and its gradients keep all digits of float64"""
    sizes, name = OTHER_SIZES[3][2], "transformer.h.0.attn.c_attn.weight"
    weights = {name: weight.double() for name, weight in drawn_weights(rng, sizes).items()}
    student, reference = both_models(problem, solution, weights, sizes)
    idx, targets = (draw_tokens(rng, sizes, 2, 8) for _ in range(2))
    call = f"{named(sizes)}(idx, targets) in float64"
    _, loss = answer(student, call, idx, targets)
    _, expected = checks.parts(reference(idx, targets), 2)
    checks.check(loss, expected, f"the loss of {call}", all_digits=True)
    gradients = checks.gradients(loss, {name: parameters(student)[name]}, loss.new_ones(()), call)
    slopes = hidden_oracles.slopes(expected, reference)
    checks.check_gradients(gradients, {name: slopes[name]}, call, all_digits=True)
