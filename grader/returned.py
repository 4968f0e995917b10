"""What calls have returned, wherever they were made."""

from __future__ import annotations

from typing import Any


class Results:
    """What calls have returned, to notice when one of them writes over an earlier result."""

    def __init__(self) -> None:
        self.found: list[Any] = []
        self.some_overwritten = False
        self._versions: dict[int, int] = {}

    def add(self, result: Any) -> None:
        """Add what a call returned.

        A tensor counts what was written into its memory. Two results in the same place are nothing
        bad, such as parts of one mask that is kept, as long as nothing was written between them.
        """
        self.found.append(result)
        try:
            place, written = result.data_ptr(), result._version
        except Exception:  # it is no tensor, or one without memory or such a count
            return
        if place and self._versions.setdefault(place, written) != written:
            self.some_overwritten = True
