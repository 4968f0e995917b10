"""Define the questions of problem 09: calls whose answers identify mistakes."""

import functools
import operator

import torch

from grader.code.cost import counting
from grader.diagnose import edges
from grader.diagnose.answers import attempt
from grader.diagnose.numbers import numbers
from grader.diagnose.probe import Part
from grader.run.compare import parameters, set_weights
from shared.oracles.attention import multi_head_by_hand
from shared.probe_weights import attention_weights, filled, gpt_weights, without_block_outputs


def probe(problem):
    """Return the questions about the function and about several aspects of the classes.

    A wrong attention makes the model wrong in many ways. So questions about the model are only
    included if its attention is right, and questions about its texts only if its logits are right.
    """
    parts = {
        "kv_cache_bytes": about_bytes(problem),
        "CachedAttention": about_attention(problem),
        "CachedAttention: present": about_present(problem),
        "CachedAttention: past": about_past(problem),
        "CachedAttention: layers": about_layers(problem),
    }
    if not hasattr(problem, "CachedAttention") or is_right(
        lambda: sums_of_attention(problem), SUMS_OF_ATTENTION
    ):
        parts["CachedGPT"] = about_model(problem)
        sums = functools.cache(lambda: sums_of_model(problem))
        if is_right(sums, ()):  # true unless the model raises an exception
            parts["CachedGPT: past"] = about_list_of_pasts(problem)
            parts["CachedGPT: length"] = about_length(problem)
        if is_right(sums, SUMS_OF_MODEL):
            parts["CachedGPT: generate"] = about_generate(problem)
            parts["CachedGPT: too many tokens"] = about_too_many(problem)
    return parts


def is_right(find, expected):
    """Return whether `find` returns the expected sums.

    Sums beyond the length of `expected` are ignored. Code that is not written yet counts as right.
    """
    try:
        found = find()
    except NotImplementedError:
        return True
    except Exception:
        return False
    return all(abs(one - other) < 1e-6 for one, other in zip(found, expected, strict=False))


def summed(tensor):
    """Return the sum of all entries, each multiplied by a different number."""
    return float((tensor.detach().double() * numbers(*tensor.shape, start=0.7)).sum())


def about_bytes(problem):
    """Return questions about kv_cache_bytes."""

    def count(*arguments, **named):
        return problem.kv_cache_bytes(*arguments, **named)

    return Part(
        main={
            "ones": lambda: count(1, 1, 1, 1, 1),
            "all different": lambda: count(2, 36, 5, 7, 3),
            "unrelated": lambda: count(3, 20, 11, 7, 4),
            "defaults": lambda: count(2, 36, 3),
            "default size": lambda: count(2, 36, 3, 5),
            # The ratio does not depend on mistakes that affect both counts.
            "default size alone": lambda: count(2, 36, 3, 5) / count(2, 36, 3, 5, 2),
        },
        edges={"whole": lambda: type(count(12, 768, 24)) is int},
    )


# Attention


def attention(problem, n_embd, n_head, bias=True, dtype=torch.float64):
    """Return the student's CachedAttention with fixed weights."""
    made = problem.CachedAttention(n_embd, n_head, bias).eval()
    return filled(made, attention_weights(n_embd, bias), dtype)


def some_past(*shape):
    """Return fixed keys and values of shape (batch, n_head, length, head_dim).

    Return None if the length is 0.
    """
    return tuple(numbers(*shape, start=start) for start in (0.6, 0.9)) if shape[2] else None


