"""Runs a function that uses torch.distributed as it likes, again whenever the group has changed.

    @ek.rerun
    def train(epoch):                 # torch.distributed is initialised for epoch.world workers
        model = fully_shard(...)
        start = load_the_last_checkpoint()
        for step in range(start, 1000):
            ...
            if agreed(epoch.joins or epoch.stops):   # by an all_reduce of the function's own
                save(step)
                return ek.AGAIN
    train()

Promises   a death takes no survivor's process: what the function does is cut off, its groups are
           aborted (but see below), and it is called again with the members of the next epoch.
           Imports, compiled code and objects outside of the function stay. Without a launcher the
           function runs alone, under torchrun in torchrun's group; then once a call. Under
           keelrun a script makes one call.
Does not   make the result exact: what a call has done since the function's own last checkpoint is
           lost, and data goes on where the function says. ek.Job has no such gaps.
           Look for garbage in what was there before the first call, until the last has returned.
           Get Gloo to give up a send that is half written, or whose receiver is gone: a worker
           that waits for one does not park, and the launcher ends it.
Threads    the function runs in the main thread, which is interrupted by a signal (CUT_OFF); a
           thread beside it listens to the launcher.
"""
import datetime
import functools
import gc
import json
import os
import signal
import threading
import time

import torch
import torch.distributed as dist
import torch.distributed.distributed_c10d as _c10d

from . import _compiler, _ending, _sockets

AGAIN = object()     # what a function returns to be called again, with those who wait to join
CUT_OFF = signal.SIGRTMAX - 5
LISTEN_MS = 100
MEET_PAUSE_S = 0.005
TELL_S = 1.0         # how often the launcher hears that the process moves
CUT_PAUSES_S = (0.05, 0.5, 2.0)    # between interrupts that the function takes no notice of
LOOK_S = 5.0         # a function that has not asked about a stop for so long never does
JUDGE_S = 2.0        # an error may be a break's, of which the launcher tells a moment later
UNUSED_TAG = 0x6b65656c   # and those behind it, of no message in a group
LAZY_VARIABLE, TRUE_WORDS = "TORCH_GLOO_LAZY_INIT", ("1", "t", "true", "y", "yes")
FAILURES_MAX = 3     # in a row, without a death
_links = []          # they stay open until the process ends, which is when the launcher looks


class _Broken(BaseException):
    """The epoch is over; nothing of a function should catch it, as it should not SystemExit."""


class Epoch:
    """One membership, as the function sees it."""

    def __init__(self, number, rank, world, reason):
        self.number, self.rank, self.world, self.reason = number, rank, world, reason
        self.local_rank = int(os.environ.get("LOCAL_RANK", "0"))
        self.deadline = None      # by time.monotonic(), if a stop has one
        self._joins = self._stops = self._looks = False

    @property
    def joins(self):
        """Whether somebody waits to join; returning ek.AGAIN lets them in."""
        return self._joins

    @property
    def stops(self):
        """Whether the job shall stop: save and return. A function that never asks is cut off."""
        self._looks = True
        return self._stops

    def __repr__(self):
        return f"<epoch {self.number}: rank {self.rank} of {self.world}>"


def rerun(function=None, *, backend=None, timeout=datetime.timedelta(minutes=30), join_within=60.0):
    """Decorates a function of an Epoch.

    backend       of torch.distributed; by default nccl where there is a GPU, else gloo
    timeout       of the group's operations
    join_within   seconds after which the function is cut off for those who wait to join, if it
                  has not returned ek.AGAIN
    """
    if function is None:
        return functools.partial(rerun, backend=backend, timeout=timeout, join_within=join_within)
    backend = backend or ("nccl" if torch.cuda.is_available() else "gloo")

    @functools.wraps(function)
    def run(*args, **kwargs):
        if dist.is_initialized():
            raise RuntimeError("torch.distributed is initialised already; ek.rerun makes the group")
        def call(epoch):
            return function(epoch, *args, **kwargs)
        if "KEEL_CONTROL_FD" not in os.environ:
            return _without_launcher(call, backend, timeout)
        return _Reruns(call, backend, timeout, join_within).run()
    return run


