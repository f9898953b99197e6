"""Loads the batches of a training script: in its own process, or ahead of time in others.

Promises   a batch has the same bits, dtypes, shapes and strides whichever process loads it: a load
           begins with seed_all() of the batch's seed, workers compute with as many threads as the
           script, and a load in the script's process leaves the script's generators alone. A
           worker that dies fails the batch that it loads, and no other; without workers the
           script's process loads. Workers end with that process, even when it is killed, and
           leave nothing behind: batches come through sockets, not through /dev/shm.
Does not   limit how far ahead it loads (the caller does, with want()); replace workers that died;
           tell workers what the script changes later in the dataset or in PyTorch's settings, or
           what is local to its threads; keep requires_grad, or that two tensors share memory, on
           the way from a worker (_wire.py); report a dataset that hangs in the script's process.
Threads    any. Other threads of the script should not draw random numbers during a load in it.
Errors     LoadError for what a dataset, its collate_fn or a worker did; TypeError and ValueError
           for arguments that can never work.
"""
import atexit
import collections
import concurrent.futures
import contextlib
import ctypes
import gc
import operator
import os
import signal
import socket
import stat
import sys
import threading
import time
import traceback
import weakref

import torch
import torch.utils.data

from . import _announced, _ending, _seeds, _wire
from ._wire import LoadError

REPORT_S = 30.0  # take() says so often what it waits for
_JOIN_S = 5.0  # close() waits so long for each killed worker; one in a stuck file system may stay
_SHOWN_MAX = 20  # samples that a message names
_PR_SET_PDEATHSIG = 1

_libc = ctypes.CDLL(None, use_errno=True)


def _say(text):
    with contextlib.suppress(AttributeError, ValueError, OSError):
        sys.stderr.write(f"evenkeel: {text}\n")
        sys.stderr.flush()


# ---- A worker process.

class _Source:
    """What to load with. It does not know the Loader, which can thus end while threads use it."""

    def __init__(self, dataset, collate_fn):
        self.dataset = dataset
        self.collate_fn = collate_fn or torch.utils.data.default_collate

    def load(self, indices, seed):
        _seeds.seed_all(seed)
        if getattr(self.dataset, "__getitems__", None):
            return self.collate_fn(self.dataset.__getitems__(list(indices)))
        return self.collate_fn([self.dataset[index] for index in indices])


def _settle(parent, sock):
    """Makes a forked copy of the script's process a worker, without the duties of the script."""
    gc.freeze()  # garbage of the script may say goodbye to somebody when it is collected
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it ended before the line above
        os._exit(1)
    signal.set_wakeup_fd(-1)
    # The script's handlers would note a signal in memory, or in files, that only it should touch.
    _announced.outlive()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    # The link to the launcher must end with the script's process.
    link = os.environ.pop("KEEL_CONTROL_FD", "")
    with contextlib.suppress(OSError, ValueError):
        if int(link) != sock.fileno() and stat.S_ISSOCK(os.fstat(int(link)).st_mode):
            os.close(int(link))


def _serve(channel, source):
    while True:
        indices, seed = _wire.unpack(*channel.receive())
        try:
            reply = (True, source.load(indices, seed))
        except BaseException:
            reply = (False, traceback.format_exc())
        try:
            views, owner = _wire.pack(reply)
        except BaseException as error:
            views, owner = _wire.pack((False, str(error)))
        _ending.flush()
        channel.send(views)
        del reply, views, owner  # the memory of a batch, while idle


class _Worker:
    """The script's side of a worker process, or (`sock` None) the script's process itself."""

    def __init__(self, pid, sock=None):
        self.pid, self.sock = pid, sock
        self.alive, self.reaped = True, False
        self.thread = None

    def kill(self):
        """Under the pool's lock, so that the number is still this process's."""
        if self.reaped or self.pid is None:
            return
        # waitid() raises if someone else reaped the process: another one may have its number.
        with contextlib.suppress(ChildProcessError, ProcessLookupError):
            os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            os.kill(self.pid, signal.SIGKILL)

    def look(self):
        """Raises EOFError once it has ended."""
        with contextlib.suppress(ChildProcessError):
            if not os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                return
        raise EOFError("the worker process has ended")


