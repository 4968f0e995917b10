"""Answers another request than the one that was made. Bad output."""

import json
import os
import struct


def double(x):
    says = {"values": [True], "graphs": [], "moved_away": [], "changed_lists": [], "stale": False}
    says |= {"moved": False, "generators": [], "called": None, "tensors": []}
    text = json.dumps({"id": 10**6, "released": [], "says": says}).encode()
    os.write(3, struct.pack("!II", len(text), 0) + text)
    return x
