#!/usr/bin/env python3
"""Goes through the contract's table (contract.py) with keelrun; with --launcher torchrun it shows
that the table is true of the original.

Does not   need PyTorch, except for torchrun. --only PATTERN takes some lines of the table,
           --sample those of its SAMPLE. Lines that are newer than that torchrun are left out.
"""
import argparse
import glob
import json
import os
import re
import shlex
import signal
import socket
import stat
import sys
import time
import unittest

import contract
import launchers

sys.path.insert(0, os.path.join(os.path.dirname(launchers.HERE), "harness"))
from free_port import free_port  # noqa: E402

ARGS = None


def fill(text, **values):
    """Like format(), but braces of patterns stay."""
    for name, value in values.items():
        text = text.replace("{" + name + "}", str(value))
    return text


class Probes:
    """What the workers wrote down: by rank, in the order of their starts."""

    def __init__(self, folder):
        self.by_rank = {}
        for path in glob.glob(f"{folder}/*.json"):
            found = re.fullmatch(r"(\d+)\.(\d+)\.json", os.path.basename(path))
            if found:
                with open(path, encoding="utf-8") as file:
                    self.by_rank.setdefault(int(found[1]), {})[int(found[2])] = json.load(file)

    def last(self, rank):
        return self.by_rank[rank][max(self.by_rank[rank])]


def start(run, launcher, case):
    """All the case's launchers."""
    fake = f"{run.folder}/fake"
    with open(fake, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\necho fake \"$@\"\n")
    os.chmod(fake, os.stat(fake).st_mode | stat.S_IXUSR)
    values = {"folder": run.folder, "here": launchers.HERE, "fake": fake, "port": free_port(),
              "taken": run.take_port()}
    outside = {name: fill(value, **values) for name, value in case.outside.items()}
    script = [f"{launchers.HERE}/probe.py"] if case.script is None else case.script
    many = isinstance(case.options[0], list) if case.options else False
    for number, options in enumerate(case.options if many else [case.options]):
        words = [fill(word, **values, n=number) for word in options]
        run.start(launcher, words + script + shlex.split(case.program), outside)
    return values


def check_environment(test, case, expected, probes, report):
    for rank in sorted(probes.by_rank):
        given = probes.last(rank)["env"]
        local = int(given["LOCAL_WORLD_SIZE"])
        for name, pattern in expected.items():
            wanted = fill(pattern, r=rank, g=rank // local, l=rank % local)
            test.assertRegex(given.get(name, "(unset)"), rf"\A(?:{wanted})\Z",
                             f"{name} of rank {rank}\n{report}")
        for name in case.unset:
            test.assertNotIn(name, given, report)
        test.assertEqual(probes.last(rank)["session"], probes.last(rank)["pid"], report)
        test.assertEqual(probes.last(rank)["main"], "__main__", report)
    for name in ("MASTER_ADDR", "MASTER_PORT"):  # all meet at one place
        places = {probes.last(rank)["env"][name] for rank in probes.by_rank}
        test.assertLessEqual(len(places), 1, f"{name}: {places}")


def check_files(test, case, folder, report):
    for path, pattern in case.files.items():
        found = glob.glob(os.path.join(folder, "logs", path))
        test.assertEqual(len(found), 1, f"{path}: {found}\n{report}")
        with open(found[0], encoding="utf-8") as file:
            test.assertRegex(file.read(), pattern, path)
    for path in case.no_files:
        test.assertEqual(glob.glob(os.path.join(folder, "logs", path)), [], report)


def check_output(test, case, run, report, values):
    out = "".join(run.text(n, "out") for n in range(len(run.processes)))
    err = "".join(run.text(n, "err") for n in range(len(run.processes)))
    for pattern in case.out:
        test.assertRegex(out, fill(pattern, **values), report)
    for pattern in case.err:
        test.assertRegex(err, pattern, report)
    for pattern in case.not_out:
        test.assertNotRegex(out, pattern, report)
    for pattern in case.not_err:
        test.assertNotRegex(err, pattern, report)


def check(test, launcher, case):
    with launchers.Run() as run:
        os.mkdir(f"{run.folder}/logs")
        values = start(run, launcher, case)
        ranks = 1 if case.ranks is None else case.ranks
        if case.signal:
            run.wait_until(lambda: len(Probes(run.folder).by_rank) == ranks, "did all start")
            run.processes[0][0].send_signal(getattr(signal, case.signal))
        codes = run.wait()
        report = run.report()
        is_ours = launcher.name == "keelrun"
        wanted = case.ours if is_ours and case.ours is not None else case.exit
        test.assertEqual(codes, [wanted] * len(codes), report)
        probes = Probes(run.folder)
        test.assertEqual(sorted(probes.by_rank), list(range(ranks)), report)
        if ranks:
            test.assertEqual(len(probes.by_rank[0]), case.starts, report)
        expected = {**case.env, **(case.ours_env if is_ours else {})}
        check_environment(test, case, {name: fill(text, **values)
                                       for name, text in expected.items()}, probes, report)
        if case.line:
            test.assertRegex(" ".join(probes.last(0)["line"]), rf"\A{case.line}\Z", report)
        if case.signals_seen:
            with open(f"{run.folder}/signals", encoding="utf-8") as file:
                test.assertEqual(sorted(file.read().splitlines()), sorted(case.signals_seen))
        check_files(test, case, run.folder, report)
        check_output(test, case, run, report, values)
        if is_ours:  # torchrun leaves behind what went to a session of its own
            test.assertEqual(run.leftovers(), {}, report)


def is_true_of(case, launcher):
    if launcher.name != "torchrun":
        return True
    return not case.ours_only and launchers.version_of(ARGS.torch) >= launchers.version(case.since)


def has_ipv6():
    """Whether ::1 can be listened at: some containers have no IPv6."""
    try:
        with socket.socket(socket.AF_INET6) as own:
            own.bind(("::1", 0))
        return True
    except OSError:
        return False


class Contract(unittest.TestCase):
    def test_every_line_of_the_table(self):
        launcher = (launchers.keelrun(ARGS.keelrun, ARGS.python) if ARGS.launcher == "keelrun"
                    else launchers.torchrun(ARGS.python))
        cases = [case for case in contract.CASES if re.search(ARGS.only, case.name) and
                 is_true_of(case, launcher) and
                 (case.name in contract.SAMPLE or not ARGS.sample)]
        self.assertTrue(cases, "no line of that name")
        for case in cases:
            with self.subTest(case.name):
                if any("[::1]" in str(word) for word in case.options) and not has_ipv6():
                    self.skipTest("this machine has no IPv6")
                begin = time.monotonic()
                check(self, launcher, case)
                launchers.say(f"{case.name}: {time.monotonic() - begin:.1f} s")

    def test_names_are_unique(self):
        names = [case.name for case in contract.CASES]
        self.assertEqual(len(names), len(set(names)))
        self.assertEqual(set(contract.SAMPLE) - set(names), set())


def main():
    global ARGS
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keelrun", required=True, type=os.path.abspath)
    parser.add_argument("--torch", default="", help="LibTorch's folder, within a Python")
    parser.add_argument("--launcher", choices=("keelrun", "torchrun"), default="keelrun")
    parser.add_argument("--only", default="")
    parser.add_argument("--sample", action="store_true", help="only those in SAMPLE")
    ARGS, rest = parser.parse_known_args()
    ARGS.python = sys.executable
    if ARGS.launcher == "torchrun":
        ARGS.python, why_not = launchers.find_python(ARGS.torch)
        if ARGS.python is None:
            return launchers.say(f"skipped: {why_not}; tools/setup.sh installs one")
    return unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
