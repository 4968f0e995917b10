"""A submission that tries to call forbidden functions in indirect ways."""

import contextlib
import ctypes
import gc
import importlib
import os
import sys
import types

import torch
import torch.nn.functional as F
from torch import distributions, nn

LIBRARY = type(torch._C._dispatch_library("FRAGMENT", "mine", "", "mine.py", 0))
TORCH = os.path.dirname(torch.__file__)
DEFAULTS = F.multi_head_attention_forward.__defaults__
KEPT = {}  # objects that the file obtained while it was loaded


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
    with contextlib.suppress(RuntimeError):  # C functions already have docstrings
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


def by_convolution(name, *rest):
    x = torch.randn(1, 1, 4, 1)
    operator = getattr(torch.ops.mkldnn, name)
    ones = [1, 1]
    return operator(x, torch.ones(1, 1, 1, 1), None, *rest, ones, ones, 1, "gelu", [], "tanh")


def mkldnn_layer_norm():
    x, ones = torch.randn(2, 8).to_mkldnn(), torch.ones(8).to_mkldnn()
    return torch.ops.prim.MKLDNNLayerNorm(x, [8], ones, ones, 1e-5, False)


def layer_norm_of_a_graph():
    text = """graph(%x : Tensor, %w : Tensor):
      %e : float = prim::Constant[value=0.1]()
      %c : bool = prim::Constant[value=0]()
      %n : int = prim::Constant[value=8]()
      %s : int[] = prim::ListConstruct(%n)
      %y : Tensor = prim::MKLDNNLayerNorm(%x, %s, %w, %w, %e, %c)
      return (%y)"""
    given = torch.randn(2, 8).to_mkldnn(), torch.ones(8).to_mkldnn()
    return torch._C._jit_interpret_graph(torch.parse_ir(text), given)


def own_kernels(name, kernel):
    for key in ("CPU", "AutogradCPU", "CompositeExplicitAutograd", "CompositeImplicitAutograd"):
        library = torch._C._dispatch_library("IMPL", "aten", "", "mine.py", 0)
        library.impl(name, key, kernel, False)
        KEPT[name, key] = library


def fused_after_own_kernels():
    """Call a scripted function several times, so that TorchScript replaces it by a fused kernel."""
    torch._C._jit_set_te_must_use_llvm_cpu(False)
    torch._C._jit_override_can_fuse_on_cpu(True)
    torch._C._jit_set_texpr_fuser_enabled(True)
    own_kernels("gelu", lambda x, approximate="none": x * 1)

    @torch.jit.script
    def scripted(x):
        return torch._C._nn.gelu(x * 1.0, approximate="tanh") + 0.0

    x = torch.ones(2, 2)
    for _ in range(4):
        y = scripted(x)
    assert not torch.equal(x, y)


def frozen_after_own_kernels():
    torch.jit.enable_onednn_fusion(True)
    own_kernels("layer_norm", lambda x, n, w=None, b=None, eps=1e-5, c=True: x * 1)

    def normed(x):
        return torch.layer_norm(layer(x), (8,), torch.ones(8), torch.zeros(8), 1e-5, False)

    layer = nn.Linear(8, 8, bias=False)
    module = nn.Module()
    module.layer, module.forward = layer, normed
    x = torch.randn(2, 8)
    with torch.no_grad():
        fused = torch.jit.freeze(torch.jit.trace(module.eval(), x))
        for _ in range(4):
            y = fused(x)
        assert not torch.equal(y, layer(x))


X = torch.ones(1, 2, 2)
WAYS = {
    "block: convolution": lambda: by_convolution("_convolution_pointwise", [0, 0]),
    "block: transposed convolution": lambda: by_convolution(
        "_convolution_transpose_pointwise", [0, 0], [0, 0]
    ),
    "block: norm of torch in Python": lambda: sys.modules["torch._refs"]._normalize(X, [1], 1e-5),
    "block: norm of MKL-DNN": mkldnn_layer_norm,
    "block: norm of a graph": layer_norm_of_a_graph,
    "block: fused": fused_after_own_kernels,
    "block: frozen": frozen_after_own_kernels,
    "softmax: redispatched": lambda: redispatched(torch.ops.aten.softmax.int, X, -1),
    "softmax: redispatched below": lambda: redispatched(
        torch.ops.aten._softmax.default, X, -1, False
    ),
    "softmax: redispatched sum": lambda: redispatched(torch.ops.aten.logsumexp.default, X, [-1]),
    "softmax: cumulated sum": lambda: (X - X.logcumsumexp(-1)[..., -1:]).exp(),
    "softmax: transform": lambda: distributions.transforms.SoftmaxTransform()(X),
    "softmax: transform reloaded": lambda: importlib.reload(
        distributions.transforms
    ).SoftmaxTransform()(X),
    "softmax: transform of a simplex": lambda: distributions.transform_to(
        distributions.constraints.simplex
    )(X),
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


def works(name, key="CPU"):
    KEY[0] = key
    try:
        WAYS[name]()
    except BaseException:
        return False
    return True


def names():
    return list(WAYS)
