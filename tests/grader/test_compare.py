"""A correct value passes a check. Messages about wrong values use terms such as query and key."""

from __future__ import annotations

import math
from typing import Any

import numpy
import pytest
import torch
from syrupy.assertion import SnapshotAssertion
from torch import Tensor, nn

from grader.code.forbidden import Guard
from grader.diagnose.diff_hint import number_hint
from grader.errors import Mismatch
from grader.run.compare import check, check_layer, check_number, gradients, set_weights

ROWS = torch.tensor([[0.1, 0.2, 0.7], [0.5, 0.25, 0.25]], dtype=torch.float64)
ARRAY = ROWS.numpy()


def message(actual: object, expected: object, **options: Any) -> str:
    with pytest.raises(Mismatch) as caught:
        check(actual, expected, "f(x)", **options)
    return str(caught.value)


def changed(tensor: Tensor, place: object, value: object) -> Tensor:
    result = tensor.clone()
    result[place] = value
    return result


SCORES = torch.randn(3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
ADDED = SCORES.cos()
SQUARE = torch.tensor([[1.0, 0.5, 2.0], [0.0, 3.0, 1.0], [2.0, 2.0, 0.7]], dtype=torch.float64)
BOX = torch.ones(2, 3, 4)
MATRICES = torch.arange(12.0).reshape(2, 2, 3)
LARGE = torch.tensor([1e9, 2e9], dtype=torch.float64)
UNEVEN = 1000 + torch.arange(12, dtype=torch.float64) / 7
NORMAL = torch.tensor([-1.341635420, -0.447211807, 0.447211807, 1.341635420]).double()
NEARLY_NORMAL = torch.tensor([-1.341628787, -0.447209596, 0.447209596, 1.341628787]).double()
WIDE = torch.arange(48.0).reshape(2, 3, 8) * -1.2345
LONG = torch.arange(1.0, 21.0)
THREE = torch.tensor([2.0, 1.0, 0.0])
A_FEW_DIGITS = torch.tensor([0.6652, 0.2447, 0.0900])
POWERS_OF_2 = 2.0 ** ROWS.log()

WRONG: dict[str, tuple[object, object, dict[str, Any]]] = {
    "None": (None, ROWS, {}),
    "a list": ([0.1, 0.2], ROWS, {}),
    "an array for a tensor": (ARRAY, ROWS, {}),
    "an int": (2, ROWS, {}),
    "a float": (0.5, ROWS, {}),
    "dtype and shape": (ROWS.float()[:1], ROWS, {}),
    "NaN": (changed(ROWS, (0, 1), math.nan), ROWS, {}),
    "inf": (changed(ROWS, (0, 1), math.inf), ROWS, {}),
    "NaN in weights": (changed(ROWS, (0, 1), math.nan).softmax(-1), ROWS.softmax(-1), {}),
    "-inf of a logarithm": (torch.tensor([0.0, 1.0]).log(), torch.tensor([-30.0, 0.0]), {}),
    "-inf in a wrong place": (torch.tensor([4, -math.inf]), torch.tensor([-math.inf, 4]), {}),
    "a number for inf": (changed(LARGE, 0, 1e308), changed(LARGE, 0, math.inf), {}),
    "cut to float32": (ROWS.float().double(), ROWS, {"all_digits": True}),
    "digits were lost": (ROWS + 1e-8, ROWS, {"all_digits": True}),
    "a small difference": (ROWS + 1e-6, ROWS, {"all_digits": True}),
    "some are off": (UNEVEN + 3e-4 * (torch.arange(12) % 3 == 0), UNEVEN, {"all_digits": True}),
    "all are slightly off": (UNEVEN + 3e-4, UNEVEN, {"all_digits": True}),
    "nearly right": (NEARLY_NORMAL, NORMAL, {"all_digits": True}),
    "factor": (NORMAL * 3.002, NORMAL, {}),
    "factor near 1": (ROWS * 1.0002, ROWS, {}),
    "factor of a root": (ROWS * 4.0, ROWS, {"sizes": {"d_k": 16}}),
    "factor of a size": (ROWS * 16.0, ROWS, {"sizes": {"d_k": 16}}),
    "factor of one over a root": (ROWS * 0.25, ROWS, {"sizes": {"d_k": 16}}),
    "factor of no size": (ROWS * 1.7, ROWS, {"sizes": {"d_k": 16}}),
    "factor of two sizes": (2.5**0.5 * ROWS, ROWS, {"sizes": {"d": 5, "h": 2}}),
    "factor of either pair": (2.5**0.5 * ROWS, ROWS, {"sizes": {"d": 5, "h": 2, "k": 10, "m": 4}}),
    "factor of scores": ((SCORES * 4).softmax(-1), SCORES.softmax(-1), {"sizes": {"d_k": 16}}),
    "factor of a few digits": (
        THREE.mul(2).softmax(-1), A_FEW_DIGITS, {"atol": 1e-4, "sizes": {"d": 4}}
    ),
    "symmetric scores": ((SQUARE @ SQUARE.T).softmax(-1), SQUARE.softmax(-1), {}),
    "powers of 2": (POWERS_OF_2 / POWERS_OF_2.sum(-1, keepdim=True), ROWS, {}),
    "sum of a few digits": (THREE.exp() / THREE.exp().cumsum(0), A_FEW_DIGITS, {"atol": 1e-4}),
    "no weights": (torch.tensor([[3.0, 1.0]]), torch.tensor([[-1.0, 2.0]]), {}),
    "wrong dimension": (SQUARE.softmax(0), SQUARE.softmax(1), {}),
    "sizes in another order": (torch.ones(2, 4, 3), BOX, {}),
    "a dimension less": (torch.ones(3, 4), BOX, {}),
    "a dimension more": (torch.ones(1, 2, 3, 4), BOX, {}),
    "another size": (torch.ones(2, 3, 5), BOX, {}),
    "swapped dimensions": (SQUARE.T, SQUARE, {}),
    "out of place": (ROWS.flatten()[[4, 0, 3, 2, 5, 1]].reshape(2, 3), ROWS, {}),
    "a row does not sum to 1": (changed(ROWS, 0, 2 * ROWS[0]), ROWS, {}),
    "last row": (changed(ROWS, 1, ROWS[1, [1, 0, 2]]), ROWS, {}),
    "last rows": (MATRICES + torch.tensor([[0.0, 0, 0], [1, 0, 4]]), MATRICES, {}),
    "rows of one matrix": (changed(MATRICES, (0, slice(None), 1), -7.0), MATRICES, {}),
    "large numbers": (LARGE + 3e5, LARGE, {}),
    "no numbers": (ROWS.to("meta"), ROWS, {}),
    "wide rows": (WIDE + 0.25, WIDE, {}),
    "inside of a long row": (changed(LONG, 11, 0), LONG, {}),
    "at the end of a long row": (changed(LONG, 19, 0), LONG, {}),
    "elsewhere in its row": (
        torch.tensor([[0.0, 4, -math.inf], [2, 1, 5]]),
        torch.tensor([[4.0, -math.inf, 0], [5, 2, 1]]), {}
    ),
    "rows of zeros": (changed(ROWS, 1, 0.0), 2 * ROWS - ROWS, {}),
    "no row but zeros": (torch.zeros_like(ROWS), ROWS, {}),
    "exp of a number": (torch.tensor(3.2).double().exp(), torch.tensor(3.2).double(), {}),
    "log of each number": (ROWS.log(), ROWS, {}),
    "bits for nats": (torch.tensor(3.2).double() / math.log(2), torch.tensor(3.2).double(), {}),
    "the wrong sign": (torch.tensor(-3.2), torch.tensor(3.2), {}),
    "half of what is added": (SCORES + 0.5 * ADDED, SCORES + ADDED, {"start": SCORES}),
    "a tensor for an array": (ROWS, ARRAY, {}),
    "array: sizes in another order": (ARRAY.T, ARRAY, {}),
    "array: dtype": (ARRAY.astype(numpy.float32), ARRAY, {}),
    "array: last row": (ARRAY + [[0], [1]], ARRAY, {}),
    "array: NaN": (ARRAY * numpy.nan, ARRAY, {}),
    "array: factor": (2 * ARRAY, ARRAY, {}),
}  # fmt: skip
"""Maps each kind of error to (returned value, expected value, options of `check`)."""


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_answer_gets_a_message(name: str, snapshot: SnapshotAssertion) -> None:
    actual, expected, options = WRONG[name]
    text = message(actual, expected, **options)
    assert text.startswith("f(x)\n")
    assert text == snapshot


def test_equal_tensors_pass() -> None:
    check(ROWS + 1e-15, ROWS, "f(x)")
    check(torch.tensor([math.nan, -math.inf]), torch.tensor([math.nan, -math.inf]), "f(x)")
    check(torch.tensor([True]), torch.tensor([True]), "f(x)")


@pytest.mark.parametrize("wrong", [torch.zeros(0, 3), torch.zeros(1, 3), torch.zeros(())])
def test_shapes_are_not_broadcast(wrong: torch.Tensor) -> None:
    assert "shape" in message(wrong.double(), torch.zeros(2, 3, dtype=torch.float64))


def test_float64_values_need_the_precision_of_float32_by_default() -> None:
    check(ROWS.float().double(), ROWS, "f(x)")
    message(ROWS + 1e-3, ROWS)
    message(ROWS + 1e-8, ROWS, all_digits=True)


FLOAT = "a Python float was expected"


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        *((value, FLOAT) for value in (torch.tensor(1.0), 1, None, "1.0")),
        *((value, "about 1") for value in (2.5, -1.0, math.nan)),
    ],
)
def test_a_number_must_be_a_float_within_its_bounds(wrong: object, why: str) -> None:
    with pytest.raises(Mismatch, match=why):
        check_number(wrong, 0.0, 2.0, "f()", "about 1")