def _without_launcher(call, backend, timeout):
    if "RANK" in os.environ:
        dist.init_process_group(backend, timeout=timeout)
    else:
        dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1,
                                timeout=timeout)
    try:
        result = AGAIN
        while result is AGAIN:
            result = call(Epoch(1, dist.get_rank(), dist.get_world_size(), "without keelrun"))
        return result
    finally:
        dist.destroy_process_group()


class _Reruns:
    """A worker of keelrun: its calls, one for each epoch.

    waits   for an epoch       -> meets; or leaves, for a stop
    meets   the other members  -> runs; or waits, if the epoch breaks
    runs    the function       -> waits (broken, or AGAIN); leaves (stop); ends (returned, raised)
    """

    def __init__(self, call, backend, timeout, join_within):
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("ek.rerun runs its function in the main thread, which alone can be "
                               "interrupted")
        self.call, self.backend = call, backend
        self.timeout, self.join_within = timeout, join_within
        self.lock = threading.Condition()
        self.epoch = self.next = None   # the one that is run, and the message of one to come
        self.broken = ""                # why the running one is over
        self.over = (0, "")             # the newest epoch that is known to be over, and why
        self.join_epoch = 0             # the newest one that somebody waits to join
        self.stop = self.gone = ""
        self.ended = False
        self.runs = False               # within the function, which may be cut off
        self.failures = 0
        self.sockets = _sockets.Sockets()
        _ending.install("under keelrun a script calls one function of ek.rerun, once, and has no "
                        "ek.Job beside it: what shall come next belongs into that function, or "
                        "into another script")
        # DDP imports it, which takes a second or more and is not cut off: rather now.
        _compiler.bring_in()
        self.link = torch.classes.evenkeel.Link()
        _links.append(self.link)

    def run(self):
        # What a call leaves is soon found then, among all that PyTorch has.
        gc.collect()
        gc.freeze()
        before = signal.signal(CUT_OFF, self._cut)
        make_group = _c10d._new_process_group_helper   # of the first group, and of each further one
        _c10d._new_process_group_helper = self._watched(make_group)
        self._send("hello", version=1, fingerprint="ek.rerun: the program's own exchange")
        self._send("ready", step=0)
        listener = threading.Thread(target=self._listen, name="ek-rerun", daemon=True)
        listener.start()
        try:
            while True:
                message = self._next_epoch()
                if message is None:
                    self._leave()
                result = self._run_one(message)
                if result is not AGAIN:
                    _destroy()
                    self._send("bye", code=0, message="finished")
                    self.link.flush()
                    return result
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:
            self._send("bye", code=1, message=f"{type(error).__name__}: {error}")
            raise
        finally:
            gc.unfreeze()
            self.ended = True   # a thread that is in the engine while Python ends would abort it
            listener.join()
            signal.signal(CUT_OFF, before)
            _c10d._new_process_group_helper = make_group

    def _watched(self, make_group):
        def watched(*args, **kwargs):
            with self.sockets:
                return make_group(*args, **kwargs)
        return watched

    # --- One epoch ---

    def _next_epoch(self):
        """The message of the next epoch, or None if the job shall stop."""
        with self.lock:
            while self.next is None and not self.stop and not self.gone:
                self.lock.wait(LISTEN_MS / 1000)   # now and then, for Python's signal handlers
            if self.gone:
                raise RuntimeError(f"keelrun has gone: {self.gone}")
            if self.stop:
                return None
            message, self.next = self.next, None
            # What was said of it may have come before this thread took it.
            self.broken = self.over[1] if self.over[0] >= message["epoch"] else ""
            self.epoch = Epoch(message["epoch"], message["rank"], message["world"],
                               message["reason"])
            self.epoch._joins = self.join_epoch == message["epoch"]
            self.epoch._stops = bool(self.stop)
            return message

    def _run_one(self, message):
        """What the function returns, or AGAIN."""
        result, error = AGAIN, None
        try:
            try:
                self.runs = True
                if self.broken:
                    raise _Broken(self.broken)
                self._meet(message)
                result = self.call(self.epoch)
                if result is not AGAIN and not self.epoch._stops:   # all finish, or none
                    dist.barrier() if dist.is_initialized() else self._gather("done")
            finally:
                self.runs = False   # up to here, inclusive, it may be cut off
        except _Broken:
            pass
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as raised:   # a CheckpointException, for one, is no Exception
            error = raised
        if error is None:
            self.failures = 0
        elif not self._was_broken(error):
            raise error
        else:
            self.broken = self.broken or str(error)
        error = None
        if self.stop:
            self._leave()
        if self.broken:
            self._abort()
            _destroy()   # now; whoever returned AGAIN is still heard by the others
            result = AGAIN
        if result is AGAIN:
            self._park(message["epoch"])
        return result

    def _meet(self, message):
        """Nobody builds a group before all are there: that could not be cut off."""
        _destroy()
        self.sockets = _sockets.Sockets()
        os.environ |= {"RANK": str(message["rank"]), "WORLD_SIZE": str(message["world"]),
                       "MASTER_ADDR": message["address"], "MASTER_PORT": str(message["port"])}
        self._tell_at(0)
        with self.sockets:
            store = dist.TCPStore(message["address"], message["port"], None, False,
                                  timeout=datetime.timedelta(seconds=30), wait_for_workers=False)
        self.store = dist.PrefixStore(message["prefix"], store)
        self._gather("up")
        dist.init_process_group(self.backend, store=self.store, rank=message["rank"],
                                world_size=message["world"], timeout=self.timeout)

    def _gather(self, word):
        """Waits until all members have said it; that can be cut off at any time."""
        self.store.set(f"{word}/{self.epoch.rank}", "")
        all_of_them = [f"{word}/{rank}" for rank in range(self.epoch.world)]
        while not self.store.check(all_of_them):
            time.sleep(MEET_PAUSE_S)

    def _was_broken(self, error):
        """Whether an error of the function is only what others' deaths made of it."""
        deadline = time.monotonic() + JUDGE_S
        while _may_be_a_breaks(error) and not self.broken and time.monotonic() < deadline:
            time.sleep(MEET_PAUSE_S)
        if self.broken:
            self.failures = 0
            return True
        # Nobody has died. An exchange may fail once; who always fails would do so for ever.
        self.failures += 1
        return _is_of_group(error) and self.failures < FAILURES_MAX

    def _park(self, number):
        with self.lock:
            joined = self.epoch._joins and not self.broken
            self.epoch = None
        self._send("parked", epoch=number, step=0, at_boundary=joined)

    def _leave(self):
        _destroy()
        self._send("leaving", step=0)
        self._send("bye", code=0, message="stopped")
        self.link.flush()
        raise SystemExit(0)

    # --- What the launcher says ---

    def _send(self, kind, **fields):
        self.link.send(json.dumps({"type": kind} | fields))

    def _tell_at(self, tick):
        if self.epoch is not None:
            self._send("at", epoch=self.epoch.number, step=0, phase=0, tick=tick,
                       place="the program's function", waits_for=-2)

    def _listen(self):
        """The thread beside: it alone receives, and cuts the function off."""
        tick, told = 0, time.monotonic()
        try:
            while not self.ended:
                line = self.link.receive(LISTEN_MS)
                if line:
                    self._take(json.loads(line))
                self._look()
                if time.monotonic() - told > TELL_S:
                    tick, told = tick + 1, time.monotonic()
                    self._tell_at(tick)
        except RuntimeError as error:   # the link is closed
            with self.lock:
                self.gone = str(error)
                self.lock.notify_all()
            self._break("keelrun has gone")

    def _take(self, message):
        kind = message["type"]
        with self.lock:
            if kind == "epoch":
                self.next = message
            elif kind == "stop":
                self.stop = message["reason"] or "a stop is wanted"
                self.look_by = time.monotonic() + LOOK_S
                if self.epoch is not None:
                    self.epoch._stops = True
                    left = message.get("deadline_ms")
                    self.epoch.deadline = None if left is None else time.monotonic() + left / 1000
            elif kind == "refused":
                self.gone = f"this worker was refused: {message['reason']}"
            elif kind == "join":
                self.join_epoch = message["epoch"]
                self.join_by = time.monotonic() + self.join_within
                if self.epoch is not None and self.epoch.number == self.join_epoch:
                    self.epoch._joins = True
            elif kind == "break":
                self.over = (message["epoch"], message["reason"] or "the epoch has broken")
            self.lock.notify_all()
            broken = self.epoch is not None and self.over[0] >= self.epoch.number
        if broken and not self.broken:
            self._break(self.over[1])

    def _look(self):
        """What needs no message: a launcher that is silent, and patience that ends."""
        epoch = self.epoch
        if epoch is None or self.broken:
            return
        if self.link.is_broken(epoch.number):
            self._break("the launcher is silent, or has broken the epoch")
        elif epoch._stops and not epoch._looks and time.monotonic() > self.look_by:
            self._break("a stop is wanted, and the function does not look at epoch.stops")
        elif epoch._joins and time.monotonic() > self.join_by:
            self._break(f"a worker has waited to join for {self.join_within:g} s")

    def _break(self, why):
        with self.lock:
            self.broken = self.broken or why
        if self.runs:
            print(f"ek.rerun: the call is cut off: {why}", flush=True)
        pauses = list(CUT_PAUSES_S)
        while self.runs:
            self._abort()
            signal.pthread_kill(threading.main_thread().ident, CUT_OFF)
            time.sleep(pauses.pop(0) if len(pauses) > 1 else pauses[0])

    def _abort(self):
        """Ends what is in flight in all groups, so that the thread that waits for it goes on."""
        for group in list(_c10d._world.pg_map):
            _end_waits(group)
            try:
                group.abort()   # NCCL's; Gloo has none
            except Exception:   # it is broken already
                pass
        self.sockets.shut()

    def _cut(self, _, frame):
        if self.runs and self.broken and not _is_needed(frame):
            raise _Broken(self.broken)


