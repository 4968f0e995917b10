"""Answers a request twice. The second answer is read as one to the next request: bad output."""

import json
import os
import struct
import sys


def request_number():
    frame = sys._getframe()
    while "id" not in frame.f_locals.get("header", {}):
        frame = frame.f_back
    return frame.f_locals["header"]["id"]


def frame(header):
    text = json.dumps(header).encode()
    return struct.pack("!II", len(text), 0) + text


def double(x):
    says = {"values": [True], "graphs": [], "moved_away": [], "changed_lists": [], "stale": False}
    says |= {"moved": False, "generators": [], "called": None, "tensors": []}
    os.write(3, frame({"id": request_number(), "released": [], "says": says}) * 2)
    return x
