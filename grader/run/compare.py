"""Compare values of student code with right answers, and describe differences for students.

`check` compares tensors with tensors, and NumPy arrays with arrays. It compares first the type,
then dtype and shape, then the values, and it never broadcasts. Its message contains the call, the
returned and the expected value, and the rows that differ.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

import numpy
import torch
from torch import Tensor, nn

from grader.code.tensors import Array, dtype_name, entries, is_array, is_float, parameters
from grader.diagnose.diff_hint import diff_hints, number_hint
from grader.diagnose.evidence import Certainty, Evidence, Shown, Source
from grader.errors import Mismatch
from grader.result import not_yet

# The relative and the absolute tolerance. Results of known mistakes differ by 5e-4 or more. float16
# has three correct digits and bfloat16 two, and a sum of a few terms has fewer. float64 has the
# tolerance of float32, because only tests with `all_digits` forbid steps in float32.
_TOLERANCE = {
    "float64": (1e-4, 1e-5),
    "float32": (1e-4, 1e-5),
    "float16": (1e-2, 2e-3),
    "bfloat16": (6e-2, 1.6e-2),
}

_ALL_DIGITS = (1e-9, 1e-10)
"""The tolerance of float64 with `all_digits`. Correct results differ by about 1e-15."""

_ENTRIES_SHOWN = 6
_LINE = 74
"""The maximum length of a line of numbers. The line fits into a window of 80 columns."""

_ROWS_SHOWN = 3


def require(condition: object, message: str) -> None:
    """Raise Mismatch with `message` unless `condition` holds."""
    if not condition:
        raise Mismatch(message)


def check(
    actual: object,
    expected: Tensor | Array,
    call: str,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    sizes: Mapping[str, int] | None = None,
    all_digits: bool = False,
    start: Tensor | None = None,
) -> None:
    """Compare a value with a tensor or array: type, dtype, shape and numbers.

    A NaN or an infinity is right only if `expected` contains the same value in this entry.

    Args:
        actual: any value that the student's code returned.
        expected: a tensor or an array of any shape and dtype.
        call: the call as a student would write it, for example `"normalise(x, dim=0)"`.
        rtol: the allowed difference relative to the expected entry. The default depends on the
            dtype.
        atol: the allowed absolute difference, which is added to the allowed relative difference.
            The default depends on the dtype.
        sizes: sizes such as `{"d_k": 16}`. The message uses them to explain a constant factor.
        all_digits: whether to require the exact dtype, and float64 numbers that are right to their
            last digits. Only tests about dtypes need this. By default, a calculation may have steps
            in float32, and the result may have a wider dtype, such as float64 instead of float32.
        start: an input to which the code adds another tensor, such as the x of a residual
            connection. The message then also explains errors in the added tensor.

    Raises:
        Mismatch: the value is wrong. The exception's text is a message for the student.
    """
    values = check_form(actual, expected, call, same_dtype=all_digits)
    default_rtol, default_atol = _tolerance(expected, all_digits)
    atol = default_atol if atol is None else atol
    if _all_within(values, expected, atol):
        return  # nearly all right results end here; the full comparison is much slower
    floats, got, want = is_float(expected), entries(values), entries(expected)
    wrong = _wrong_entries(got, want, default_rtol if rtol is None else rtol, atol)
    if not wrong.any():
        return
    is_double = dtype_name(values) == "float64"
    evidence: tuple[Evidence, ...] = ()
    if floats:
        added_to = None if start is None else entries(start)
        hints = diff_hints(got, want, wrong, sizes or {}, atol, is_double=is_double, start=added_to)
        evidence = tuple(hints)
    lines = [_values_message(got, want, wrong), *(each.sentence for each in evidence)]
    is_finite = bool(numpy.isfinite(got).all())
    factor = _factor(float(got.item()), float(want.item())) if want.size == 1 else 0.0
    shown = Shown(evidence, call, _where(wrong), is_finite, factor)
    raise Mismatch("\n".join([call, *lines]), shown)


def _tolerance(expected: Tensor | Array, all_digits: bool) -> tuple[float, float]:
    dtype = dtype_name(expected)
    if all_digits and dtype == "float64":
        return _ALL_DIGITS
    return _TOLERANCE.get(dtype, (0.0, 0.0))


def check_form(
    actual: object, expected: Tensor | Array, call: str, *, same_dtype: bool = False
) -> Any:
    """Check that `actual` has the type, dtype and shape of `expected`; return `actual` detached.

    Args:
        actual: any value that the student's code returned.
        expected: a tensor or an array with the right dtype and shape.
        call: the call as a student would write it.
        same_dtype: whether to reject a floating point dtype that is wider than the expected dtype.

    Raises:
        Mismatch: the type, dtype or shape is wrong. The exception's text is a message for the
            student.
    """
    wanted = _NAMES[isinstance(expected, numpy.ndarray)]
    if not (is_array(actual) if wanted == _NAMES[True] else isinstance(actual, Tensor)):
        _fail(call, f"It returned {kind(actual)}, but {wanted} of {_form(expected)} was expected.")
    values: Any = actual
    fits = values.dtype == expected.dtype or (not same_dtype and _wider(values, expected))
    if not fits or values.shape != expected.shape:
        _fail(call, _form_message(values, expected))
    if wanted == _NAMES[True]:
        return values
    if values.is_meta:
        _fail(call, "It returned a tensor on the meta device, which has a shape but no numbers.")
    return values.detach()


_NAMES = ("a tensor", "an array")
"""The words in messages for a value of torch and a value of NumPy."""


def _wider(actual: Tensor | Array, expected: Tensor | Array) -> bool:
    """Return whether both dtypes are floating point and the dtype of `actual` is wider."""
    both = is_float(actual) and is_float(expected)
    return both and actual.dtype.itemsize > expected.dtype.itemsize


def check_number(
    actual: object,
    low: float,
    high: float,
    call: str,
    meaning: str,
    returned: str = "It returned {}",
) -> None:
    """Check that `actual` is a Python float with `low <= actual <= high`.

    Args:
        actual: the result of the student's code.
        low: the smallest right value.
        high: the largest right value.
        call: the call as a student would write it.
        meaning: the expectation in words, for example `"about 16, the variance for d_k = 16"`.
        returned: the result in words, for example `"It returned {} on average over 400 seeds"`.

    Raises:
        Mismatch: the value is wrong. The exception's text is a message for the student.
    """
    if not isinstance(actual, float):
        _fail(call, f"It returned {kind(actual)}, but a Python float was expected.")
    if not low <= actual <= high:
        number = f"{actual + 0.0:.4g}"  # prints -0 as 0
        text = f"{returned.format(number)}, but the answer should be {meaning}."
        right = (low + high) / 2
        if not high - low < 1e-3 * abs(right):
            _fail(call, text)
        hint = number_hint(actual, right)
        evidence = (Evidence(hint, Certainty.ALL, Source.RELATION),) if hint else ()
        shown = Shown(evidence, call, "It differs", math.isfinite(actual), _factor(actual, right))
        raise Mismatch("\n".join([call, text, *filter(None, [hint])]), shown)


def _factor(got: float, want: float) -> float:
    """Return `got` divided by `want`, or 0 if this ratio is undefined or infinite."""
    return got / want if want and math.isfinite(got / want) else 0.0


_LEFT_GRAPH = (
    "The result has no gradient, so a model could not learn from it. Some line takes the numbers "
    "out of PyTorch's graph: look for detach, .data, no_grad, .item(), numpy, or a new tensor made "
    "from numbers."
)
_SWITCHED_OFF = (
    "The result has no gradient: your code switched gradients off, in this call or an earlier "
    "call, and did not switch them on again. A block `with torch.no_grad():` does both."
)


def gradients(
    output: object,
    inputs: Mapping[str, Tensor],
    upstream: Tensor,
    call: str,
    *,
    may_miss: bool = False,
) -> dict[str, Tensor]:
    """Return the gradient of `(output * upstream).sum()` with respect to each of `inputs`.

    Args:
        output: the result of the student's code. It must have the dtype and shape of `upstream`.
        inputs: the tensors whose gradients are returned, by the names that messages use.
        upstream: random weights of the output's entries. Weights are needed because, for example,
            the unweighted sum of a softmax is constant, so that its gradient is always 0.
        call: the call as a student would write it.
        may_miss: whether to omit inputs without a gradient, instead of raising Mismatch.

    Raises:
        Mismatch: the type, dtype or shape of `output` is wrong, or no gradient reaches `output` or
            an input.
    """
    check_form(output, upstream, call)
    assert isinstance(output, Tensor)
    for name, tensor in inputs.items():
        if not tensor.requires_grad:
            _fail(call, f"{name} can't learn anything: its requires_grad is False.")
    if not output.requires_grad:
        _fail(call, _LEFT_GRAPH if torch.is_grad_enabled() else _SWITCHED_OFF)
    # If `upstream` were an argument of autograd.grad, torch would import a large library.
    loss = (output * upstream).sum()
    slopes: Any
    slopes = torch.autograd.grad(loss, list(inputs.values()), allow_unused=True)
    result = {}
    for name, gradient in zip(inputs, slopes, strict=True):
        if gradient is not None:
            result[name] = gradient
        elif not may_miss:
            raise no_gradient(name, call)
    return result


def no_gradient(name: str, call: str) -> Mismatch:
    """Return the mismatch for an input that no gradient reaches."""
    return Mismatch(
        f"{call}\nNo gradient reaches {name}: the result doesn't depend on {name}, or some line "
        "takes the numbers out of PyTorch's graph (detach, .data, no_grad, .item(), numpy)."
    )


def check_layer(module: nn.Module, name: str, n_in: int, n_out: int, *, bias: bool = True) -> None:
    """Check that `module.<name>` is an `nn.Linear(n_in, n_out, bias=bias)`.

    Raises:
        Mismatch: the layer is missing, or has a different type or size.
    """
    owner = type(module).__name__
    wanted = f"nn.Linear({n_in}, {n_out}, bias={bias})"
    layer = getattr(module, name, None)
    if layer is None:
        here = ", ".join(child for child, _ in module.named_children()) or "none"
        raise missing_part(
            f"{owner} has no layer called `{name}`. The layers found are: {here}.", owner
        )
    if not isinstance(layer, nn.Linear):
        raise wrong_part(f"`{name}` of {owner} is {kind(layer)}; it should be {wanted}.", owner)
    form = (layer.in_features, layer.out_features, layer.bias is not None)
    actual = f"nn.Linear({form[0]}, {form[1]}, bias={form[2]})"
    if form != (n_in, n_out, bias):
        raise wrong_part(f"`{name}` of {owner} is {actual}; it should be {wanted}.", owner)


def wrong_part(sentence: str, owner: str, message: str = "") -> Mismatch:
    """Return the mismatch for a module that has a part of the wrong type or size.

    Args:
        sentence: a full description of the error, which is shown above all named mistakes.
        owner: the name of the module's class.
        message: the message of the test; by default `sentence`.
    """
    return _seen_of(Source.PARTS, sentence, owner, message)


def missing_part(sentence: str, owner: str, message: str = "") -> Mismatch:
    """Return the mismatch for a module that lacks a part.

    Because of this mismatch, reports name no other mistakes of the module's class. For the
    arguments, see `wrong_part`.
    """
    return _seen_of(Source.MISSING, sentence, owner, message)


def _seen_of(source: Source, sentence: str, owner: str, message: str) -> Mismatch:
    evidence = Evidence(sentence, Certainty.SEEN, source, (owner,))
    return Mismatch(message or sentence, Shown((evidence,)))


def parameters_of(module: nn.Module, names: Iterable[str]) -> dict[str, nn.Parameter]:
    """Return the parameters of a module that have the given names, such as `query.weight`.

    Raises:
        Mismatch: a parameter is missing, so the module's results can't be judged. The message is
            neutral, because another test reports missing layers.
    """
    owner, known = type(module).__name__, parameters(module)
    for name in names:
        if name not in known:
            here = ", ".join(known) or "none"
            text = f"{owner} has no parameter `{name}`. The parameters found are: {here}."
            raise missing_part(text, owner, not_yet(text))
    return {name: known[name] for name in names}


def set_weights(module: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Copy each tensor in `weights` into the module's parameter of the same name.

    Parameters are found by names such as `query.weight`, so students may create the layers in any
    order.

    Raises:
        Mismatch: a parameter is missing or has a different shape, so the module's results can't be
            judged.
    """
    owner = type(module).__name__
    own_parameters = parameters_of(module, weights)
    for name, weight in weights.items():
        shape, wanted = tuple(own_parameters[name].shape), tuple(weight.shape)
        if shape != wanted:
            text = f"`{name}` of {owner} has shape {shape}; expected {wanted}."
            raise wrong_part(text, owner, not_yet(text))
        with torch.no_grad():
            own_parameters[name].copy_(weight)


