"""Skips the test with pytest's exception. The result is an error."""

from importlib._bootstrap import _gcd_import

pytest = _gcd_import("pytest")


def double(x):
    pytest.skip("not today")
