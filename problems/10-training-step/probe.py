"""Define the questions of problem 10: calls whose answers identify mistakes."""

import math
from functools import partial

import torch

from grader.code.cost import counting
from grader.diagnose import edges
from grader.diagnose.numbers import numbers
from grader.diagnose.probe import Part
from shared import small_model
from shared.small_model import SGD, gradients_in, set_gradients, weights_in


def probe(problem):
    """Return the questions about each function and about several aspects of AdamW."""
    return {
        "softmax_backward": about_softmax(problem),
        "attention_backward": about_attention(problem),
        "attention_backward: one number": about_one_number(problem),
        "cross_entropy_backward": about_cross_entropy(problem),
        "clip_gradients": about_clipping(problem),
        "learning_rate": about_rate(problem),
        "AdamW": about_adamw(problem),
        "AdamW: means alone": about_means(problem),
        "AdamW: options": about_options(problem),
        "AdamW: zero_grad": about_zero_grad(problem),
        "train_step": about_step(problem),
        "evaluate": about_evaluation(problem),
    }


def joined(tensors):
    """Return the entries of all tensors in one row."""
    return torch.cat([each.flatten() for each in tensors])


def edges_of(function, given, **options):
    """Return the edge questions of a function, except those about gradients of its result.

    The result is a gradient, which need not be differentiable.
    """
    asked = edges.of_function(function, given, **options)
    return {name: ask for name, ask in asked.items() if not name.startswith("gradient")}


def about_softmax(problem):
    """Return questions about softmax_backward."""

    def inputs(*shape):
        return numbers(*shape).softmax(-1), numbers(*shape, start=0.4)

    def back(*shape):
        return problem.softmax_backward(*inputs(*shape))

    weights, grad = inputs(3, 4)
    return Part(
        main={
            "all of size 3, a batch": lambda: back(3, 3, 3),
            "2-D": lambda: back(3, 4),
            "3-D": lambda: back(2, 3, 5),
        },
        edges=edges_of(
            lambda *given: problem.softmax_backward(*given), {"weights": weights, "grad": grad}
        ),
    )


KINDS = ("dq", "dk", "dv")


def attention_inputs(n, m, d_k, d_v, *batch):
    """Return fixed q, k and v, and a gradient with respect to the output."""
    shapes = ((n, d_k), (m, d_k), (m, d_v), (n, d_v))
    return [numbers(*batch, *shape, start=0.3 * i, size=1.2) for i, shape in enumerate(shapes)]


def some_mask(n, m):
    """Return an irregular mask with at least one True in each row."""
    mask = numbers(n, m, start=2.0) > 0
    mask[:, 0] = True
    mask[:, -1] = False
    return mask


SIZES = {"threes": (3, 3, 3, 3), "all different": (3, 5, 4, 2), "a batch": (3, 5, 4, 2, 2)}


def backward(problem, sizes, masked=False):
    """Return the result of attention_backward for fixed inputs."""
    mask = [some_mask(*sizes[:2])] if masked else []
    return problem.attention_backward(*attention_inputs(*sizes), *mask)


def each_gradient(problem, sizes):
    """Return questions about dq, dk and dv, for each of these sizes and with a mask."""

    def one(kind, sizes, masked=False):
        return lambda: backward(problem, sizes, masked)[KINDS.index(kind)]

    main = {f"{k}, {name}": one(k, each) for k in KINDS for name, each in sizes.items()}
    return main | {f"{k}, masked": one(k, sizes["all different"], masked=True) for k in KINDS}


def about_one_number(problem):
    """Return questions about attention_backward if queries and keys are single numbers.

    Scores are then divided by √1. So a wrong scale has no effect and cannot hide other mistakes.
    """
    sizes = {name: (n, m, 1, *others) for name, (n, m, _, *others) in SIZES.items()}
    return Part(main=each_gradient(problem, sizes))