def _fail(call: str, message: str) -> NoReturn:
    raise Mismatch(f"{call}\n{message}")


def kind(value: object) -> str:
    """Describe a value's type for a message, for example as `a tuple of 2`."""
    if value is None:
        return "None (is a `return` missing?)"
    if isinstance(value, tuple | list):
        return f"a {type(value).__name__} of {len(value)}"
    name = type(value).__name__
    if name in ("float16", "float32", "float64"):  # encoding omits the module of a type
        return f"a numpy.{name}"
    spoken_with_a_vowel = name.lower().startswith(("a", "e", "i", "o", "nd"))  # "an ndarray"
    return f"an {name}" if spoken_with_a_vowel else f"a {name}"


def _form(values: Tensor | Array) -> str:
    return f"shape {tuple(values.shape)}, {dtype_name(values)}"


def _form_message(actual: Tensor | Array, expected: Tensor | Array) -> str:
    wrong = []
    if actual.dtype != expected.dtype:
        wrong.append(f"dtype {dtype_name(actual)}, expected {dtype_name(expected)}")
    if actual.shape != expected.shape:
        wrong.append(f"shape {tuple(actual.shape)}, expected {tuple(expected.shape)}")
    kind = _NAMES[isinstance(expected, numpy.ndarray)]
    return f"It returned {kind} of {'; and of '.join(wrong)}.{_about_shapes(actual, expected)}"


