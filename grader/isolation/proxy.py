"""The trusted side's `problem`: acts like the student's module, whose code runs in a worker.

What a test may do is the subset of PyTorch that docs/isolation.md lists: call functions with
tensors and plain values, make modules, read and set their parameters and buffers, call them, move
them to another dtype, take gradients. Anything else is refused with a TypeError that says so.

Three rules keep a worker from cheating. Nothing that a test holds ever takes values from a worker
afterwards: a changed argument or weight is an error, and random states are moved on by this side
itself. No module of the student's runs on this side, not even if it is one of torch's own layers.
And what arrives is only ever read as plain data (see `wire`); what can't be read so is
`bad_output`.
"""

from __future__ import annotations

import builtins
import functools
import itertools
import linecache
import math
import re
import weakref
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, NoReturn

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from grader.errors import CannotLoad, Mismatch
from grader.forbidden import ForbiddenCall
from grader.isolation import protocol
from grader.isolation.connection import BAD_OUTPUT, Budget, Link, WorkerFailure
from grader.isolation.protocol import (
    FILE,
    MODULE,
    STOCK,
    Header,
    Packed,
    Packer,
    ProtocolError,
    Unpacker,
)
from grader.isolation.spawn import Workers
from grader.loading import judge_load
from grader.result import Status

_MEMBER = re.compile(r"[A-Za-z0-9_]{1,100}")
_SOURCE_LINE = 300


# Values on their way to the worker and back


class _Packer(Packer):
    """Writes a test's values.

    Attributes:
        arguments: the tensors among the values.
        inputs: those of them that want gradients.
        weights: the parameters of the module in question that want gradients, by name.
        generators: the random generators among the values.
    """

    def __init__(self) -> None:
        super().__init__()
        self.arguments: list[Tensor] = []
        self.inputs: list[Tensor] = []
        self.weights: dict[str, Tensor] = {}
        self.generators: list[torch.Generator] = []

    def tensor(self, tensor: Tensor) -> Packed:
        """Add an argument."""
        packed = super().tensor(tensor)
        if "t" in packed:
            self.arguments.append(tensor)
            if tensor.requires_grad:
                packed |= {"grad": True, "leaf": tensor.is_leaf}
                self.inputs.append(tensor)
        return packed

    def plain(self, tensor: Tensor) -> Packed:
        """Add a tensor that is no argument."""
        return super().tensor(tensor.detach())

    def other(self, value: object) -> Packed:
        """Add a random generator, by its state."""
        if not isinstance(value, torch.Generator):
            return super().other(value)
        self.generators.append(value)
        self.tensors.append(value.get_state())
        return {"g": len(self.tensors) - 1}


class _Unpacker(Unpacker):
    """Reads a worker's values.

    Args:
        tensors: the frame's tensors.
        special: reads the kinds of values beyond plain ones.

    Attributes:
        numbered: the tensors among the values, by the place that they have in "results".
    """

    def __init__(
        self, tensors: list[Tensor], special: Callable[[Header, _Unpacker], Any] | None = None
    ) -> None:
        super().__init__(tensors)
        self._special = special
        self.numbered: dict[int, Tensor] = {}

    def tensor(self, packed: Header) -> Tensor:
        """Return a tensor, and note which result it is."""
        tensor = super().tensor(packed)
        if "r" in packed:
            self.numbered[protocol.index(packed["r"], protocol.MAX_TENSORS)] = tensor
        return tensor

    def form(self, packed: Packed) -> Tensor:
        """Return a tensor without data that no comparison takes for an answer."""
        return super().form(packed).as_subclass(Formal)

    def special(self, packed: Header) -> Any:
        """Return a module, or a stand-in for something that can't be sent."""
        return super().special(packed) if self._special is None else self._special(packed, self)


