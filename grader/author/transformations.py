"""Ways to put one fault into any right solution, however it is written: changes of its source.

They are what the naming of mistakes is measured on. Nobody tunes fingerprints to what comes out of
them: each right solution has its own style, and each place in it that fits is changed by itself.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass

Change = Callable[[ast.AST], ast.AST | None]
"""Returns what takes the place of a node, or None when the change doesn't fit it."""


@dataclass(frozen=True)
class Transformation:
    """One fault, as a change of source.

    Attributes:
        name: what it does, for the audit's table.
        change: what it does to a node.
        says: a regular expression; a name that is right matches it.
    """

    name: str
    change: Change
    says: str

    def mutants(self, source: str) -> Iterator[str]:
        """Yield the source with the change at each place that it fits, and at all of them."""
        tree = ast.parse(source)
        places = [
            number for number, node in enumerate(ast.walk(tree)) if self.change(node) is not None
        ]
        for chosen in [{place} for place in places] + ([set(places)] if len(places) > 1 else []):
            yield ast.unparse(ast.fix_missing_locations(self._changed(tree, chosen)))

    def _changed(self, tree: ast.Module, places: set[int]) -> ast.Module:
        tree = copy.deepcopy(tree)
        chosen = {id(node) for number, node in enumerate(ast.walk(tree)) if number in places}
        _Replacing(chosen, self.change).visit(tree)
        return tree


class _Replacing(ast.NodeTransformer):
    def __init__(self, chosen: set[int], change: Change) -> None:
        self._chosen, self._change = chosen, change

    def visit(self, node: ast.AST) -> ast.AST:
        is_chosen = id(node) in self._chosen
        visited: ast.AST = super().generic_visit(node)
        return (self._change(visited) or visited) if is_chosen else visited


def _text(node: ast.AST) -> str:
    return ast.unparse(node)


def _is_root(node: ast.AST) -> bool:
    text = _text(node)
    return "sqrt" in text or "** 0.5" in text or "** -0.5" in text or "** (1 / 2)" in text


def _is_scale(name: str) -> bool:
    return any(word in name for word in ("scale", "root", "factor", "temperature", "norm"))


def without_scale(node: ast.AST) -> ast.AST | None:
    """Drop a division by a root, or a product with one over it."""
    match node:
        case ast.BinOp(left=left, op=ast.Div() | ast.Mult(), right=right):
            named = isinstance(right, ast.Name | ast.Attribute) and _is_scale(_text(right))
            return left if (_is_root(right) or named) and not _is_root(left) else None
    return None


def _named(call: ast.Call) -> str:
    function = call.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def softmax_over_queries(node: ast.AST) -> ast.AST | None:
    """Let torch's softmax run along the last dimension but one."""
    if not isinstance(node, ast.Call) or _named(node) != "softmax":
        return None
    new = copy.deepcopy(node)
    for holder in [*new.args, *(keyword.value for keyword in new.keywords)]:
        if _text(holder) == "-1":
            holder.__dict__.update(ast.parse("-2", mode="eval").body.__dict__)
            return new
    return None


def without_maximum(node: ast.AST) -> ast.AST | None:
    """Don't subtract the maximum before exp."""
    match node:
        case ast.BinOp(left=left, op=ast.Sub(), right=right) if "max" in _text(right):
            return left
    return None


def without_keepdim(node: ast.AST) -> ast.AST | None:
    """Forget keepdim."""
    if not isinstance(node, ast.Call) or not any(k.arg == "keepdim" for k in node.keywords):
        return None
    new = copy.deepcopy(node)
    new.keywords = [k for k in new.keywords if k.arg != "keepdim"]
    return new


def _without(keyword: str) -> Change:
    def change(node: ast.AST) -> ast.AST | None:
        if not isinstance(node, ast.Call) or not any(k.arg == keyword for k in node.keywords):
            return None
        new = copy.deepcopy(node)
        new.keywords = [k for k in new.keywords if k.arg != keyword]
        return new

    return change


def _always(keyword: str, value: bool) -> Change:
    def change(node: ast.AST) -> ast.AST | None:
        if not isinstance(node, ast.Call):
            return None
        new = copy.deepcopy(node)
        for k in new.keywords:
            if k.arg == keyword and isinstance(k.value, ast.Name):
                k.value = ast.Constant(value)
                return new
        return None

    return change


