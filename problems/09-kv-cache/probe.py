"""The questions by which a mistake in problem 09 is told. An instrument, not a lesson."""

import functools
import operator

import torch

from grader.code.cost import counting
from grader.diagnose import edges
from grader.diagnose.answers import attempt
from grader.diagnose.numbers import numbers
from grader.diagnose.probe import Part
from grader.errors import Mismatch
from grader.run.compare import parameters, set_weights
from shared.ordinary_weights import attention_weights, filled, gpt_weights, quiet
from shared.worked_example import multi_head_by_hand


def probe(problem):
    """Return the questions about the function, and about each side of the classes.

    What stands on something that is wrong goes wrong as well, in many ways, which say nothing of
    itself. So a model is asked only when its attention is right, and for texts only when its logits
    are.
    """
    parts = {
        "kv_cache_bytes": about_bytes(problem),
        "kv_cache_bytes: length": about_longer(problem),
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
        if is_right(sums, ()):  # it ends, whatever comes of it
            parts["CachedGPT: past"] = about_list_of_pasts(problem)
            parts["CachedGPT: length"] = about_length(problem)
        if is_right(sums, SUMS_OF_MODEL):
            parts["CachedGPT: generate"] = about_generate(problem)
            parts["CachedGPT: too many tokens"] = about_too_many(problem)
    return parts


def is_right(find, expected):
    """Whether some sums begin as expected; what isn't written yet is asked all the same."""
    try:
        found = find()
    except NotImplementedError:
        return True
    except Exception:
        return False
    return all(abs(one - other) < 1e-6 for one, other in zip(found, expected, strict=False))


def summed(tensor):
    """A sum over all entries, each with a weight of its own."""
    return float((tensor.detach().double() * numbers(*tensor.shape, start=0.7)).sum())


def about_bytes(problem):
    """Questions about kv_cache_bytes."""

    def count(*arguments, **named):
        return problem.kv_cache_bytes(*arguments, **named)

    def whole():
        return type(count(12, 768, 24)) is int

    return Part(
        main={
            "ones": lambda: count(1, 1, 1, 1, 1),
            "twos": lambda: count(2, 2, 2, 2, 2),
            "threes": lambda: count(3, 3, 3, 3, 3),
            "all different": lambda: count(2, 36, 5, 7, 3),
            "others": lambda: count(5, 24, 3, 2, 7),
            "defaults": lambda: count(2, 36, 3),
            "default size": lambda: count(2, 36, 3, 5),
        },
        edges={
            "by name": lambda: count(
                bytes_per_number=3, batch_size=2, seq_len=5, n_embd=24, n_layer=7
            ),
            "whole": whole,
        },
    )


def about_longer(problem):
    """A question about how the bytes grow with the length."""

    def still():
        """Where one token more takes no byte more: 0 for nowhere, 1 for some lengths, 2 for all."""
        lengths = (*range(1, 40), 256, 1024, 4096)
        found = [problem.kv_cache_bytes(2, 12, n) >= problem.kv_cache_bytes(2, 12, n + 1)
                 for n in lengths]  # fmt: skip
        return 2 if all(found) else int(any(found))

    return Part(main={"still": still})


# Attention


def attention(problem, n_embd, n_head, bias=True, dtype=torch.float64):
    """An attention of the student's that holds ordinary weights."""
    made = problem.CachedAttention(n_embd, n_head, bias).eval()
    return filled(made, attention_weights(n_embd, bias), dtype)


def some_past(batch, n_head, length, head_dim, dtype=torch.float64):
    """Keys and values of tokens that nobody saw; None when there are none."""
    if not length:
        return None
    return tuple(
        numbers(batch, n_head, length, head_dim, start=start).to(dtype) for start in (0.6, 0.9)
    )


def asked(problem, batch, n_new, n_embd, n_head, n_past=0, bias=True, dtype=torch.float64):
    """What an attention returns for ordinary numbers."""
    module = attention(problem, n_embd, n_head, bias, dtype)
    past = some_past(batch, n_head, n_past, n_embd // n_head, dtype)
    return module(numbers(batch, n_new, n_embd, start=0.5).to(dtype), past)


def sums_of_attention(problem):
    """Sums of what one attention returns for several calls that don't know of each other."""
    module, sums = attention(problem, 6, 2), []
    for n_past, n_new in ((0, 3), (2, 2), (4, 1), (0, 2)):
        past = some_past(2, 2, n_past, 3)
        output, (keys, values) = module(numbers(2, n_new, 6, start=0.5), past)
        sums += map(summed, (output, keys, values))
    return sums


SUMS_OF_ATTENTION = (
    0.078290291,
    4.611583037,
    -5.779319564,
    5.343398610,
    13.595289961,
    3.414801354,
    4.472095889,
    15.792898171,
    4.734284296,
    -0.940542666,
    -2.604635465,
    -9.635014604,
)
"""What comes of these calls when all is right."""


def about_attention(problem):
    """Questions about the output of an attention."""

    def output(*sizes, **options):
        return edges.first(asked(problem, *sizes, **options))

    def in_chunks(*sizes):
        """Outputs for chunks, each with the present of the one before it as its past."""
        module, past, outputs = attention(problem, 6, 2), None, []
        for number, size in enumerate(sizes):
            output, past = module(numbers(2, size, 6, start=0.5 + number), past)
            outputs.append(output)
        return torch.cat(outputs, dim=1)

    def second_text(length):
        """The output for a text of which a call of another one came first."""
        module = attention(problem, 6, 2)
        edges.first(module(numbers(2, 3, 6, start=0.2)))
        return edges.first(module(numbers(2, 2, 6, start=0.5), some_past(2, 2, length, 3)))

    def digits_lost():
        x = numbers(2, 3, 6, start=0.5)
        right = multi_head_by_hand(x, attention_weights(6), 2, causal=True)
        return edges.loses_digits(output(2, 3, 6, 2), right)

    def steps_lost():
        module = attention(problem, 6, 2)
        return edges.loses_steps(lambda x: module(x, some_past(2, 2, 3, 3)), numbers(2, 3, 6))

    def remembers(first, second):
        """Whether a call with a past of its own answers otherwise than as the first one."""
        used, new = attention(problem, 6, 2), attention(problem, 6, 2)
        x = numbers(2, 2, 6)
        edges.first(used(numbers(2, 3, 6, start=0.2), some_past(2, 2, first, 3)))
        answers = [edges.first(m(x.clone(), some_past(2, 2, second, 3))) for m in (used, new)]
        return not torch.allclose(*answers, equal_nan=True)

    def large():
        weights = attention_weights(6)
        weights["c_attn.weight"][:6] *= 3000
        module = filled(problem.CachedAttention(6, 2), weights)
        return edges.first(module(numbers(2, 2, 6), some_past(2, 2, 3, 3))).isfinite().all()

    def growing():
        """The first of two new outputs, where the score of the second is larger by some 10,000."""
        weights, rows = attention_weights(6), torch.tensor([6, 9])  # entry 0 of each head's key
        weights["c_attn.weight"][rows - 6] = weights["c_attn.weight"][rows] = 0
        weights["c_attn.bias"][rows - 6] = 1
        weights["c_attn.bias"][rows] = 0
        weights["c_attn.weight"][rows, 5] = 1
        x, past = numbers(2, 2, 6), some_past(2, 2, 3, 3)
        x[:, :, 5] = 30_000 * torch.arange(2)
        past[0][..., 0] = 0
        return edges.first(filled(problem.CachedAttention(6, 2), weights)(x, past))[:, 0]

    def low():
        """Two new outputs, where all scores are near -20,000."""
        weights, rows = attention_weights(6), torch.tensor([6, 9])  # entry 0 of each head's key
        weights["c_attn.weight"][rows - 6] = weights["c_attn.weight"][rows] = 0
        weights["c_attn.bias"][rows - 6] = 1
        weights["c_attn.bias"][rows] = -35_000
        past = some_past(2, 2, 3, 3)
        past[0][..., 0] = -35_000
        return edges.first(filled(problem.CachedAttention(6, 2), weights)(numbers(2, 2, 6), past))

    def reached():
        """Which of x, past keys and past values a gradient reaches."""
        module, x = attention(problem, 6, 2), numbers(2, 2, 6).requires_grad_()
        past = [each.requires_grad_() for each in some_past(2, 2, 3, 3)]
        found = edges.first(module(x.clone(), tuple(each.clone() for each in past)))
        slopes = [edges.slope(found, each) for each in (x, *past)]
        return torch.tensor([each is not None and bool(each.any()) for each in slopes])

    def changes():
        x = numbers(2, 2, 6)
        attention(problem, 6, 2)(x, some_past(2, 2, 3, 3))
        return not torch.equal(x, numbers(2, 2, 6))

    def sees_far():
        """Whether the first token of a long past counts."""
        module, (keys, values) = attention(problem, 4, 1), some_past(1, 1, 600, 4)
        changed = torch.cat([values[:, :, :1] + 1e4, values[:, :, 1:]], dim=2)
        x = numbers(1, 2, 4)
        pair = [edges.first(module(x.clone(), (keys.clone(), each))) for each in (values, changed)]
        return not torch.allclose(*pair)

    def cost():
        """Whether one token after 40 has many operations, and many numbers on the way."""
        module, past, x = attention(problem, 6, 2), some_past(1, 2, 40, 3), numbers(1, 1, 6)
        with torch.no_grad(), counting() as cost:
            module(x, past)
        return torch.tensor([cost.operations > 5000, cost.elements > 100_000])

    def draws(training=True):
        """Whether anything is drawn, in training or not."""
        module = attention(problem, 6, 2).train(training)
        return edges.moves_random_state(lambda: module(numbers(2, 3, 6)))

    if attempt(lambda: draws(training=False)).numbers[:1] == (1.0,):
        return Part(main={"draws in training": draws})  # all numbers hang on chance

    def kinds():
        """What comes back, the number of things, and what the first one is."""
        found = asked(problem, 2, 3, 6, 2)
        several = found if isinstance(found, tuple | list) else ()
        return torch.tensor([len(several), edges.kind(edges.first(found))])

    return Part(
        main={
            "kind": kinds,
            "threes, no past": lambda: output(3, 3, 9, 3),
            "threes after a past": lambda: output(3, 3, 9, 3, 3),
            "twos after a past": lambda: output(2, 2, 4, 2, 2),
            "no past": lambda: output(2, 4, 10, 2),
            "one token": lambda: output(2, 1, 10, 2),
            "one token after a past": lambda: output(2, 1, 6, 2, 4),
            "two tokens after a past": lambda: output(1, 2, 6, 3, 1),
            "five tokens after a past": lambda: output(2, 5, 12, 3, 2),
            "no bias": lambda: output(2, 3, 8, 2, 2, bias=False),
            "in chunks": lambda: in_chunks(2, 2, 3, 1),
            "in ones": lambda: in_chunks(1, 1, 1),
            "second text": lambda: second_text(2),
            "second text, no past": lambda: second_text(0),
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
            "float32, with a past": lambda: 0 * output(2, 3, 6, 2, 2, dtype=torch.float32),
            "digits lost": digits_lost,
            "steps are lost, with a past": steps_lost,
            "large scores": large,
            "hidden far above": growing,
            "scores far below": low,
            "remembers": lambda: remembers(2, 3),
            "remembers, then no past": lambda: remembers(2, 0),
            "remembers, as long": lambda: remembers(3, 3),
            "gradients reach": reached,
            "changes x, with a past": changes,
        },
    )


def about_present(problem):
    """Questions about the present of an attention."""

    def present(*sizes, **options):
        return asked(problem, *sizes, **options)[1]

    def kind():
        """How many things the present holds; -1 when it is one tensor, -2 when nothing."""
        found = asked(problem, 2, 3, 6, 2)
        if not isinstance(found, tuple | list) or len(found) < 2 or found[1] is None:
            return -2.0
        return -1.0 if isinstance(found[1], torch.Tensor) else float(len(found[1]))

    def all_kept():
        """Whether keys and values of a long past are all there."""
        return all(each.shape[2] == 41 for each in present(2, 1, 6, 2, 40)[:2])

    def both(*sizes):
        keys, values = present(*sizes)[:2]
        return torch.stack([keys, values])

    def reached():
        """Whether a gradient reaches x, and the past, from keys, and from values."""
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
            "keys, threes": lambda: present(3, 3, 9, 3)[0],
            "values, threes": lambda: present(3, 3, 9, 3)[1],
            "keys, threes after a past": lambda: present(3, 3, 9, 3, 3)[0],
            "values, threes after a past": lambda: present(3, 3, 9, 3, 3)[1],
            "no past": lambda: both(2, 4, 10, 2),
            "one token after a past": lambda: both(2, 1, 6, 2, 4),
            "chunk after a past": lambda: both(1, 2, 6, 3, 3),
            "after a long past": all_kept,
        },
        edges={
            "float32": lambda: 0 * present(2, 3, 6, 2, 2, dtype=torch.float32)[0],
            "float32, values": lambda: 0 * present(2, 3, 6, 2, 2, dtype=torch.float32)[1],
            "gradients reach": reached,
        },
    )


