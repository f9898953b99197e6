"""Tests of python/evenkeel/_loader.py: a batch has the same bits whoever loads it, whatever ends.

Promises   the random test prints its seed when it fails. Nothing here measures time.
Without numpy, what only concerns numpy is not tested.
"""
import contextlib
import gc
import os
import random
import select
import signal
import socket
import subprocess
import sys
import threading
import unittest
import unittest.mock

from loader_parts import (HANG_LIMIT, PRELUDE, Gate, LoaderTest, LoadError, Rows, Values, _loader,
                          _seeds, bits, lives, numpy, open_files, wait_for_end, worker_of)

import torch


class SameBits(LoaderTest):
    def batches(self, workers, dataset=None):
        with contextlib.closing(_loader.Loader(dataset or Rows(), num_workers=workers)) as loader:
            for batch in range(12):
                loader.want(batch, range(batch, batch + 4), 2**63 + batch)
            for batch in range(12 if workers else 0):
                self.wait_until(loader, batch)
            return [bits(loader.take(batch)) for batch in range(12)]

    def test_any_number_of_workers_gives_the_bits_of_the_script(self):
        alone = self.batches(0)
        self.assertNotEqual(alone[0], alone[1])
        for workers in (1, 2, 3):
            self.assertEqual(self.batches(workers), alone, f"{workers} workers")
        self.assertEqual(self.batches(0), alone)

    def test_a_load_in_the_script_leaves_its_generators_alone(self):
        loader = self.closing(_loader.Loader(Rows()))
        draw = [torch.initial_seed, lambda: torch.rand(3).tolist(), random.random]
        if numpy is not None:
            draw.append(numpy.random.rand)
        _seeds.seed_all(7)
        alone = [one() for one in draw]
        _seeds.seed_all(7)
        loader.want(1, [1, 2], 99)
        loader.take(1)
        self.assertEqual([one() for one in draw], alone)

    def test_workers_compute_with_the_threads_of_a_script_that_has_computed(self):
        before = torch.get_num_threads()
        self.addCleanup(torch.set_num_threads, before)
        torch.set_num_threads(3)

        def make(index):
            large = torch.randn(300, 301)
            return torch.get_num_threads(), large @ large.T, torch.randn(200000).sum()

        # OpenMP has threads from here on, and its workers would hang if forked carelessly.
        make(0)
        loaders = [self.closing(Values(make).loader(workers)) for workers in (0, 2)]
        for loader in loaders:
            loader.want(1, [1], 5)
        self.wait_until(loaders[1], 1)
        here, there = (loader.take(1) for loader in loaders)
        self.assertEqual(there[0], 3)
        self.same(here, there)

    def test_a_dataset_may_load_many_samples_at_once(self):
        class Many(Rows):
            def __getitems__(self, indices):
                return [(torch.rand(1), sum(indices), type(indices).__name__)]

        self.assertEqual(self.batches(2, Many()), self.batches(0, Many()))
        loader = self.closing(_loader.Loader(Many()))
        loader.want(1, (4, 5), 5)
        self.assertEqual(loader.take(1)[1:], [torch.tensor([9]), ("list",)])

    def test_2000_random_wants_takes_and_drops(self):
        seed = random.SystemRandom().getrandbits(32)
        dice, wanted = random.Random(seed), {}
        quiet = self.closing(_loader.Loader(Rows()))
        loaders = [self.closing(_loader.Loader(Rows(), num_workers=count)) for count in (1, 3)]
        for step in range(2000):
            batch, what = dice.randrange(12), dice.choice(("want", "want", "take", "take", "drop"))
            with self.subTest(seed=seed, step=step, batch=batch, what=what):
                if what == "want":
                    wanted[batch] = [dice.randrange(1000) for _ in range(3)], dice.getrandbits(64)
                    for loader in loaders:
                        loader.want(batch, *wanted[batch])
                elif what == "drop":
                    wanted.pop(batch, None)
                    for loader in loaders:
                        loader.drop(batch)
                elif batch in wanted:
                    quiet.want(batch, *wanted[batch])
                    for loader in loaders:
                        self.same(loader.take(batch), quiet.take(batch))
                else:
                    for loader in loaders:
                        self.assertRaisesRegex(LoadError, f"batch {batch} ", loader.take, batch)