def about_attention(problem):
    """Return questions about attention_backward."""

    def large():
        q, k, v, grad = attention_inputs(3, 4, 2, 2)
        return joined(problem.attention_backward(1e5 * q, k, v, grad, some_mask(3, 4)))

    def cost():
        n, m, d = 8, 48, 4
        given = attention_inputs(n, m, d, d)
        with torch.no_grad(), counting() as cost:
            problem.attention_backward(*given)
        return torch.tensor([cost.operations > 12 * n * m * d, cost.largest > 3 * n * m])

    def right():
        q, k, v, grad = attention_inputs(3, 4, 2, 2)
        weights = (q @ k.mT / math.sqrt(2)).softmax(-1)
        slopes = grad @ v.mT
        slopes = weights * (slopes - (weights * slopes).sum(-1, keepdim=True)) / math.sqrt(2)
        return joined([slopes @ k, slopes.mT @ q, weights.mT @ grad])

    given = dict(zip(("q", "k", "v", "grad"), attention_inputs(3, 4, 5, 2), strict=True))
    given["mask"] = some_mask(3, 4)
    return Part(
        main=each_gradient(problem, SIZES),
        edges=edges_of(lambda *given: joined(problem.attention_backward(*given)), given)
        | {
            "large, masked": large,
            "mask of a row": lambda: joined(
                problem.attention_backward(*attention_inputs(4, 4, 2, 2, 2), some_mask(1, 4)[0])
            ),
            "cost": cost,
            "digits are lost": lambda: edges.loses_digits(
                joined(backward(problem, (3, 4, 2, 2))), right()
            ),
        },
    )


def about_cross_entropy(problem):
    """Return questions about cross_entropy_backward."""

    def inputs(*shape, out=(), shift=0.0):
        logits, count = numbers(*shape) + shift, math.prod(shape[:-1])
        targets = (torch.arange(count) * 5 + 1) % shape[-1]
        targets[list(out)] = -100
        return logits, targets.reshape(shape[:-1])

    def back(*shape, **options):
        return problem.cross_entropy_backward(*inputs(*shape, **options))

    logits, targets = inputs(2, 3, 4, out=[1])
    return Part(
        main={
            "cube": lambda: back(3, 3, 3),
            "2-D": lambda: back(4, 5),
            "some out": lambda: back(4, 5, out=[1, 2]),
            "some out, 3-D": lambda: back(2, 3, 6, out=[0, 4]),
        },
        edges=edges_of(
            lambda *given: problem.cross_entropy_backward(*given),
            {"logits": logits, "targets": targets},
        )
        | {"large": lambda: back(3, 4, shift=2000.0)},
    )


def loose(*shapes):
    """Return a module with parameters a, b, c of these shapes."""
    return small_model.parameters_of(
        {
            name: numbers(*shape, start=0.2 + n)
            for n, (name, shape) in enumerate(zip("abc", shapes, strict=False))
        }
    )


def slopes(module, number=0, names="abc", size=1.0):
    """Return fixed gradients, by name, for the parameters of a module that `names` contains."""
    return {
        name: size * numbers(*w.shape, start=5.0 + 0.7 * number + n)
        for n, (name, w) in enumerate(weights_in(module).items())
        if name in names
    }


def about_clipping(problem):
    """Return questions about clip_gradients."""

    def clipped(max_norm, names="abc", size=1.0):
        module = loose((5,), (2, 2), (1,))
        set_gradients(module, slopes(module, size=size, names=names))
        return module, problem.clip_gradients(module.parameters(), max_norm)

    def gradients(*arguments, **options):
        found = gradients_in(clipped(*arguments, **options)[0])
        return joined(torch.zeros(1) + 7 if g is None else g for g in found.values())

    def norm(max_norm, **options):
        return torch.as_tensor(clipped(max_norm, **options)[1]).double()

    return Part(
        main={
            "clipped": lambda: gradients(1.0),
            "first without": lambda: gradients(1.0, "bc"),
            "below": lambda: gradients(50.0),
            "norm": lambda: norm(1.0),
            "norm, below": lambda: norm(50.0),
            "norm, small": lambda: 1e5 * norm(50.0, size=1e-5),
        },
        edges={
            "kind": lambda: edges.kind(clipped(1.0)[1]),
            "of zeros": lambda: gradients(1.0, size=0.0),
            "small, clipped": lambda: 100 * gradients(0.01, size=0.01),
        },
    )


