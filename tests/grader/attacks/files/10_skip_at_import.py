"""Skips the whole file with pytest's exception. The result is an error."""

from importlib._bootstrap import _gcd_import

pytest = _gcd_import("pytest")

pytest.skip("not today", allow_module_level=True)
