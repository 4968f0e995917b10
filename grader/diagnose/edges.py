"""Edge questions: what lies beside the numbers, asked in one way of every function and module.

A probe says what to call, and with what. Asked is whether arguments are changed, digits get lost,
another dtype or order in memory is taken, gradients are right and gradient mode stays, a second
call answers as the first one, random numbers are drawn, large numbers are taken, and evaluation
differs from training.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any, cast

import torch
from torch import Tensor, nn

from grader.code.returned import Results
from grader.code.tensors import parameters
from grader.diagnose.numbers import numbers
from grader.diagnose.probe import Question

_SMALL = 2.0**-20
"""So small are gradients from above that nobody clips them."""

_KINDS: tuple[type, ...] = (Tensor, bool, float, int, type(None), tuple, list)

Questions = dict[str, Question]
RunOnTensors = Callable[..., Any]


def first(answer: Any) -> Any:
    """Return the output, if it came back together with something else."""
    return answer[0] if isinstance(answer, tuple | list) and answer else answer


def kind(answer: object) -> int:
    """Return what sort of thing came back, as a number: 0 for a tensor, 5 and 6 for several."""
    return next((n for n, sort in enumerate(_KINDS) if isinstance(answer, sort)), len(_KINDS))


def turned(tensor: Tensor) -> Tensor:
    """Return the same numbers, lying in memory in another order."""
    order = list(reversed(range(tensor.dim())))
    return tensor.permute(order).contiguous().permute(order)


def slope(output: Tensor, by: Tensor, size: float = _SMALL) -> Tensor | None:
    """Return the gradient of a sum of the output's entries, each with a weight of its own.

    How torch happens to run a function decides which entries become NaN, so it is all or none.

    Args:
        output: what the student's code returned.
        by: the tensor to differentiate by.
        size: of the weights, which is made up for afterwards.

    Returns:
        None if `by` is not reached.
    """
    if not output.requires_grad:
        return None
    # As a sum, for with weights as an argument torch first imports a library of algebra.
    with torch.enable_grad():  # code may leave it off
        loss = (output * (size * numbers(*output.shape, start=0.7))).sum()
    (slopes,) = torch.autograd.grad(loss, by, retain_graph=True, allow_unused=True)
    found = cast("Tensor | None", slopes)
    if found is None:
        return None
    return found / size if found.isfinite().all() else found * math.nan


def moves_random_state(call: Callable[[], object]) -> bool:
    """Tell whether a call draws from torch's global generator."""
    torch.default_generator.manual_seed(1)
    before = torch.get_rng_state()
    call()
    return not torch.equal(torch.get_rng_state(), before)


def varies(call: Callable[[], Any]) -> bool:
    """Tell whether two calls that should be alike differ; where code stops, they don't.

    Args:
        call: its answer hangs on some hundred numbers that could be dropped: of a few, the same
            ones are dropped twice at times.
    """
    try:
        one, other = (first(call()).nan_to_num() for _ in range(2))
    except NotImplementedError:
        raise
    except Exception:
        return False
    return not torch.equal(one, other)


def loses_digits(output: Tensor, right: Tensor) -> bool:
    """Tell whether an output is right, but not to the last digits."""
    off = float((output.detach() - right).abs().max())
    return 1e-9 < off < 2e-6


def loses_steps(run: RunOnTensors, *inputs: Tensor) -> bool:
    """Tell whether a step so small that only float64 sees it gets lost on the way."""

    def moved(size: float) -> Tensor:
        moves = (size * numbers(*each.shape, start=n + 0.5) for n, each in enumerate(inputs))
        with torch.no_grad():
            output: Tensor = first(run(*(each + m for each, m in zip(inputs, moves, strict=True))))
        return output

    start = moved(0)
    one, two = moved(1e-9) - start, moved(2e-9) - start
    return bool((two - 2 * one).norm() > 0.1 * two.norm()) or not bool(two.any())


def overwrites(module: Any, x: Tensor, other: Tensor) -> bool:
    """Tell whether a call without gradients writes over what the call before returned."""
    results = Results()
    with torch.no_grad():
        for given in (x, other):
            results.add(module(given))
    return results.some_overwritten


def starts_alike(make: Callable[[], nn.Module]) -> bool:
    """Tell whether any parameter that is drawn starts from the same numbers after another seed."""
    starts = []
    for seed in (1, 2):
        torch.default_generator.manual_seed(seed)
        starts.append([each.detach().clone() for each in make().parameters()])
    drawn = [pair for pair in zip(*starts, strict=True) if len(pair[0].unique()) > 1]
    return not drawn or any(torch.equal(one, other) for one, other in drawn)


def linear_sizes(module: nn.Module, *names: str) -> list[list[float]]:
    """Return what in, out and bias of linear layers are; -1 for what is none."""
    layers = [getattr(module, name, None) for name in names]
    return [
        [each.in_features, each.out_features, float(each.bias is not None)]
        if isinstance(each, nn.Linear)
        else [-1.0, -1.0, -1.0]
        for each in layers
    ]


def dropout_rates(module: nn.Module, *names: str) -> list[float]:
    """Return the rates of dropouts; -1 for what is no nn.Dropout."""
    layers = [getattr(module, name, None) for name in names]
    return [float(each.p) if isinstance(each, nn.Dropout) else -1.0 for each in layers]