class Formal(Tensor):
    """A result without data, on the meta device. Its form can be read; its numbers can't be used.

    Whatever a test does with it beyond looking at its form ends in a Mismatch.
    """

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Allow what looks at the form."""
        if getattr(func, "__name__", "") not in _FORM:
            raise Mismatch("Your code returned a tensor on the meta device: a shape, no numbers.")
        return super().__torch_function__(func, types, args, kwargs)  # type: ignore[no-untyped-call]


_FORM = {"__get__", "__repr__", "__format__", "__len__", "detach", "dim", "size", "stride", "numel"}
_FORM |= {"element_size", "is_floating_point", "is_complex", "as_subclass"}


class Foreign:
    """Stands for a value that stays in the worker. Only its type's name is known here."""


def _foreign(name: str) -> Foreign:
    value: Foreign = type(name, (Foreign,), {})()
    return value


class _Target(NamedTuple):
    """What a request is about: a function of the module, or something of a module's twin."""

    name: str
    path: str = ""
    twin: _Twin | None = None
    root: nn.Module | None = None

    @property
    def label(self) -> str:
        return self.name or self.path or type(self.root).__name__


class RemoteProblem:
    """The student's module, at a distance.

    Args:
        workers: where workers come from.
        source: the student's file.
        forbidden: the functions that it may not call, as `grader.forbidden.Guard` names them.
        budget: how long its calls may take.
        mark_changes: when a call changed an argument, mark this side's instead of raising Mismatch.
        printed: what the student's code prints is added here; without it, that is lost.

    Attributes:
        called: the first forbidden function that was called, or None.

    Raises:
        CannotLoad: the file can't be used.
    """

    _counter = itertools.count(1)

    def __init__(
        self,
        workers: Workers,
        source: bytes,
        forbidden: tuple[str, ...],
        budget: Budget,
        *,
        mark_changes: bool = False,
        printed: list[str] | None = None,
    ) -> None:
        self._printed = printed
        self.called: str | None = None
        self._mark_changes = mark_changes
        self._workers = workers
        self._source = source
        self._forbidden = forbidden
        self._budget = budget
        self._link: Link | None = None
        self._names: list[str] = []
        self._file = f"submission-{next(self._counter)}/{FILE}"
        linecache.cache[self._file] = (len(source), None, _lines(source), self._file)
        weakref.finalize(self, linecache.cache.pop, self._file, None)
        self._alive()

    def close(self) -> None:
        """End the worker. A later call would start a new one."""
        if self._link is not None:
            self._link.close()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self._alive()
        if name in self._names:
            return RemoteFunction(self, name)
        return self._attribute(_Target(name))

    # The worker

    def _alive(self) -> Link:
        """Return the link to the worker, a new one if there is none."""
        if self._link is None or self._link.dead:
            self._link = self._load()
        return self._link

    def _load(self) -> Link:
        link = Link(self._workers.start(), self._budget, self._printed)
        source = torch.frombuffer(bytearray(self._source + b"\n"), dtype=torch.uint8)
        try:
            capture = self._printed is not None
            load = {"do": "load", "forbidden": list(self._forbidden), "capture": capture}
            answer, _ = link.exchange(load, [source])
        except WorkerFailure as failure:
            raise CannotLoad(failure.status, _while_loading(failure)) from None
        with link.checked():
            error = answer.get("error")
            exception = self._exception(error) if error is not None else None
            self._names = [protocol.identifier(name) for name in protocol.items(answer["names"])]
        if exception is not None:
            link.close()
            raise self._judge_load(exception)
        return link

    def _judge_load(self, exception: Exception) -> CannotLoad:
        try:
            self._throw(exception)
        except Exception as raised:
            return judge_load(raised, Path(self._file))

    # Requests

    def _call(self, target: _Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        link = self._link_of(target)
        packer, header = self._header("call", target, link)
        try:
            header["args"] = packer.pack(args)
            header["kwargs"] = packer.pack(kwargs)
        except protocol.Unsendable as reason:
            raise TypeError(f"can't be handed to a student's code in grading: {reason}") from None
        header["weights"] = [*packer.weights]
        packer.inputs += packer.weights.values()
        answer, tensors = link.exchange(header, packer.tensors)
        self._settle(link, answer, packer)
        with link.checked():
            stale = bool(answer["stale"])
            changed = _changed(answer, packer.arguments)
            value = self._value(link, answer, tensors, packer)
            weights_changed = target.twin.take(answer, tensors, target.root) if target.twin else []
        for argument, name in changed:
            if not (self._mark_changes and _mark(argument)):
                raise Mismatch(f"Your code changed its argument {name}.")
        if weights_changed:
            raise Mismatch(f"Your code changed its own weights ({weights_changed[0]}) in a call.")
        if stale:
            raise Mismatch(
                f"When {target.label} was called, the result of an earlier call changed with it. "
                "Each call should make a new tensor."
            )
        return value

    def _attribute(self, target: _Target) -> Any:
        link = self._link_of(target)
        packer, header = self._header("attribute", target, link)
        answer, tensors = link.exchange(header, packer.tensors)
        self._settle(link, answer, packer, target)
        with link.checked():
            found = answer["value"]
            if type(found) is dict and found.get("method") is True:
                return RemoteMethod(self, target)
            return self._value(link, answer, tensors, packer)

    def _link_of(self, target: _Target) -> Link:
        if target.twin is None:
            return self._alive()
        if target.twin.link.dead:
            text = f"The process that held this {type(target.root).__name__} has ended."
            raise WorkerFailure(Status.CRASH, text)
        return target.twin.link

    def _header(self, do: str, target: _Target, link: Link) -> tuple[_Packer, Header]:
        """Return the part of a request that says about what, and in which state."""
        packer = _Packer()
        header: Header = {
            "do": do,
            "name": target.name,
            "path": target.path,
            "object": None,
            "random": link.random(packer.tensors),
            "dtype": protocol.NAMES[torch.get_default_dtype()],
            "grad": torch.is_grad_enabled(),
        }
        if target.twin is not None:
            header["object"] = target.twin.number
            header["state"] = target.twin.state(target.root, packer)
        return packer, header

    def _settle(
        self, link: Link, answer: Header, packer: _Packer, target: _Target | None = None
    ) -> None:
        """Draw what the worker drew, and raise what it raised."""
        with link.checked():
            moved = [bool(flag) for flag in protocol.items(answer.get("generators", []))]
            if answer.get("moved"):
                torch.rand(1)
            for generator, drawn in zip(packer.generators, moved, strict=bool(moved)):
                if drawn:
                    torch.rand(1, generator=generator)
            called = answer.get("called")
            if called is not None:
                protocol.name_in(called, self._forbidden)
            unsendable = answer.get("unsendable")
            if unsendable is not None:
                unsendable = protocol.clean_text(_texts([unsendable])[0], 200)
            error = answer.get("error")
            exception = None if error is None else self._exception(error)
        if called is not None:
            self.called = self.called or called
            raise ForbiddenCall(called)
        if unsendable is not None:
            raise WorkerFailure(Status.BAD_OUTPUT, f"{BAD_OUTPUT}: {unsendable}.")
        if exception is None:
            return
        whole = target is not None and target.twin is None
        if whole and target is not None and isinstance(exception, AttributeError):
            raise AttributeError(str(exception), name=target.name, obj=self._listing())
        self._throw(exception)

    def _listing(self) -> ModuleType:
        """Return a module with the student's names, for those who look for a similar one."""
        module = ModuleType(MODULE)
        vars(module).update(dict.fromkeys(self._names, _foreign))
        return module

    # Values

    def _value(self, link: Link, answer: Header, tensors: list[Tensor], packer: _Packer) -> Any:
        """Return the value of an answer, connected to this side's autograd."""
        unpacker = _Unpacker(tensors)
        outputs: tuple[Tensor, ...] = ()
        if "graph" in answer:
            graph = protocol.index(answer["graph"], 1 << 62)
            found = tuple(unpacker.unpack(packed) for packed in protocol.items(answer["outputs"]))
            outputs = _connect(_Backward(self, link, graph), found, packer.inputs)

        def special(packed: Header, unpacker: _Unpacker) -> Any:
            if "out" in packed:
                return outputs[protocol.index(packed["out"], len(outputs))]
            if "o" in packed:
                return self._module(link, packed, unpacker)
            return _foreign(protocol.identifier(packed["x"]))

        unpacker = _Unpacker(tensors, special)
        value = unpacker.unpack(answer["value"])
        self._watch(link, answer, unpacker, outputs)
        return value

    def _watch(
        self, link: Link, answer: Header, unpacker: _Unpacker, outputs: tuple[Tensor, ...]
    ) -> None:
        """Let the worker forget a result when no test holds it any more."""
        numbers = [protocol.index(n, 1 << 62) for n in protocol.items(answer.get("results", []))]
        for place, packed in enumerate(answer.get("outputs", [])):
            if type(packed) is dict and "r" in packed:
                unpacker.numbered[packed["r"]] = outputs[place]
        for place, number in enumerate(numbers):
            if place in unpacker.numbered:
                link.keep(number, unpacker.numbered[place])

    def _module(self, link: Link, packed: Header, unpacker: _Unpacker) -> nn.Module:
        twin = _Twin(link, protocol.index(packed["o"], 1 << 62))
        module = _Builder(self, twin, Unpacker(unpacker.tensors)).build(packed["module"])
        twin.remember(module)
        return module

    # Exceptions

    def _exception(self, error: Header) -> Exception:
        """Return the exception that the worker describes, of a built-in type."""
        base = _BUILTIN[protocol.name_in(error["kind"], _BUILTIN)]
        text, name = (
            protocol.clean_text(_texts([error["text"]])[0]),
            protocol.identifier(error["name"]),
        )
        line, where = protocol.index(error["line"], 1 << 31), _texts([error["in"]])[0]
        if "syntax" in error:
            return self._syntax_error(error["syntax"])
        cls: Any = base
        if name != base.__name__ or base.__str__ is not BaseException.__str__:
            members = {"__str__": lambda self: str(self.args[0]), "__module__": MODULE}
            cls = type(name, (base,), members)
        exception: Exception = cls.__new__(cls)
        exception.args = (text,)
        if line:
            place = (
                line,
                protocol.clean_text(where, 200),
                linecache.getline(self._file, line).strip(),
            )
            exception.student_place = place  # type: ignore[attr-defined]
        return exception

    def _syntax_error(self, described: Packed) -> SyntaxError:
        message, line, text = protocol.items(described, 3)
        protocol.index(line, 1 << 31)
        message, text = (protocol.clean_text(t, _SOURCE_LINE) for t in _texts([message, text]))
        return SyntaxError(message, (self._file, line, 1, text))

    def _throw(self, exception: Exception) -> NoReturn:
        """Raise `exception` from a frame that looks like the student's, so it is judged as such."""
        line, where, _ = getattr(exception, "student_place", (0, "", ""))
        if not line:
            raise exception
        code = compile("raise exception", self._file, "exec")
        code = code.replace(co_firstlineno=line, co_name=where, co_qualname=where)
        exec(code, {"__name__": MODULE, "exception": exception})
        raise AssertionError("unreachable")


class RemoteFunction:
    """A function or class of the student's module."""

    def __init__(self, problem: RemoteProblem, name: str) -> None:
        self._problem = problem
        self.__name__ = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it in the worker."""
        return self._problem._call(_Target(self.__name__), args, kwargs)


class RemoteMethod:
    """A method of one of the student's modules."""

    def __init__(self, problem: RemoteProblem, target: _Target) -> None:
        self._problem = problem
        self._target = target

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it in the worker."""
        return self._problem._call(self._target, args, kwargs)


# Modules


class RemoteModule(nn.Module):
    """A module of the student's: its parameters and layers are here, its `forward` is remote.

    That goes for torch's own layers, too: which there are, and whether they work in place, is the
    student's choice. Such a layer is also an instance of torch's class.
    """

    _problem: RemoteProblem
    _twin: _Twin
    _path: str
    _root: nn.Module | None

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the student's `forward` in the worker, with this side's weights."""
        return self._problem._call(self._target(""), args, kwargs)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name.startswith("__") or "_twin" not in self.__dict__:
                raise
        return self._problem._attribute(self._target(name))

    def __setattr__(self, name: str, value: Any) -> None:
        settings = ("training", *getattr(type(self), "__constants__", ()))
        if name not in self._parameters and name not in self._buffers and name not in settings:
            raise TypeError(f"setting {type(self).__name__}.{name} from a test isn't supported")
        super().__setattr__(name, value)

    def _target(self, name: str) -> _Target:
        root = self if self._root is None else self._root  # an empty ModuleList is false
        return _Target(name, self._path, self._twin, root)


class _Twin:
    """The worker's module that a module here belongs to, and what the worker knows of its state.

    Args:
        link: the worker that holds it.
        number: what the worker calls it.
    """

    def __init__(self, link: Link, number: int) -> None:
        self.link = link
        self.number = number
        self._tensors: dict[str, tuple[Tensor, bool]] = {}
        self._settings: dict[str, list[Any]] = {}
        link.keep(number, self)

    def remember(self, root: nn.Module) -> None:
        """Take the state of `root` for what the worker has."""
        self._tensors = {
            name: (tensor.detach().clone(), tensor.requires_grad)
            for name, tensor, _ in protocol.tensors_of(root)
        }
        self._settings = {path: values for path, _, values in _settings(root)}

    def state(self, root: nn.Module | None, packer: _Packer) -> Packed:
        """Return what changed here since the worker was last told; give the packer the weights."""
        assert root is not None
        tensors = []
        for name, tensor, is_parameter in protocol.tensors_of(root):
            if is_parameter and tensor.requires_grad:
                packer.weights[name] = tensor
            known = self._tensors.get(name)
            if known and protocol.same(tensor, known[0]) and tensor.requires_grad == known[1]:
                continue
            self._tensors[name] = tensor.detach().clone(), tensor.requires_grad
            tensors.append([name, packer.plain(tensor), tensor.requires_grad])
        settings = []
        for path, names, values in _settings(root):
            if self._settings.get(path) != values:
                self._settings[path] = values
                training, *others = (packer.pack(value) for value in values)
                settings.append([path, training, [*zip(names, others, strict=True)]])
        return {"tensors": tensors, "settings": settings}

    def take(self, answer: Header, tensors: list[Tensor], root: nn.Module | None) -> list[str]:
        """Take over new buffers; return the names of the parameters that the call changed."""
        assert root is not None
        unpacker = Unpacker(tensors)
        for entry in protocol.items(answer["state"]["buffers"]):
            name, packed, persistent = protocol.items(entry, 3)
            path, _, last = _texts([name])[0].rpartition(".")
            owner = root.get_submodule(path)
            if not _MEMBER.fullmatch(last) or last in owner._parameters or last in owner._modules:
                raise ProtocolError("a buffer has the name of something else")
            # The module gets another tensor; one that a test holds stays as it is.
            owner._buffers[last] = tensor = unpacker.unpack(packed)
            if not persistent:
                owner._non_persistent_buffers_set.add(last)
            self._tensors[name] = tensor.clone(), False
        changed = _texts(answer["state"]["parameters"])
        return [protocol.name_in(name, self._tensors) for name in changed]


def _settings(root: nn.Module) -> Iterator[tuple[str, list[str], list[Any]]]:
    """Yield each module's path, the names of its settings, and their values after its mode's."""
    for path, module in protocol.parts_of(root):
        members = module.__dict__
        names = [n for n in getattr(type(module), "__constants__", ()) if n in members]
        yield path, names, [module.training, *(members[name] for name in names)]


class _Builder:
    """Builds the module that a worker describes, out of remote ones."""

    def __init__(self, problem: RemoteProblem, twin: _Twin, unpacker: Unpacker) -> None:
        self._problem = problem
        self._twin = twin
        self._unpacker = unpacker
        self._root: nn.Module | None = None
        self._parameters: dict[int, nn.Parameter] = {}

    def build(self, described: Header, path: str = "") -> nn.Module:
        """Return the module, with all that is in it.

        Raises:
            ProtocolError: the description isn't one.
        """
        module = self._empty(described, path)
        for name, packed, requires_grad in _triples(described["parameters"]):
            module._parameters[name] = self._parameter(packed, requires_grad)
        for name, packed, persistent in _triples(described["buffers"]):
            module._buffers[name] = None if packed is None else self._unpacker.unpack(packed)
            if not persistent:
                module._non_persistent_buffers_set.add(name)
        for entry in protocol.items(described["children"]):
            name, child = protocol.items(entry, 2)
            inner = f"{path}.{_member(name)}" if path else _member(name)
            module._modules[name] = None if child is None else self.build(child, inner)
        return module

    def _empty(self, described: Header, path: str) -> nn.Module:
        cls = _remote_class(protocol.identifier(described["class"]), described["stock"])
        module: nn.Module = cls.__new__(cls)
        # Past RemoteModule.__setattr__, which guards against tests.
        about = {"_problem": self._problem, "_twin": self._twin, "_path": path, "_root": self._root}
        module.__dict__.update(_new_module_attributes() | about)
        module.__dict__["training"] = bool(described["training"])
        self._root = module if self._root is None else self._root
        allowed = getattr(cls, "__constants__", ())
        for entry in protocol.items(described["settings"]):
            name, packed = protocol.items(entry, 2)
            module.__dict__[protocol.name_in(name, allowed)] = self._unpacker.unpack(packed)
        return module

    def _parameter(self, packed: Packed, requires_grad: object) -> nn.Parameter | None:
        if packed is None:
            return None
        tensor = self._unpacker.unpack(packed)
        number = packed.get("t", -1 - len(self._parameters))
        if number not in self._parameters:
            self._parameters[number] = nn.Parameter(tensor, requires_grad is True)
        return self._parameters[number]


@functools.lru_cache(maxsize=256)
def _remote_class(name: str, stock: Packed) -> type[RemoteModule]:
    """Return a class of the student's name; made once, because making one takes long."""
    bases = () if stock is None else (STOCK[protocol.name_in(stock, STOCK)],)
    return type(name, (RemoteModule, *bases), {})


def _new_module_attributes() -> dict[str, Any]:
    return dict(vars(nn.Module()))


def _triples(packed: Packed) -> Iterator[list[Any]]:
    for entry in protocol.items(packed):
        triple = protocol.items(entry, 3)
        _member(triple[0])
        yield triple


def _member(name: Packed) -> str:
    if type(name) is not str or not _MEMBER.fullmatch(name):
        raise ProtocolError("a member's name isn't one")
    return name


# Autograd


class _Backward:
    """The worker's graph of one call, kept while this side's graph refers to it."""

    def __init__(self, problem: RemoteProblem, link: Link, graph: int) -> None:
        self._problem = problem
        self._link = link
        self._graph = graph
        self.outputs: tuple[Tensor, ...] = ()
        link.keep(graph, self)

    def run(
        self, upstream: tuple[Tensor | None, ...], wanted: tuple[bool, ...], shapes: list[Packed]
    ) -> list[Tensor | None]:
        """Return the gradients of the inputs, None for those that aren't wanted or reached."""
        result: list[Tensor | None] = [None] * len(wanted)
        places = [place for place, flag in enumerate(wanted) if flag]
        if not places or all(gradient is None for gradient in upstream):
            return result
        if self._link.dead:
            raise WorkerFailure(Status.CRASH, "The process that held this result has ended.")
        packer = _Packer()
        gradients = [None if g is None else packer.plain(g) for g in upstream]
        header = {"do": "backward", "graph": self._graph, "upstream": gradients, "wanted": places}
        answer, tensors = self._link.exchange(header, packer.tensors)
        self._problem._settle(self._link, answer, packer)
        with self._link.checked():
            unpacker = Unpacker(tensors)
            for place, packed in zip(places, protocol.items(answer["value"]), strict=True):
                gradient = unpacker.unpack(packed)
                if gradient is not None and (gradient.shape, gradient.dtype) != shapes[place]:
                    raise ProtocolError("a gradient has another form than its tensor")
                result[place] = gradient
        return result


class _Call(torch.autograd.Function):
    """A call in the worker as one node of this side's graph."""

    @staticmethod
    def forward(ctx: Any, backward: _Backward, *inputs: Tensor) -> tuple[Tensor, ...]:
        ctx.backward_call = backward
        ctx.shapes = [(tensor.shape, tensor.dtype) for tensor in inputs]
        ctx.set_materialize_grads(False)
        outputs, backward.outputs = backward.outputs, ()
        return outputs

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *upstream: Tensor | None) -> tuple[Any, ...]:
        wanted = tuple(ctx.needs_input_grad[1:])
        return (None, *ctx.backward_call.run(upstream, wanted, ctx.shapes))


