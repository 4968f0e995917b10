"""The protocol: what is sent comes back, and whatever else arrives is refused without harm."""

import json
import math
import mmap
import socket
import struct
import threading
import time
from random import Random

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from grader.boundary.frames import ProtocolError, within
from grader.boundary.protocol.codec import (
    SENT_DTYPES,
    Packer,
    RequestPacker,
    RequestReader,
    ValueReader,
    same,
    tensors_of,
)
from grader.boundary.protocol.wire import (
    MAX_HEADER,
    MAX_PAYLOAD,
    MAX_TENSORS,
    RESPONSES_AT,
    SIZE,
    Memory,
    Response,
    Unsendable,
    clean_text,
    read_response,
    receive,
    send,
)

MUTATIONS, INVENTIONS = 4800, 400  # 10,000 messages in all


MEMORY = Memory(mmap.mmap(-1, SIZE))


def round_trip(value):
    packer = Packer()
    written = packer.pack(value)
    text, payload = parts(Response(values=[written]), packer.tensors)
    response, tensors = parse(text, payload)
    return ValueReader(tensors).read(response.values[0])


def parts(response, tensors):
    """Return a message as it is sent, and the bytes of its tensors as they lie in the memory."""
    response.tensors = [
        (str(tensor.dtype).removeprefix("torch."), [*tensor.shape]) for tensor in tensors
    ]
    ours, theirs = socket.socketpair()
    with ours, theirs:
        send(ours, response, MEMORY.write_response(tensors))
        text, size = receive(theirs, within(5))
    return text, bytearray(MEMORY.bytes[RESPONSES_AT : RESPONSES_AT + size])


def parse(text, payload):
    """Read a message and its tensors, as the trusted side does."""
    response = read_response(text)
    return response, tensors_of(response.tensors, payload)


def frame(tensors):
    return parse(*parts(Response(), tensors))


@pytest.mark.parametrize(
    "value",
    [None, True, 0, -5, 1 << 62, 0.1, math.inf, "text é", [1, [2]], (1, "a"), {"k": (1.5, None)}]
    + [torch.float16, torch.bool, torch.Size([2, 3]), torch.device("cpu"), {1: 2}],
    ids=repr,
)
def test_plain_values_come_back(value):
    back = round_trip(value)
    assert back == value
    assert type(back) is type(value)


def test_nan_comes_back():
    assert math.isnan(round_trip(math.nan))


@pytest.mark.parametrize("dtype", SENT_DTYPES.values(), ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 3), (2, 3, 4)], ids=str)
def test_tensors_come_back(dtype, shape):
    tensor = (torch.rand(shape) * 3).to(dtype)
    assert same(round_trip(tensor), tensor)


def test_the_order_of_dimensions_in_memory_is_kept():
    tensor = torch.rand(2, 3, 4).transpose(1, 2)
    back = round_trip(tensor)
    assert back.stride() == tensor.stride()
    assert same(back, tensor)


def test_expanded_and_shared_tensors_are_sent_as_their_numbers():
    row = torch.rand(3)
    first, second = round_trip([row.expand(4, 3), row])
    assert torch.equal(first, row.expand(4, 3))
    first[0, 0] = 5
    assert torch.equal(second, row)


@pytest.mark.parametrize("tensor", [torch.empty(2, 3, device="meta"), torch.zeros(2, 3).cfloat()])
def test_other_tensors_are_sent_as_their_form(tensor):
    back = round_trip(tensor)
    assert back.is_meta
    assert (back.shape, back.dtype) == (tensor.shape, tensor.dtype)


def test_containers_with_an_iterator_of_their_own_become_plain():
    class List(list):
        __iter__ = __len__ = None

    class Dict(dict):
        items = __iter__ = __len__ = None

    assert round_trip(List([1, Dict(a=2)])) == [1, {"a": 2}]


def test_subclasses_of_numbers_become_plain():
    class Liar(float):
        def __eq__(self, other):
            return True

        __hash__ = float.__hash__

    assert type(round_trip(Liar(0.5))) is float


