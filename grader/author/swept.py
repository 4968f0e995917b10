"""Call all functions of torch, and report those with the same answers as a forbidden function.

`sweep.py` sends this file to a worker instead of a student's file. Therefore this file must not
import the grader. The file mentions torch.compile, so the worker loads the modules of torch's
compiler. Some functions of torch need them.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import pkgutil
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any

import torch
from torch import Tensor, nn

warnings.simplefilter("ignore")

APART = tuple(
    f"torch.{name}."
    for name in (
        *("accelerator", "ao.ns", "ao.pruning", "ao.quantization", "autograd", "backends"),
        *("compiler", "contrib", "cpu", "cuda", "distributed", "export", "foreach", "futures"),
        *("fx", "hub", "jit", "library", "monitor", "mps", "mtia", "multiprocessing", "onnx"),
        *("optim", "overrides", "package", "profiler", "quantization", "return_types"),
        *("serialization", "storage", "testing", "utils", "xpu"),
    )
)
"""The prefixes of modules to skip, because their functions compute nothing from a tensor."""

PLACES = (
    *("torch._C._nn", "torch._C._special", "torch._refs.nn.functional"),
    *("torch.onnx.ops", "torch.ao.nn.quantizable"),
)
"""Modules to search in addition to the public modules without a prefix in `APART`."""

SPACES = ("aten", "prim", "quantized", "_quantized", "mkldnn")

ALIKE = ("backward", "_foreach", "_fused", "_cudnn", "cudnn_", "miopen", "_copy", "_out", "mps_")
"""Functions with one of these texts in their names are skipped, because they are versions of other
functions.
"""

torch.manual_seed(5)
X, Y = 1.5 * torch.randn(3, 4), 1.5 * torch.randn(2, 3, 4)
VISIBLE, HIDDEN = X < 9, X > 9
SEQUENCES = {shape: torch.randn(3, *shape) for shape in [(3, 1, 4), (1, 2, 3, 4)]}
HEADS = (4, 2, torch.randn(12, 4), None, None, None, False, 0.0, torch.eye(4), None)
MADE_WITH = [(), (-1,), (3,), (4,), (1, 3), (4, 2), (X,)]


def softmax(x: Tensor, dim: int) -> Tensor:
    """Return softmax of `x`, without functions that the worker may have removed."""
    powers = x.exp()
    return powers / powers.sum(dim, keepdim=True)


def answers_known(x: Tensor) -> Iterator[tuple[str, Tensor]]:
    """Yield (name, result) pairs of functions that a problem may forbid, called with `x`."""
    for dim in range(x.dim()):
        yield "softmax", softmax(x, dim)
        yield "softmin", softmax(-x, dim)
        yield "log_softmax", softmax(x, dim).log()
        yield "log_softmax", -softmax(x, dim).log()
        yield "logsumexp", x.exp().sum(dim).log()
    yield "gelu", 0.5 * x * (1 + torch.erf(x / 2**0.5))
    yield "gelu", 0.5 * x * (1 + torch.tanh((2 / torch.pi) ** 0.5 * (x + 0.044715 * x**3)))
    for number in range(1, x.dim() + 1):
        for dims in combinations(range(x.dim()), number):
            centred = x - x.mean(dims, keepdim=True)
            yield "layer_norm", centred / centred.square().mean(dims, keepdim=True).sqrt()
            yield "rms_norm", x / x.square().mean(dims, keepdim=True).sqrt()


KNOWN: dict[int, list[tuple[str, Tensor]]] = {}
for each in (X, Y):
    for kind, answer in answers_known(each):
        KNOWN.setdefault(answer.numel(), []).append((kind, answer.flatten()))
TABLE = {n: ([k for k, _ in of], torch.stack([a for _, a in of])) for n, of in KNOWN.items()}


def calls() -> Iterator[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    """Yield the calls to try on a function: (label, positional arguments, keyword arguments)."""
    eps = 1e-5
    yield "x", (X.clone(),), {}
    for dim in (-1, 0, (4,), (-1,)):
        yield f"x, {dim}", (X.clone(), dim), {}
    yield "x, -1, False", (X.clone(), -1, False), {}
    yield "x, -1, None", (X.clone(), -1, None), {}
    yield "x, -1, dtype", (X.clone(), -1, torch.float32), {}
    yield "x, -1, mask", (X.clone(), -1), {"mask": VISIBLE}
    yield "x, mask", (X.clone(), HIDDEN), {}
    yield "x, x", (X.clone(), X.clone()), {}
    yield "x, 'tanh'", (X.clone(), "tanh"), {}
    yield "logits", (), {"logits": X.clone()}
    yield "x, [1], eps", (X.clone(), [1], eps), {}
    yield "x, [4], weights, eps", (X.clone(), [4], None, None, eps), {}
    yield "x, statistics", (X.clone(), None, None, None, None, True, 0.1, eps), {}
    yield "x, statistics, cudnn", (X.clone(), None, None, None, None, True, 0.1, eps, False), {}
    yield "sparse x, -1", (X.to_sparse(), -1), {}
    yield "sparse x, -1, False", (X.to_sparse(), -1, False), {}
    yield "y", (Y.clone(),), {}
    yield "y, 1", (Y.clone(), 1), {}
    yield "y, statistics", (Y.clone(), None, None, None, None, True, 0.1, eps), {}
    yield "y, sizes", (Y.clone(), None, None, 2, 3, 4, 1, eps), {}


def few_calls() -> Iterator[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    """Yield the same tuples as `calls`, but only for the most common arguments."""
    yield "x", (X.clone(),), {}
    yield "x, x", (X.clone(), X.clone()), {}
    yield "y", (Y.clone(),), {}


def names() -> list[str]:
    """Return the names of torch's public functions, methods and classes, and of its operators."""
    found: dict[int, str] = {}
    for place in (*_modules(), "torch:Tensor"):
        for name, thing in _members(_find(place), place in PLACES):
            found.setdefault(id(thing), f"{place}.{name}" if ":" in place else f"{place}:{name}")
    operators = {name.partition(".")[0] for name in torch._C._dispatch_get_all_op_names()}
    wanted = (name.partition("::") for name in sorted(operators) if not _is_alike(name))
    others = [f"torch:ops.{space}.{name}" for space, _, name in wanted if space in SPACES]
    same = {f"torch:ops.aten.{name}" for owner in (torch, Tensor) for name in dir(owner)}
    return [*found.values(), *(name for name in others if name not in same or "._" in name)]