def test_a_number_that_is_a_function_of_the_expected_one_is_reported() -> None:
    with pytest.raises(Mismatch, match="It is exp of what it should be") as caught:
        check_number(math.exp(2.5), 2.4999, 2.5001, "f()", "2.5")
    assert caught.value.shown.factor == pytest.approx(math.exp(2.5) / 2.5)


def test_a_possible_multiple_is_not_reported_as_a_function() -> None:
    assert number_hint(0.5, 0.25) == number_hint(4.0, 2.0) == ""
    assert number_hint(1.5, 2.25) == "It is the root of what it should be."


def test_a_missing_gradient_is_reported() -> None:
    x = torch.ones(3, requires_grad=True)
    y = torch.ones(3, requires_grad=True)
    with pytest.raises(Mismatch, match="no gradient"):
        gradients((x * 2).detach(), {"x": x}, torch.ones(3), "f(x)")
    with pytest.raises(Mismatch, match="No gradient reaches y"):
        gradients(x * y.detach(), {"x": x, "y": y}, torch.ones(3), "f(x, y)")
    with pytest.raises(Mismatch, match="z can't learn"):
        gradients(x * 2, {"x": x, "z": torch.ones(3)}, torch.ones(3), "f(x, z)")
    assert gradients(x * y, {"x": x, "y": y}, torch.ones(3), "f(x, y)")["y"].sum() == 3


