"""Plays keelrun before evenkeel_spare.py, as elastic/workers/spares.cc does.

Promises   a Maker starts the process that imports what takes long; each make() gives one process
           more, a child of this one, which waits at its gate to become() what it is told.
Does not   end what it has made: that ends with this process.
"""
import contextlib
import ctypes
import fcntl
import os
import socket
import subprocess
import sys

GATE = 3
PR_SET_CHILD_SUBREAPER = 36
_nothing = None


def play_keelrun():
    """Before anything else here. Nothing but gates gets their number, and whoever is made below
    this process is taken over by it."""
    global _nothing
    if _nothing is None:
        with open(os.devnull, "rb") as file:
            _nothing = fcntl.fcntl(file.fileno(), fcntl.F_DUPFD_CLOEXEC, GATE + 1)
        os.dup2(_nothing, GATE)
        assert ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0


@contextlib.contextmanager
def at_the_gates_number(end):
    """For a start within: this end of a socket has the number there."""
    os.dup2(end.fileno(), GATE)
    try:
        yield
    finally:
        os.dup2(_nothing, GATE)


class Maker:
    def __init__(self, command, timeout, **more):
        """`more`: as Popen() has it."""
        self.gate, theirs = socket.socketpair()
        self.gate.settimeout(timeout)
        with theirs, at_the_gates_number(theirs):
            self.process = subprocess.Popen(command, pass_fds=[GATE], stdout=subprocess.DEVNULL,
                                            stderr=subprocess.DEVNULL, **more)

    def said(self):
        """Its next word: that it makes others, or that it waits itself."""
        return self.gate.recv(1)

    def make(self):
        """The number of a process more, which waits, and its gate."""
        ours, theirs = socket.socketpair()
        ours.settimeout(self.gate.gettimeout())
        socket.send_fds(self.gate, [b"m"], [theirs.fileno()])
        theirs.close()
        pid = int.from_bytes(self.gate.recv(4), sys.byteorder)
        assert ours.recv(1) == b"r" and os.getpgid(pid) == pid
        return pid, ours

    def end(self):
        self.gate.close()
        self.process.wait()


def become(gate, words, environment, descriptors):
    """`words`: the command line; `descriptors`: by the numbers that they shall have."""
    text = [" ".join(map(str, descriptors)), str(len(words)), *words,
            *(f"{name}={value}" for name, value in environment.items())]
    file = os.memfd_create("words")
    os.write(file, b"".join(os.fsencode(word) + b"\0" for word in text))
    os.lseek(file, 0, os.SEEK_SET)
    socket.send_fds(gate, [b"w"], [file, *descriptors.values()])
    gate.close()
    os.close(file)
