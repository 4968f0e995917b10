"""The worker's main loop: each request that arrives is answered, whatever comes of it."""

from __future__ import annotations

import socket

from torch import Tensor

from grader.isolation.protocol import Closed, Header, Unsendable
from grader.isolation.protocol.frames import receive_request, send_answer
from grader.isolation.protocol.memory import Memory
from grader.isolation.worker.exceptions import class_name
from grader.isolation.worker.inbox import Inbox
from grader.isolation.worker.requests import Worker


def main(channel: socket.socket, memory: Memory, called: list[str] | None = None) -> None:
    """Answer requests until the other side closes the connection.

    Args:
        channel: to the trusted process.
        memory: shared with it.
        called: where the first call of a forbidden function is noted, if they have been taken away
            from this process already.
    """
    worker, inbox = Worker(called), Inbox(memory)
    while True:
        try:
            header = receive_request(channel)
        except Closed:
            return
        says, tensors = _answered(worker, header, inbox.tensors(header["placed"]))
        answer = {"id": header["id"], "released": inbox.released()}
        try:
            send_answer(channel, answer, says, tensors, memory)
        except OSError:
            raise  # the connection is broken
        except Exception as reason:
            send_answer(channel, answer, _refusal(reason), [], memory)


def _answered(worker: Worker, header: Header, tensors: list[Tensor]) -> tuple[Header, list[Tensor]]:
    try:
        return worker.answer(header, worker.request(tensors))
    except BaseException as error:  # what this package does with students' objects, they may refuse
        return _refusal(error), []


def _refusal(error: BaseException) -> Header:
    """Return the answer to a request whose answer can't be told."""
    raises = f"something that raises {class_name(type(error))} when it is looked at"
    told = str(error) if isinstance(error, Unsendable) else raises
    return {"unsendable": told}