def about_rate(problem):
    """Return questions about learning_rate."""

    def rates(steps, *plan):
        return torch.tensor([float(problem.learning_rate(s, *plan)) for s in steps]).double()

    return Part(
        main={
            "up": lambda: rates(range(8), 8, 40, 2.0, 0.25),
            "peak": lambda: rates([8], 8, 40, 2.0, 0.25),
            "down": lambda: rates(range(9, 40), 8, 40, 2.0, 0.25),
            "without a warmup": lambda: rates(range(1, 20), 0, 20, 3.0, 0.5),
            "after": lambda: rates([40, 41, 50, 100], 8, 40, 2.0, 0.25),
        },
        edges={"without a warmup, first": lambda: rates([0], 0, 20, 3.0, 0.5)},
    )


OPTIONS = {"lr": 0.1, "betas": (0.7, 0.9), "eps": 1e-8, "weight_decay": 0.2}


def stepped(module, optimizer, given):
    """Take one step with each of these gradients, and return 10 times the module's weights.

    The factor 10 makes small differences visible.
    """
    for gradients in given:
        set_gradients(module, gradients)
        optimizer.step()
    return 10 * joined(weights_in(module).values())


SHAPES = ((3,), (2, 3), (2,))


def after_steps(problem, count, *shapes, rates=(), names=(), **changed):
    """Return the weights after some steps of AdamW.

    Args:
        problem: the student's code.
        count: the number of steps.
        shapes: the shapes of the parameters.
        rates: the learning rate of each step; by default it is not changed.
        names: for each step, the names of the parameters with a gradient; by default all.
        changed: the options that differ from `OPTIONS`.
    """
    module = loose(*shapes)
    optimizer, found = problem.AdamW(module.parameters(), **(OPTIONS | changed)), None
    for number in range(count):
        if rates:
            optimizer.lr = rates[number]
        held = names[number] if names else "abc"
        found = stepped(module, optimizer, [slopes(module, number, held)])
    return found


def about_means(problem):
    """Return questions about AdamW without eps and decay, and with two equal betas.

    Mistakes in eps, in the decay or in the order of the betas then have no effect, and cannot hide
    other mistakes.
    """
    options = {"eps": 0.0, "weight_decay": 0.0, "betas": (0.5, 0.5)}
    after = partial(after_steps, problem, **options)
    return Part(
        main={
            "one step": lambda: after(1, *SHAPES),
            "one parameter, two steps": lambda: after(2, (4,)),
            "alike": lambda: after(3, (2, 2), (2, 2), (2, 2)),
            "five steps": lambda: after(5, *SHAPES),
            "some without": lambda: after(4, *SHAPES, names=["ab", "bc", "c", "abc"]),
        }
    )


def about_adamw(problem):
    """Return questions about the steps of AdamW."""
    after, shapes = partial(after_steps, problem), SHAPES

    def default():
        module = loose((3,))
        optimizer = problem.AdamW(module.parameters())
        found = stepped(module, optimizer, [slopes(module, n) for n in range(12)])
        return 1000 * (found - 10 * numbers(3, start=0.2))

    def zeros():
        module = loose((3,))
        optimizer = problem.AdamW(module.parameters(), **OPTIONS)
        return stepped(module, optimizer, [{"a": torch.zeros(3).double()}])

    def digits():
        module = small_model.parameters_of({"a": numbers(3)})
        optimizer = problem.AdamW(module.parameters(), **OPTIONS)
        found = stepped(module, optimizer, [{"a": numbers(3, start=n)} for n in (1.0, 2.0)]) / 10
        return torch.tensor([bool(1e-12 < (found - right()).abs().max() < 1e-5)])

    def right():
        w, mean, square = numbers(3), 0, 0
        b1, b2 = OPTIONS["betas"]
        for t, start in ((1, 1.0), (2, 2.0)):
            g = numbers(3, start=start)
            mean, square = b1 * mean + (1 - b1) * g, b2 * square + (1 - b2) * g**2
            w = w * (1 - OPTIONS["lr"] * OPTIONS["weight_decay"])
            w = w - OPTIONS["lr"] * mean / (1 - b1**t) / ((square / (1 - b2**t)).sqrt() + 1e-8)
        return w

    return Part(
        main={
            "one parameter, two steps": lambda: after(2, (4,)),
            "alike": lambda: after(3, (2, 2), (2, 2), (2, 2)),
            "five steps": lambda: after(5, *shapes),
            "large eps": lambda: after(3, *shapes, eps=0.5),
            "lr is set": lambda: after(3, *shapes, rates=[0.1, 0.5, 0.02]),
            "some without": lambda: after(4, *shapes, names=["ab", "bc", "c", "abc"]),
            # Without some options, mistakes in these options have no effect.
            "no decay": lambda: after(3, *shapes, weight_decay=0.0),
            "decay without means": lambda: after(2, *shapes, betas=(0.0, 0.0)),
            "large eps, no decay, no means": lambda: after(
                2, *shapes, eps=0.5, weight_decay=0.0, betas=(0.0, 0.0)
            ),
        },
        edges={"default": default, "zeros": zeros, "digits": digits},
    )