def _end_waits(group):
    """Fails what waits in a group of Gloo's, by a wait that is over at once: Gloo then tells all
    that wait in the group, and closes its connections. To close them from outside first would lose
    each send that is begun meanwhile, for which Gloo waits until the group's timeout."""
    if os.environ.get(LAZY_VARIABLE, "").lower() in TRUE_WORDS:   # a connection may be on its way
        return
    try:
        backend = group._get_backend(torch.device("cpu"))
        backend = getattr(backend, "wrapped_pg", backend)   # TORCH_DISTRIBUTED_DEBUG=DETAIL
        if group.size() == 1 or not isinstance(backend, getattr(dist, "ProcessGroupGloo", ())):
            return
        contexts = len(backend.options._devices)
    except Exception:   # it has no part for CPUs, or PyTorch does not say
        return
    for context in range(contexts):
        try:
            nothing = backend.recv_anysource([torch.zeros(1)], UNUSED_TAG + context)
            nothing.wait(datetime.timedelta(milliseconds=1))
        except Exception:   # the time is over
            pass


def _is_needed(frame):
    """Whether the call imports a module, of which half would be left, or ends an object, which
    would never do the rest (a DataLoader ends its processes). It is asked again later."""
    while frame is not None and frame.f_code is not _Reruns._run_one.__code__:
        code = frame.f_code
        if code.co_filename.startswith("<frozen importlib") or code.co_name == "__del__":
            return True
        frame = frame.f_back
    return False


