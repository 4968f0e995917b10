"""Provide the edge questions that a probe can ask about any function or module.

The probe provides the function and ordinary arguments. The questions cover changed arguments, lost
digits, different dtypes and memory orders, gradients, the gradient mode, a second call, the random
state, large numbers, and the difference between training and evaluation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any, cast

import torch
from torch import Tensor, nn

from grader.code.tensors import Results, parameters
from grader.diagnose.numbers import numbers
from grader.diagnose.probe import Question

_SMALL = 2.0**-20
"""The size of upstream gradients. Code that clips gradients does not change such small ones."""

_KINDS: tuple[type, ...] = (Tensor, bool, float, int, type(None), tuple, list)

Questions = dict[str, Question]
RunOnTensors = Callable[..., Any]


def first(value: Any) -> Any:
    """Return the first element of a nonempty tuple or list. Return any other value unchanged."""
    return value[0] if isinstance(value, tuple | list) and value else value


def kind(value: object) -> int:
    """Return a number for the type of a value, such as 0 for a tensor and 5 for a tuple."""
    return next((n for n, sort in enumerate(_KINDS) if isinstance(value, sort)), len(_KINDS))


def turned(tensor: Tensor) -> Tensor:
    """Return an equal tensor whose dimensions are in reverse order in memory."""
    order = list(reversed(range(tensor.dim())))
    return tensor.permute(order).contiguous().permute(order)


def slope(output: Tensor, by: Tensor, size: float = _SMALL) -> Tensor | None:
    """Return the gradient of a weighted sum of the output's entries.

    The weights are multiplied by `size`, and the gradient is divided by `size`. If one entry of the
    gradient is NaN or infinite, return a tensor of NaN, because the number of such entries depends
    on torch's kernels.

    Args:
        output: the return value of the student's code.
        by: the tensor with respect to which the sum is differentiated.
        size: the factor for the weights.

    Returns:
        The gradient; None if the output does not depend on `by`.
    """
    if not output.requires_grad:
        return None
    # With the argument grad_outputs instead of this sum, autograd.grad would import sympy.
    with torch.enable_grad():  # student code may have disabled gradients
        loss = (output * (size * numbers(*output.shape, start=0.7))).sum()
    (slopes,) = torch.autograd.grad(loss, by, retain_graph=True, allow_unused=True)
    gradient = cast("Tensor | None", slopes)
    if gradient is None:
        return None
    return gradient / size if gradient.isfinite().all() else gradient * math.nan


def moves_random_state(call: Callable[[], object]) -> bool:
    """Return whether a call changes the state of torch's global random generator."""
    torch.default_generator.manual_seed(1)
    before = torch.get_rng_state()
    call()
    return not torch.equal(torch.get_rng_state(), before)


def varies(call: Callable[[], Any]) -> bool:
    """Return whether two equal calls return different outputs.

    Return False if a call raises an exception other than NotImplementedError.

    Args:
        call: returns an output with at least a hundred numbers that dropout can drop. If there
            are only a few numbers, two calls may drop the same numbers by chance.
    """
    try:
        one, other = (first(call()).nan_to_num() for _ in range(2))
    except NotImplementedError:
        raise
    except Exception:
        return False
    return not torch.equal(one, other)


def loses_digits(output: Tensor, right: Tensor) -> bool:
    """Return whether an output is right except for its last digits."""
    off = float((output.detach() - right).abs().max())
    return 1e-9 < off < 2e-6


def loses_steps(run: RunOnTensors, *inputs: Tensor) -> bool:
    """Return whether the output ignores changes of the inputs that are too small for float32."""

    def moved(size: float) -> Tensor:
        moves = (size * numbers(*each.shape, start=n + 0.5) for n, each in enumerate(inputs))
        with torch.no_grad():
            output: Tensor = first(run(*(each + m for each, m in zip(inputs, moves, strict=True))))
        return output

    start = moved(0)
    one, two = moved(1e-9) - start, moved(2e-9) - start
    return bool((two - 2 * one).norm() > 0.1 * two.norm()) or not bool(two.any())


def overwrites(module: Any, x: Tensor, other: Tensor) -> bool:
    """Return whether a second call overwrites the result of the first if gradients are off."""
    results = Results()
    with torch.no_grad():
        for argument in (x, other):
            results.add(module(argument))
    return results.some_overwritten


def starts_alike(make: Callable[[], nn.Module]) -> bool:
    """Return whether a random parameter has the same initial values for two different seeds.

    Return True if no parameter is random.
    """
    starts = []
    for seed in (1, 2):
        torch.default_generator.manual_seed(seed)
        starts.append([each.detach().clone() for each in make().parameters()])
    drawn = [pair for pair in zip(*starts, strict=True) if len(pair[0].unique()) > 1]
    return not drawn or any(torch.equal(one, other) for one, other in drawn)