def _connect(
    backward: _Backward, outputs: tuple[Tensor, ...], inputs: list[Tensor]
) -> tuple[Tensor, ...]:
    """Return the outputs as functions of the inputs."""
    if any(not isinstance(t, Tensor) or not t.is_floating_point() for t in outputs):
        raise ProtocolError("an output has no gradient by nature")
    if not inputs or not torch.is_grad_enabled():
        return tuple(tensor.requires_grad_(torch.is_grad_enabled()) for tensor in outputs)
    backward.outputs = outputs
    apply: Callable[..., tuple[Tensor, ...]] = _Call.apply
    return apply(backward, *inputs)


# Changed arguments


def _changed(answer: Header, arguments: list[Tensor]) -> list[tuple[Tensor, str]]:
    """Return the arguments that the worker says were changed, with their names or numbers."""
    found = []
    for entry in protocol.items(answer["changed"]):
        number, name = protocol.items(entry, 2)
        place = protocol.index(number, len(arguments))
        if not (type(name) is str and name.isdigit() and len(name) < 4):
            name = protocol.identifier(name) if name else str(place + 1)
        found.append((arguments[place], name))
    return found


def _mark(argument: Tensor) -> bool:
    """Make a changed argument differ from what it was, in a way that nobody can make use of.

    One entry, the smallest, moves by one unit in its last place: `torch.equal` sees it, no
    comparison with a tolerance does. Returns False for a tensor that has no such entry.
    """
    values = argument.detach()
    usable = values.isfinite() & (values != 0)
    if not usable.any():
        usable = values.isfinite()  # then a zero becomes the smallest number
    if not values.is_floating_point() or not usable.any():
        return False
    sizes = torch.where(usable, values.abs().double(), math.inf)
    place = tuple(int(i) for i in torch.unravel_index(sizes.argmin(), values.shape))
    with torch.no_grad():
        before = values[place].clone()
        # A relative step of two units: rounding in half precision must not lose it.
        form = torch.finfo(values.dtype)
        values[place] = before * (1 + 2 * form.eps) if before else form.tiny
    return bool(values[place] != before)


# Small things

_BUILTIN: Mapping[str, type[Exception]] = {
    name: value
    for name, value in vars(builtins).items()
    if isinstance(value, type)
    and issubclass(value, Exception)
    and not issubclass(value, BaseExceptionGroup)
}


def _texts(packed: Packed) -> list[str]:
    found = protocol.items(packed)
    if any(type(text) is not str for text in found):
        raise ProtocolError("a text was expected")
    return found


def _lines(source: bytes) -> list[str]:
    text = source.decode("utf-8", errors="replace")
    return [protocol.clean_text(line, _SOURCE_LINE) + "\n" for line in text.splitlines()]


def _while_loading(failure: WorkerFailure) -> str:
    return f"{FILE} can't be imported. {failure}"