def _how(status):
    """How a process ended. None: unknown."""
    if status is None:
        return "ended (something else in the script's process took its exit code)"
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"


def _cure(status):
    if status is not None and os.WIFSIGNALED(status):
        if os.WTERMSIG(status) == signal.SIGKILL:
            return ("The kernel does so when memory runs out (dmesg tells): use fewer workers "
                    "(num_workers) or smaller batches")
        return "If that was a crash in native code, num_workers=0 shows it in a debugger"
    return "The dataset, or a library that it calls, ended the process; num_workers=0 shows where"


# ---- The pool, and the batches.

class _Job:
    """One wanted batch. The fields below `seed` are guarded by the pool's lock."""

    def __init__(self, batch, indices, seed):
        self.batch, self.indices, self.seed = batch, indices, seed
        self.by = None  # the _Worker that loads it
        self.begun = None
        self.done = self.dropped = False
        self.value = self.failure = self.cause = None

    def __str__(self):
        more = len(self.indices) - _SHOWN_MAX
        shown = ", ".join(map(str, self.indices[:_SHOWN_MAX]))
        return f"batch {self.batch} (samples [{shown}]{f' and {more} more' if more > 0 else ''})"

    def is_loading(self):
        return not (self.done or self.dropped) and self.by is not None and self.by.alive

    def finish(self, value=None, failure=None, cause=None):
        if not self.dropped:
            self.value, self.failure, self.cause = value, failure, cause
        self.done = True


