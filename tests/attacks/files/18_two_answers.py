"""Answers a request twice. The second answer is read as one to the next request: bad output."""

import json
import os
import struct
import sys


def request_number():
    frame = sys._getframe()
    while "header" not in frame.f_locals:
        frame = frame.f_back
    return frame.f_locals["header"]["id"]


def frame(header):
    text = json.dumps(header).encode()
    return struct.pack("!II", len(text), 0) + text


def double(x):
    answer = {
        "id": request_number(),
        "values": [True],
        "graphs": [],
        "moved_away": [],
        "stale": False,
    }
    os.write(3, frame(answer) * 2)
    return x
