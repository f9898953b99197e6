"""What keelrun starts to have a process at hand that has imported PyTorch, when a worker dies.

    python -u -m evenkeel_spare        # by keelrun alone; descriptor 3 leads to it

Promises   the process becomes the worker as if it had just been started: its command line,
           environment, streams and descriptors are the worker's, the script is __main__, and its
           tracebacks hold nothing of this file.
Does not   import evenkeel, which looks at the environment, or anything else of the script's.
"""
import sys

# The folder that it was started in, of which a script elsewhere imports nothing.
if __name__ == "__main__" and not getattr(sys.flags, "safe_path", False):
    del sys.path[0]

import fcntl
import gc
import os
import runpy
import socket
import types

GATE = 3
DESCRIPTORS_MAX = 16


def wait():
    """Imports what takes long, says so, and returns what the worker shall be: (arguments,
    environment). Without any it ends, since keelrun has gone."""
    gc.disable()            # nearly all that is made here stays
    import torch            # noqa: F401
    import torch._dynamo    # noqa: F401  (by the first optimizer; it takes as long again)
    gc.enable()
    gate = socket.socket(fileno=GATE)
    gate.sendall(b"r")
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
    become(*wait())