def about_past(problem):
    """Questions about whether calls change a past, or what others have returned."""

    def changed(held, *calls):
        """Whether any of these tensors is another after these calls."""
        before = [each.clone() for each in held]
        try:
            for module, x, past in calls:
                module(x, past)
            return not all(map(torch.equal, before, held))
        except Mismatch:  # in grading that is how a changed result is seen
            return True

    def given():
        past = some_past(2, 2, 3, 3)
        return changed(past, (attention(problem, 6, 2), numbers(2, 2, 6), past))

    def by_another_text():
        module = attention(problem, 6, 2)
        _, held = module(numbers(2, 3, 6), None)
        return changed(held, (module, numbers(2, 3, 6, start=0.4), None))

    def by_another_end():
        """Whether a present changes when another call goes on from the same past."""
        module, past = attention(problem, 6, 2), some_past(2, 2, 3, 3)
        _, held = module(numbers(2, 2, 6, start=0.3), tuple(each.clone() for each in past))
        return changed(held, (module, numbers(2, 2, 6, start=0.8), past))

    def pair():
        """Whether the pair itself holds other things, when it is a list."""
        module = attention(problem, 6, 2)
        _, past = module(numbers(2, 3, 6), None)
        return has_changed(past, lambda: module(numbers(2, 2, 6, start=0.3), past))

    return Part(
        main={
            "given": given,
            "by another text": by_another_text,
            "by another end": by_another_end,
            "pair": pair,
        },
    )


