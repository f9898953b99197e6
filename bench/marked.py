"""Processes that a measurement started, found by a mark in the environment they all inherit.

Promises   finds those, too, whose parents are gone.
Does not   see those of other users, or that cleared their environment.
"""
import os
import signal


def marked(variable, mark):
    wanted = f"{variable}={mark}".encode()
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                if wanted in file.read().split(b"\0"):
                    yield int(name)
        except OSError:
            pass  # it has ended, or is not ours


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
