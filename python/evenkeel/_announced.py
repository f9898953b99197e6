"""Signals by which schedulers announce the end to all processes of a job.

Promises   a process that loads samples outlives them, since the script's process still wants the
           batches of its last step; what a dataset starts there, or forks, is ended by them.
"""
import contextlib
import os
import signal

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


def outlive():
    """From now on this process does. They are caught: programs that it starts would go on ignoring
    what it ignored."""
    for number in SIGNALS:
        signal.signal(number, _do_nothing)
        signal.siginterrupt(number, False)
    os.register_at_fork(before=_block, after_in_parent=_unblock, after_in_child=_end_by_them)


def _do_nothing(*_):
    pass


# What comes between a fork and the next line of the child waits for that line.
def _block():
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)


def _unblock():
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


def _end_by_them():
    with contextlib.suppress(ValueError):   # forked by a thread
        for number in SIGNALS:
            signal.signal(number, signal.SIG_DFL)
    _unblock()
