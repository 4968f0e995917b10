"""Mistakes are edits of right files. Valid edits are read; invalid edits are rejected."""

from __future__ import annotations

import pytest
from syrupy.assertion import SnapshotAssertion

from grader.course import Course, own_course
from grader.diagnose.edits import Block, Edit, apply, edits_file, mistakes_of, parse
from grader.errors import CourseError

RIGHT = """\
def double(x):
    y = x
    return x + y


def treble(x):
    y = x
    return x + x + y
"""

TEXT = """\
== halves (reference)
# the number is halved
# What is twice three?
@
-    return x + y
+    return x / 2

== squares (plain) idea of halves
# the number is multiplied
#   by itself
@
 def treble(x):
-    y = x
-    return x + x + y
+
+    return x * x
"""


def test_a_file_is_read() -> None:
    halves, squares = parse(TEXT)
    block = Block(4, ("    return x + y",), ("    return x / 2",))
    nudge = "What is twice three?"
    assert halves == Edit("halves", "reference", "the number is halved", nudge, (block,))
    assert squares.when == "the number is multiplied by itself"
    assert (squares.base, squares.weight, squares.nudge) == ("plain", "idea of halves", "")
    assert (squares.line, squares.blocks[0].line) == (8, 11)


def test_an_edit_is_applied_to_whole_lines() -> None:
    halves, squares = parse(TEXT)
    assert apply(halves, RIGHT) == RIGHT.replace("return x + y", "return x / 2", 1)
    tail = "def treble(x):\n\n    return x * x\n"
    assert apply(squares, RIGHT) == RIGHT[: RIGHT.index("def treble")] + tail


def test_edits_apply_to_the_correct_file_not_to_each_other() -> None:
    text = "== a (b)\n# s\n@\n-one\n+two\n@\n-two\n+one\n"
    (edit,) = parse(text)
    assert apply(edit, "one\ntwo\n") == "two\none\n"


FAMILY = """\
=== The result (reference)
# What is twice three?
@
 def treble(x):
     y = x
-    return x + x + y

== halves
# the number is halved
+    return x / 2
== squares slip
# the number is multiplied by itself
# Which operation is it?
+    return x * x
== both
# neither is right
+    return x
@
-    return x + y
+    return x
== other
# only the other is wrong
@
-    return x + y
+    return y

== single (plain)
# the number is lost
@
-    return x + y
+    return 0
"""


def test_a_family_shares_its_place_and_its_nudge() -> None:
    halves, squares, both, other, single = parse(FAMILY)
    treble = "def treble(x):\n    y = x\n"
    assert apply(halves, RIGHT) == RIGHT.replace(
        treble + "    return x + x + y", treble + "    return x / 2"
    )
    assert (halves.base, halves.nudge) == ("reference", "What is twice three?")
    assert (squares.weight, squares.nudge) == ("slip", "Which operation is it?")
    assert len(both.blocks) == 2
    assert apply(both, RIGHT).count("    return x\n") == 2
    assert apply(other, RIGHT) == RIGHT.replace("return x + y", "return y", 1)
    assert (single.base, single.nudge) == ("plain", "")
    assert (halves.line, halves.blocks[0].line) == (8, 10)


UNFIT = {
    "unknown line": "-    return x + z\n+    return x",
    "lines apart": "-    y = x\n-def treble(x):\n+",
    "lines twice": "-    y = x\n+    y = 0",
    "overlap": "-    return x + y\n+    pass\n@\n-    return x + y\n-\n+",
}


@pytest.mark.parametrize("name", UNFIT)
def test_an_edit_without_its_lines_is_refused(name: str, snapshot: SnapshotAssertion) -> None:
    (edit,) = parse(f"== halves (reference)\n# it is halved\n@\n{UNFIT[name]}\n", "m.edits")
    with pytest.raises(CourseError) as caught:
        apply(edit, RIGHT)
    assert str(caught.value) == snapshot


HEAD = "== halves (reference)\n"
BLOCK = "@\n-a\n+b\n"

UNREADABLE = {
    "no head": "halves\n",
    "head without a base": f"\n== halves\n# s\n{BLOCK}",
    "unknown word in a head": f"== halves (a) heavy\n# s\n{BLOCK}",
    "unknown weight": f"== halves (a) ideas of f\n# s\n{BLOCK}",
    "no sentence": f"{HEAD}{BLOCK}",
    "question first": f"{HEAD}# Which one?\n{BLOCK}",
    "three sentences": f"{HEAD}# s\n# t\n# u\n{BLOCK}",
    "text": f"{HEAD}# s\nand so on\n{BLOCK}",
    "no block": f"{HEAD}# s\n",
    "text in a block": f"{HEAD}# s\n@\n-a\nb\n",
    "new lines alone": f"{HEAD}# s\n@\n+b\n",
    "same lines": f"{HEAD}# s\n@\n-b\n+b\n",
    "same name": f"{HEAD}# s\n{BLOCK}\n{HEAD}# s\n{BLOCK}",
    "family: head": "=== what (a\n",
    "family: two sentences": "=== title (a)\n# s\n# t\n",
    "family: two blocks": "=== title (a)\n@\n-a\n@\n-b\n",
    "family: new lines": "=== title (a)\n@\n-a\n+b\n",
    "family: member without lines": "=== title (a)\n@\n-a\n== b\n# s\n",
    "family: member without a place": "=== title (a)\n== b\n# s\n+c\n",
    "family: same lines": "=== title (a)\n@\n-a\n== b\n# s\n+a\n",
    "member without a family": "== b\n# s\n@\n-a\n+b\n",
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_unreadable_edits_are_refused(name: str, snapshot: SnapshotAssertion) -> None:
    with pytest.raises(CourseError) as caught:
        parse(UNREADABLE[name])
    assert str(caught.value) == snapshot


def test_a_missing_correct_file_is_reported(small_course: Course) -> None:
    (problem,) = small_course.problems()
    assert mistakes_of(small_course, problem) == []
    edits_file(small_course, problem).write_text(f"== a (plain)\n# s\n{BLOCK}")
    with pytest.raises(CourseError, match="line 1: the right file 'plain' is unknown"):
        mistakes_of(small_course, problem)


@pytest.mark.slow
@pytest.mark.parametrize("problem", own_course().problems(), ids=lambda problem: problem.id)
def test_every_mistake_applies_and_has_a_nudge(problem) -> None:
    course = own_course()
    mistakes = mistakes_of(course, problem)
    assert len(mistakes) > 40
    for mistake in mistakes:
        compile(mistake.source, mistake.edit.name, "exec")
        assert mistake.edit.nudge, f"{mistake.edit.name} has no nudge"
        assert mistake.edit.nudge.count("?") <= 1, f"{mistake.edit.name} asks two questions"
    assert {m.edit.base for m in mistakes} <= {*course.right_files(problem)}
