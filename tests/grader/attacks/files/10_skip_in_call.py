"""Skips the test. A skip is never a pass."""

import pytest


def double(x):
    pytest.skip("not today")
