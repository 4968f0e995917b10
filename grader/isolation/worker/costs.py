"""What the student's code costs, for the requests that ask for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from grader.cost import counting
from grader.isolation.protocol import Header
from grader.isolation.worker.exceptions import attempt
from grader.isolation.worker.products import MOST, recorded

_NOTHING_COUNTS = nullcontext()
_STOPPED = {"unsendable": "what it costs, because it stopped the counting"}


def counted(function: Callable[[], Any], header: Header) -> tuple[Header, Any]:
    """Run the student's code, and tell what it cost if that was asked.

    Returns:
        How it ended, for the answer, and its value.
    """
    if not header["count"]:
        return attempt(function)
    with recorded() as products, counting() as cost:
        answer, value = attempt(function)
    numbers = max(cost.operations, *products), cost.elements, cost.largest
    answer["cost"] = [min(number, MOST) for number in numbers]
    return answer | (_STOPPED if MOST in products else {}), value


def counted_on(answer: Header) -> AbstractContextManager[None]:
    """Go on counting while a value is written down: it may be computed only now."""
    return _counted_on(answer) if "cost" in answer else _NOTHING_COUNTS


@contextmanager
def _counted_on(answer: Header) -> Iterator[None]:
    with recorded() as products, counting() as cost:
        yield
    before, elements, largest = answer["cost"]
    now = before + max(cost.operations, *products), elements + cost.elements, largest
    answer["cost"] = [min(number, MOST) for number in now]