class _Pool:
    """The worker processes, each with a thread here that gives it one batch at a time. In a process
    that the script forked, the pool is empty."""

    def __init__(self, source, count):
        self.source = source
        self.owner = os.getpid()
        self.workers, self.queue = [], collections.deque()
        self.closed = False
        self.here = _Worker(self.owner)
        self.leave()
        _pools.add(self)
        try:
            for number in range(count):
                self._start(f"worker process {number + 1} of {count}")
        except BaseException:
            self.stop()
            self.join()
            raise

    def leave(self):
        """In a new process: without the workers, whose locks and threads stayed behind."""
        self.changed = threading.Condition()
        self.here.alive = False
        self.here, self.here_lock = _Worker(os.getpid()), threading.RLock()
        for worker in self.workers:
            worker.alive = False
            worker.sock.close()
        self.workers.clear()
        self.queue.clear()

    def _start(self, name):
        """Forks in a thread of its own, for two reasons. GNU's OpenMP has a team of threads for
        each thread that computes: a worker forked by such a thread would wait for its team, which
        stayed behind. And the kernel kills a worker when the thread that forked it ends
        (PR_SET_PDEATHSIG), so that thread must live as long as the worker."""
        _ending.flush()  # or both processes would write what waits in the buffers
        ours, theirs = socket.socketpair()
        worker = _Worker(None, ours)
        self.workers.append(worker)
        forked = concurrent.futures.Future()
        worker.thread = threading.Thread(
            target=self._fork, args=(worker, theirs, torch.get_num_threads(), forked),
            name="evenkeel-loader", daemon=True)
        try:
            worker.thread.start()
            forked.result()
        except (OSError, RuntimeError) as error:
            self.workers.remove(worker)
            ours.close()
            raise LoadError(f"cannot start {name}: {error}. Raise the limit of processes (ulimit "
                            "-u, or that of the container) or use a smaller num_workers"
                            ) from error
        finally:
            theirs.close()

    def _fork(self, worker, theirs, threads, forked):
        parent = os.getpid()
        try:
            pid = os.fork()
        except BaseException as error:
            forked.set_exception(error)
            return
        if pid == 0:
            self._be_worker(theirs, parent, threads)
        worker.pid = pid
        forked.set_result(pid)
        self._tend(worker, _wire.Channel(worker.sock, worker.look))

    def _be_worker(self, sock, parent, threads):
        """Never returns: the script's code, and what it does at exit, are for its own process."""
        code = 1
        try:
            _settle(parent, sock)
            torch.set_num_threads(threads)
            _serve(_wire.Channel(sock), self.source)
        except (EOFError, ConnectionError):
            code = 0  # the Loader was closed
        except BaseException:
            traceback.print_exc()
        finally:
            _ending.flush()
            os._exit(code)

    def _tend(self, worker, channel):
        """Gives the worker batches until it ends or the Loader is closed."""
        while True:
            job = self._next(worker)
            if job is None:
                self._bury(worker)
                return
            begun = False
            try:
                views, owner = _wire.pack((job.indices, job.seed))
                channel.send(views)
                begun = True
                body, buffers = channel.receive()
            except Exception as error:
                # The kernel says that the connection was reset if the worker had not read all.
                begun = begun and not isinstance(error, ConnectionResetError)
                self._lose(worker, job, begun, error)
                return
            self._deliver(worker, job, body, buffers)
            del job, views, owner, body, buffers

    def _next(self, worker):
        with self.changed:
            while not self.closed:
                if self.queue:
                    job = self.queue.popleft()
                    job.by, job.begun = worker, time.monotonic()
                    return job
                self.changed.wait()
        return None

    def _deliver(self, worker, job, body, buffers):
        failure = value = None
        try:
            if not job.dropped:
                fine, value = _wire.unpack(body, buffers)
                if not fine:
                    failure = f"worker process {worker.pid} cannot load {job}:\n{value}"
        except BaseException:
            failure = f"what worker process {worker.pid} sent for {job} cannot be unpickled:\n" \
                      f"{traceback.format_exc()}"
        with self.changed:
            job.finish(None if failure else value, failure)
            self.changed.notify_all()

    def _bury(self, worker):
        """The wait status of a worker, which is killed if it lives."""
        with self.changed:
            worker.kill()
        status = None
        with contextlib.suppress(ChildProcessError):
            os.waitid(os.P_PID, worker.pid, os.WEXITED | os.WNOWAIT)
        with self.changed:
            with contextlib.suppress(ChildProcessError):
                status = os.waitpid(worker.pid, os.WNOHANG)[1]
            worker.reaped = True
            worker.alive = False
            worker.sock.close()
        return status

    def _lose(self, worker, job, begun, error):
        """A worker ended, or what it sent has no room here. `begun`: it has the job."""
        foreign = not isinstance(error, (OSError, EOFError))
        status = self._bury(worker)
        how = f"was ended, after {error}," if foreign else _how(status)
        with self.changed:
            left = sum(other.alive for other in self.workers)
            if self.closed or job.dropped:
                job.finish()
            elif begun:
                job.finish(failure=f"worker process {worker.pid} {how} while it loaded {job}. "
                                   f"{'' if foreign else _cure(status)}")
            else:
                job.by = None
                self.queue.appendleft(job)
            if left == 0:
                self.queue.clear()  # take() loads what nobody has begun
            if not self.closed:
                rest = (f"{left} of {len(self.workers)} are left to load batches" if left else
                        "none is left, so the script's own process loads the batches from now on")
                _say(f"worker process {worker.pid} {how}; {rest}")
            self.changed.notify_all()

    def stop(self):
        """Ends the workers, without waiting for it. Also called by the garbage collector, at any
        place of a thread that holds the lock."""
        if self.owner != os.getpid():
            return
        with self.changed:
            self.closed = True
            self.queue.clear()
            for worker in self.workers:
                worker.kill()
                with contextlib.suppress(OSError):
                    worker.sock.shutdown(socket.SHUT_RDWR)
            self.changed.notify_all()

    def join(self):
        for worker in self.workers:
            if worker.thread is not threading.current_thread() and worker.alive:
                worker.thread.join(_JOIN_S)


def refuse_stream(dataset):
    """TypeError for what is no map-style dataset; len() may be asked of one that passes."""
    if (isinstance(dataset, torch.utils.data.IterableDataset)
            or not hasattr(dataset, "__len__") or not hasattr(dataset, "__getitem__")):
        raise TypeError(f"{type(dataset).__name__} is not a map-style dataset. After a failure "
                        "any process must be able to load any sample again, by its number, so "
                        "give a dataset that has __len__ and __getitem__")


