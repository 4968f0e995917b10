"""Tries to send data by TCP, UDP, a local socket and a raw socket. It cannot create a socket."""

import socket

PORT = int("@PORT@")


def double(x):
    try:
        socket.create_connection(("127.0.0.1", PORT), timeout=1).sendall(b"hidden inputs")
        return x + x
    except OSError as error:
        refusal = error
    for family, kind in (
        (socket.AF_INET, socket.SOCK_DGRAM),
        (socket.AF_INET, socket.SOCK_RAW),
        (socket.AF_UNIX, socket.SOCK_STREAM),
        (socket.AF_NETLINK, socket.SOCK_RAW),
        (socket.AF_VSOCK, socket.SOCK_STREAM),
        (socket.AF_PACKET, socket.SOCK_RAW),
    ):
        try:
            socket.socket(family, kind).close()
        except OSError:
            continue
        return x + x
    raise refusal