def _about_shapes(actual: Tensor | Array, expected: Tensor | Array) -> str:
    """Return a line with the likely reason for a wrong shape.

    Return an empty string if no reason is likely.
    """
    got, want = tuple(actual.shape), tuple(expected.shape)
    if got != want and sorted(got) == sorted(want):
        return "\nThe sizes are right, but in a different order: look at each transpose."
    if got in [want[:dim] + want[dim + 1 :] for dim in range(len(want))]:
        return "\nA dimension is missing: was it summed, squeezed or removed by an index?"
    if want in [got[:dim] + got[dim + 1 :] for dim in range(len(got))]:
        return "\nIt has one dimension too many."
    return ""


def _all_within(actual: Any, expected: Any, atol: float) -> bool:
    """Return whether all entries are finite and differ by at most `atol`."""
    if not is_float(expected) or 0 in expected.shape:
        return False
    if isinstance(expected, Tensor):
        return bool((actual.double() - expected.detach().double()).abs().max().item() <= atol)
    with numpy.errstate(all="ignore"):  # no warning about inf - inf
        return bool(numpy.abs(entries(actual) - entries(expected)).max() <= atol)


def _wrong_entries(got: Array, want: Array, rtol: float, atol: float) -> Array:
    """Return a mask of the wrong entries. NaN and infinity must agree exactly."""
    if want.dtype.kind != "f":
        return numpy.asarray(got != want)
    with numpy.errstate(all="ignore"):
        return numpy.asarray(~numpy.isclose(got, want, rtol, atol, equal_nan=True))