def about_options(problem):
    """Return questions about invalid options of AdamW."""

    def refused(name, fine, *amounts):
        return lambda: edges.refusals(
            lambda amount: problem.AdamW(loose((2,)).parameters(), **{name: amount}), fine, amounts
        )

    return Part(
        main={
            "lr": refused("lr", 0.1, -0.1),
            "eps": refused("eps", 0.1, -0.1),
            "weight_decay": refused("weight_decay", 0.1, -0.1),
            "betas below": refused("betas", (0.1, 0.1), (-0.1, 0.5), (0.5, -0.1)),
            "betas of one": refused("betas", (0.1, 0.1), (1.0, 0.5), (0.5, 1.0)),
            "zeros": refused("lr", 0.1, 0.0),
        },
    )


def about_zero_grad(problem):
    """Return questions about zero_grad, by itself and between steps."""

    def cleared():
        module = loose((3,), (2, 2))
        optimizer = problem.AdamW(module.parameters(), **OPTIONS)
        set_gradients(module, slopes(module))
        optimizer.zero_grad()
        found = gradients_in(module).values()
        return joined(torch.zeros(1) if g is None else g.abs().sum()[None] for g in found)

    def between():
        module = loose((3,))
        optimizer = problem.AdamW(module.parameters(), **(OPTIONS | {"eps": 0.5}))
        stepped(module, optimizer, [slopes(module), slopes(module, 1)])
        optimizer.zero_grad()
        return stepped(module, optimizer, [slopes(module, 2)])

    def infinite():
        module = loose((3,))
        optimizer = problem.AdamW(module.parameters())
        set_gradients(module, {"a": torch.full((3,), math.inf).double()})
        optimizer.zero_grad()
        return all(g is None or not g.any() for g in gradients_in(module).values())

    return Part(
        main={"gradients": cleared, "between steps": between},
        edges={"infinite": infinite},
    )


def model_weights(start=0.0):
    """Return fixed weights of a SmallModel."""
    shapes = {
        "wte.weight": (5, 4),
        "wpe.weight": (6, 4),
        "hidden.weight": (4, 4),
        "hidden.bias": (4,),
        "lm_head.weight": (5, 4),
        "lm_head.bias": (5,),
    }
    return {n: numbers(*s, start=start + i) for i, (n, s) in enumerate(shapes.items())}


def sure_weights():
    """Return weights with which a SmallModel nearly always predicts token 0.

    So other tokens have a large loss.
    """
    weights = model_weights()
    weights["lm_head.bias"][0] += 40
    return weights


