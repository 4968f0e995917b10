"""Tries to import the solution and the tests. Neither can be found."""

import importlib.util
import sys

for folder in ("@FOLDER@", ".", ".."):
    sys.path.insert(0, folder)

try:
    from solution import double
except ImportError:
    spec = importlib.util.spec_from_file_location("solution", "@FOLDER@/solution.py")
    solution = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(solution)
    double = solution.double
