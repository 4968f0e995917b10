"""The command of each step succeeds once this step and the steps before it are written."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

import pytest
from _pytest.mark.expression import Expression

from grader.course import STUB_LINE, own_course
from grader.result import ProblemResult, Status
from tests.catalogue import reference

WRITTEN = {
    "01": [["dot_product_similarity"], ["softmax"], []],
    "02": [["SimpleAttention.__init__"], ["SimpleAttention.forward"], []],
    "03": [["scaled_dot_product_attention"], ["ScaledAttention"], ["dot_product_variance"]],
    "04": [["causal_mask"], ["masked_softmax"], ["CausalAttention"]],
    "05": [
        ["split_heads"],
        ["merge_heads"],
        ["MultiHeadAttention.__init__"],
        ["MultiHeadAttention.forward"],
        [],
    ],
    "06": [["gelu"], ["LayerNorm"], ["MLP"], ["Block"]],
    "07": [
        ["GPT.__init__"],
        [],
        ["GPT.forward"],
        [],
        ["GPT.generate"],
        ["get_batch"],
        ["bigram_loss"],
    ],
    "08": [["apply_temperature"], ["keep_top_k"], ["keep_top_p"], ["sample"]],
    "09": [
        ["kv_cache_bytes"],
        ["CachedAttention"],
        [],
        ["CachedGPT.forward"],
        ["CachedGPT.generate"],
    ],
    "10": [
        ["softmax_backward"],
        ["attention_backward"],
        ["cross_entropy_backward"],
        ["clip_gradients"],
        ["learning_rate"],
        ["AdamW"],
        ["train_step", "evaluate"],
    ],
}
"""The functions, methods and classes that each step of a problem adds.

An empty list means that the step completes the code of the previous step.
"""

STEPS = [
    pytest.param(number, step, id=f"{number}-step {step + 1}")
    for number, steps in WRITTEN.items()
    for step in range(len(steps))
]


def partly_written(stub: str, solution: str, written: set[str]) -> str:
    """Return the solution. The student's functions that are not in `written` raise an exception."""
    tree, of_stub = ast.parse(solution), functions(ast.parse(stub))
    to_write = {name for name, function in of_stub if STUB_LINE in ast.unparse(function)}
    for name, function in functions(tree):
        if name in to_write and not {name, name.partition(".")[0]} & written:
            function.body = ast.parse("raise NotImplementedError").body
    return ast.unparse(tree)


def functions(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    """Yield the functions of a module, and the methods of its classes as `Class.method`."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            methods = (each for each in node.body if isinstance(each, ast.FunctionDef))
            yield from ((f"{node.name}.{method.name}", method) for method in methods)


@pytest.mark.slow
@pytest.mark.parametrize(("number", "step"), STEPS)
def test_the_command_of_a_step_succeeds_once_the_step_is_written(
    at_home: Callable[..., ProblemResult], number: str, step: int
) -> None:
    (problem,) = own_course().select([number])
    readme = (problem.folder / "README.md").read_text(encoding="utf-8")
    commands = re.findall(r"^```bash\nuv run pytest -k (\S+|\".*\")$", readme, re.MULTILINE)
    assert len(commands) == len(WRITTEN[number])
    chosen = Expression.compile(commands[step].strip('"'))
    written = {part for parts in WRITTEN[number][: step + 1] for part in parts}
    stub = problem.original.read_text("utf-8")
    tests = at_home(number, partly_written(stub, reference(number), written), hidden=False).tests
    ran = [test for test in tests if chosen.evaluate(lambda word, name=test.name: word in name)]
    assert ran
    assert {test.status for test in ran} == {Status.PASSED}
