"""Messages between a worker and the trusted side: their size and time are bounded."""

import socket
import struct
import threading
import time

import pytest

from grader.sandbox.frames import Closed, ProtocolError, receive_frame, send_frame, within


@pytest.fixture
def channel():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def test_messages_arrive_one_by_one(channel):
    ours, theirs = channel
    for content in (b"one", b"", b"\0" * 3000):
        send_frame(theirs, content)
    assert [receive_frame(ours, 3000, within(5)) for _ in range(3)] == [b"one", b"", b"\0" * 3000]


def test_an_announced_size_costs_nothing(channel):
    ours, theirs = channel
    theirs.sendall(struct.pack("<I", 101))
    with pytest.raises(ProtocolError):
        receive_frame(ours, 100)
    theirs.sendall(struct.pack("<I", 100) + b"{}")
    with pytest.raises(TimeoutError):
        receive_frame(ours, 100, within(0.2))


def test_half_a_message_is_none(channel):
    ours, theirs = channel
    theirs.sendall(struct.pack("<I", 100) + b"{}")
    theirs.shutdown(socket.SHUT_WR)
    with pytest.raises(Closed):
        receive_frame(ours, 100, within(5))


@pytest.mark.slow
def test_a_trickle_does_not_extend_the_deadline(channel):
    ours, theirs = channel
    stop = threading.Event()

    def drip():
        while not stop.wait(0.05):
            theirs.send(b"\0")

    thread = threading.Thread(target=drip)
    theirs.sendall(struct.pack("<I", 1000))
    thread.start()
    started = time.monotonic()
    with pytest.raises(TimeoutError):
        receive_frame(ours, 1000, within(0.5))
    assert time.monotonic() - started < 20
    stop.set()
    thread.join()
