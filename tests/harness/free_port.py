"""free_port(): a port that no other test of this machine takes; as free_port.cc, with which it
shares the names that reserve them.

Promises   it comes once, also to others who ask here or there, while this process lives; the kernel
           gives it to no connection of anybody's.
Does not   keep anybody from listening there who has not asked.
"""
import os
import socket

FIRST, COUNT = 20000, 9600

_reserved = []   # sockets, open until the process ends
_order = iter([FIRST + (os.getpid() * 97 + number) % COUNT for number in range(COUNT)])


def _reserve(port):
    lock = socket.socket(socket.AF_UNIX)
    try:
        lock.bind(f"\0keel-test-port-{port}")
    except OSError:
        lock.close()
        return False
    _reserved.append(lock)
    return True


def _nobody_listens(port):
    with socket.socket() as probe:
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True


def free_port():
    return next(port for port in _order if _reserve(port) and _nobody_listens(port))
