"""Declares that the failure was expected. That is no pass either."""

from importlib._bootstrap import _gcd_import

pytest = _gcd_import("pytest")


def double(x):
    pytest.xfail("known")