def _modules() -> list[str]:
    found, waiting = [], ["torch", *PLACES]
    while waiting:
        found.append(waiting.pop())
        path = getattr(_find(f"{found[-1]}:"), "__path__", ())
        below = (name for _, name, _ in pkgutil.iter_modules(path, f"{found[-1]}."))
        if found[-1] not in PLACES:
            waiting += [n for n in below if "._" not in n and not _is_apart(n)]
    return found


def _members(owner: Any, wanted: bool) -> Iterator[tuple[str, Any]]:
    for name in dir(owner):
        thing = None if name.startswith("__") or _is_alike(name) else getattr(owner, name, None)
        home = str(getattr(thing, "__module__", None) or "torch")
        is_of_torch = home.startswith("torch") and (wanted or not _is_apart(home))
        if callable(thing) and is_of_torch and not name.startswith("_"):
            KEPT.append(thing)
            yield name, thing


KEPT: list[Any] = []
"""All objects that `_members` found. They are kept alive, so that their ids are unique."""


def _is_alike(name: str) -> bool:
    return name.endswith("_") or any(part in name for part in ALIKE)


def _is_apart(module: str) -> bool:
    return f"{module}.".startswith(APART)


def _find(path: str) -> Any:
    """Return the object with a name from `names`, or None if it does not exist."""
    place, _, name = path.partition(":")
    try:
        found: Any = importlib.import_module(place)
    except Exception:  # some imports fail, and some names aren't modules
        found, name = torch, ".".join([*place.split(".")[1:], *name.split()])
    for part in name.split(".") if name else ():
        found = getattr(found, part, None)
    return found


def look(name: str) -> list[str]:
    """Call an object with many arguments. Return the calls that give a known function's answers.

    For example, "softmax=(x)" means that the call with `x` returned softmax.
    """
    torch.set_grad_enabled(True)  # an earlier call may have disabled gradients
    torch.set_default_dtype(torch.float32)
    thing = _find(name)
    found = set(_ways(thing, calls))
    if isinstance(thing, type) and thing.__module__ != "torch" and not issubclass(thing, Tensor):
        if issubclass(thing, torch.autograd.Function):
            found.update(_ways(thing.apply, calls, ".apply"))
        for arguments in MADE_WITH[: -1 if issubclass(thing, nn.Module) else None]:
            found.update(_ways_of_object(thing, arguments))
    return sorted(found)


def _ways_of_object(made_of: Any, arguments: tuple[Any, ...]) -> Iterator[str]:
    made = _tried(made_of, *arguments)
    how = f"({', '.join('x' if isinstance(a, Tensor) else str(a) for a in arguments)})"
    if callable(made):
        yield from _ways(made, few_calls, how)
    if made is None or isinstance(made, Tensor):
        return
    for name in dir(made):
        is_common = isinstance(made, nn.Module) and hasattr(nn.Module, name)
        if not name.startswith("_") and not is_common:
            method = _tried(getattr, made, name)
            if inspect.ismethod(method):
                yield from _ways(method, few_calls, f"{how}.{name}")


