"""Answers a request twice. The second answer is read as one to the next request: bad output."""

import json
import os
import struct
import sys


def request_number():
    frame = sys._getframe()
    while not hasattr(frame.f_locals.get("request"), "id"):
        frame = frame.f_back
    return frame.f_locals["request"].id


def frame(message):
    text = json.dumps(message).encode()
    return struct.pack("!II", len(text), 0) + text


def double(x):
    os.write(3, frame({"id": request_number(), "values": [True]}) * 2)
    return x