def _destroy():
    try:
        if dist.is_initialized():
            dist.destroy_process_group()
    except Exception as error:   # it is broken, and the next one is another
        print(f"ek.rerun: ending the group: {error}", flush=True)
    _forget()
    gc.collect()


def _forget():
    """What is left of a group that was cut off while it was made: above all the count of groups,
    from which all members make the name of their next one."""
    _c10d._update_default_pg(None)
    world = _c10d._world
    for name in ("pg_map", "pg_names", "pg_group_ranks", "pg_backend_config", "pg_to_tag",
                 "tags_to_pg", "pg_coalesce_state"):
        getattr(world, name, {}).clear()
    getattr(_c10d, "_unregister_all_process_groups", list)()
    world.group_count = 0


def _chain(error):
    """It, and what it was made of."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _may_be_a_breaks(error):
    return any(isinstance(one, RuntimeError) or not isinstance(one, Exception)
               for one in _chain(error))


def _is_of_group(error):
    """Whether it comes from an exchange with others."""
    kinds = tuple(getattr(dist, name) for name in ("DistError", "DistBackendError",
                                                   "DistNetworkError") if hasattr(dist, name))
    return isinstance(error, kinds) or isinstance(error, RuntimeError) and any(
        word in str(error) for word in ("gloo", "NCCL", "process group"))