def has_changed(past, call):
    """Whether a list holds other things after a call; nothing else is asked about."""
    before = [*past] if isinstance(past, list) else None
    call()
    return before is not None and (
        len(past) != len(before) or any(map(operator.is_not, past, before))
    )


def about_layers(problem):
    """Questions about what an attention is made of."""

    def layers(*arguments, **named):
        module = problem.CachedAttention(*arguments, **named)
        return torch.tensor(edges.linear_sizes(module, "c_attn", "c_proj"))

    return Part(
        main={
            "with bias": lambda: layers(12, 3),
            "without bias": lambda: layers(12, 3, bias=False),
            "by position": lambda: layers(12, 4, False),
            "by name": lambda: layers(n_head=2, n_embd=6, bias=True),
            "defaults": lambda: layers(),
            "how many": lambda: len(list(problem.CachedAttention(12, 3).parameters())),
        },
    )


# Models

SIZES = {"vocab_size": 13, "n_positions": 24, "n_embd": 8, "n_layer": 2, "n_head": 2}


def model(problem, *, silent=False, dtype=torch.float64, **sizes):
    """A model of the student's that holds ordinary weights; blocks of a silent one add nothing."""
    config = SIZES | sizes
    weights = gpt_weights(config)
    weights["transformer.ln_f.bias"] = 0 * weights["transformer.ln_f.bias"]
    made = problem.CachedGPT(problem.GPTConfig(**config)).eval()
    return filled(made, quiet(weights) if silent else weights, dtype)


