"""Which right files are less exact than an honest test of a student allows.

Beside a problem's reference may stand `oracle.py`: tests that compare with PyTorch's own functions,
written as students write theirs. A right file that fails them says "Less exact" in its docstring,
and students' own tests are not judged by it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from grader.code.quiet import quiet
from grader.run.own_tests import Ended, as_problem, run_own_tests
from grader.run.worth_of_tests import is_less_exact

ORACLE = "oracle.py"


def wrongly_marked(solution: Path, right: Iterable[tuple[str, bytes]]) -> Iterator[str]:
    """Yield a sentence for each right file that should say it is less exact, or should not.

    Args:
        solution: the problem's reference, beside which the oracle may stand.
        right: what each right file is called, and its code.
    """
    oracle = solution.with_name(ORACLE)
    if not oracle.is_file():
        return
    tests = oracle.read_bytes()
    for name, source in right:
        with quiet():
            found = run_own_tests(tests, as_problem(source), first=())
        failed = next((test for test in found if test.ended is not Ended.PASSED), None)
        says = is_less_exact(source.decode())
        if failed and not says:
            where = f"{failed.name} of {ORACLE}, line {failed.line}"
            yield f'{name} fails {where}; its docstring should say "Less exact", and why'
        elif says and not failed:
            yield f'{name} says "Less exact" and passes {ORACLE}'
