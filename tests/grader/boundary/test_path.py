"""How far a call across the boundary goes through the package."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from grader.boundary import starting

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="its two sides are forks")

MOST_FILES, MOST_CHANGES = 8, 30


def test_one_call_stays_in_few_files():
    """Who follows softmax(x) from a test to the student's code and back needs few files."""
    command = [sys.executable, str(starting.ROOT / "benchmarks/path.py")]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = re.search(r"^softmax\(x\) .* in +(\d+) files, +(\d+) changes of file", printed, re.M)
    assert found, printed
    files, changes = map(int, found.groups())
    assert files <= MOST_FILES
    assert changes <= MOST_CHANGES
