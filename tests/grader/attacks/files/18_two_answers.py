"""Sends an empty record of a test twice. The second record must not be used as the record of the
next test.
"""

import json
import os
import struct


def record(test):
    text = json.dumps([test, [], "passed", ""]).encode()
    return struct.pack("<III", len(text) + 8, len(text), 0) + text


def double(x):
    os.write(3, record("test_doubles[1]") * 2)
    return x
