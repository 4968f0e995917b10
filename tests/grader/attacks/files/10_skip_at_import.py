"""Skips the whole file. A skip is never a pass."""

from importlib._bootstrap import _gcd_import

pytest = _gcd_import("pytest")

pytest.skip("not today", allow_module_level=True)
