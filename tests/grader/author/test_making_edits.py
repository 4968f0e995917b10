"""A wrong file becomes an edit of the right file that is most like it."""

from __future__ import annotations

from typer.testing import CliRunner

from grader.author.making_edits import meaning, smallest_edit, written
from grader.cli import app
from grader.diagnose.edits import Edit, apply, parse

RIGHT = {
    "reference": '''\
"""The reference."""

import math


def scores(q, k, scale=None):
    """Return scores."""
    # The root keeps the variance.
    q = q / math.sqrt(q.size(-1))
    return q @ k.mT  # (n, m)


def weights(q, k):
    q = q / math.sqrt(q.size(-1))
    return scores(q, k).softmax(-1)
''',
    "loops": "def scores(q, k):\n    return [[dot(a, b) for b in k] for a in q]\n",
}
BARE = Edit("wrong", "", "it is wrong", "Look.", ())


def made(wrong: str) -> str:
    """Return the edit as text, which must give the wrong file back."""
    edit = smallest_edit(BARE, wrong, RIGHT)
    assert edit is not None
    text = written(edit)
    (again,) = parse(text)
    assert meaning(apply(again, RIGHT[again.base])) == meaning(wrong)
    return text.partition("# Look.\n")[2]


def test_a_changed_line_is_replaced_with_its_comment() -> None:
    wrong = RIGHT["reference"].replace("@ k.mT", "@ q.mT").replace("The root", "Nothing")
    assert made(wrong) == "@\n-    return q @ k.mT  # (n, m)\n+    return q @ q.mT\n"


def test_what_is_the_same_for_python_is_not_in_it() -> None:
    wrong = RIGHT["reference"].replace('"""The reference."""\n', "import os\n")
    wrong = wrong.replace("(q, k, scale=None)", "(q: Tensor, k, scale=None) -> Tensor")
    wrong = wrong.replace("    # The root keeps the variance.\n", "")
    assert made(wrong.replace("softmax(-1)", "softmax(0)")) == (
        "@\n-    return scores(q, k).softmax(-1)\n+    return scores(q, k).softmax(0)\n"
    )


def test_lines_that_stand_twice_are_told_apart_by_those_around_them() -> None:
    root = "    q = q / math.sqrt(q.size(-1))\n"
    before, _, after = RIGHT["reference"].rpartition(root)
    assert made(before + after) == f"@\n def weights(q, k):\n-{root}"


def test_what_is_inserted_stands_beside_a_line_that_stays() -> None:
    wrong = RIGHT["reference"].replace('scores."""\n', 'scores."""\n    k = k.detach()\n')
    assert "+    k = k.detach()\n" in made(wrong)
    wrong = RIGHT["reference"].replace("def scores", "_kept = {}\n\n\ndef scores")
    wrong = wrong.replace("return q @ k.mT", "return _kept.setdefault(0, q @ k.mT)")
    assert "+_kept = {}\n def scores(q, k, scale=None):\n" in made(wrong)


def test_the_right_file_that_needs_least_is_taken() -> None:
    wrong = "def scores(q, k):\n    return [[dot(a, a) for b in k] for a in q]\n"
    edit = smallest_edit(BARE, wrong, RIGHT)
    assert edit is not None
    assert edit.base == "loops"
    assert smallest_edit(BARE, RIGHT["loops"], RIGHT) is None


def test_a_mistake_is_shown_as_a_file_or_a_diff() -> None:
    def output(*words: str) -> str:
        return CliRunner().invoke(app, ["mistake", "05", *words]).output

    assert "keys_are_queries " in output()
    whole, diff = output("keys_are_queries"), output("keys_are_queries", "--diff")
    compile(whole, "keys_are_queries", "exec")
    assert diff.startswith("--- functions\n+++ keys_are_queries\n")
    assert [line for line in diff.splitlines()[3:] if line[0] == "+"] == [
        line for line in diff.splitlines()[3:] if line[0] == "+" and line[1:] in whole
    ]
    assert "did you mean keys_are_queries" in " ".join(output("keys_are_querie").split())


def test_a_definition_may_come_first_in_any_branch() -> None:
    """Python writes a blank line before it."""
    wrong = """\
def scores(q, k):
    if q.ndim > 2:
        def dot(a, b):
            return a
    else:
        def dot(a, b):
            return b
    return [[dot(a, b) for b in k] for a in q]
"""
    assert "+        def dot(a, b):\n+            return b\n" in made(wrong)
