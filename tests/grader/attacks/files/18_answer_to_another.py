"""Sends the record of a test that is not running. The result is bad output."""

import json
import os
import struct


def double(x):
    text = json.dumps(["test_of_another", [], "passed", ""]).encode()
    os.write(3, struct.pack("<III", len(text) + 8, len(text), 0) + text)
    return x
