"""A submission that looks for forbidden functions by every road but the straight one."""

import contextlib
import ctypes
import gc
import importlib
import os
import sys
import types

import torch
import torch.nn.functional as F
from torch import nn

(WORKER,) = [type(found) for found in gc.get_objects() if type(found).__name__ == "Worker"]
ANSWER = WORKER.answer


def lie(self, header, tensors):
    told, tensors = ANSWER(self, header, tensors)
    return told | {"called": None}, tensors


WORKER.answer = lie  # whether it was called is the worker's word, what it gives is not

LIBRARY = type(torch._C._dispatch_library("FRAGMENT", "mine", "", "mine.py", 0))
TORCH = os.path.dirname(torch.__file__)
DEFAULTS = F.multi_head_attention_forward.__defaults__
KEPT = {}  # what could be taken while the file was loaded


def keep(name):
    def decorator(function):
        try:
            KEPT[name] = function()
        except BaseException as error:
            KEPT[name] = error

    return decorator


@keep("kernel")
def _():
    from torch.library import get_kernel

    return get_kernel("aten::_softmax", "CPU")


@keep("code")
def _():
    return F.multi_head_attention_forward.__code__


@keep("frames")
def _():
    found, frame = [], sys._getframe()
    while frame is not None:
        found += frame.f_locals.values()
        frame = frame.f_back
    return found


@keep("scripted")
def _():
    @torch.jit.script
    def scripted(x):
        return torch.softmax(x, -1)

    return scripted


def redispatched(operator, *args):
    key = torch._C.DispatchKey.__members__[KEY[0]]
    return operator.redispatch(torch._C.DispatchKeySet(key), *args)


KEY = ["CPU"]


def with_the_library_reset(call):
    seen = [*gc.get_objects(), *KEPT["frames"]]
    for thing in seen[:]:
        if type(thing) is types.FunctionType:
            seen += [*(thing.__closure__ or ()), *(thing.__defaults__ or ())]
    for thing in seen:
        if type(thing) is types.CellType:
            with contextlib.suppress(ValueError):
                thing = thing.cell_contents
        if type(thing) is LIBRARY:
            thing.reset()
    return call()


def late(name):
    return importlib.import_module(name)


def source_of_torch(path):
    with open(os.path.join(TORCH, path), "rb") as file:
        return file.read()


def of_kept_code(code):
    return types.FunctionType(code, vars(F))


def reloaded():
    return importlib.reload(nn.modules.activation)


def executed():
    inside = {"__name__": "torch.nn.modules.activation", "__package__": "torch.nn.modules"}
    with contextlib.suppress(RuntimeError):  # the functions of C have their texts already
        exec(compile(source_of_torch("nn/modules/activation.py"), nn.__file__, "exec"), inside)
    return inside["MultiheadAttention"]


def many_heads(function):
    mine = types.FunctionType(function.__code__, vars(F), "mine", DEFAULTS)
    weights = torch.ones(6, 2), torch.zeros(6), None, None, False, 0.0, torch.ones(2, 2)
    return mine(X, X, X, 2, 1, *weights, torch.zeros(2))


def given_kept_code(code):
    F.mine = eval("lambda *args, **kwargs: None", vars(F))
    F.mine.__code__ = code
    return F.mine


def without_the_hook():
    for thing in gc.get_objects():
        if type(thing) is types.FunctionType and thing.__name__ == "_hook":
            thing.__code__ = (lambda *args: None).__code__
            return late("torch.nn.attention.flex_attention").flex_attention
    raise LookupError


def through_c():
    lib = ctypes.CDLL(os.path.join(TORCH, "lib", "libtorch_cpu.so"))
    return lib.aoti_torch_cpu__scaled_dot_product_flash_attention_for_cpu


def to_the_lazy_device(x):
    import torch._lazy.ts_backend

    torch._lazy.ts_backend.init()
    x = x.to("lazy")
    return F.scaled_dot_product_attention(x, x, x).to("cpu")


X = torch.ones(1, 2, 2)
WAYS = {
    "softmax: redispatched": lambda: redispatched(torch.ops.aten.softmax.int, X, -1),
    "softmax: redispatched below": lambda: redispatched(
        torch.ops.aten._softmax.default, X, -1, False
    ),
    "softmax: redispatched sum": lambda: redispatched(torch.ops.aten.logsumexp.default, X, [-1]),
    "softmax: library": lambda: with_the_library_reset(lambda: X.softmax(-1)),
    "softmax: kept kernel": lambda: KEPT["kernel"].call_boxed(
        torch._C.DispatchKeySet(torch._C.DispatchKey.CPU), X, -1, False
    ),
    "softmax: scripted": lambda: KEPT["scripted"](X),
    "softmax: static runtime": lambda: torch._C._jit_to_static_module(KEPT["scripted"].graph)(X),
    "softmax: quantised": lambda: torch.ops.quantized.softmax(
        torch.quantize_per_tensor(X, 0.1, 0, torch.quint8), -1, 0.1, 0
    ),
    "attention: redispatched": lambda: redispatched(
        torch.ops.aten.scaled_dot_product_attention.default, X, X, X
    ),
    "attention: redispatched math": lambda: redispatched(
        torch.ops.aten._scaled_dot_product_attention_math.default, X, X, X
    ),
    "attention: library": lambda: with_the_library_reset(
        lambda: F.scaled_dot_product_attention(X, X, X)
    ),
    "attention: lazy": lambda: to_the_lazy_device(X),
    "attention: flex": lambda: late("torch.nn.attention.flex_attention").flex_attention(
        X[None], X[None], X[None]
    ),
    "attention: onnx": lambda: late("torch.onnx.ops").attention(X[None], X[None], X[None]),
    "attention: quantizable": lambda: late("torch.ao.nn.quantizable").MultiheadAttention(2, 1)(
        X, X, X
    ),
    "attention: reloaded": lambda: importlib.reload(nn.modules.activation).MultiheadAttention(2, 1)(
        X, X, X
    ),
    "attention: executed": lambda: executed()(2, 1)(X, X, X),
    "attention: function of code": lambda: many_heads(of_kept_code(KEPT["code"])),
    "attention: code of a function": lambda: many_heads(given_kept_code(KEPT["code"])),
    "attention: hook changed": lambda: without_the_hook(),
    "attention: ctypes": lambda: through_c(),
}


def goes(name, key="CPU"):
    KEY[0] = key
    try:
        WAYS[name]()
    except BaseException:
        return False
    return True


def names():
    return list(WAYS)
