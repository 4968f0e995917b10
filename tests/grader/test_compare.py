"""Comparison: what is right passes, what is wrong gets a message in the words of the subject."""

from __future__ import annotations

import math

import numpy
import pytest
import torch
from torch import nn

from grader.code.forbidden import Guard
from grader.errors import Mismatch
from grader.run.compare import check, check_layer, check_number, gradients, set_weights

ROWS = torch.tensor([[0.1, 0.2, 0.7], [0.5, 0.25, 0.25]], dtype=torch.float64)


def message(actual: object, expected: torch.Tensor, **options: object) -> str:
    with pytest.raises(Mismatch) as caught:
        check(actual, expected, "f(x)", **options)
    return str(caught.value)


def test_equal_tensors_pass() -> None:
    check(ROWS + 1e-15, ROWS, "f(x)")
    check(torch.tensor([math.nan, -math.inf]), torch.tensor([math.nan, -math.inf]), "f(x)")
    check(torch.tensor([True]), torch.tensor([True]), "f(x)")


def test_message_begins_with_the_call() -> None:
    assert message(None, ROWS).startswith("f(x)\n")


@pytest.mark.parametrize(
    ("actual", "words"),
    [
        (None, "None (is a `return` missing?)"),
        ([0.1, 0.2], "a list of 2"),
        (ROWS.numpy(), "an ndarray"),
        (2, "an int"),
        (0.5, "a float"),
    ],
)
def test_what_is_no_tensor_is_named(actual: object, words: str) -> None:
    assert words in message(actual, ROWS)


def test_dtype_and_shape_are_told_together() -> None:
    text = message(ROWS.float()[:1], ROWS)
    assert "dtype float32, expected float64" in text
    assert "shape (1, 3), expected (2, 3)" in text


@pytest.mark.parametrize("wrong", [torch.zeros(0, 3), torch.zeros(1, 3), torch.zeros(())])
def test_nothing_is_broadcast(wrong: torch.Tensor) -> None:
    assert "shape" in message(wrong.double(), torch.zeros(2, 3, dtype=torch.float64))


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_nan_and_infinity_are_wrong_where_not_expected(bad: float) -> None:
    wrong = ROWS.clone()
    wrong[0, 1] = bad
    assert "1 of 2 rows differ" in message(wrong, ROWS)
    assert ("NaN" if math.isnan(bad) else "inf") in message(wrong, ROWS)
    assert "sum" not in message(wrong.softmax(-1), ROWS.softmax(-1))


def test_inf_may_be_of_a_logarithm() -> None:
    found = message(torch.tensor([0.0, 1.0]).log(), torch.tensor([-30.0, 0.0]))
    assert "look for exp of a large number, log(0), or x / 0." in found


def test_inf_in_a_wrong_place_has_not_to_be_of_a_division() -> None:
    found = message(torch.tensor([4.0, -math.inf]), torch.tensor([-math.inf, 4.0]))
    assert "Some entries are infinite that should not be." in found
    assert "exp of a large number" not in found


def test_a_finite_number_is_wrong_where_infinity_is_expected() -> None:
    assert message(torch.tensor([1e308], dtype=torch.float64), torch.tensor([math.inf]).double())


def test_float64_is_held_to_the_digits_of_float32_unless_all_are_asked_for() -> None:
    check(ROWS.float().double(), ROWS, "f(x)")
    message(ROWS + 1e-3, ROWS)
    message(ROWS + 1e-8, ROWS, all_digits=True)


def test_float32_precision_in_float64_is_named() -> None:
    assert "cut to float32" in message(ROWS.float().double(), ROWS, all_digits=True)
    assert "digits were lost" in message(ROWS + 1e-8, ROWS, all_digits=True)


@pytest.mark.parametrize(
    ("factor", "words"),
    [
        (4.0, "√d_k = 4 times"),
        (16.0, "d_k = 16 times"),
        (0.25, "1/√d_k = 0.25 times"),
        (1.7, "1.7 times"),
    ],
)
def test_a_constant_factor_is_named(factor: float, words: str) -> None:
    assert words in message(ROWS * factor, ROWS, sizes={"d_k": 16})