def text(batch, length, start=0):
    """Some tokens."""
    steps = torch.arange(batch * length) + start
    return ((7 * steps * steps + 5 * steps) % 13).view(batch, length)


def sums_of_model(problem):
    """Sums of the logits that a model gives for a text in chunks, each with the present before."""
    module, past, sums = model(problem), None, []
    for chunk in text(2, 7).split((3, 1, 2, 1), dim=1):
        logits, past = module(chunk) if past is None else module(chunk, past)
        sums.append(summed(logits))
    return sums


SUMS_OF_MODEL = (
    -1.925064184,
    -3.700823517,
    9.544575798,
    -0.614492425,
)
"""What comes of these chunks when all is right."""


def about_model(problem):
    """Questions about logits and present."""

    def logits(*sizes, batch=2, **options):
        """Logits for chunks of these sizes, each with the present before it as its past."""
        module, past, found = model(problem, **options), None, []
        idx = text(batch, sum(sizes))
        for chunk in idx.split(sizes, dim=1):
            if past is None:
                answer = module(chunk)
                if len(sizes) == 1:
                    return edges.first(answer)
            else:
                answer = module(chunk, past)
            found.append(edges.first(answer))
            past = answer[1]
        return torch.cat(found, dim=1)

    def present(*sizes, **options):
        """Keys and values of all layers."""
        module, past = model(problem, **options), None
        for chunk in text(2, sum(sizes)).split(sizes, dim=1):
            _, past = module(chunk) if past is None else module(chunk, past)
        return torch.stack([torch.stack(tuple(each)) for each in past])

    def form_of(found):
        """How many layers the present has; -1 when it isn't a list."""
        if not isinstance(found, tuple | list) or len(found) != 2:
            return -2.0
        return float(len(found[1])) if isinstance(found[1], tuple | list) else -1.0

    def form():
        return form_of(model(problem)(text(2, 3)))

    def form_after_a_past():
        module = model(problem)
        return form_of(module(text(2, 1), module(text(2, 3))[1]))

    def remembers():
        """Whether a call with no past answers otherwise after a call of another text."""
        used, new, idx = model(problem), model(problem), text(2, 3)
        edges.first(used(text(2, 4, start=3)))
        return not torch.allclose(edges.first(used(idx)), edges.first(new(idx)), equal_nan=True)

    def draws():
        """Whether anything is drawn in training."""
        module = model(problem, dropout=0.5).train()
        return edges.moves_random_state(lambda: module(text(2, 3)))

    def learns_from_past():
        """Whether a gradient reaches the keys that a model was given."""
        module = model(problem)
        _, past = module(text(2, 3))
        leaves = [[each.detach().clone().requires_grad_() for each in pair] for pair in past]
        found = edges.first(module(text(2, 2), [tuple(e.clone() for e in p) for p in leaves]))
        by = edges.slope(found, leaves[0][0])
        return by is not None and bool(by.any())

    def touches():
        """Whether two texts that go on from one past are otherwise than each by itself."""
        module, new = model(problem), model(problem)
        _, past = module(text(2, 3))
        module(text(2, 2, start=5), list(past))
        _, other = new(text(2, 3))
        idx = text(2, 2, start=1)
        answers = edges.first(module(idx, list(past))), edges.first(new(idx, list(other)))
        return not torch.allclose(*answers, equal_nan=True)

    return Part(
        main={
            "form": form,
            "form after a past": form_after_a_past,
            "quiet": lambda: logits(3, silent=True),
            "quiet, in chunks": lambda: logits(2, 3, 1, silent=True),
            "one pass": lambda: logits(4),
            "one layer": lambda: logits(3, n_layer=1),
            "one layer, in ones": lambda: logits(1, 1, 1, n_layer=1),
            "one layer, in chunks": lambda: logits(3, 3, n_layer=1),
            "in ones": lambda: logits(1, 1, 1, 1),
            "in chunks": lambda: logits(4, 1, 3, batch=3),
            "three layers": lambda: logits(2, 2, n_layer=3, n_embd=6, n_head=3),
            "present": lambda: present(3),
            "present of chunks": lambda: present(2, 3),
            "present of three layers": lambda: present(2, 1, n_layer=3, n_embd=6),
            "learns": lambda: logits(2, 2).requires_grad,
            "learns from the past": learns_from_past,
            "draws in training": draws,
        },
        edges={
            "float32": lambda: 0 * logits(2, 2, dtype=torch.float32),
            "one token": lambda: logits(1, batch=1),
            "remembers": remembers,
            "touches": touches,
        },
    )


