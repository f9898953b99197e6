"""The connections of a process group, so that they can be ended from outside.

Promises   shut() ends each connection that was opened within the object, whatever waits for it,
           also while the group is being made, of which Gloo has nothing yet to end it by.
           A descriptor that has become another's meanwhile is left alone.
Does not   know whose a connection is: another thread's that opens in that moment counts, too.
"""
import os
import socket

HERE = "/proc/self/fd"


def _open_now():
    """{descriptor: which socket it is} of all sockets."""
    found = {}
    for name in os.listdir(HERE):
        try:
            what = os.readlink(f"{HERE}/{name}")
        except OSError:
            continue
        if what.startswith("socket:"):
            found[int(name)] = what
    return found


class Sockets:
    def __init__(self):
        self.own = {}
        self.before = None   # while one is being opened

    def __enter__(self):
        self.before = _open_now()

    def __exit__(self, *_):
        self.own |= self._new()
        self.before = None

    def _new(self):
        before = self.before
        return {} if before is None else \
            {fd: what for fd, what in _open_now().items() if before.get(fd) != what}

    def shut(self):
        for fd, what in (self.own | self._new()).items():
            try:
                if os.readlink(f"{HERE}/{fd}") != what:
                    continue
                with socket.socket(fileno=os.dup(fd)) as one:
                    listens = one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
                    # Gloo aborts the process if its listener fails.
                    if one.family in (socket.AF_INET, socket.AF_INET6) and not listens:
                        one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass   # it is closed already