def test_a_factor_of_the_scores_behind_weights_is_named() -> None:
    scores = torch.randn(3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    text = message((scores * 4).softmax(-1), scores.softmax(-1), sizes={"d_k": 16})
    assert "scores behind these weights are √d_k = 4 times" in text


def test_a_power_of_2_is_told_from_a_power_of_e() -> None:
    powers = 2.0 ** ROWS.log()
    assert "ln 2 = 0.6931 times what they should be, as with powers of 2" in message(
        powers / powers.sum(-1, keepdim=True), ROWS
    )


def test_numbers_that_are_known_to_a_few_digits_are_looked_at_as_well() -> None:
    known, exact = torch.tensor([0.6652, 0.2447, 0.0900]), torch.tensor([2.0, 1.0, 0.0])
    assert "√d = 2 times what" in message(
        exact.mul(2).softmax(-1), known, atol=1e-4, sizes={"d": 4}
    )
    assert "The weights should sum to 1; they sum to 1.359" in message(
        exact.exp() / exact.exp().cumsum(0), known, atol=1e-4
    )


def test_a_factor_is_told_by_two_sizes_if_only_one_pair_fits() -> None:
    assert "√(d/h) = 1.581 times" in message(2.5**0.5 * ROWS, ROWS, sizes={"d": 5, "h": 2})
    assert "are 1.581 times" in message(
        2.5**0.5 * ROWS, ROWS, sizes={"d": 5, "h": 2, "k": 10, "m": 4}
    ).replace("is", "are")


def test_weights_along_the_wrong_dimension_are_named() -> None:
    square = torch.tensor([[1.0, 0.5, 2.0], [0.0, 3.0, 1.0], [2.0, 2.0, 0.7]], dtype=torch.float64)
    assert "Each column sums to 1, where each row should." in message(
        square.softmax(0), square.softmax(1)
    )


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (torch.ones(2, 4, 3), "The sizes are right, in another order: look at what is transposed."),
        (torch.ones(3, 4), "It has a dimension less"),
        (torch.ones(1, 2, 3, 4), "It has a dimension more"),
        (torch.ones(2, 3, 5), ""),
    ],
)
def test_a_wrong_shape_is_explained(wrong: torch.Tensor, words: str) -> None:
    found = message(wrong, torch.ones(2, 3, 4))
    assert words in found
    assert ("\n" in found.partition("expected")[2]) == bool(words)


def test_swapped_dimensions_are_named() -> None:
    square = torch.arange(9.0).reshape(3, 3)
    assert "last two dimensions swapped" in message(square.T, square)


def test_numbers_out_of_place_are_named() -> None:
    assert "not in their places" in message(ROWS.flatten()[[4, 0, 3, 2, 5, 1]].reshape(2, 3), ROWS)


def test_rows_that_do_not_sum_to_one_are_named() -> None:
    wrong = ROWS.clone()
    wrong[0] *= 2
    assert "sums to 2" in message(wrong, ROWS)


def test_a_single_wrong_position_is_named() -> None:
    wrong = ROWS.clone()
    wrong[1] = wrong[1, [1, 0, 2]]
    assert "Only the last row is wrong" in message(wrong, ROWS)


def test_of_several_matrices_the_same_rows_are_named() -> None:
    right = torch.arange(12.0).reshape(2, 2, 3)
    wrong = right.clone()
    wrong[:, 1] += torch.tensor([[1.0, 0, 4], [1, 2, 3]])
    assert "Only the last rows are wrong." in message(wrong, right)
    wrong = torch.arange(24.0).reshape(2, 4, 3)
    wrong[0, :3, 1] -= torch.tensor([7.0, 3, 9])  # of the second matrix all rows are right
    assert "right." not in message(wrong, torch.arange(24.0).reshape(2, 4, 3))


def test_a_small_share_of_large_numbers_is_shown() -> None:
    large = torch.tensor([1e9, 2e9], dtype=torch.float64)
    assert "1.000300e+09" in message(large + 3e5, large)


def test_a_shape_without_numbers_is_named() -> None:
    assert "no numbers" in message(ROWS.to("meta"), ROWS)


def test_a_small_difference_is_shown_with_the_digits_that_differ() -> None:
    assert "0.100001" in message(ROWS + 1e-6, ROWS, all_digits=True)