def _values_message(actual: Array, expected: Array, wrong: Array) -> str:
    some = wrong.ndim > 1 and not wrong.any(-1).all()
    lines = [f"{_where(wrong)}, for example:" if some else f"{_where(wrong)}:"]
    for row in _first_rows(wrong):
        place = f"row {list(row)}: " if row else ""
        room = _LINE - len(f"  {place}expected ")
        got, want = _numbers(actual[row], expected[row], wrong[row], room)
        lines.append(f"  {place}got      {got}")
        lines.append(f"  {' ' * len(place)}expected {want}")
    return "\n".join(lines)


def _first_rows(wrong: Array) -> list[tuple[int, ...]]:
    """Return the indices of the first rows that contain a wrong entry.

    A row extends along the last dimension, so its index has one number for every dimension except
    the last.
    """
    if wrong.ndim < 2:
        return [()]
    return [tuple(index) for index in numpy.argwhere(wrong.any(-1))[:_ROWS_SHOWN].tolist()]


def _where(wrong: Array) -> str:
    if wrong.size == 1:
        return "It differs"
    if wrong.ndim < 2:
        return f"{int(wrong.sum())} of {wrong.size} entries differ"
    rows = wrong.any(-1)
    if rows.all():
        return "All rows differ"
    return f"{int(rows.sum())} of {rows.size} rows differ"


def _digits(actual: Array, expected: Array) -> int:
    """Return the number of digits, from 4 to 17, that are needed to show the difference."""
    got, want = actual.astype(numpy.float64), expected.astype(numpy.float64)
    with numpy.errstate(all="ignore"):
        difference, largest = (float(numpy.abs(each).max()) for each in (got - want, want))
    if not 0 < difference <= 1e-3 * largest or math.isinf(difference):
        return 4
    return min(17, max(4, 3 - math.floor(math.log10(difference / largest))))


def _numbers(actual: Array, expected: Array, wrong: Array, room: int) -> tuple[str, str]:
    """Format the same entries of two rows, including a wrong entry.

    Each formatted row has at most `room` characters if possible. Omitted entries are shown as
    `...`.
    """
    digits = _digits(actual, expected)
    rows = [[_number(v, digits) for v in row.ravel().tolist()] for row in (actual, expected)]
    first = int(wrong.argmax())
    for count in range(_ENTRIES_SHOWN, 0, -1):
        start = 0 if first < count else first
        got, want = (_part(row, start, count) for row in rows)
        if max(len(got), len(want)) <= room:
            break
    return got, want


def _part(numbers: Sequence[str], start: int, count: int) -> str:
    shown = ["..."] * (start > 0) + list(numbers[start : start + count])
    shown += ["..."] * (start + count < len(numbers))
    return f"[{', '.join(shown)}]"


def _number(value: Any, digits: int) -> str:
    if isinstance(value, float) and math.isfinite(value):
        plain = 1e-3 <= abs(value) < 1e4 or value == 0
        return f"{value:.{digits}f}" if plain else f"{value:.{digits - 1}e}"
    return str(value)