@pytest.mark.parametrize(
    "value",
    [
        torch.zeros(1).expand(1 << 40),
        torch.eye(3).to_sparse(),
        1 << 70,
        object(),
        lambda: 0,
        {1, 2},
    ],
    ids=["4 TB", "sparse", "large integer", "object", "function", "set"],
)
def test_what_cannot_be_sent_is_said(value):
    with pytest.raises(Unsendable):
        Packer().pack(value)


def test_a_list_that_holds_itself_cannot_be_sent():
    endless = []
    endless.append(endless)
    with pytest.raises(Unsendable):
        Packer().pack(endless)


def test_bytes_of_a_bool_tensor_become_true_or_false():
    text, payload = parts(Response(), [torch.tensor([True, False, True])])
    payload[:3] = b"\x02\x00\x07"
    _, (tensor,) = parse(text, payload)
    assert tensor.view(torch.uint8).tolist() == [1, 0, 1]


def test_tensors_of_all_dtypes_share_a_frame_and_no_memory():
    tensors = [torch.ones(3).to(dtype) for dtype in SENT_DTYPES.values()]
    _, found = frame(tensors)
    for tensor in found:
        tensor.zero_()
        assert tensor.untyped_storage().nbytes() == 3 * tensor.element_size()
    assert all(same(a, torch.zeros_like(b)) for a, b in zip(found, tensors, strict=True))


TABLES = {
    "more than is there": [["float32", [3]]],
    "less than is there": [],
    "a negative size": [["float32", [-4]]],
    "an overflow": [["int8", [1 << 32, 1 << 32]]],
    "an empty one that is huge": [["int8", [1 << 39, 1 << 39, 0]]],
    "a fraction": [["int8", [0.5]]],
    "no dtype that is sent": [["complex64", [1]]],
    "a function of torch": [["load", [1]]],
    "many dimensions": [["float32", [1] * 17]],
    "many tensors": [["int8", [0]]] * (MAX_TENSORS + 1),
    "no list": {"0": ["float32", [2]]},
    "no pair": [["float32"]],
}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_that_does_not_fit_its_bytes_is_refused(name):
    text = json.dumps({"tensors": TABLES[name]}).encode()
    with pytest.raises(ProtocolError):
        parse(text, bytearray(8))


@pytest.mark.parametrize(
    "text",
    [b"", b"[]", b"1", b"{", b"\xff", b'{"a":' * 50 + b"1" + b"}" * 50, b"[" * 200_000]
    + [b'{"a":' + b"9" * 5000 + b"}", b'{"a":"' + b'\\"' * 400_000],
    ids=lambda text: repr(text[:8]),
)
def test_a_header_that_is_none_is_refused_at_once(text):
    started = time.monotonic()
    with pytest.raises(ProtocolError):
        parse(text, bytearray())
    assert time.monotonic() - started < 20


@pytest.mark.parametrize(
    "packed",
    [
        ["t", 1],
        ["t", -1],
        ["t", True],
        ["t", 0, [0, 0]],
        ["a", 1],
        ["m", "float32", [1 << 41]],
        ["m", "float32", [1 << 30, 1 << 30]],
        ["m", "no such dtype", []],
        ["y", "load"],
        ["v", "cuda:0"],
        ["f", "1"],
        ["l", {}],
        ["d", [[1]]],
        ["d", [[["l", []], 1]]],
        ["d", [[1 << 63, 1]]],
        ["l", [-(1 << 63) - 1]],
        ["l", [], "Thing"],
        ["k", ["l", []], "Thing"],
        ["g", 0],
        ["h", 0],
        ["z", 1],
        {"t": 0},
        [1],
        [],
    ],
    ids=str,
)
def test_a_value_that_is_none_is_refused(packed):
    text, reader = json.dumps({"values": [packed]}).encode(), ValueReader([torch.zeros(2, 2)])
    with pytest.raises(ProtocolError):
        [reader.read(value) for value in read_response(text).values]


ARRAYS = [
    np.arange(6.0).reshape(2, 3),
    np.arange(6, dtype=np.int16)[::-2],
    np.zeros((0, 2), dtype=bool),
    np.array(5.0),
    np.float32([[1, 2], [3, 4]]).T,
]