def about_list_of_pasts(problem):
    """Questions about the list that a model is given."""

    def after(*sizes):
        """Whether it holds other things after a call."""
        module, past = model(problem), None
        *before, last = text(2, sum(sizes)).split(sizes, dim=1)
        for chunk in before:
            _, past = module(chunk) if past is None else module(chunk, past)
        return has_changed(past, lambda: module(last, past))

    return Part(main={"one token": lambda: after(3, 1), "chunks": lambda: after(2, 2, 3)})


def about_length(problem):
    """Questions about more tokens than there are positions."""
    short = functools.cache(lambda: model(problem, n_positions=6))

    def refused(*sizes):
        """What comes of the last of some chunks, with 6 positions."""
        module, past = short(), None
        *before, last = text(1, sum(sizes)).split(sizes, dim=1)
        for chunk in before:
            _, past = module(chunk) if past is None else module(chunk, past)
        return edges.refusal(lambda: module(last) if past is None else module(last, past))

    return Part(
        main={
            "7 of 6": lambda: refused(7),
            "12 of 6": lambda: refused(12),
            "5 and 2 of 6": lambda: refused(5, 2),
            "2 and 5 of 6": lambda: refused(2, 5),
            "6 and 1 of 6": lambda: refused(6, 1),
            "6 of 6": lambda: refused(6),
            "5 and 1 of 6": lambda: refused(5, 1),
            "1 of 6": lambda: refused(1),
        },
    )


