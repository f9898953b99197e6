"""What keelrun starts to have a process at hand that has imported PyTorch, when a worker dies.

    python -u -m evenkeel_spare        # by keelrun alone; descriptor 3 leads to it

Promises   the process becomes the worker as if it had just been started: its command line,
           environment, streams and descriptors are the worker's, the script is __main__, and its
           tracebacks hold nothing of this file.
Does not   import evenkeel, which looks at the environment, or anything else of the script's.
"""
import fcntl
import os
import runpy
import socket
import sys
import types

GATE = 3
DESCRIPTORS_MAX = 16


def wait():
    """Imports what takes long, says so, and returns what the worker shall be: (arguments,
    environment). Without any it ends, since keelrun has gone."""
    import torch            # noqa: F401
    import torch._dynamo    # noqa: F401  (by the first optimizer; it takes as long again)
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
        what, name, rest = what, rest[0], rest[1:]
    else:
        what, name = "script", what
    first = {"-m": os.getcwd(), "-c": ""}.get(what, os.path.dirname(os.path.realpath(name)))
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = first
    sys.argv = ["-c" if what == "-c" else name, *rest]
    if what == "-m":
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    elif what == "script" and not os.path.isfile(name):   # a folder or an archive
        runpy.run_path(name, run_name="__main__")
    else:
        run(name, what)


def run(name, what):
    """The code, or the script of that name, in a module __main__ of its own."""
    main = types.ModuleType("__main__")
    main.__builtins__ = __builtins__
    if what == "script":
        main.__file__ = name = os.path.abspath(name)
    sys.modules["__main__"] = main
    try:
        if what == "script":
            with open(name, "rb") as file:
                code = compile(file.read(), name, "exec", dont_inherit=True)
        else:
            code = compile(name, "<string>", "exec", dont_inherit=True)
        exec(code, main.__dict__)
    except (SystemExit, KeyboardInterrupt):
        raise
    except BaseException as error:
        trace = error.__traceback__.tb_next   # without this function's own line
        error.__traceback__ = trace
        sys.excepthook(type(error), error, trace)
        sys.exit(1)


if __name__ == "__main__":
    become(*wait())