def linear_sizes(module: nn.Module, *names: str) -> list[list[float]]:
    """Return [in_features, out_features, bias] of each named linear layer.

    The bias is 1 or 0. For a layer that is missing or not linear, return [-1, -1, -1].
    """
    layers = [getattr(module, name, None) for name in names]
    return [
        [each.in_features, each.out_features, float(each.bias is not None)]
        if isinstance(each, nn.Linear)
        else [-1.0, -1.0, -1.0]
        for each in layers
    ]


def dropout_rates(module: nn.Module, *names: str) -> list[float]:
    """Return the rate of each named dropout layer.

    The rate is -1 for a layer that is missing or is not nn.Dropout.
    """
    layers = [getattr(module, name, None) for name in names]
    return [float(each.p) if isinstance(each, nn.Dropout) else -1.0 for each in layers]


def refusal(call: Callable[[], object]) -> float:
    """Return a number for the exception that a call raises.

    The number is 0 without an exception, 1 for a ValueError, 2 for an AssertionError, and 3 for
    any other exception.

    Raises:
        NotImplementedError: the student has not written the function yet.
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
    """Return the results of `refusal` for calls with each of the `amounts`.

    Args:
        call: a function with one parameter.
        fine: a valid argument for the first call.
        amounts: the arguments of the further calls.

    Raises:
        Exception: the call with `fine` fails.
    """
    call(fine)
    return torch.tensor([refusal(partial(call, amount)) for amount in amounts])


def of_function(
    run: RunOnTensors, arguments: Mapping[str, Tensor], *, large: float = 0
) -> Questions:
    """Return the edge questions of a function.

    Args:
        run: calls the student's function with tensors as positional arguments.
        arguments: ordinary arguments, by name. Floating-point tensors are float64.
        large: the factor for the arguments of the question about large numbers. If it is 0, this
            question is omitted.
    """
    floats = [name for name, each in arguments.items() if each.is_floating_point()]

    def fresh(change: Callable[[Tensor], Tensor] = Tensor.clone) -> dict[str, Tensor]:
        return {n: change(t) if n in floats else t.clone() for n, t in arguments.items()}

    def output(tensors: Mapping[str, Tensor]) -> Any:
        with torch.enable_grad():  # student code may have disabled gradients
            return first(run(*tensors.values()))

    @cache
    def changes(name: str) -> bool:
        tensors = fresh()
        output(tensors)
        return not torch.equal(tensors[name], arguments[name])

    @cache
    def gradient(name: str, size: float = _SMALL) -> Tensor | float | None:
        if any(changes(each) for each in floats):
            return -1.0  # after an in-place change, autograd may or may not raise an exception
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
            *(arguments[name] for name in floats),
        ),
        "second call": second_call,
        "random state moves": lambda: moves_random_state(lambda: output(fresh())),
        "keeps gradient mode": keeps_mode,
        "gradient grows": grows,
    }
    for name in arguments:
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
    """Return the edge questions of a module whose input is one tensor.

    Args:
        make: returns the module in evaluation mode with fixed weights. Its argument is the dtype,
            float64 by default.
        x: an ordinary input.
        other: an input of a different length. One question calls the module with `other` and then
            with `x`.
        weights: the names of the parameters whose gradients are checked.
        large: the factor for the input of the question about large numbers. If it is 0, this
            question is omitted.
    """

    def second_call() -> Any:
        module = make()
        module(x.clone())
        return first(module(_others(x)))

    def remembers(before: Tensor) -> bool:
        """Return whether an earlier call with `before` changes the output."""
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

    questions = of_function(lambda x: make()(x), {"x": x}, large=large)
    questions |= {
        "float32": lambda: first(make(torch.float32)(x.float())),
        "second call": second_call,
        "random state moves": lambda: _moves_random_state(make, x),
        "changes weights": changes_weights,
        "training differs": training_differs,
    }
    if other is not None:
        questions["second call, of another length"] = lambda: remembers(other)
    for name in weights:
        questions[f"gradient by {name}"] = partial(gradient, name)
    return questions


def _others(tensor: Tensor) -> Tensor:
    """Return a tensor of the same shape with different numbers."""
    return 1.5 * tensor + 0.5


def _alike(one: Any, other: Any) -> bool:
    return torch.allclose(one, other, equal_nan=True)


def _moves_random_state(make: Callable[..., nn.Module], x: Tensor) -> bool:
    module = make()
    return moves_random_state(lambda: module(x.clone()))