def refusal(call: Callable[[], object]) -> float:
    """Return what comes of a call: 0 if it returns, 1 for a ValueError, 2 for an assertion, or 3.

    Raises:
        NotImplementedError: it isn't written yet.
    """
    try:
        call()
    except (ValueError, AssertionError) as exception:
        return 1.0 if isinstance(exception, ValueError) else 2.0
    except NotImplementedError:
        raise
    except Exception:
        return 3.0
    return 0.0


def refusals(call: Callable[[Any], object], fine: Any, amounts: tuple[Any, ...]) -> Tensor:
    """Return how calls with these amounts end; code that stops at a fine one refuses nothing."""
    call(fine)
    return torch.tensor([refusal(partial(call, amount)) for amount in amounts])


def of_function(run: RunOnTensors, given: Mapping[str, Tensor], *, large: float = 0) -> Questions:
    """Return the edge questions of a function.

    Args:
        run: calls it with tensors by position.
        given: by name, tensors with which it gives ordinary numbers, those of floats in float64.
        large: how many times as large floats are to be given, too; 0 for not.
    """
    floats = [name for name, each in given.items() if each.is_floating_point()]

    def fresh(change: Callable[[Tensor], Tensor] = Tensor.clone) -> dict[str, Tensor]:
        return {n: change(t) if n in floats else t.clone() for n, t in given.items()}

    def output(tensors: Mapping[str, Tensor]) -> Any:
        with torch.enable_grad():  # code may leave it off
            return first(run(*tensors.values()))

    @cache
    def changes(name: str) -> bool:
        tensors = fresh()
        output(tensors)
        return not torch.equal(tensors[name], given[name])

    @cache
    def gradient(name: str, size: float = _SMALL) -> Tensor | float | None:
        if any(changes(each) for each in floats):
            return -1.0  # whether autograd stops then hangs on how the rest is written
        tensors = fresh()
        tensors[name].requires_grad_()
        return slope(output(tensors), tensors[name], size)

    def grows() -> bool:
        one, other = (gradient(floats[0], size) for size in (_SMALL, 1 / _SMALL))
        return _alike(one, other)

    def second_call() -> Any:
        output(fresh())
        return output(fresh(_others))

    def keeps_mode() -> bool:
        with torch.no_grad():
            answer = first(run(*fresh().values()))
            off = not torch.is_grad_enabled() and not answer.requires_grad
        with torch.enable_grad():
            run(*fresh().values())
            return off and torch.is_grad_enabled()

    questions: Questions = {
        "float32": lambda: output(fresh(Tensor.float)),
        "turned": lambda: output(fresh(turned)),
        "steps are lost": lambda: loses_steps(
            lambda *moved: run(*(fresh() | dict(zip(floats, moved, strict=True))).values()),
            *(given[name] for name in floats),
        ),
        "second call": second_call,
        "random state moves": lambda: moves_random_state(lambda: output(fresh())),
        "keeps gradient mode": keeps_mode,
        "gradient grows": grows,
    }
    for name in given:
        questions[f"changes {name}"] = partial(changes, name)
    for name in floats:
        questions[f"gradient by {name}"] = partial(gradient, name)
    if large:
        questions["large numbers"] = lambda: output(fresh(lambda t: large * t))
    return questions


def of_module(
    make: Callable[..., nn.Module],
    x: Tensor,
    *,
    other: Tensor | None = None,
    weights: tuple[str, ...] = (),
    large: float = 0,
) -> Questions:
    """Return the edge questions of a module that takes one tensor.

    Args:
        make: makes it, in evaluation, always with the same weights; in float64 or in the dtype
            that it is given.
        x: with which it gives ordinary numbers.
        other: an input of another length, that comes before x in a second call.
        weights: the names of parameters whose gradients are asked.
        large: how many times as large x is to be given, too; 0 for not.
    """
    given = {"x": x}

    def second_call() -> Any:
        module = make()
        module(x.clone())
        return first(module(_others(x)))

    def remembers(before: Tensor) -> bool:
        """Whether a call answers otherwise than it would as the first one."""
        used = make()
        used(before.clone())
        return not _alike(first(used(x.clone())), first(make()(x.clone())))

    def changes_weights() -> bool:
        module = make()
        before = {name: each.detach().clone() for name, each in parameters(module).items()}
        module(x.clone())
        return not all(torch.equal(parameters(module)[n], each) for n, each in before.items())

    @cache
    def output_and_weights() -> tuple[Tensor, dict[str, nn.Parameter]]:
        module = make()
        return first(module(x.clone())), parameters(module)

    def gradient(name: str) -> Tensor | None:
        output, by_name = output_and_weights()
        return slope(output, by_name[name])

    def training_differs() -> bool:
        return not _alike(*(first(make().train(mode)(x.clone())) for mode in (True, False)))

    questions = of_function(lambda x: make()(x), given, large=large)
    questions |= {
        "float32": lambda: first(make(torch.float32)(x.float())),
        "second call": second_call,
        "random state moves": lambda: _draws(make, x),
        "changes weights": changes_weights,
        "training differs": training_differs,
    }
    if other is not None:
        questions["second call, of another length"] = lambda: remembers(other)
    for name in weights:
        questions[f"gradient by {name}"] = partial(gradient, name)
    return questions


def _others(tensor: Tensor) -> Tensor:
    """Return other numbers of the same form."""
    return 1.5 * tensor + 0.5


def _alike(one: Any, other: Any) -> bool:
    return torch.allclose(one, other, equal_nan=True)


def _draws(make: Callable[..., nn.Module], x: Tensor) -> bool:
    module = make()
    return moves_random_state(lambda: module(x.clone()))