def about_generate(problem):
    """Questions about greedy text, and what it costs."""

    def generated(batch, length, n_new, **options):
        """Prompts and new tokens; less than 0 if these come by chance."""
        module, texts = model(problem, **options), []
        for seed in (4, 5):
            torch.default_generator.manual_seed(seed)
            texts.append(module.generate(text(batch, length), n_new))
        return texts[0] if torch.equal(*texts) else torch.tensor(-1.0)

    def as_one_pass():
        """Whether the text is what the student's own model says without a cache."""
        module, idx = model(problem), text(2, 3)
        found = module.generate(idx.clone(), 6)
        for _ in range(6):
            idx = torch.cat([idx, edges.first(module(idx.clone()))[:, -1:].argmax(-1)], dim=1)
        return torch.equal(found, idx)

    def cost(length):
        """About how many one-token steps one more token costs."""
        module, idx = model(problem, n_positions=80), text(1, length)
        with counting() as one:
            module.generate(idx, 1)
        with counting() as both:
            module.generate(idx, 2)
        step = 2 * (2 * (12 * 64 + 2 * 8 * (length + 1)) + 8 * 13)
        times = (both.operations - one.operations) / step
        return sum(times > bound for bound in (0.1, 3.5, 8.0, 20.0))

    def reads_twice():
        """Whether a text costs more than one pass of the same model over it."""
        module, costs = model(problem), []
        for run in (lambda: module.generate(text(2, 12), 3), lambda: module(text(2, 15))):
            with counting() as cost:
                run()
            costs.append(cost.operations)
        return costs[0] > 1.25 * costs[1]

    def each_once():
        """New tokens in the order of their numbers, each at the position of that number.

        Where a prompt has one token there are two prompts, here and below: across the boundary a
        call fails that changes an argument of a single whole number.
        """
        module = model(problem, silent=True)
        kinds = parameters(module)["transformer.wte.weight"].detach()
        places = 20 * kinds[torch.arange(24) % 13]
        set_weights(module, {"transformer.wpe.weight": places})
        torch.default_generator.manual_seed(6)  # for who draws
        return module.generate(torch.tensor([[5], [5]]), 14)

    def changes():
        """Whether the prompts are others afterwards."""
        prompts = text(2, 3)
        model(problem).generate(prompts, 4)
        return not torch.equal(prompts, text(2, 3))

    def repeats():
        """Whether a second text hangs on the first, or on chance."""
        module = model(problem)
        module.generate(text(2, 3, start=4), 4)
        first = module.generate(text(2, 3), 6)
        return not torch.equal(first, model(problem).generate(text(2, 3), 6))

    def outdated():
        """Whether a text is that of the weights before."""
        used, fresh = model(problem), model(problem)
        used.generate(text(2, 3), 6)
        for module in (used, fresh):
            places = parameters(module)["transformer.wpe.weight"].detach()
            set_weights(module, {"transformer.wpe.weight": -places})
        return not torch.equal(used.generate(text(2, 3), 6), fresh.generate(text(2, 3), 6))

    return Part(
        main={
            "two prompts": lambda: generated(2, 3, 7),
            "three prompts": lambda: generated(3, 4, 8, n_layer=1),
            "one prompt": lambda: generated(1, 2, 6),
            "prompts of one token": lambda: generated(3, 1, 6, n_layer=1),
            "one new token": lambda: generated(4, 5, 1),
            "each token once": each_once,
            "cost after 16": lambda: cost(16),
            "cost after 48": lambda: cost(48),
            "changes the prompts": changes,
        },
        edges={
            "nothing new": lambda: generated(2, 3, 0),
            "as one pass": as_one_pass,
            "repeats": repeats,
            "outdated": outdated,
            "reads twice": reads_twice,
            "by name": lambda: model(problem).generate(max_new_tokens=2, idx=text(1, 2)).shape[1],
        },
    )