@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: f"{array.dtype}{array.shape}")
def test_arrays_come_back(array):
    back = round_trip(array)
    assert type(back) is np.ndarray
    assert (back.dtype, back.shape) == (array.dtype, array.shape)
    assert (back == array).all()


def test_an_array_of_a_class_of_its_own_becomes_plain():
    class Odd(np.ndarray):
        def __eq__(self, other):
            return True

        __hash__ = None

    assert type(round_trip(np.ones(2).view(Odd))) is np.ndarray


@pytest.mark.parametrize("dtype", [object, "U3", "M8[s]", ">f8", "c16", [("a", "f4")]])
def test_arrays_of_other_kinds_cannot_be_sent(dtype):
    with pytest.raises(Unsendable):
        Packer().pack(np.zeros(2, dtype=dtype))


def test_an_array_argument_can_be_written_if_it_could_be():
    for is_writable in (True, False):
        array, packer = np.ones(3), RequestPacker()
        array.flags.writeable = is_writable
        written = packer.calls([((array,), {}, None)], False)
        (call,) = RequestReader(packer.tensors, {}, {}).calls(written)
        assert call.args[0].flags.writeable is is_writable


def test_an_announced_size_costs_nothing():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(struct.pack("!II", MAX_HEADER + 1, 0))
        with pytest.raises(ProtocolError):
            receive(ours, within(5))
        theirs.sendall(struct.pack("!II", 8, MAX_PAYLOAD) + b"{}")
        with pytest.raises(TimeoutError):
            receive(ours, within(0.2))


@pytest.mark.slow
def test_a_trickle_does_not_extend_the_deadline():
    ours, theirs = socket.socketpair()
    stop = threading.Event()

    def drip():
        while not stop.wait(0.05):
            theirs.send(b"\0")

    thread = threading.Thread(target=drip)
    theirs.sendall(struct.pack("!II", 1000, 0))
    thread.start()
    started = time.monotonic()
    with ours, pytest.raises(TimeoutError):
        receive(ours, within(0.5))
    assert time.monotonic() - started < 20
    stop.set()
    thread.join()
    theirs.close()


def test_control_characters_are_replaced():
    assert clean_text("a\x1b[31mb\nc\u202e", 7) == "a\ufffd[31mb"


def good():
    packer = Packer()
    value = [torch.rand(2, 3), torch.tensor([True, False]), np.ones(2)]
    value.append((1, {"k": torch.zeros(2, dtype=torch.int8, device="meta")}))
    return parts(Response(id=1, values=[packer.pack(value)]), packer.tensors)


GOOD = good()


def is_refused_or_read(text, payload):
    """The only two ways that reading may end."""
    try:
        response, tensors = parse(text, payload)
        reader = ValueReader(tensors)
        [reader.read(value) for value in response.values]
        assert all(torch.equal(t, t) or t.isnan().any() for t in tensors)  # their memory is theirs
    except ProtocolError:
        pass


def mutated(data, random):
    """Replace, insert or cut a few bytes somewhere."""
    place = random.randrange(len(data))
    new = random.choice([b"", random.randbytes(random.randrange(8)), bytes([data[place] ^ 1])])
    return data[:place] + new + data[place + random.randrange(12) :]


@pytest.mark.parametrize("part", [0, 1], ids=["header", "payload"])
def test_mutated_frames_are_refused_or_read(part):
    random = Random(part)
    for _ in range(MUTATIONS):
        changed = [bytes(GOOD[0]), bytes(GOOD[1])]
        for _ in range(random.randrange(1, 4)):
            changed[part] = mutated(changed[part], random)
        is_refused_or_read(changed[0], bytearray(changed[1]))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(st.sampled_from("tamlusdyvxohgfk"), inner)
        | st.tuples(st.sampled_from("tlud"), inner, inner)
    ),
    max_leaves=12,
)


@settings(max_examples=INVENTIONS, deadline=None, database=None)
@given(json_values)
@pytest.mark.slow
def test_invented_values_are_refused_or_read(value):
    table = json.loads(GOOD[0])["tensors"]
    text = json.dumps({"values": [value], "tensors": table}).encode()
    is_refused_or_read(text, bytearray(GOOD[1]))
