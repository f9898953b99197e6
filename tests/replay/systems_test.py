#!/usr/bin/env python3
"""Which system runs with which options, how it is started, and what is told where one does not."""
import os
import subprocess
import sys
import tempfile
import types
import unittest

import parts

import fleet
import plan
import systems

NOBODY = "/there/is/no/python"


def options(**more):
    return types.SimpleNamespace(**{"store": "stable", "python": sys.executable, "lanes": 4,
                                    "torchft_python": sys.executable, "lane_time": 20.0, **more})


class WhyNot(unittest.TestCase):
    def test_ours_needs_no_python(self):
        self.assertIsNone(systems.why_not("keelrun", options(python=NOBODY)))
        self.assertIsNone(systems.why_not("keelrun", options(store="spot")))

    def test_a_peer_whose_python_is_not_there_says_so(self):
        for name in ("torchrun", "keelrun-ddp"):
            self.assertIn(NOBODY, systems.why_not(name, options(python=NOBODY)))
        self.assertIn(NOBODY, systems.why_not("torchft", options(torchft_python=NOBODY)))

    def test_a_module_that_is_not_there_is_named_with_pythons_reason(self):
        reason = systems.cannot_import(sys.executable, "no_such_module_anywhere")
        self.assertIn("cannot import no_such_module_anywhere: ModuleNotFoundError", reason)
        self.assertIsNone(systems.cannot_import(sys.executable, "json"))

    def test_torchft_needs_a_host_that_stays(self):
        reason = systems.why_not("torchft", options(store="spot"))
        self.assertIn("--store=spot: torchft needs a machine that nobody takes away", reason)

    def test_who_never_made_a_step_says_what_it_said_last(self):
        reason = systems.why_no_step({"1": 3, "-6": 1}, "ImportError: gone")
        self.assertEqual(reason, "no host ever made a step; launchers that ended by themselves: "
                                 "1 with -6, 3 with 1; the last of the first: ImportError: gone")
        self.assertIn("themselves: none; the last of the first: nothing",
                      systems.why_no_step({}, ""))


class OursOnItsOwnAddresses(unittest.TestCase):
    def words(self, store, seat, system=systems.Keelrun):
        args = options(store=store, bin="/bin", max_hosts=3, store_limit=60, save_every=9)
        with tempfile.TemporaryDirectory() as folder:
            return system(args, folder).command(plan.Tenure(seat, "a", 0, 9, is_spot=seat > 0))

    def test_each_seat_has_one_and_knows_all(self):
        for system in (systems.Keelrun, systems.KeelrunDdp):
            for seat in range(3):
                words = self.words("spot", seat, system)
                self.assertIn(f"--local-addr=127.0.0.{1 + seat}", words)
                endpoint = next(one for one in words if one.startswith("--rdzv-endpoint="))
                self.assertRegex(endpoint, r"=127\.0\.0\.1:\d+,127\.0\.0\.2,127\.0\.0\.3$")
                self.assertNotIn("is_host", " ".join(words))

    def test_a_stable_host_keeps_the_store(self):
        self.assertIn("--rdzv-conf=last_call_timeout=1,is_host=1", self.words("stable", 0))
        self.assertIn("--rdzv-conf=last_call_timeout=1,is_host=0", self.words("stable", 1))

    def test_in_a_directory_nobody_has_an_endpoint(self):
        words = self.words("directory", 1)
        self.assertIn("--rdzv-backend=dir", words)
        self.assertIn("--local-addr=127.0.0.2", words)

    def test_addresses_do_not_end_at_255(self):
        self.assertEqual([systems.address(seat) for seat in (0, 254, 255)],
                         ["127.0.0.1", "127.0.0.255", "127.0.1.0"])


