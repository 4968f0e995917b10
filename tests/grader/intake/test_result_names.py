"""Names of submissions in results: safe as file names, and unique."""

from __future__ import annotations

import os
import sys

import pytest

from tests.grader.intake.uploads import RIGHT, class_of

SHOWN = {
    "a\nb": "a b",
    "é\u202e": "é\ufffd",
    "\x1b[2J\x07": "\ufffd[2J\ufffd",
    os.fsdecode(b"\xff\xfe\x80"): "\ufffd\ufffd\ufffd",
}
ODD_NAMES = ["a b", "ü", "-x", "=1+1", "x" * 255, "a;rm -rf", "..hidden..", "nul", "ß" * 120]
ODD_NAMES += ["<script>alert(1)<", "[x](javascript:1)", "{{7*7}}${IFS}`id`", *SHOWN]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems don't allow such names")
@pytest.mark.parametrize("name", ODD_NAMES, ids=ascii)
def test_odd_names_are_data(hand_in, small_course, name):
    (submission,) = class_of(hand_in(name=name), small_course).values()
    assert submission.files["01-doubling"].source == RIGHT
    assert submission.name.isascii()
    assert submission.name.isprintable()
    assert not set(submission.name) & set("/\\<>|`$\"'*?:[](){}")
    assert not submission.name.startswith(".")
    assert submission.identity == name
    assert submission.full_name == SHOWN.get(name, name)
    assert all(note.isprintable() for note in submission.notes)
