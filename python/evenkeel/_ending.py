"""How a script with a job ends: by an exception, by leaving its loop, or by the job's own code.

Promises   an exception that nobody catches is told to the launcher, with its traceback, before
           Python prints it; it is also written to the file that agents of torch.distributed.elastic
           read. A script that ends while its job still runs has failed, and exits with 1, after
           what it registered with atexit since it imported the package.
Does not   run then what was registered before, but for logging's.
"""
import atexit
import contextlib
import json
import logging
import os
import sys
import time
import traceback

_jobs = []
_hook_before = None
_has_failed = False
_was_ended = False   # the last job, by an error: who catches that has not trained
_pid = None     # of the process that has them: a child that it forks has none


def script_name():
    return os.path.basename(sys.argv[0]) if sys.argv and sys.argv[0] else "python"


def text_of(error):
    return "".join(traceback.format_exception(error)).rstrip()


def leave(code, text=""):
    """Ends the script with this code, as sys.exit() does."""
    try:
        if text:
            print(text, file=sys.stdout if code == 0 else sys.stderr, flush=True)
    except BrokenPipeError:   # who reads has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    raise SystemExit(code)


ONE_JOB = "a launcher's worker trains one job: start another script for the next"


def install(refusal=ONE_JOB):
    """Before anything of a job can fail. Under a launcher a script trains once; `refusal`: the
    words for a second time."""
    global _hook_before, _pid
    if _hook_before is None:
        _hook_before, _pid = sys.excepthook, os.getpid()
        _print_whole_lines()
        sys.excepthook = _on_exception
        atexit.register(_on_exit)
    elif "KEEL_CONTROL_FD" in os.environ and os.getpid() == _pid:
        raise RuntimeError(refusal)


def _print_whole_lines():
    """keelrun starts Python with -u, which writes a line and its end one after the other: those of
    several workers would mix."""
    if "KEEL_CONTROL_FD" in os.environ and getattr(sys.stdout, "write_through", False):
        sys.stdout.reconfigure(line_buffering=True, write_through=False)


def watch(job):
    _jobs.append(job)


def end_left():
    """Ends jobs that something went wrong with: in a session that goes on nobody else does."""
    global _was_ended
    _was_ended = False
    for job in list(_jobs):
        job._end_for_another()


def note_error():
    """One has ended the job's training: a script that catches it fails nevertheless."""
    global _was_ended
    _was_ended = True


def unwatch(job):
    if job in _jobs:
        _jobs.remove(job)


def _on_exception(kind, error, trace):
    if os.getpid() == _pid:
        _write_error_file(kind, error, trace)
        text = "".join(traceback.format_exception(kind, error, trace)).rstrip()
        try:
            for job in list(_jobs):
                job._fail(text)
        except KeyboardInterrupt:   # nobody wants to wait any longer
            flush()
            os._exit(130)
    _hook_before(kind, error, trace)


def _on_exit():
    global _has_failed
    if os.getpid() != _pid:
        return
    left = [job for job in list(_jobs) if job._program is not None and job._program.has_begun]
    error = getattr(sys, "last_value", None)   # whoever replaced our hook may not have called it
    why = text_of(error) if isinstance(error, Exception) else ""
    for job in list(_jobs):
        job._fail(why or job._error or (
            "the script has ended, or has left its loop, before the training had ended; let the "
            "loop run to its end, or stop the job by a signal"))
    if not left and not _was_ended:
        return
    _has_failed = True
    if left or not why:   # else it has been told
        what = "the loop over the job was left" if left else "an error ended the job"
        with _whatever_streams_there_are():
            print(f"{script_name()}: {what} before the training had ended", file=sys.stderr)


def _whatever_streams_there_are():
    """None, closed ones, full ones."""
    return contextlib.suppress(AttributeError, ValueError, OSError)


def flush():
    for stream in (sys.stdout, sys.stderr):
        with _whatever_streams_there_are():
            stream.flush()


def _exit_as_failed():
    if not _has_failed or os.getpid() != _pid:
        return
    logging.shutdown()
    flush()
    os._exit(1)   # nothing else changes the code of a script that has ended


# What is registered first is called last.
atexit.register(_exit_as_failed)


def _write_error_file(kind, error, trace):
    path = os.environ.get("TORCHELASTIC_ERROR_FILE")
    if not path or os.path.exists(path):
        return
    what = {"message": {"message": f"{kind.__name__}: {error}",
                        "extraInfo": {"py_callstack": "".join(
                            traceback.format_exception(kind, error, trace)),
                            "timestamp": str(int(time.time()))}}}
    try:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            json.dump(what, file)
    except OSError:
        pass   # the launcher still has the traceback
