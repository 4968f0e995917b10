"""Explain an exception of torch by its text and the shapes of the tensors."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from torch import nn

Sizes = tuple[int, ...]

_SIZES = re.compile(
    r"size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\) at non-singleton "
    r"dimension (\d+)"
)
_PRODUCT = re.compile(
    r"mat1 and mat2 shapes cannot be multiplied|"
    r"[Ee]xpected size for first two dimensions of batch2 tensor|"
    r"inconsistent tensor size, expected tensor|"
    r"size mismatch, got input|batch1 and batch2|must have same (?:reduction|batch)"
)
_VIEW = re.compile(r"shape '\[([^\]]*)\]' is invalid for input of size (\d+)")
_NOT_IN_CLASS = re.compile(
    r'is missing the required "forward" function|_forward_unimplemented\(\)|'
    r"\w\.\w+\(\) takes \d+ positional argument"
)
_NO_ATTRIBUTE = re.compile(r"'(?!Tensor|NoneType)([A-Z]\w*)' object has no attribute '(\w+)'")

_TWO_DTYPES = (
    "This line combines two dtypes. A new tensor is float32 unless you choose another dtype. "
    "Which dtype does the input have?"
)
_IN_CLASS = (
    "Look for the method in the class: is its name spelled like this, is it indented like the "
    "other methods, and is self its first parameter?"
)
_NO_SUPER = "Call super().__init__() first in __init__."
_NO_BOOLS = "The mask must be a bool tensor here: use a comparison or .bool()."
_KNOWN = (
    (
        "view size is not compatible",
        "A transpose doesn't move the numbers in memory, and view reads the numbers in the order "
        "of the memory. Which order of the dimensions do you want at this line?",
    ),
    (
        "leaf Variable that requires grad is being used in an in-place operation",
        "This line changes a tensor in place, but the caller needs gradients for this tensor. Make "
        "a new tensor instead: x = x / 2, not x /= 2. If a step must change parameters in place, "
        "do it inside of `with torch.no_grad():`.",
    ),
    (
        "modified by an inplace operation",
        "A tensor that the gradient still needs was changed in place. Make a new tensor instead.",
    ),
    ("to have the same dtype", _TWO_DTYPES),
    ("expected scalar type", _TWO_DTYPES),
    (
        "Dimension out of range",
        "The tensor has fewer dimensions. Counted from the end, -1 is always the last dimension "
        "and -2 the second to last dimension.",
    ),
    (
        "permute(sparse_coo): number of dimensions",
        "permute needs every dimension. To swap only the last two dimensions, use "
        "transpose(-2, -1).",
    ),
    (
        "Boolean value of Tensor with more than one value is ambiguous",
        "if, and, or and not need one truth value, and this tensor has many. torch.where and "
        "masked_fill decide entry by entry.",
    ),
    (
        "only one element tensors can be converted to Python scalars",
        "A tensor of many numbers can't become one number. Which entry or which sum do you need?",
    ),
    (
        "Can't call numpy() on Tensor that requires grad",
        "NumPy has no gradients. torch has the same functions, and gradients pass through them.",
    ),
    (
        "torch.return_types.",
        "max, min, sort and topk along a dimension return two tensors: the values and their "
        "indices. Use .values; amax and amin return only the values.",
    ),
    ("not an nn.Module subclass", _NO_SUPER),
    ("before Module.__init__() call", _NO_SUPER),
    ("where expected condition to be a boolean tensor", _NO_BOOLS),
    ("masked_fill_ only supports boolean masks", _NO_BOOLS),
)


def error_hint(text: str, forms: Mapping[str, str]) -> str:
    """Return a sentence about the probable cause of an exception.

    Return an empty string if the cause is unknown.

    Args:
        text: the exception's text.
        forms: the shape and dtype of each tensor in the line of code that raised the exception.
    """
    for sign, sentence in _KNOWN:
        if sign in text:
            return sentence
    shapes = [shape for form in forms.values() if (shape := _shape(form)) is not None]
    if sizes := _SIZES.search(text):
        # tensors of integers contain token ids
        sums = [s for form in forms.values() if "int" not in form and (s := _shape(form))]
        a, b, dim = map(int, sizes.groups())
        return _of_sizes((a, b, dim), sums)
    if _PRODUCT.search(text):
        return _of_product(shapes)
    if view := _VIEW.search(text):
        return _of_view(view[1], int(view[2]))
    if _NOT_IN_CLASS.search(text):
        return _IN_CLASS
    missing = _NO_ATTRIBUTE.search(text)
    if missing and not hasattr(nn, missing[1]):  # a class of the student
        return (
            f"Does __init__ set self.{missing[2]}, spelled like this? Or, if it is a method: is it "
            "indented like the other methods?"
        )
    return ""


def _shape(form: str) -> Sizes | None:
    match = re.match(r"\(([\d, ]*)\)", form)
    return tuple(int(size) for size in re.findall(r"\d+", match[1])) if match else None


_LAST_SIZE_ALONE = (
    "The two shapes differ only in the last size. If one tensor holds a sum or a maximum for each "
    "row, was keepdim=True forgotten?"
)


def _of_sizes(reported: Sizes, shapes: list[Sizes]) -> str:
    """Return a hint about two shapes that cannot be broadcast.

    Return an empty string if the cause is unknown.

    Args:
        reported: the two sizes that differ, and the dimension of these sizes.
        shapes: the shapes of the tensors in the line of code that raised the exception.
    """
    mismatched = [
        (one, other)
        for one in shapes
        for other in shapes
        if _broadcast_mismatch(one, other) == reported
    ]
    lost = {
        dim
        for shape in shapes
        for dim, left in _without_one(shape)
        for pair in ((shape, left), (left, shape))
        if (pair in mismatched if mismatched else _broadcast_mismatch(*pair) == reported)
    }
    if not lost:
        alone = any(len(one) == len(other) and one[:-1] == other[:-1] for one, other in mismatched)
        return _LAST_SIZE_ALONE if alone else ""
    which = "its last dimension" if lost == {-1} else "a dimension"
    return (
        f"One tensor seems to have lost {which}. With keepdim=True, a sum or a maximum keeps its "
        "dimension, with size 1. `squeeze` and an integer index remove a dimension."
    )


def _without_one(shape: Sizes) -> Iterator[tuple[int, Sizes]]:
    """Yield each dimension, counted from the end, and the shape without this dimension."""
    for dim in range(-len(shape), 0):
        yield dim, shape[:dim] + shape[len(shape) + dim + 1 :]


def _broadcast_mismatch(one: Sizes, other: Sizes) -> Sizes | None:
    """Return (size, other size, dimension), as torch reports for two shapes that do not broadcast.

    Return None if the shapes broadcast.
    """
    pairs = enumerate(zip(reversed(one), reversed(other), strict=False), 1)
    dims = max(len(one), len(other))
    return next(((a, b, dims - i) for i, (a, b) in pairs if a != b and 1 not in (a, b)), None)


def _of_product(shapes: list[Sizes]) -> str:
    """Return a hint about a matrix product whose inner sizes differ.

    Return an empty string if the inner sizes are equal.
    """
    if len(shapes) < 2 or min(len(shapes[0]), len(shapes[1])) < 2:
        return ""
    left, right = shapes[:2]
    if left[-1] == right[-2]:
        return ""
    rule = (
        f"In a matrix product, the last size of the first tensor ({left[-1]}) must equal the "
        f"second to last size of the second tensor ({right[-2]})."
    )
    if left[-1] == right[-1]:
        return f"{rule} Both end in {left[-1]}: is a transpose of the last two dimensions missing?"
    return rule


def _of_view(shape: str, count: int) -> str:
    sizes = [int(size) for size in re.findall(r"-?\d+", shape)]
    product = 1
    for size in sizes:
        product *= size
    if min(sizes, default=0) < 0:
        return f"{count} numbers can't be divided into this shape."
    return f"The tensor has {count} numbers, but this shape needs {product}: one size is wrong."