def batch(rows, length, pace=3):
    """Return fixed tokens and targets, each (rows, length)."""
    steps = torch.arange(rows * length).reshape(rows, length)
    return (steps * pace + steps // 4) % 5, (steps * steps + 2) % 5


def is_rounded(loss):
    """Return whether a loss has at most four decimals."""
    return round(float(loss), 4) == float(loss)


def about_step(problem):
    """Return questions about train_step, with plain gradient descent."""

    def step(model, batch, **options):
        return problem.train_step(model, *batch, SGD(model.parameters(), 0.5), **options)

    def first(*size):
        return step(small_model.model_of(model_weights()), batch(*size))

    def after(*sizes, before=False, **options):
        model, found = small_model.model_of(model_weights()), []
        if before:
            set_gradients(model, {n: w + 1 for n, w in model_weights(2.0).items()})
        for rows, length in sizes:
            step(model, batch(rows, length), **options)
            found.append(joined(weights_in(model).values()))
        return joined(found)

    def loss():
        return torch.as_tensor(first(3, 4)).double()

    def after_a_large_loss():
        model = small_model.model_of(sure_weights())
        step(model, batch(3, 4), max_norm=0.1)
        return joined(weights_in(model).values())

    def modes():
        model = small_model.model_of(model_weights()).train()
        step(model, batch(2, 3))
        return torch.tensor(small_model.modes_in(model))

    def left():
        """Return whether unused gradients remain, and whether they were clipped after the step."""
        model, before = small_model.model_of(model_weights()), joined(model_weights().values())
        step(model, batch(3, 4), max_norm=0.1)
        taken = (joined(weights_in(model).values()) - before).norm() / 0.5
        found = joined(torch.zeros(1) if g is None else g for g in gradients_in(model).values())
        is_clipped = 0 < found.norm() < 0.1001
        return torch.tensor([bool(taken == 0 < found.norm()), bool(taken > 0.1001) and is_clipped])

    return Part(
        main={
            "loss": loss,
            "a clipped step": lambda: after((3, 4), max_norm=0.1),
            "a step of the default": lambda: after((1, 2)),
            "three steps": lambda: after((3, 4), (1, 6), (2, 2), max_norm=1000.0),
            "a large loss": after_a_large_loss,
            "with what was there": lambda: after((3, 4), before=True, max_norm=1000.0),
            "with what was there, of the default": lambda: after((3, 4), before=True),
        },
        edges={
            "kind": lambda: edges.kind(first(2, 3)),
            "rounded": lambda: is_rounded(first(2, 3)),
            "modes in training": modes,
            "gradients left": left,
        },
    )


def about_evaluation(problem):
    """Return questions about evaluate."""
    batches = [batch(1, 2), batch(3, 5, 2), batch(2, 6, 4)]

    def model_of(dropout=0.0):
        return small_model.model_of(model_weights(), dropout)

    def whole():
        return problem.evaluate(model_of(), [*batches])

    def loss():
        return torch.as_tensor(whole()).double()

    def large():
        """Return the loss if all targets of the last batch are token 0."""
        idx, targets = batch(2, 3)
        given = [*batches, (idx, 0 * targets)]
        found = problem.evaluate(small_model.model_of(sure_weights()), given)
        return torch.as_tensor(found).double()

    def modes(mode):
        model = model_of().train(mode)
        problem.evaluate(model, [*batches])
        return torch.tensor(small_model.modes_in(model)).double()

    def drops():
        model = model_of(dropout=0.5).train()
        return edges.varies(lambda: torch.as_tensor(problem.evaluate(model, [*batches])))

    def empties():
        given = [*batches]
        problem.evaluate(model_of(), given)
        return len(given) != len(batches)

    def changes():
        model = model_of()
        set_gradients(model, model_weights(2.0))
        problem.evaluate(model, [*batches])
        same = [torch.equal(weights_in(model)[n], w) for n, w in model_weights().items()]
        found = gradients_in(model)
        kept = [g is not None and torch.equal(g, model_weights(2.0)[n]) for n, g in found.items()]
        gone = [g is None or not g.any() for g in found.values()]
        return torch.tensor([all(same), all(kept), any(gone)])

    def records():
        with torch.inference_mode():  # PyTorch refuses to store such weights for a backward pass
            model = model_of()
        try:
            problem.evaluate(model, [*batches])
        except RuntimeError as error:
            return "saved for backward" in str(error)
        return False

    return Part(
        main={
            "three batches": loss,
            "large losses": large,
            "modes, training": lambda: modes(True),
            "modes, evaluation": lambda: modes(False),
            "drops": drops,
            "changes": changes,
        },
        edges={
            "kind": lambda: edges.kind(whole()),
            "rounded": lambda: is_rounded(whole()),
            "empties": empties,
            "records": records,
        },
    )
