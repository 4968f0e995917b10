"""The comments next to Python code in the READMEs state the results of the code."""

from __future__ import annotations

import ast
import math
import re

import pytest
import torch

from grader.course import own_course

BLOCKS = [
    pytest.param(block, id=f"{problem.id[:2]}-{number}")
    for problem in own_course().problems()
    for number, block in enumerate(
        re.findall(
            r"^```python\n(.*?)^```", (problem.folder / "README.md").read_text("utf-8"), re.M | re.S
        )
    )
]


@pytest.mark.parametrize("block", BLOCKS)
def test_each_expression_has_the_value_in_its_comment(block: str) -> None:
    if not block.startswith("import "):
        pytest.skip("not a complete program")
    here: dict[str, object] = {}
    for line in filter(None, block.splitlines()):
        code, _, comment = line.partition("  # ")
        if isinstance(ast.parse(code).body[0], ast.Expr) and comment:
            value = eval(code, here)
            shown = str(tuple(value)) if isinstance(value, torch.Size) else repr(value)
            assert comment.startswith(shown), line
        else:
            exec(code, here)


def test_the_loop_over_queries_computes_attention() -> None:
    (loop,) = (str(p.values[0]) for p in BLOCKS if "for i in range(T)" in str(p.values[0]))
    queries, keys, values = torch.randn(3, 5, 4).unbind()
    here = {"torch": torch, "T": 5, "queries": queries, "keys": keys, "values": values}
    output = here["output"] = torch.zeros(5, 4)
    exec(loop, here)
    right = torch.nn.functional.scaled_dot_product_attention(queries, keys, values, scale=1)
    torch.testing.assert_close(output, right)


def test_only_the_good_lines_of_the_common_rules_are_exact_and_keep_the_dtype() -> None:
    page = (own_course().root / "docs/robust.md").read_text(encoding="utf-8")
    block = page.partition("```python\n")[2].partition("```")[0]
    x, d = torch.rand(3, dtype=torch.float64), 3
    for line in block.splitlines():
        code, _, comment = line.partition("  # ")
        exact = x / math.sqrt(d) if "/" in code else x
        value = eval(code, {"math": math, "torch": torch, "x": x, "d": d})
        half = eval(code, {"math": math, "torch": torch, "x": x.half(), "d": d})
        keeps = (
            bool(torch.allclose(value, exact, rtol=1e-12, atol=0)) and half.dtype == torch.float16
        )
        assert keeps == comment.startswith("good"), line
