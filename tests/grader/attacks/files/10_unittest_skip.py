"""Skips the test with unittest's exception. A skip is never a pass."""

import unittest


def double(x):
    raise unittest.SkipTest("not today")