class Module(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.query = nn.Linear(2, 3)


def test_layers_are_looked_up_by_name() -> None:
    check_layer(Module(), "query", 2, 3)
    with pytest.raises(Mismatch, match="no layer called `key`. The layers found are: query"):
        check_layer(Module(), "key", 2, 3)
    with pytest.raises(Mismatch, match="bias=False"):
        check_layer(Module(), "query", 2, 3, bias=False)


def test_weights_are_set_by_name() -> None:
    module = Module()
    set_weights(module, {"query.weight": torch.full((3, 2), 7.0)})
    assert (module.query.weight == 7).all()
    module.alias = module.query
    set_weights(module, {"alias.weight": torch.zeros(3, 2)})
    assert (module.query.weight == 0).all()
    with pytest.raises(Mismatch, match="no parameter `value.weight`"):
        set_weights(module, {"value.weight": torch.ones(3, 2)})
    with pytest.raises(Mismatch, match="has shape"):
        set_weights(module, {"query.bias": torch.ones(2)})


def test_equal_arrays_pass() -> None:
    check(ARRAY + 1e-15, ARRAY, "f(x)")
    check(numpy.array([numpy.nan, -numpy.inf]), numpy.array([numpy.nan, -numpy.inf]), "f(x)")
    check(ARRAY > 0.3, ARRAY > 0.3, "f(x)", all_digits=True)
    check(ARRAY, ARRAY.astype(numpy.float32), "f(x)")  # a wider dtype is allowed
    check(numpy.zeros((0, 3)), numpy.zeros((0, 3)), "f(x)")


class AgreesWithAll(numpy.ndarray):
    def __sub__(self, other: object) -> object:
        return numpy.zeros(self.shape)

    def __eq__(self, other: object) -> object:
        return numpy.ones(self.shape, dtype=bool)

    def astype(self, *_: object, **__: object) -> object:
        return self


def test_an_array_of_a_subclass_is_compared_by_its_entries() -> None:
    assert "All rows differ" in message(numpy.zeros((2, 3)).view(AgreesWithAll), ARRAY)


def test_hints_call_no_forbidden_functions() -> None:
    scores = torch.randn(3, 5, generator=torch.Generator().manual_seed(0))
    powers = 2.0**scores
    right = torch.softmax(scores, dim=-1)
    with Guard(("softmax",)), pytest.raises(Mismatch, match="powers of 2 instead"):
        check(powers / powers.sum(-1, keepdim=True), right, "softmax(x)")
