"""Processes of a test or a measurement, found by a mark: a variable of the environment that they
all inherit.

Promises   finds those, too, whose parents are gone, and those that start a program in that moment;
           never the one who asks.
Does not   see those of other users, or that cleared their environment.
"""
import os
import select
import signal
import time

# PF_EXITING and PF_KTHREAD of the kernel's include/linux/sched.h.
ENDING_OR_KERNEL = 0x4 | 0x200000
EXEC_LIMIT_S = 10


def kill(pid):
    """SIGKILL to one process; kill() itself would take a group, or everybody, too."""
    if pid <= 1:
        raise ValueError(f"{pid} is no process of a test")
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def inside_exec(stat):
    """Whether a process with no environment only has none yet; `stat`: its /proc/PID/stat."""
    fields = stat.rpartition(")")[2].split()   # from the third of proc(5) on
    code_start, environment_start, environment_end = (int(fields[n - 3]) for n in (26, 50, 51))
    if fields[0] in "ZX" or int(fields[9 - 3]) & ENDING_OR_KERNEL:
        return False
    # exec() sets the bounds of the environment equal first, then right, then the code's start.
    return code_start == 0 or environment_start != environment_end


def environment_of(pid):
    """As it was when its program started; whoever is inside exec() is waited for."""
    limit = time.monotonic() + EXEC_LIMIT_S
    while True:
        with open(f"/proc/{pid}/environ", "rb") as file:
            text = file.read()
        if text or time.monotonic() > limit:
            return text
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            if not inside_exec(file.read()):
                return text
        time.sleep(0.001)


def marked(variable, value):
    """The process numbers of those with that variable and value."""
    wanted = f"{variable}={value}".encode()
    found = []
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        try:
            if pid != os.getpid() and wanted in environment_of(pid).split(b"\0"):
                found.append(pid)
        except OSError:
            pass  # it has ended, or is not ours
    return found


def kill_marked(variable, value):
    """Who they were."""
    found = marked(variable, value)
    for pid in found:
        kill(pid)
    return found


def command_line(pid):
    """'' of one that has ended."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def await_none_marked(variable, value, limit_s):
    """{pid: command line} of those still there when the limit passes."""
    limit = time.monotonic() + limit_s
    while (left := marked(variable, value)) and time.monotonic() < limit:
        for pid in left:
            try:
                handle = os.pidfd_open(pid)
            except ProcessLookupError:
                continue
            ended = select.poll()
            ended.register(handle, select.POLLIN)
            ended.poll(1000 * max(limit - time.monotonic(), 0))
            os.close(handle)
    return {pid: command_line(pid) for pid in left}
