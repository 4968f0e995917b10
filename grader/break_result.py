"""What became of tests that a student wrote, and what to tell of it."""

from __future__ import annotations

from dataclasses import dataclass, field

BREAK_POINTS = 10.0
"""What the tests are worth that a student wrote for one problem."""

_BAR = 24
_MOST_NAMED = 8
_MOST_POINTS = 1e6


@dataclass
class BreakResult:
    """What became of the tests that a student wrote for a problem.

    Attributes:
        id: the problem's id.
        sha256: the hash of the file of tests.
        reason: why they could not be judged; empty when they were.
        tests: how many mistakes each of them catches, by the test's name.
        right: how many right solutions they ran on.
        accepted: how many of those they accept.
        refusals: sentences about those that they don't.
        mistakes: how many mistakes they ran on; what is one idea counts once.
        caught: how many of those they catch; of a mistake in several forms the share of these.
        missed: what is wrong in one of those that they don't.
        max: what they are worth; 0 where they give no points.
    """

    id: str
    sha256: str
    reason: str = ""
    tests: dict[str, int] = field(default_factory=dict)
    right: int = 0
    accepted: int = 0
    refusals: list[str] = field(default_factory=list)
    mistakes: int = 0
    caught: float = 0.0
    missed: str = ""
    max: float = 0.0

    @property
    def accepts_all(self) -> bool:
        """Whether they accept all that is right."""
        return self.accepted == self.right > 0

    @property
    def points(self) -> float:
        """What they earned: the share of mistakes caught, once they refuse nothing right."""
        share = self.caught / self.mistakes if self.accepts_all and self.mistakes else 0.0
        return round(self.max * share, 6)

    def is_sound(self) -> bool:
        """Tell whether the numbers are those that a grader can have written."""
        return (
            0 <= self.accepted <= self.right
            and 0 <= self.caught <= self.mistakes
            and 0 <= self.max <= _MOST_POINTS
        )

    def lines(self) -> list[str]:
        """Return what the student reads, line by line."""
        if self.reason:
            return [f"Your tests could not be judged. {self.reason}"]
        worth = [f"Your own tests: {self.points:.3g} of {self.max:g} points."] if self.max else []
        found = [*worth, self._about_right(), *self.refusals, self._about_mistakes()]
        found += self._about_tests() if self.mistakes else []
        if self.missed:
            found.append(f"A wrong solution that they still accept: in it {self.missed}.")
        return found

    def _about_right(self) -> str:
        if self.accepts_all:
            return f"Your tests accept all {self.right} right solutions."
        return (
            f"Your tests accept {self.accepted} of {self.right} right solutions. Before they may "
            "catch mistakes, they must accept what is right."
        )

    def _about_mistakes(self) -> str:
        share = self.caught / self.mistakes if self.mistakes else 0.0
        full = int(share * _BAR)
        bar = "█" * full + "░" * (_BAR - full)
        catch = "catch" if self.accepts_all else "would catch"
        return f"{bar}  They {catch} {int(self.caught)} of {self.mistakes} mistakes."

    def _about_tests(self) -> list[str]:
        """Return how many mistakes the best tests catch, and which tests catch none."""
        ranked = sorted(self.tests.items(), key=lambda item: (-item[1], item[0]))
        useful = [f"{name} {caught}" for name, caught in ranked if caught]
        idle = [name for name, caught in ranked if not caught]
        found = []
        if useful and len(self.tests) > 1:
            found.append(f"Caught by each: {_some(useful)}.")
        if idle:
            found.append(f"No mistake is caught by {_some(idle)}.")
        return found


def _some(texts: list[str]) -> str:
    """Return a list in words, without its end if it is long."""
    more = len(texts) - _MOST_NAMED
    return ", ".join(texts[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
