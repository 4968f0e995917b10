"""Answers a request twice. The second answer is read as one to the next request: bad output."""

import json
import os
import struct
import sys


def request_number():
    frame = sys._getframe()
    while frame and not hasattr(frame.f_locals.get("request"), "id"):
        frame = frame.f_back
    return frame and frame.f_locals["request"].id


def frame(message):
    text = json.dumps(message).encode()
    return struct.pack("!II", len(text), 0) + text


def record(test):
    text = json.dumps([test, [], "passed", ""]).encode()
    return struct.pack("<III", len(text) + 8, len(text), 0) + text


def double(x):
    number = request_number()
    if number is None:
        os.write(3, record("test_doubles[1]") * 2)
    else:
        os.write(3, frame({"id": number, "values": [True]}) * 2)
    return x