class Torchft(unittest.TestCase):
    def setUp(self):
        self.system = systems.Torchft(options(torchft_python="/peers/bin/python"), "/folder")

    def test_every_host_finds_the_lighthouse(self):
        helper = self.system.helper
        self.assertEqual(helper[0], "/peers/bin/torchft_lighthouse")
        port = helper[helper.index("--bind") + 1].rpartition(":")[2]
        self.assertEqual(self.system.environment["TORCHFT_LIGHTHOUSE"], f"http://127.0.0.1:{port}")

    def test_a_host_that_comes_again_has_another_store_and_the_same_job(self):
        first, second = (self.system.command(plan.Tenure(2, "a", 0, 9)) for _ in range(2))
        self.assertIn("--replica=2", first)
        differing = [one for one in first if one not in second]
        self.assertEqual([one.partition("=")[0] for one in differing], ["--port"])


class Listener:
    """Of a system, what fleet.Fleet.hear() asks for."""
    environment, helper, tells_epochs = {}, None, True


class WhatItTells(unittest.TestCase):
    def test_the_lines_of_its_job_are_understood(self):
        with tempfile.TemporaryDirectory() as folder:
            listening = fleet.Fleet(None, Listener(), folder, 9, None)
            host = fleet.Host(plan.Tenure(1, "a", 0, 9), folder, 0)
            for at, line in enumerate(("resumed step=40", "quorum 3", "quorum 3 of nobody",
                                       "step 41 rank 1 of 2 pid 77")):
                listening.hear(host, line, float(at))
        self.assertEqual((host.log.resumed, host.log.epochs), ([(0.0, 40)], [1.0]))
        self.assertEqual([tuple(one) for one in host.log.told], [(3.0, 41, 2, 77)])


class WholeProgram(unittest.TestCase):
    def run_it(self, *more):
        trace = os.path.join(parts.TRACES, "bamboo", "p3-trace.csv")
        return subprocess.run(
            [sys.executable, "-B", os.path.join(parts.REPLAY, "replay.py"), "--trace", trace,
             "--system=torchft", *more], capture_output=True, text=True, timeout=200, check=False,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})

    def test_a_peer_that_is_not_there_is_no_success(self):
        done = self.run_it(f"--torchft-python={NOBODY}")
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertIn(f"DID NOT RUN: [Errno 2] No such file or directory: '{NOBODY}'", done.stdout)

    def installed(self, lighthouse):
        """A peer that can be imported and then fails; `lighthouse`: what its helper does."""
        folder = tempfile.TemporaryDirectory(prefix="keel-replay-test-")
        self.addCleanup(folder.cleanup)
        job = 'echo "made up error, byte code ${PYTHONDONTWRITEBYTECODE-is kept}" >&2; exit 9'
        for name, body in (("python", f'[ "$1" = -c ] || {{ {job}; }}'),
                           ("torchft_lighthouse", lighthouse)):
            path = os.path.join(folder.name, name)
            with open(path, "w", encoding="ascii") as file:
                file.write(f"#!/bin/sh\n{body}\n")
            os.chmod(path, 0o755)
        return f"--torchft-python={folder.name}/python"

    def test_a_peer_that_never_makes_a_step_says_what_it_said(self):
        done = self.run_it(self.installed("exec sleep 1000"), "--minutes=0.03", "--max-hosts=2")
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertRegex(done.stdout, "DID NOT RUN: no host ever made a step; launchers that ended "
                                      "by themselves: [0-9]+ with 9; .*made up error")
        self.assertIn("byte code is kept", done.stdout)   # else each start compiles all anew

    def test_a_lighthouse_that_ends_is_a_failure(self):
        done = self.run_it(self.installed("echo no port; exit 7"), "--minutes=0.5", "--max-hosts=2")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("torchft_lighthouse ended with 7", done.stderr)
        self.assertIn("helper.log| no port", done.stderr)

    def test_programs_read_the_reason_too(self):
        done = self.run_it(f"--torchft-python={NOBODY}", "--json")
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertIn('"goodput": null, "why_not": "[Errno 2]', done.stdout)


if __name__ == "__main__":
    unittest.main()
