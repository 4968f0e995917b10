"""Declares that the failure was expected. That is no pass either."""

import pytest


def double(x):
    pytest.xfail("known")
