"""A worker that writes down what it was given, to $OUT/<rank>.<n>.json (n: which start of that
rank), then does what its arguments say:

say         a line on each stream           fail R C K   rank R exits with C in its first K starts
signal R S  rank R kills itself by signal S error R      rank R writes an error file, and exits 1
wait        until it is killed              trap         until SIGTERM or another stop, then exit 0
fork        leaves a child that waits       deaf         until it is killed; ignores SIGTERM
flat R      ... a file in its flat form     nested R, bare R   ... with a traceback, and without
well R      a file, and exits 0             nested_signal R    a file, and kills itself by SIGKILL
"""
import itertools
import json
import os
import signal
import subprocess
import sys
import time

LIMIT_S = 100  # whoever was to kill us has forgotten it
LONG_AGO_S = 45_835_200   # noon of 15 June 1971 in Greenwich
OTHERS = ("flat", "nested", "bare", "nested_signal")
RANK = int(os.environ["RANK"])


def note(folder):
    facts = {"env": dict(os.environ), "argv": sys.argv, "line": sys.orig_argv, "pid": os.getpid(),
             "session": os.getsid(0), "main": __name__}
    with open(f"{folder}/new{os.getpid()}", "w", encoding="utf-8") as file:
        json.dump(facts, file)
    for start in itertools.count():
        try:
            os.link(f"{folder}/new{os.getpid()}", f"{folder}/{RANK}.{start}.json")
            return start
        except FileExistsError:
            pass  # an earlier start of this rank


def await_all(folder, start):
    """Nobody acts before all are there: whom a failure stops would else be missing at times."""
    end = time.monotonic() + LIMIT_S
    files = [f"{folder}/{rank}.{start}.json" for rank in range(int(os.environ["WORLD_SIZE"]))]
    while not all(map(os.path.exists, files)) and time.monotonic() < end:
        time.sleep(0.005)


def say():
    # In one write each: print() under -u writes the end of the line by itself, and another worker's
    # line may come between.
    os.write(1, f"out-{RANK}\n".encode())
    os.write(2, f"err-{RANK}\n".encode())


def write_error():
    message = {"message": {"message": "Boom: x", "extraInfo": {"py_callstack": "tb",
                                                              "timestamp": str(int(time.time()))}}}
    leave(message)
    sys.exit(1)


def leave(message):
    with open(os.environ["TORCHELASTIC_ERROR_FILE"], "w", encoding="utf-8") as file:
        json.dump(message, file)


def write_other(action):
    extra = {"timestamp": LONG_AGO_S}
    if action != "bare":
        extra["py_callstack"] = "the traceback"
    leave({"message": "flat words", "timestamp": LONG_AGO_S} if action == "flat" else
          {"message": {"message": "the message", "extraInfo": extra}})
    if action == "nested_signal":
        os.kill(os.getpid(), signal.SIGKILL)
    sys.exit(0 if action == "well" else 1)


def trap():
    def noted(number, _):
        with open(f"{os.environ['OUT']}/signals", "a", encoding="utf-8") as file:
            file.write(f"{RANK} {signal.Signals(number).name}\n")
        sys.exit(0)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1):
        signal.signal(number, noted)


def main():
    action = (sys.argv[1:] or ["none"])[0]
    numbers = [int(x) for x in sys.argv[2:] if x.isdigit()]
    if action == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    elif action == "trap":
        trap()
    elif action == "fork":
        subprocess.Popen(["sleep", str(LIMIT_S)], start_new_session=True)
    start = note(os.environ["OUT"])
    await_all(os.environ["OUT"], start)
    if action == "say":
        say()
    elif action == "fail" and numbers[0] == RANK and start < numbers[2]:
        sys.exit(numbers[1])
    elif action == "signal" and numbers[0] == RANK:
        os.kill(os.getpid(), numbers[1])
    elif action == "error" and numbers[0] == RANK:
        write_error()
    elif action in (*OTHERS, "well") and numbers[0] == RANK:
        write_other(action)
    others_fail = (action in ("signal", "error", *OTHERS) or
                   (action == "fail" and start < numbers[2]))
    if action in ("wait", "trap", "deaf") or others_fail:
        time.sleep(LIMIT_S)


main()
