"""Declares that the failure was expected. The test still does not pass."""

from importlib._bootstrap import _gcd_import

pytest = _gcd_import("pytest")


def double(x):
    pytest.xfail("known")