class Loader:
    """The batches of one dataset. Use: want(), then take(), then drop()."""

    def __init__(self, dataset, collate_fn=None, num_workers=0):
        """`dataset`: map-style, of torch.utils.data or anything with __len__ and __getitem__.
        `collate_fn`: makes a batch of a list of samples; None: PyTorch's default_collate."""
        self._pool = None
        refuse_stream(dataset)
        if isinstance(num_workers, bool) or not isinstance(num_workers, int) or num_workers < 0:
            raise ValueError(f"num_workers is {num_workers!r}, not a number of processes")
        self._jobs = {}
        self._pool = _Pool(_Source(dataset, collate_fn), num_workers)

    def want(self, batch, indices, seed):
        """Notes a batch, and has it loaded as soon as a worker is free. With other samples or
        another seed than before, the batch of that number is dropped first."""
        indices, seed, pool = list(map(operator.index, indices)), operator.index(seed), self._pool
        with pool.changed:
            if pool.closed:
                raise LoadError(f"batch {batch} is wanted of a Loader that is closed")
            old = self._jobs.get(batch)
            if old is not None and (old.indices, old.seed) == (indices, seed):
                return
            self._drop(batch)
            job = self._jobs[batch] = _Job(batch, indices, seed)
            if any(worker.alive for worker in pool.workers):
                pool.queue.append(job)
                pool.changed.notify_all()

    def take(self, batch):
        """The batch, which stays here until it is dropped. Waits for the worker that loads it;
        where none does, loads it here and now."""
        pool = self._pool
        with pool.changed:
            job = self._jobs.get(batch)
            if job is None:
                raise LoadError(f"batch {batch} was never wanted, or has been dropped")
            due = time.monotonic() + REPORT_S
            while job.is_loading():
                pool.changed.wait(max(0, due - time.monotonic()))
                if time.monotonic() >= due and job.is_loading():
                    due += REPORT_S
                    _say(f"{job} has not come yet: process {job.by.pid} began to load it "
                         f"{time.monotonic() - job.begun:.0f} s ago")
            mine = not job.done and not job.dropped
            if mine:
                self._unqueue(job)
                job.by, job.begun = pool.here, time.monotonic()
        if mine:
            self._load_here(job)
        with pool.changed:
            if job.dropped:
                raise LoadError(f"{job} was dropped while it was waited for")
            if job.failure is not None:
                raise LoadError(job.failure) from job.cause
            return job.value

    def drop(self, batch):
        """Forgets a batch, whether or not it was ever wanted, begun or taken."""
        with self._pool.changed:
            self._drop(batch)
            self._pool.changed.notify_all()

    def close(self):
        """Ends the workers at once, and forgets all batches."""
        pool = self._pool
        pool.stop()
        with pool.changed:
            pool.closed = True  # also in a forked process
            for batch in list(self._jobs):
                self._drop(batch)
            pool.changed.notify_all()
        if pool.owner == os.getpid():
            pool.join()

    def __del__(self):
        if self._pool is not None:
            self._pool.stop()

    def _load_here(self, job):
        pool, value, failure, cause = self._pool, None, None, None
        try:
            with pool.here_lock, _seeds.kept():
                value = pool.source.load(job.indices, job.seed)
        except Exception as error:
            failure, cause = f"cannot load {job}: {type(error).__name__}: {error}", error
        except BaseException:  # the user's interrupt
            with pool.changed:
                job.by = None
                pool.changed.notify_all()
            raise
        with pool.changed:
            job.finish(value, failure, cause)
            pool.changed.notify_all()

    def _unqueue(self, job):
        with contextlib.suppress(ValueError):
            self._pool.queue.remove(job)

    def _drop(self, batch):
        job = self._jobs.pop(batch, None)
        if job is not None:
            job.dropped = True
            job.value = job.failure = job.cause = None
            self._unqueue(job)


_pools = weakref.WeakSet()


def _leave_all():
    for pool in list(_pools):
        pool.leave()


def _end_all():
    for pool in list(_pools):
        pool.stop()
        pool.join()


os.register_at_fork(after_in_child=_leave_all)
atexit.register(_end_all)
