"""Mistakes in styles that they were not written down in: what is named there, and how rightly."""

from __future__ import annotations

import pytest

from grader.author.audit import run_audit
from grader.author.generalisation import generalise
from grader.course import Course

MISTAKES = """\
== triples (reference)
# the number is tripled
@
-    return x + x
+    return 3 * x

== squares (reference)
# the number is multiplied by itself
@
-    return x + x
+    return x * x

== of_the_style (minus)
# the name is another one
@
-    y = x
+    y = 4 * x
"""

TYPED = """\
from __future__ import annotations
from dataclasses import dataclass


@dataclass
class Config:
    size: int = 1


def double(x):
    return x + x
"""


@pytest.mark.slow
def test_a_mistake_is_made_where_it_fits_and_asked_for_its_name(small_course: Course) -> None:
    solutions = small_course.root / "solutions/01-doubling"
    (solutions / "variants").mkdir(exist_ok=True)
    (solutions / "variants/minus.py").write_text(
        "def double(x):\n    y = x\n    x = -(-y)\n    return x + x\n"
    )
    (solutions / "variants/other.py").write_text("def double(x):\n    return 2 * x\n")
    (solutions / "variants/typed.py").write_text(TYPED)
    (solutions / "mistakes.edits").write_text(MISTAKES)
    run_audit(small_course, small_course.problems(), 1, write_fingerprints=True)
    found = generalise(small_course, small_course.problems(), 1)
    crossed = {(each.style, each.mistake): each.is_right for each in found.crossed}
    assert crossed == {
        (style, mistake): True for style in ("minus", "typed") for mistake in ("triples", "squares")
    }
    assert found.summary() == (
        "of 4 mistakes in a style that they were not written down in, "
        "4 are named (100 %), 4 of these by their own sentence (100 %)"
    )
