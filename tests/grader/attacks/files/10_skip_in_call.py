"""Skips the test. A skip is never a pass."""

from importlib._bootstrap import _gcd_import

pytest = _gcd_import("pytest")


def double(x):
    pytest.skip("not today")
