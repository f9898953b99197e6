"""What keelrun starts to have a process at hand that has imported PyTorch, when a worker dies.

    python -u -m evenkeel_spare        # by keelrun alone; descriptor 3, its gate, leads to it

It imports PyTorch once, and stays: for each word of keelrun's it makes one process more, which
waits at a gate of its own to become a worker. Where it cannot make any, it waits itself.

Promises   the process becomes the worker as if it had just been started: its command line,
           environment, streams and descriptors are the worker's, the script is __main__, and its
           tracebacks hold nothing of this file. Whom it makes is keelrun's own child, which
           outlives the maker.
Does not   import evenkeel, which looks at the environment, or anything else of the script's.
"""
import sys

# The folder that it was started in, of which a script elsewhere imports nothing.
if __name__ == "__main__" and not getattr(sys.flags, "safe_path", False):
    del sys.path[0]

import ctypes
import fcntl
import gc
import os
import runpy
import signal
import socket
import struct
import time
import types

GATE = 3
DESCRIPTORS_MAX = 16
# What keelrun hears, and says (elastic/workers/spares.cc).
WAITS, MAKES = b"r", b"m"
PR_SET_PDEATHSIG = 1


def bring_in():
    """Imports what takes long."""
    gc.disable()            # nearly all that is made here stays
    import torch            # noqa: F401
    import torch._dynamo    # noqa: F401  (by the first optimizer; it takes as long again)
    gc.enable()
    gc.freeze()             # all that are made share it, as long as nobody writes to it


def can_make():
    """Whether this process can be doubled: what other threads do would be lost, and keelrun must be
    its parent, which takes over whom it makes."""
    with socket.socket(fileno=os.dup(GATE)) as gate:
        peer = gate.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    keelrun = struct.unpack("3i", peer)[0]
    return len(os.listdir("/proc/self/task")) == 1 and keelrun == os.getppid() != 0


def make_one(keelrun):
    """A process like this one, by a process between that ends at once, since keelrun takes over
    the orphans below it. Returns its number, 0 if there is none; in itself nothing."""
    read, write = os.pipe()
    try:
        between = os.fork()
    except OSError:
        between = -1
    if between == 0:
        between = os.getpid()
        try:
            os.fork()
        finally:
            if os.getpid() == between:
                os._exit(0)
        os.close(read)
        while os.getppid() == between:
            time.sleep(0.001)
        # As whatever keelrun starts: a group of its own, and it dies with keelrun.
        os.setsid()
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != keelrun:
            sys.exit(0)
        if "numpy.random" in sys.modules:   # Python's own is seeded anew by fork()
            sys.modules["numpy.random"].seed()
        os.write(write, os.getpid().to_bytes(4, sys.byteorder))
        os.close(write)
        return None
    os.close(write)
    with open(read, "rb") as file:
        told = file.read(4)
    if between > 0:
        os.waitpid(between, 0)
    return int.from_bytes(told, sys.byteorder)


def make():
    """Makes a process for each word of keelrun's. Returns in those, at their own gates; in this
    one never."""
    gate, keelrun = socket.socket(fileno=GATE), os.getppid()
    gate.sendall(MAKES)
    while True:
        word, descriptors, _, _ = socket.recv_fds(gate, 1, 1)
        if not word:
            sys.exit(0)
        made = make_one(keelrun)
        if made is None:
            break
        gate.sendall(made.to_bytes(4, sys.byteorder))
        os.close(descriptors[0])
    gate.detach()
    os.dup2(descriptors[0], GATE)
    os.close(descriptors[0])


def wait():
    """Says that it waits, and returns what the worker shall be: (arguments, environment). Without
    any it ends, since keelrun has gone."""
    gate = socket.socket(fileno=GATE)
    gate.sendall(WAITS)
    word, descriptors, _, _ = socket.recv_fds(gate, 1, DESCRIPTORS_MAX)
    if not word:
        sys.exit(0)
    with open(descriptors[0], "rb") as file:
        numbers, count, *words = file.read().split(b"\0")[:-1]
    # Out of the way of all the numbers that they are to have.
    lifted = [fcntl.fcntl(one, fcntl.F_DUPFD_CLOEXEC, 64) for one in descriptors[1:]]
    for one in descriptors[1:]:
        os.close(one)
    gate.close()
    for one, number in zip(lifted, numbers.split()):
        os.dup2(one, int(number))
        os.close(one)
    count = int(count)
    environment = dict(word.split(b"=", 1) for word in words[count:])
    return [os.fsdecode(word) for word in words[:count]], environment


def become(arguments, environment):
    """`arguments`: python -u SCRIPT ..., or python -u -m MODULE ..., or python -u -c CODE ..."""
    os.environb.clear()
    os.environb.update(environment)
    sys.orig_argv = arguments
    what, *rest = arguments[2:]
    if what in ("-m", "-c"):
        name, rest = rest[0], rest[1:]
        first = os.getcwd() if what == "-m" else ""
    else:
        name = what
        is_file = os.path.isfile(name)   # else a folder or an archive
        what = "script" if is_file else "folder"
        first = os.path.dirname(os.path.realpath(name)) if is_file else os.path.abspath(name)
    if what == "folder" or not getattr(sys.flags, "safe_path", False):
        sys.path.insert(0, first)
    sys.argv = [what if what in ("-m", "-c") else name, *rest]
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    main.__builtins__ = __builtins__
    try:
        run(what, name, main)
    except (SystemExit, KeyboardInterrupt):
        raise
    except BaseException as error:
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
            trace = trace.tb_next
        error.__traceback__ = trace
        sys.last_type, sys.last_value, sys.last_traceback = type(error), error, trace
        sys.excepthook(type(error), error, trace)
        sys.exit(1)


def run(what, name, main):
    """As Python does, which has its own function for all but scripts and code."""
    if what == "-m":
        return runpy._run_module_as_main(name)
    if what == "folder":
        return runpy._run_module_as_main("__main__", False)
    if what == "script":
        main.__file__ = name = os.path.abspath(name)
        with open(name, "rb") as file:
            code = compile(file.read(), name, "exec", dont_inherit=True)
    else:
        code = compile(name, "<string>", "exec", dont_inherit=True)
    exec(code, main.__dict__)


if __name__ == "__main__":
    bring_in()
    if can_make():
        make()
    become(*wait())