def test_a_small_error_in_some_numbers_only_is_no_rounding() -> None:
    right = 1000 + torch.arange(12, dtype=torch.float64) / 7
    one_in_three = torch.arange(12) % 3 == 0
    found = message(right + 3e-4 * one_in_three, right, all_digits=True)
    assert "nearly right" not in found
    assert "nearly right" in message(right + 3e-4, right, all_digits=True)


def test_numbers_that_are_nearly_right_have_no_factor_and_no_other_order() -> None:
    nearly = torch.tensor([-1.341628787, -0.447209596, 0.447209596, 1.341628787]).double()
    right = torch.tensor([-1.341635420, -0.447211807, 0.447211807, 1.341635420]).double()
    found = message(nearly, right, all_digits=True)
    assert "times" not in found
    assert "places" not in found
    assert "3.002 times" in message(right * 3.002, right)


def test_rows_of_numbers_fit_into_a_small_window() -> None:
    right = torch.arange(48.0).reshape(2, 3, 8) * -1.2345
    wrong = right + 0.25
    for line in message(wrong, right).splitlines():
        assert len(line) <= 74
    assert "row [0, 0]: got      [0.2500, -0.9845, -2.2190, -3.4535, -4.6880, ...]" in message(
        wrong, right
    )


def test_of_a_long_row_a_wrong_entry_is_shown() -> None:
    right = torch.arange(1.0, 21.0)
    wrong = right.clone()
    wrong[11] = 0
    found = message(wrong, right)
    assert "got      [..., 0.0000, 13.0000, 14.0000, 15.0000, 16.0000, ...]" in found
    assert "expected [..., 12.0000, 13.0000, 14.0000," in found
    wrong = right.clone()
    wrong[19] = 0
    assert "got      [..., 0.0000]" in message(wrong, right)


@pytest.mark.parametrize("wrong", [torch.tensor(1.0), 1, None, "1.0"])
def test_a_number_must_be_a_float(wrong: object) -> None:
    with pytest.raises(Mismatch, match="a Python float was expected"):
        check_number(wrong, 0.0, 2.0, "f()", "about 1")


def test_a_number_of_numpy_is_told_as_that() -> None:
    with pytest.raises(Mismatch, match="a numpy.float32, but a Python float"):
        check_number(numpy.float32(1), 0.0, 2.0, "f()", "about 1")


@pytest.mark.parametrize("wrong", [2.5, -1.0, math.nan])
def test_a_number_outside_its_bounds_is_wrong(wrong: float) -> None:
    with pytest.raises(Mismatch, match="about 1"):
        check_number(wrong, 0.0, 2.0, "f()", "about 1")


def test_a_number_that_is_wrong_has_no_sign_where_it_is_0() -> None:
    with pytest.raises(Mismatch, match="returned 0, "):
        check_number(-0.0, 0.5, 2.0, "f()", "about 1")


def test_a_lost_gradient_is_named() -> None:
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


ARRAY = ROWS.numpy()


@pytest.mark.parametrize(
    ("actual", "words"),
    [
        (ROWS, "a Tensor, but an array of shape (2, 3), float64"),
        (ARRAY.T, "an array of shape (3, 2), expected (2, 3).\nThe sizes are right, in another"),
        (ARRAY.astype(numpy.float32), "an array of dtype float32, expected float64"),
        (ARRAY + [[0], [1]], "1 of 2 rows differ, for example:\n  row [1]: got      [1.5000"),
        (ARRAY * numpy.nan, "All rows differ"),
        (2 * ARRAY, "Every entry is 2 times what it should be."),
    ],
)
def test_arrays_are_compared_with_arrays(actual: object, words: str) -> None:
    assert words in message(actual, ARRAY)


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


def test_an_array_of_a_class_of_its_own_is_compared_by_its_entries() -> None:
    assert "All rows differ" in message(numpy.zeros((2, 3)).view(AgreesWithAll), ARRAY)


def test_a_hint_calls_nothing_that_a_problem_forbids() -> None:
    scores = torch.randn(3, 5, generator=torch.Generator().manual_seed(0))
    powers = 2.0**scores
    right = torch.softmax(scores, dim=-1)
    with Guard(("softmax",)), pytest.raises(Mismatch, match="powers of 2 in place"):
        check(powers / powers.sum(-1, keepdim=True), right, "softmax(x)")