def asked(problem, batch, n_new, n_embd, n_head, n_past=0, bias=True):
    """Return the result of the student's attention for fixed numbers."""
    module = attention(problem, n_embd, n_head, bias)
    past = some_past(batch, n_head, n_past, n_embd // n_head)
    return module(numbers(batch, n_new, n_embd, start=0.5), past)


def sums_of_attention(problem):
    """Call an attention four times, independently, and return the sum of each call's results."""
    module, sums = attention(problem, 6, 2), []
    for n_past, n_new in ((0, 3), (2, 2), (4, 1), (0, 2)):
        past = some_past(2, 2, n_past, 3)
        output, (keys, values) = module(numbers(2, n_new, 6, start=0.5), past)
        sums.append(sum(map(summed, (output, keys, values))))
    return sums


SUMS_OF_ATTENTION = (-1.089446236, 22.353489925, 24.999278356, -13.180192735)
"""The expected result of `sums_of_attention`."""


def about_attention(problem):
    """Return questions about the output of an attention."""

    def output(*sizes, **options):
        return edges.first(asked(problem, *sizes, **options))

    def in_chunks(*sizes):
        """Return the outputs for chunks. Each `past` is the `present` of the chunk before."""
        module, past, outputs = attention(problem, 6, 2), None, []
        for number, size in enumerate(sizes):
            output, past = module(numbers(2, size, 6, start=0.5 + number), past)
            outputs.append(output)
        return torch.cat(outputs, dim=1)

    def second_text():
        """Return the output for a text after a call with another text."""
        module = attention(problem, 6, 2)
        edges.first(module(numbers(2, 3, 6, start=0.2)))
        return edges.first(module(numbers(2, 2, 6, start=0.5), some_past(2, 2, 2, 3)))

    def digits_lost():
        x = numbers(2, 3, 6, start=0.5)
        right = multi_head_by_hand(x, attention_weights(6), 2, causal=True)
        return edges.loses_digits(output(2, 3, 6, 2), right)

    def scored(key, growth):
        """Return the outputs of two new tokens after a `past` with chosen keys.

        Scores depend mainly on entry 0 of the keys. It is `key`, or `key` + `growth` for the second
        new token.
        """
        weights, rows = attention_weights(6), torch.tensor([6, 9])  # entry 0 of each head's key
        weights["c_attn.weight"][rows - 6] = weights["c_attn.weight"][rows] = 0
        weights["c_attn.bias"][rows - 6], weights["c_attn.bias"][rows] = 1, key
        weights["c_attn.weight"][rows, 5] = 1
        x, past = numbers(2, 2, 6), some_past(2, 2, 3, 3)
        x[:, :, 5] = growth * torch.arange(2)
        past[0][..., 0] = key
        return edges.first(filled(problem.CachedAttention(6, 2), weights)(x, past))

    def sees_far():
        """Return whether the first token of a long `past` has an effect."""
        module, (keys, values) = attention(problem, 4, 1), some_past(1, 1, 600, 4)
        changed = torch.cat([values[:, :, :1] + 1e4, values[:, :, 1:]], dim=2)
        x = numbers(1, 2, 4)
        pair = [edges.first(module(x.clone(), (keys.clone(), each))) for each in (values, changed)]
        return not torch.allclose(*pair)

    def cost():
        """Return whether one token after 40 others takes too many operations or too much memory."""
        module, past, x = attention(problem, 6, 2), some_past(1, 2, 40, 3), numbers(1, 1, 6)
        with torch.no_grad(), counting() as cost:
            module(x, past)
        return torch.tensor([cost.operations > 5000, cost.elements > 100_000])

    def draws(training=True):
        """Return whether random numbers are drawn in training or evaluation mode."""
        module = attention(problem, 6, 2).train(training)
        return edges.moves_random_state(lambda: module(numbers(2, 3, 6)))

    if attempt(lambda: draws(training=False)).numbers[:1] == (1.0,):
        return Part(main={"draws in training": draws})  # all outputs are random

    return Part(
        main={
            "threes, no past": lambda: output(3, 3, 9, 3),
            "threes after a past": lambda: output(3, 3, 9, 3, 3),
            "twos after a past": lambda: output(2, 2, 4, 2, 2),
            "one token after a past": lambda: output(2, 1, 6, 2, 4),
            "no bias": lambda: output(2, 3, 8, 2, 2, bias=False),
            "in chunks": lambda: in_chunks(2, 2, 3, 1),
            "second text": second_text,
            "sees far": sees_far,
            "cost": cost,
            "draws in training": draws,
        },
        edges=edges.of_module(
            lambda *dtype: attention(problem, 6, 2, True, *dtype),
            numbers(2, 3, 6),
            other=numbers(2, 2, 6),
            weights=("c_attn.weight",),
        )
        | {
            "digits lost": digits_lost,
            "hidden far above": lambda: scored(0, 30_000)[:, 0],
            "scores far below": lambda: scored(-35_000, 0),
        },
    )


def about_present(problem):
    """Return questions about the `present` that an attention returns."""

    def present(*sizes):
        return asked(problem, *sizes)[1]

    def kind():
        """Return the number of items in `present`, -1 if it is a tensor, or -2 if it is missing."""
        found = asked(problem, 2, 3, 6, 2)
        if not isinstance(found, tuple | list) or len(found) < 2 or found[1] is None:
            return -2.0
        return -1.0 if isinstance(found[1], torch.Tensor) else float(len(found[1]))

    def all_kept():
        """Return whether `present` contains all keys and values of a long `past`."""
        return all(each.shape[2] == 41 for each in present(2, 1, 6, 2, 40)[:2])

    def both(*sizes):
        keys, values = present(*sizes)[:2]
        return torch.stack([keys, values])

    def reached():
        """Return whether gradients of the keys and of the values reach `x` and `past`."""
        module, x = attention(problem, 6, 2), numbers(2, 2, 6).requires_grad_()
        past = [each.requires_grad_() for each in some_past(2, 2, 3, 3)]
        held = module(x.clone(), tuple(each.clone() for each in past))[1]

        def reaches(found, *leaves):
            slopes = [edges.slope(found, by) for by in leaves]
            return any(each is not None and bool(each.any()) for each in slopes)

        return torch.tensor([[reaches(found, x), reaches(found, *past)] for found in held])

    return Part(
        main={
            "kind": kind,
            "keys, threes after a past": lambda: present(3, 3, 9, 3, 3)[0],
            "no past": lambda: both(2, 4, 10, 2),
            "chunk after a past": lambda: both(1, 2, 6, 3, 3),
            "after a long past": all_kept,
        },
        edges={"gradients reach": reached},
    )


def about_past(problem):
    """Return questions about calls that change their `past` or an earlier result."""

    def changed(held, call):
        """Return whether a call changes any of these tensors."""
        before = [each.clone() for each in held]
        call()
        return not all(map(torch.equal, before, held))

    def given():
        module, past = attention(problem, 6, 2), some_past(2, 2, 3, 3)
        return changed(past, lambda: module(numbers(2, 2, 6), past))

    def by_another_text():
        module = attention(problem, 6, 2)
        _, held = module(numbers(2, 3, 6), None)
        return changed(held, lambda: module(numbers(2, 3, 6, start=0.4), None))

    def pair():
        """Return whether a call changes the items of `past`, if `past` is a list."""
        module = attention(problem, 6, 2)
        _, past = module(numbers(2, 3, 6), None)
        return has_changed(past, lambda: module(numbers(2, 2, 6, start=0.3), past))

    return Part(
        main={"given": given, "by another text": by_another_text, "pair": pair},
    )


def has_changed(past, call):
    """Return whether a call changes the items of a list, or False if it is not a list."""
    before = [*past] if isinstance(past, list) else None
    call()
    return before is not None and (
        len(past) != len(before) or any(map(operator.is_not, past, before))
    )


def about_layers(problem):
    """Return questions about the parameters of an attention."""

    def layers(*arguments, **named):
        module = problem.CachedAttention(*arguments, **named)
        return torch.tensor(edges.linear_sizes(module, "c_attn", "c_proj"))

    return Part(
        main={
            "without bias": lambda: layers(12, 3, bias=False),
            "by name": lambda: layers(n_head=2, n_embd=6, bias=True),
            "defaults": lambda: layers(),
        },
    )


# Models

SIZES = {"vocab_size": 13, "n_positions": 24, "n_embd": 8, "n_layer": 2, "n_head": 2}


def model(problem, *, silent=False, **sizes):
    """Return the student's model with fixed weights. If `silent`, its blocks add 0."""
    config = SIZES | sizes
    weights = gpt_weights(config)
    weights["transformer.ln_f.bias"] = 0 * weights["transformer.ln_f.bias"]
    made = problem.CachedGPT(problem.GPTConfig(**config)).eval()
    return filled(made, without_block_outputs(weights) if silent else weights)


def text(batch, length, start=0):
    """Return fixed tokens, (batch, length)."""
    steps = torch.arange(batch * length) + start
    return ((7 * steps * steps + 5 * steps) % 13).view(batch, length)


def in_chunks(module, idx, sizes):
    """Yield a model's results for chunks of a text. Each `past` is the `present` before."""
    past = None
    for chunk in idx.split(sizes, dim=1):
        answer = module(chunk) if past is None else module(chunk, past)
        yield answer
        past = answer[1]


def sums_of_model(problem):
    """Return the sum of the logits of each chunk of a text."""
    return [summed(logits) for logits, _ in in_chunks(model(problem), text(2, 7), (3, 1, 2, 1))]


SUMS_OF_MODEL = (-1.925064184, -3.700823517, 9.544575798, -0.614492425)
"""The expected result of `sums_of_model`."""


def about_model(problem):
    """Return questions about a model's logits and `present`."""

    def logits(*sizes, batch=2, **options):
        answers = in_chunks(model(problem, **options), text(batch, sum(sizes)), sizes)
        return torch.cat([edges.first(answer) for answer in answers], dim=1)

    def present():
        """Return the keys and values of all layers."""
        *_, (_, past) = in_chunks(model(problem), text(2, 5), (2, 3))
        return torch.stack([torch.stack(tuple(each)) for each in past])

    def in_turns():
        """Return the logits of a text, with a call for another text between its two calls."""
        module = model(problem)
        _, past = module(text(2, 3))
        module(text(1, 2, start=5))
        return edges.first(module(text(2, 2), past))

    def draws():
        """Return whether random numbers are drawn in training mode."""
        module = model(problem, dropout=0.5).train()
        return edges.moves_random_state(lambda: module(text(2, 3)))

    def learns_from_past():
        """Return whether a gradient reaches the keys in a model's `past`."""
        module = model(problem)
        _, past = module(text(2, 3))
        leaves = [[each.detach().clone().requires_grad_() for each in pair] for pair in past]
        found = edges.first(module(text(2, 2), [tuple(e.clone() for e in p) for p in leaves]))
        by = edges.slope(found, leaves[0][0])
        return by is not None and bool(by.any())

    return Part(
        main={
            "one pass": lambda: logits(4),
            "one layer, in chunks": lambda: logits(3, 3, n_layer=1),
            "in chunks": lambda: logits(4, 1, 3, batch=3),
            "three layers": lambda: logits(2, 2, n_layer=3, n_embd=6, n_head=3),
            "present of chunks": present,
            "in turns": in_turns,
            "learns from the past": learns_from_past,
            "draws in training": draws,
        },
    )


def about_list_of_pasts(problem):
    """Return questions about the list `past`, which has an item for each layer."""

    def changes():
        """Return whether a call changes the items of the list."""
        answers = in_chunks(model(problem), text(2, 7), (2, 2, 3))
        _, (_, past) = next(answers), next(answers)
        return has_changed(past, lambda: next(answers))

    return Part(main={"chunks": changes})


def about_length(problem):
    """Return questions about more tokens than positions."""
    short = functools.cache(lambda: model(problem, n_positions=6))

    def refused(*sizes):
        """Return the result of `edges.refusal` for the last chunk, for a model of 6 positions."""
        answers = in_chunks(short(), text(1, sum(sizes)), sizes)
        for _ in sizes[1:]:
            next(answers)
        return edges.refusal(lambda: next(answers))

    return Part(
        main={
            "7 of 6": lambda: refused(7),
            "12 of 6": lambda: refused(12),
            "5 and 2 of 6": lambda: refused(5, 2),
            "2 and 5 of 6": lambda: refused(2, 5),
            "6 and 1 of 6": lambda: refused(6, 1),
        },
    )


def about_generate(problem):
    """Return questions about generated tokens and their cost."""

    def generated(batch, length, n_new, **options):
        """Return prompts and new tokens, or -1 if the tokens are random."""
        module, texts = model(problem, **options), []
        for seed in (4, 5):
            torch.default_generator.manual_seed(seed)
            texts.append(module.generate(text(batch, length), n_new))
        return texts[0] if torch.equal(*texts) else torch.tensor(-1.0)

    def cost():
        """Return how many of four bounds are exceeded by the cost of one token after 48 others."""
        module, idx = model(problem, n_positions=80), text(1, 48)
        with counting() as one:
            module.generate(idx, 1)
        with counting() as both:
            module.generate(idx, 2)
        step = 2 * (2 * (12 * 64 + 2 * 8 * 49) + 8 * 13)
        times = (both.operations - one.operations) / step
        return sum(times > bound for bound in (0.1, 3.5, 8.0, 20.0))

    def reads_twice():
        """Return whether generate costs more than 1.25 times one pass over the same text."""
        module, costs = model(problem), []
        for run in (lambda: module.generate(text(2, 12), 3), lambda: module(text(2, 15))):
            with counting() as cost:
                run()
            costs.append(cost.operations)
        return costs[0] > 1.25 * costs[1]

    def each_once():
        """Return the new tokens of a model for which the next token is the number of the position.

        There are two prompts of one token, as some wrong code would change a single prompt.
        """
        module = model(problem, silent=True)
        kinds = parameters(module)["transformer.wte.weight"].detach()
        places = 20 * kinds[torch.arange(24) % 13]
        set_weights(module, {"transformer.wpe.weight": places})
        torch.default_generator.manual_seed(6)  # for code that draws random numbers
        return module.generate(torch.tensor([[5], [5]]), 14)

    def changes():
        """Return whether generate changes the prompts."""
        prompts = text(2, 3)
        model(problem).generate(prompts, 4)
        return not torch.equal(prompts, text(2, 3))

    def outdated():
        """Return whether generate uses old weights after they have changed."""
        used, fresh = model(problem), model(problem)
        used.generate(text(2, 3), 6)
        for module in (used, fresh):
            places = parameters(module)["transformer.wpe.weight"].detach()
            set_weights(module, {"transformer.wpe.weight": -places})
        return not torch.equal(used.generate(text(2, 3), 6), fresh.generate(text(2, 3), 6))

    return Part(
        main={
            "two prompts": lambda: generated(2, 3, 7),
            "prompts of one token": lambda: generated(3, 1, 6, n_layer=1),
            "each token once": each_once,
            "cost after 48": cost,
            "changes the prompts": changes,
        },
        edges={
            "nothing new": lambda: generated(2, 3, 0),
            "outdated": outdated,
            "reads twice": reads_twice,
        },
    )


def about_too_many(problem):
    """Return questions about texts that are longer than n_positions."""
    short = functools.cache(lambda: model(problem, n_positions=6))

    def refused(length, n_new):
        module = short()
        return edges.refusal(lambda: module.generate(text(2, length), n_new))

    def late(n_new):
        """Return whether generate takes many operations before it rejects a text."""
        module = model(problem)
        with counting() as cost:
            edges.refusal(lambda: module.generate(text(1, 8), n_new))
        return cost.operations > 12 * 2 * (2 * (12 * 64 + 2 * 8) + 8 * 13)

    def made():
        """Return the length of the result for a text that is too long, or 0 if it is refused."""
        try:
            return short().generate(text(1, 3), 9).shape[1]
        except NotImplementedError:
            raise
        except Exception:
            return 0

    return Part(
        main={
            "1 and 6 of 6": lambda: refused(1, 6),
            "3 and 9 of 6": lambda: refused(3, 9),
            "7 and 0 of 6": lambda: refused(7, 0),
            "late": lambda: late(40),
            "late, the new ones fit": lambda: late(20),
            "made": made,
        },
        edges={"fits": lambda: short().generate(text(1, 2), 4).shape[1]},
    )