def _renamed(old: str, new: str) -> Change:
    def change(node: ast.AST) -> ast.AST | None:
        if isinstance(node, ast.Attribute) and node.attr == old:
            return ast.Attribute(node.value, new, node.ctx)
        return None

    return change


def _skipping(layer: str) -> Change:
    """Leave out the call of a layer: `self.c_proj(x)` becomes `x`."""

    def change(node: ast.AST) -> ast.AST | None:
        match node:
            case ast.Call(func=ast.Attribute(attr=attr), args=[argument]) if attr == layer:
                return argument
        return None

    return change


def swapped_in_assignment(node: ast.AST) -> ast.AST | None:
    """Unpack three things in another order."""
    match node:
        case ast.Assign(targets=[ast.Tuple(elts=[first, second, third])]) if not _is_shape(node):
            new = copy.deepcopy(node)
            assert isinstance(new.targets[0], ast.Tuple)
            new.targets[0].elts = [second, first, third]
            return new
    return None


def _is_shape(node: ast.Assign) -> bool:
    return "shape" in _text(node.value) or "size" in _text(node.value)


def strict(node: ast.AST) -> ast.AST | None:
    """Compare places without equality: the diagonal is lost."""
    match node:
        case ast.Compare(left=left, ops=[ast.LtE()], comparators=right):
            return ast.Compare(left, [ast.Lt()], right)
        case ast.Compare(left=left, ops=[ast.GtE()], comparators=right):
            return ast.Compare(left, [ast.Gt()], right)
    return None


def detached(node: ast.AST) -> ast.AST | None:
    """Take what is returned out of the graph."""
    if isinstance(node, ast.Return) and node.value is not None:
        call = ast.Call(ast.Attribute(node.value, "detach", ast.Load()), [], [])
        return ast.Return(call)
    return None


def not_transposed(node: ast.AST) -> ast.AST | None:
    """Multiply with the keys as they are."""
    match node:
        case ast.Attribute(value=value, attr="mT" | "T" | "mH"):
            return value
        case ast.Call(func=ast.Attribute(value=value, attr="transpose"), args=[_, _]):
            return value
    return None


def last_dim(node: ast.AST) -> ast.AST | None:
    """Take the last dimension where the caller's should be."""
    if not isinstance(node, ast.Call) or _named(node) not in _REDUCTIONS:
        return None
    new = copy.deepcopy(node)
    for place, given in enumerate(new.args):
        if _text(given) == "dim":
            new.args[place] = ast.Constant(-1)
            return new
    for keyword in new.keywords:
        if keyword.arg == "dim" and _text(keyword.value) == "dim":
            keyword.value = ast.Constant(-1)
            return new
    return None


_REDUCTIONS = ("sum", "max", "amax", "logsumexp", "softmax")


def _calling(old: str, new: str) -> Change:
    """Call another function or method: `x.sum(dim)` becomes `x.mean(dim)`."""

    def change(node: ast.AST) -> ast.AST | None:
        match node:
            case ast.Call(func=ast.Attribute(value=value, attr=attr)) if attr == old:
                function = ast.Attribute(value, new, ast.Load())
                return ast.Call(function, node.args, node.keywords)
        return None

    return change


def other_way_round(node: ast.AST) -> ast.AST | None:
    """Subtract from the maximum in place of subtracting the maximum."""
    match node:
        case ast.BinOp(left=left, op=ast.Sub(), right=right) if "max" in _text(right):
            return ast.BinOp(right, ast.Sub(), left)
    return None


def _layer(old: str, new: str) -> Change:
    """Apply another layer: `self.value(x)` becomes `self.key(x)`."""

    def change(node: ast.AST) -> ast.AST | None:
        match node:
            case ast.Call(func=ast.Attribute(value=value, attr=attr), args=[_]) if attr == old:
                return ast.Call(ast.Attribute(value, new, ast.Load()), node.args, node.keywords)
        return None

    return change


