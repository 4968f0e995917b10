"""Declares with pytest's exception that the failure was expected. The result is an error."""

from importlib._bootstrap import _gcd_import

pytest = _gcd_import("pytest")


def double(x):
    pytest.xfail("known")