def _ways(thing: Any, ways: Callable[[], Any], how: str = "") -> Iterator[str]:
    if not callable(thing):
        return
    for label, arguments, options in ways():
        for tensor in _tensors(_tried(thing, *arguments, **options)):
            kinds = _tried(_answers_as, tensor) or ()  # some tensors can't be compared
            yield from (f"{kind}={how}({label})" for kind in kinds)
    for shape, qkv in SEQUENCES.items():
        kind = _attends(thing, qkv, keys=0 if len(shape) == 3 else 2)
        if kind:
            yield f"{kind}={how}(q, k, v)"
    if not how:
        kind = _attends(lambda q, k, v: thing(q, k, v, *HEADS), SEQUENCES[3, 1, 4], keys=0)
        if kind:
            yield f"{kind}={how}(q, k, v, heads)"


def _tried(function: Any, *arguments: Any, **options: Any) -> Any:
    try:
        with WATCH[0]():
            return function(*arguments, **options)
    except BaseException:  # a forbidden call, SystemExit and exceptions of torch
        return None


def _tensors(answer: Any) -> Iterator[Tensor]:
    """Yield the tensors in the result of a call. Sparse tensors are converted to dense tensors."""
    parts = answer if isinstance(answer, (list, tuple)) else [answer]
    if type(answer).__module__.startswith("torch.distributions"):
        parts = [_tried(getattr, answer, name) for name in dir(answer) if name[0] != "_"]
    for part in parts[:64]:
        plain = _tried(_plain, part) if isinstance(part, Tensor) else None
        if plain is not None:
            yield plain


def _plain(tensor: Tensor) -> Tensor:
    tensor = tensor.detach()
    return (tensor if tensor.layout == torch.strided else tensor.to_dense()).float()


def _answers_as(tensor: Tensor) -> set[str]:
    """Return the names of the known functions with this result.

    The last row and the last column are also compared. So a cumulative function is recognized by
    its last value.
    """
    looked_at = [tensor]
    if tensor.dim() > 1 and tensor.numel():
        looked_at += [tensor[-1], tensor[..., -1]]
    found = set()
    for each in looked_at:
        kinds, answers = TABLE.get(each.numel(), ([], None))
        if answers is not None:
            near = ((answers - each.reshape(-1)).abs() <= 2e-4 + 2e-3 * answers.abs()).all(-1)
            found |= {kinds[n] for n in near.nonzero().flatten().tolist()}
    return found


def _attends(function: Any, qkv: Tensor, keys: int) -> str | None:
    """Return the name of torch's attention function that `function` imitates, or None.

    Attention is recognized by properties that do not depend on weights, such as these:
    - Reordering keys and values together does not change the result.
    - Reordering only the queries changes it.
    - If all rows of the values are equal, the result does not depend on the queries.

    Args:
        function: a function of queries, keys and values.
        qkv: queries, keys and values, stacked in this order.
        keys: the dimension of the keys' positions: 0, 1 or 2.
    """

    def attended(q: Tensor, k: Tensor, v: Tensor) -> Tensor | None:
        torch.manual_seed(0)
        return next(_tensors(_tried(function, q.clone(), k.clone(), v.clone())), None)

    def same(one: Tensor, *given: Tensor) -> bool:
        other = attended(*given)
        return other is not None and one.shape == other.shape and torch.allclose(one, other, 1e-4)

    q, k, v = qkv
    answer = attended(q, k, v)
    if answer is None or answer.shape != q.shape or not answer.isfinite().all():
        return None
    turned = [t.roll(1, keys) for t in qkv]
    one = v.narrow(keys, 0, 1).expand_as(v)
    alike = attended(q, k, one)
    if (
        alike is None
        or not same(answer, q, turned[1], turned[2])
        or same(answer, turned[0], k, v)
        or same(answer, q, k.exp(), v)
        or same(answer, q, k, v + 1)
        or not same(alike, k, q, one)
    ):
        return None
    plain = [softmax(q @ k.mT * s, -1) @ v for s in (1, 0.5)]
    is_plain = any(torch.allclose(answer, p, 1e-3) for p in plain)
    return "scaled_dot_product_attention" if is_plain else "MultiheadAttention"


WATCH: list[Any] = [contextlib.nullcontext]
"""A list with one function, which creates a context manager for each call."""


def watch(source: str, forbidden: list[str]) -> None:
    """From now on, raise an error when a forbidden function is called, as in a student's test run.

    Args:
        source: the source code of `grader/code/forbidden.py`, which a worker can't import.
        forbidden: the functions that may not be called.
    """
    module = types.ModuleType("forbidden")
    sys.modules["forbidden"] = module
    exec(compile(source, "forbidden", "exec"), vars(module))

    @contextlib.contextmanager
    def watched() -> Iterator[None]:
        with module.Guard(forbidden) as guard:
            yield
        if guard.called:
            raise module.ForbiddenCall

    WATCH[0] = watched
