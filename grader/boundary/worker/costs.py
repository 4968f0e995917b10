"""What the student's code costs, for the requests that ask for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from grader.boundary.protocol.wire import Response
from grader.boundary.worker.exceptions import describe_exception
from grader.boundary.worker.products import MOST, recorded
from grader.cost import counting

_NOTHING_COUNTS = nullcontext()
_STOPPED = "what it costs, because it stopped the counting"


def counted(function: Callable[[], Any], count: bool) -> tuple[Response, Any]:
    """Run the student's code, and say what it cost if that is wanted.

    Returns:
        How it ended, for the response, and its value.
    """
    if not count:
        return _attempt(function)
    with recorded() as products, counting() as cost:
        response, value = _attempt(function)
    numbers = max(cost.operations, *products), cost.elements, cost.largest
    response.cost = _at_most(*numbers)
    if MOST in products:
        response.unsendable = _STOPPED
    return response, value


def _attempt(function: Callable[[], Any]) -> tuple[Response, Any]:
    try:
        return Response(), function()
    except BaseException as exception:
        return Response(error=describe_exception(exception)), None


def _at_most(*numbers: int) -> tuple[int, int, int]:
    operations, elements, largest = (min(number, MOST) for number in numbers)
    return operations, elements, largest


def counted_on(response: Response) -> AbstractContextManager[None]:
    """Go on counting while a value is written down: it may be computed only now."""
    return _NOTHING_COUNTS if response.cost is None else _counted_on(response)


@contextmanager
def _counted_on(response: Response) -> Iterator[None]:
    assert response.cost is not None
    before, elements, largest = response.cost
    with recorded() as products, counting() as cost:
        yield
    now = before + max(cost.operations, *products), elements + cost.elements, largest
    response.cost = _at_most(*now)