def about_too_many(problem):
    """Questions about texts that don't fit into the positions."""
    short = functools.cache(lambda: model(problem, n_positions=6))

    def refused(length, n_new):
        module = short()
        return edges.refusal(lambda: module.generate(text(2, length), n_new))

    def late(n_new):
        """Whether much is computed before a text is refused."""
        module = model(problem)
        with counting() as cost:
            edges.refusal(lambda: module.generate(text(1, 8), n_new))
        return cost.operations > 12 * 2 * (2 * (12 * 64 + 2 * 8) + 8 * 13)

    def made():
        """How many tokens come back where it should be refused; 0 when it is."""
        try:
            return short().generate(text(1, 3), 9).shape[1]
        except NotImplementedError:
            raise
        except Exception:
            return 0

    def length_of(n_prompt, n_new):
        return model(problem, n_positions=6).generate(text(1, n_prompt), n_new).shape[1]

    return Part(
        main={
            "1 and 6 of 6": lambda: refused(1, 6),
            "5 and 2 of 6": lambda: refused(5, 2),
            "3 and 9 of 6": lambda: refused(3, 9),
            "7 and 0 of 6": lambda: refused(7, 0),
            "1 and 5 of 6": lambda: refused(1, 5),
            "4 and 2 of 6": lambda: refused(4, 2),
            "1 and 1 of 6": lambda: refused(1, 1),
            "late": lambda: late(40),
            "late, the new ones fit": lambda: late(20),
            "made": made,
        },
        edges={"fits": functools.partial(length_of, 2, 4)},
    )