TRANSFORMATIONS = (
    Transformation("not scaled", without_scale, r"not divided|not scaled|never (divided|scale)"
                   r"|does not divide|without.*scale|unscaled|ignores .scaled|root"
                   r"|temperature changes nothing"),
    Transformation("softmax over queries", softmax_over_queries,
                   r"over the queries|last dimension but one|over dimension|other dimension|dim"),
    Transformation("maximum not subtracted", without_maximum, r"overflow|maximum|largest"),
    Transformation("keepdim forgotten", without_keepdim, r"keepdim|dimension|kept|lost|max|sum"),
    Transformation("bias always there", _always("bias", True), r"bias"),
    Transformation("bias never there", _always("bias", False), r"bias"),
    Transformation("sample variance", _without("correction"), r"n_pairs - 1|sample|n - 1"),
    Transformation("generator not used", _without("generator"), r"generator"),
    Transformation("upper triangle", _renamed("tril", "triu"), r"triang|future|invert|later|past"),
    Transformation("lower triangle", _renamed("triu", "tril"), r"triang|future|invert|later|past"),
    Transformation("diagonal lost", strict, r"diagonal|itself|own position|first"
                   r"|of 0 is (accepted|refused)|one token (more|less)"),
    Transformation("no projection", _skipping("c_proj"), r"c_proj|projection"),
    Transformation("no dropout on weights", _skipping("attn_dropout"), r"dropout|drops|dropped"),
    Transformation("no dropout on output", _skipping("resid_dropout"), r"dropout|drops|dropped"),
    Transformation("unpacked in another order", swapped_in_assignment,
                   r"quer|keys|values|order|places"),
    Transformation("detached", detached, r"graph|gradient|learn|no_grad"),
    Transformation("not transposed", not_transposed,
                   r"transpos|heads|reshape|dimension|swapped|each key is scored"),
    Transformation("last dimension in place of dim", last_dim, r"dimension|dim|everything"),
    Transformation("mean in place of sum", _calling("sum", "mean"), r"mean|average|sum|divided"),
    Transformation("powers of 2", _calling("exp", "exp2"), r"powers of 2|base|exp"),
    Transformation("difference the other way", other_way_round, r"sign|smallest|minus"),
    Transformation("keys averaged", _layer("value", "key"), r"keys|key"),
    Transformation("queries for keys", _layer("key", "query"), r"quer"),
    Transformation("keys for queries", _layer("query", "key"), r"key"),
    Transformation("query layer left out", _skipping("query"), r"quer|layer|x itself"),
    Transformation("key layer left out", _skipping("key"), r"key|layer|x itself"),
    Transformation("value layer left out", _skipping("value"), r"value|layer|x itself"),
)  # fmt: skip
"""What is put into every right solution, wherever it fits."""


# Changes that keep a right solution right


def as_function(node: ast.AST) -> ast.AST | None:
    """Write a matrix product as a call: `a @ b` becomes `torch.matmul(a, b)`."""
    match node:
        case ast.BinOp(left=left, op=ast.MatMult(), right=right):
            return ast.Call(_torch("matmul"), [left, right], [])
    return None


def by_numbers(node: ast.AST) -> ast.AST | None:
    """Write a transpose with its dimensions: `k.mT` becomes `k.transpose(-2, -1)`."""
    match node:
        case ast.Attribute(value=value, attr="mT"):
            dimensions: list[ast.expr] = [ast.Constant(-2), ast.Constant(-1)]
            return ast.Call(ast.Attribute(value, "transpose", ast.Load()), dimensions, [])
    return None


def as_power(node: ast.AST) -> ast.AST | None:
    """Write a root as a power: `math.sqrt(d)` becomes `d ** 0.5`."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name("math"), attr="sqrt"), args=[argument]):
            return ast.BinOp(argument, ast.Pow(), ast.Constant(0.5))
    return None


def as_product(node: ast.AST) -> ast.AST | None:
    """Multiply with one over a root in place of dividing by it."""
    match node:
        case ast.BinOp(left=left, op=ast.Div(), right=right) if _is_root(right):
            return ast.BinOp(left, ast.Mult(), ast.BinOp(ast.Constant(1.0), ast.Div(), right))
    return None


def copied(node: ast.AST) -> ast.AST | None:
    """Return a copy of what is returned, laid out anew in memory."""
    match node:
        case ast.Return(value=ast.expr() as value) if _is_product(value):
            copy_of = ast.Call(ast.Attribute(value, "clone", ast.Load()), [], [])
            return ast.Return(ast.Call(ast.Attribute(copy_of, "contiguous", ast.Load()), [], []))
    return None


def _is_product(value: ast.expr) -> bool:
    return isinstance(value, ast.BinOp) and isinstance(value.op, ast.MatMult)


def _torch(name: str) -> ast.Attribute:
    return ast.Attribute(ast.Name("torch", ast.Load()), name, ast.Load())


KEEPING = tuple(
    Transformation(change.__name__, change, "")
    for change in (as_function, by_numbers, as_power, as_product, copied)
)
"""After these a right solution is still right, and must be given no name."""