class Failures(LoaderTest):
    def failing(self, make, workers):
        loader = self.closing(Values(make).loader(workers))
        loader.want(7, [3, 4], 1)
        if workers:
            self.wait_until(loader, 7)
        with self.assertRaises(LoadError) as caught:
            loader.take(7)
        self.assertIn("batch 7 (samples [3, 4])", str(caught.exception))
        return loader, caught.exception

    def test_an_exception_of_the_dataset_comes_with_its_traceback(self):
        def no_sample(index):
            raise KeyError(f"no sample {index}") if index == 3 else SystemExit(5)

        loader, error = self.failing(no_sample, 1)
        for part in ("Traceback", "in no_sample", "KeyError: 'no sample 3'", "worker process"):
            self.assertIn(part, str(error))
        with self.assertRaises(LoadError) as again:
            loader.take(7)
        self.assertEqual(str(again.exception), str(error))
        loader.want(8, [4], 1)
        self.wait_until(loader, 8)
        self.assertRaisesRegex(LoadError, "SystemExit: 5", loader.take, 8)

    def test_an_exception_in_the_scripts_process_is_kept_as_the_cause(self):
        cause = ValueError("no sample 3")
        loader, error = self.failing(unittest.mock.Mock(side_effect=cause), 0)
        self.assertIn("ValueError: no sample 3", str(error))
        self.assertIs(error.__cause__, cause)
        self.assertRaises(LoadError, loader.take, 7)

    def test_an_interrupt_in_the_scripts_process_passes_and_the_batch_can_be_taken_again(self):
        make = unittest.mock.Mock(side_effect=[KeyboardInterrupt, 5])
        loader = self.closing(Values(make).loader(0))
        loader.want(1, [1], 1)
        self.assertRaises(KeyboardInterrupt, loader.take, 1)
        self.assertEqual(loader.take(1), 5)

    def test_a_worker_that_ends_while_it_loads_fails_its_batch_and_says_how_it_ended(self):
        ways = {"SIGKILL.*memory": lambda: os.kill(os.getpid(), signal.SIGKILL),
                "SIGSEGV.*native code": lambda: os.kill(os.getpid(), signal.SIGSEGV),
                "exit code 3.*num_workers=0": lambda: os._exit(3)}
        script = os.getpid()
        for pattern, end in ways.items():
            with self.subTest(pattern):
                said = self.hearing()
                loader, error = self.failing(
                    lambda index: end() if index == 3 else os.getpid(), 1)
                pid = worker_of(loader)
                self.assertRegex(str(error), f"worker process {pid} .*{pattern}")
                for batch in (8, 9):
                    loader.want(batch, [1], 1)
                    self.assertEqual(loader.take(batch), script)
                self.assertEqual(said.getvalue().count("none is left"), 1)
                self.assertEqual(said.getvalue().count("\n"), 1)
                self.assertFalse(os.path.exists(f"/proc/{pid}"))

    def test_another_worker_goes_on_where_one_was_killed(self):
        gate, said = Gate(self), self.hearing()
        loader = self.closing(Values(gate.wait).loader(2))
        for batch in (0, 1, 2):
            loader.want(batch, [batch], 1)
        pids = dict(reversed(gate.arrival()) for _ in range(2))
        os.kill(pids[0], signal.SIGKILL)
        self.wait_until(loader, 0)
        gate.let_through(2)
        self.wait_until(loader, 2)
        self.assertRaisesRegex(LoadError, f"{pids[0]} was ended by SIGKILL", loader.take, 0)
        self.assertEqual([loader.take(1), loader.take(2)], [(pids[1], 1), (pids[1], 2)])
        self.assertIn("1 of 2 are left", said.getvalue())

    def test_a_worker_killed_while_idle_loses_no_batch(self):
        self.hearing()
        loader = self.closing(Values(lambda index: (os.getpid(), index)).loader(3))
        pids = [worker_of(loader, number) for number in range(3)]
        for pid in pids[:2]:
            os.kill(pid, signal.SIGKILL)
            wait_for_end(pid)
        for batch in range(20):
            loader.want(batch, [batch], 1)
        for batch in range(20):
            self.wait_until(loader, batch)
            self.assertEqual(loader.take(batch), (pids[2], batch))

    def test_without_workers_the_script_loads_with_one_warning(self):
        said = self.hearing()
        loader = self.closing(Values(lambda index: (os.getpid(), index)).loader(1))
        os.kill(worker_of(loader), signal.SIGKILL)
        wait_for_end(worker_of(loader))
        for batch in range(5):
            loader.want(batch, [batch], 1)
        worker = loader._pool.workers[0]
        with loader._pool.changed:
            loader._pool.changed.wait_for(lambda: not worker.alive, HANG_LIMIT)
        for batch in reversed(range(5)):
            self.assertEqual(loader.take(batch), (os.getpid(), batch))
        self.assertEqual(said.getvalue().count("\n"), 1)
        self.assertIn("was ended by SIGKILL; none is left", said.getvalue())

    def test_killed_workers_at_any_moment_leave_the_bits_or_an_error(self):
        self.hearing()
        quiet = self.closing(_loader.Loader(Rows()))
        for round_ in range(10):
            loader = self.closing(_loader.Loader(Rows(), num_workers=3))
            for batch in range(30):
                for one in (loader, quiet):
                    one.want(batch, [batch, round_], batch)
            failed = 0
            for batch in range(30):
                if batch in (0, 5, 10):
                    os.kill(worker_of(loader, batch // 5), signal.SIGKILL)
                try:
                    self.same(loader.take(batch), quiet.take(batch))
                except LoadError as error:
                    self.assertIn("SIGKILL", str(error))
                    failed += 1
            self.assertLessEqual(failed, 3)
            loader.close()

    def test_an_end_is_noticed_though_another_process_holds_the_socket(self):
        reading, writing = os.pipe()
        self.hearing()

        def leave_a_child(index):
            child = os.fork()
            if child == 0:
                signal.pause()
            os.write(writing, b"%20d" % child)
            os.kill(os.getpid(), signal.SIGKILL)

        _, error = self.failing(leave_a_child, 1)
        os.kill(int(os.read(reading, 20)), signal.SIGKILL)
        os.close(reading), os.close(writing)
        self.assertIn("SIGKILL", str(error))

    def test_an_end_is_noticed_though_the_script_ignores_sigchld(self):
        self.addCleanup(signal.signal, signal.SIGCHLD,
                        signal.signal(signal.SIGCHLD, signal.SIG_IGN))
        self.hearing()
        _, error = self.failing(lambda index: os._exit(3), 1)
        self.assertIn("ended", str(error))

    def test_take_says_what_it_waits_for(self):
        gate = Gate(self)
        self.addCleanup(setattr, _loader, "REPORT_S", _loader.REPORT_S)
        _loader.REPORT_S = 0.01
        said = self.hearing(lambda: said.getvalue().count("\n") == 3 and gate.let_through(100))
        loader = self.closing(Values(gate.wait).loader())
        loader.want(4, range(100), 1)
        gate.arrival()
        self.assertEqual(loader.take(4), (worker_of(loader), 0))
        self.assertRegex(said.getvalue().splitlines()[0],
                         r"^evenkeel: batch 4 \(samples \[0, 1, .*, 19\] and 80 more\) has not "
                         rf"come yet: process {worker_of(loader)} began to load it \d+ s ago$")


class Drops(LoaderTest):
    def setUp(self):
        super().setUp()
        self.gate = Gate(self)
        self.loader = self.closing(Values(self.gate.wait).loader())
        self.worker = worker_of(self.loader)
        self.loader.want(0, [0], 1)
        self.assertEqual(self.gate.arrival(), (self.worker, 0))

    def test_before_it_is_begun_a_batch_is_never_loaded(self):
        self.loader.want(1, [1], 1)
        self.loader.want(2, [2], 1)
        self.loader.drop(1)
        self.gate.let_through(2)
        self.wait_until(self.loader, 2)
        self.assertEqual(self.gate.arrival(), (self.worker, 2))
        self.assertRaisesRegex(LoadError, "batch 1 was never wanted", self.loader.take, 1)

    def test_under_way_a_batch_is_thrown_away_when_it_comes(self):
        self.loader.drop(0)
        self.loader.want(0, [5], 1)  # the same number, in another plan
        self.gate.let_through(2)
        self.wait_until(self.loader, 0)
        self.assertEqual(self.loader.take(0), (self.worker, 5))

    def test_other_samples_of_the_same_number_replace_a_batch(self):
        self.loader.want(0, [0], 1)  # nothing new
        self.loader.want(0, [6], 1)
        self.gate.let_through(3)
        self.wait_until(self.loader, 0)
        self.assertEqual(self.loader.take(0), (self.worker, 6))
        self.loader.want(0, [6], 2)
        self.wait_until(self.loader, 0)
        self.assertEqual(self.loader.take(0), (self.worker, 6))
        self.assertEqual([self.gate.arrival()[1] for _ in range(2)], [6, 6])

    def test_until_it_is_dropped_a_batch_can_be_taken_again(self):
        self.gate.let_through()
        first = self.loader.take(0)
        self.assertIs(self.loader.take(0), first)
        self.loader.drop(0)
        self.loader.drop(0)
        self.loader.drop(12345)
        self.assertRaises(LoadError, self.loader.take, 0)

    def test_what_no_worker_has_begun_is_loaded_by_take(self):
        self.loader.want(1, [1], 1)
        self.gate.let_through(2)
        self.assertEqual(self.loader.take(1)[1], 1)

    def wakes(self, end):
        failures = []

        def wait():
            try:
                self.loader.take(0)
            except LoadError as error:
                failures.append(str(error))

        thread = threading.Thread(target=wait)
        thread.start()
        end()
        thread.join(HANG_LIMIT)
        self.assertRegex(failures[0], "dropped")

    def test_a_drop_wakes_who_waits(self):
        self.wakes(lambda: self.loader.drop(0))

    def test_the_end_wakes_who_waits(self):
        self.wakes(self.loader.close)


class Ends(LoaderTest):
    def test_only_map_style_datasets(self):
        class Stream(torch.utils.data.IterableDataset):
            def __iter__(self):
                return iter([1])

        for dataset in (Stream(), iter([]), {1, 2}):
            self.assertRaisesRegex(TypeError, "not a map-style dataset.*__getitem__",
                                   _loader.Loader, dataset)
        for count in (-1, 1.5, None, True):
            self.assertRaisesRegex(ValueError, "num_workers", _loader.Loader, [], None, count)

    def test_close_ends_workers_that_hang_and_leaves_nothing_behind(self):
        gate = Gate(self)
        before = open_files(), os.listdir("/dev/shm"), threading.active_count()
        for _ in range(3):
            loader = Values(lambda index: gate.wait(index) and torch.rand(1000)).loader(3)
            for batch in range(10):
                loader.want(batch, [batch], 1)
            for _ in range(3):
                gate.arrival()
            loader.close()
            loader.close()
            self.assertRaisesRegex(LoadError, "closed", loader.want, 1, [1], 1)
            self.assertRaises(LoadError, loader.take, 1)
            self.assertRaises(ChildProcessError, os.waitpid, -1, 0)
        self.assertEqual((open_files(), os.listdir("/dev/shm"), threading.active_count()), before)

    def test_a_loader_that_is_forgotten_ends_its_workers(self):
        loader = _loader.Loader(Rows(), num_workers=2)
        workers = list(loader._pool.workers)
        del loader
        gc.collect()
        for worker in workers:
            worker.thread.join(HANG_LIMIT)
            self.assertFalse(lives(worker.pid))

    def test_a_script_that_is_killed_takes_its_workers_with_it(self):
        script = PRELUDE + """
class Hangs(list):
    def __getitem__(self, index):
        if index:
            os.write(1, b"%20d" % os.getpid())
            while True:
                signal.pause() if index == 1 else None
loader = _loader.Loader(Hangs([0] * 9), num_workers=3)
for worker in loader._pool.workers:
    os.write(1, b"%20d" % worker.pid)
loader.want(0, [1], 1)
loader.want(1, [2], 1)
signal.pause()
"""
        with subprocess.Popen([sys.executable, "-W", "ignore", "-c", script],
                              stdout=subprocess.PIPE) as process:
            pids = {int(process.stdout.read(20)) for _ in range(5)}
            process.kill()
        self.assertEqual(len(pids), 3)
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                end = os.pidfd_open(pid)
                self.assertTrue(select.select([end], [], [], 5)[0])
                os.close(end)

    def test_a_script_ends_well_with_loaders_open_and_says_nothing_twice(self):
        script = PRELUDE + """
atexit.register(print, "at exit")
print("before", end=" ")
loaders = [_loader.Loader(range(9), num_workers=2) for _ in range(2)]
for loader in loaders:
    for batch in range(9):
        loader.want(batch, [batch], 1)
class Prints(list):
    def __getitem__(self, index):
        print("from the worker", end=" ")
        return 1
third = _loader.Loader(Prints([0]), num_workers=1)
third.want(0, [0], 1)
with third._pool.changed:
    third._pool.changed.wait_for(lambda: third._jobs[0].done)
print("after")
"""
        ended = subprocess.run([sys.executable, "-W", "ignore", "-c", script], text=True,
                               capture_output=True, timeout=HANG_LIMIT, check=False,
                               env={**os.environ, "PYTHONUNBUFFERED": ""})
        self.assertEqual((ended.stdout, ended.stderr, ended.returncode),
                         ("before from the worker after\nat exit\n", "", 0))

    def test_a_process_that_the_script_forks_loads_for_itself(self):
        gate = Gate(self)
        loader = self.closing(Values(lambda index: gate.wait(index) if index == 1 else os.getpid())
                              .loader())
        loader.want(0, [0], 1)
        self.wait_until(loader, 0)
        loader.want(1, [1], 1)
        gate.arrival()
        worker = worker_of(loader)
        child = os.fork()
        if child == 0:
            gate.let_through(2)
            loader.want(2, [2], 1)
            taken = [loader.take(0), loader.take(1), loader.take(2)]
            loader.close()
            right = taken == [worker, (os.getpid(), 1), os.getpid()]
            os._exit(0 if right else 1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertEqual(loader.take(1), (worker, 1))

    def test_a_process_forked_during_a_load_in_the_script_does_not_wait_for_it(self):
        gate = Gate(self)
        loader = self.closing(Values(gate.wait).loader(0))
        loader.want(1, [1], 1)
        thread = threading.Thread(target=loader.take, args=(1,))
        thread.start()
        gate.arrival()
        child = os.fork()
        if child == 0:
            gate.let_through(2)
            os._exit(0 if loader.take(1) == (os.getpid(), 1) else 1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        thread.join(HANG_LIMIT)
        self.assertEqual(loader.take(1), (os.getpid(), 1))

    def test_a_fork_that_fails_is_told_and_leaves_nothing_behind(self):
        before = open_files(), threading.active_count()
        for good in (0, 2):
            bad = unittest.mock.Mock(side_effect=BlockingIOError(11, "no more"))
            forks = [os.fork] * good + [bad]
            with unittest.mock.patch("os.fork", side_effect=lambda: forks.pop(0)()):
                self.assertRaisesRegex(LoadError, f"worker process {good + 1} of 4: .*no more",
                                       _loader.Loader, Rows(), None, 4)
            self.assertRaises(ChildProcessError, os.waitpid, -1, 0)
        self.assertEqual((open_files(), threading.active_count()), before)

    def test_a_worker_is_no_part_of_the_scripts_duties(self):
        ours, link = socket.socketpair()
        heard, hears = os.pipe()
        for number in (signal.SIGTERM, signal.SIGUSR1):
            self.addCleanup(signal.signal, number,
                            signal.signal(number, lambda *_: os.write(hears, b"!")))
        self.hearing()
        with unittest.mock.patch.dict(os.environ, KEEL_CONTROL_FD=str(link.fileno())):
            loader = self.closing(Values(lambda index: os.environ.get("KEEL_CONTROL_FD", "none"))
                                  .loader())
        link.close()
        self.assertEqual(ours.recv(1), b"")  # no worker holds the launcher's link
        ours.close()
        pid = worker_of(loader)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1,
                       signal.SIGUSR2):
            os.kill(pid, number)
        loader.want(1, [1], 1)
        self.wait_until(loader, 1)
        self.assertEqual(loader.take(1), "none")
        os.kill(pid, signal.SIGKILL)
        wait_for_end(pid)
        os.close(hears)
        self.assertEqual(os.read(heard, 1), b"")  # the script's handler ran nowhere
        os.close(heard)


if __name__ == "__main__":
    unittest.main(warnings="ignore")
