#!/usr/bin/env python3
"""A short replay of real jobs: hosts come and go, nothing hangs, and no bit differs.

Promises   the whole program runs as a user starts it. Its hang limits are generous; no time and no
           goodput is judged.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import unittest

import parts

ARGS = None
# Hosts come beside a running job, and at one time nobody is there but the store's host.
TRACE = """0,add,a
0,add,b
4000,remove,a
5000,add,c
8000,remove,b
8000,remove,c
9000,add,d
11000,add,e
13000,remove,d
14000,add,f
16000,remove,e
"""


def replay(*options):
    command = [sys.executable, "-B", os.path.join(parts.REPLAY, "replay.py"), *options]
    if ARGS.bin:
        command.append(f"--bin={ARGS.bin}")
    return subprocess.run(command, capture_output=True, text=True, timeout=500, check=False)


class Replay(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="keel-replay-test-")
        self.trace = os.path.join(self.folder.name, "trace.csv")
        with open(self.trace, "w", encoding="ascii") as file:
            file.write(TRACE)

    def tearDown(self):
        self.folder.cleanup()

    def real_jobs(self, *more):
        done = replay("--trace", self.trace, "--minutes", "0.27", "--map", "first", "--lead", "1s",
                      "--lanes", "4", "--lane-time", "20", "--save-every", "20", "--seed", "3",
                      "--json", *more)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return json.loads(done.stdout)

    def test_same_bits_where_no_host_stays(self):
        for store in ("spot", "directory"):
            with self.subTest(store=store):
                result = self.real_jobs("--max-hosts", "2", f"--store={store}")
                self.assertEqual(result["events"]["came"], 6, result)
                self.assertTrue(result["final"]["same"], result["final"])
                self.assertEqual(result["steps_lost_with_hosts_left"], 0, result)

    def test_same_bits_whoever_comes_and_goes(self):
        result = self.real_jobs("--max-hosts", "3")
        events = result["events"]
        self.assertEqual(events["came"], 6, result)
        self.assertEqual(events["went without notice"], result["planned"]["go_without_notice"])
        self.assertGreater(events["went without notice"], 0)
        self.assertGreater(events["went with notice"], 0)
        self.assertGreater(result["goodput"], 0)
        final = result["final"]
        self.assertTrue(final["same"], final)
        self.assertEqual(final["line"].split()[1], f"step={final['saved_at'] + 10}")

    def test_a_malformed_trace_is_refused_and_nothing_starts(self):
        with open(self.trace, "a", encoding="ascii") as file:
            file.write("15000,remove,f\n")
        done = replay("--trace", self.trace)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertIn("trace.csv:12: time goes back: 15000", done.stderr)

    def test_a_folder_with_anothers_checkpoints_is_refused(self):
        done = replay("--trace", self.trace, "--keep", self.folder.name)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertIn("is not empty", done.stderr)

    def test_a_dry_run_shows_the_plan(self):
        done = replay("--trace", self.trace, "--max-hosts", "3", "--map", "first", "--dry-run")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("seat 0  stable: stays", done.stdout)
        self.assertEqual(done.stdout.count("  seat "), 7, done.stdout)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin")
    ARGS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
