#!/usr/bin/env python3
"""The quick start tells its story to the end and leaves what it says, and fails where the bits
differ. Set-up is left out: the programs are those of the build under test."""
import argparse
import os
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "dropin"))
import launchers  # noqa: E402

LIMIT_S = 600
ARGS = None


class QuickStart(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="keel-quickstart-")
        self.addCleanup(temporary.cleanup)
        self.folder = os.path.realpath(temporary.name)

    def run_it(self, *options):
        """(exit code, stdout, stderr); nothing of it may be left over."""
        environment = {**os.environ, launchers.MARK: self.folder, "TMPDIR": self.folder}
        try:
            done = subprocess.run([f"{ARGS.source}/examples/quickstart.sh", *options],
                                  cwd=self.folder, env=environment, stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, errors="replace",
                                  timeout=LIMIT_S, check=False)
        finally:
            left = launchers.kill_left(self.folder)
        self.assertEqual(left, [], "processes were left over")
        return done.returncode, done.stdout, done.stderr

    def test_it_ends_with_the_same_bits_and_leaves_a_plot(self):
        code, out, err = self.run_it("--build", ARGS.build, "--keep", "kept", "--steps", "240")
        self.assertEqual(code, 0, out + err)
        self.assertIn("The same, to the last bit.", out)
        finals = re.findall(r"final step=240 trail=[0-9a-f]{32} digest=[0-9a-f]{32}", out)
        self.assertEqual(len(finals), 4, "two runs' own, and both again where they are compared")
        self.assertEqual(len(set(finals)), 1)
        for told in (r"\$ kill -9 \d+", "worker-died .*SIGKILL", r"\$ kill -TERM", "exit code 75",
                     "whole checkpoints/step-", r"resumed step=1\d\d .*from=checkpoints/step-",
                     r"step=\d+ loss=[\d.]+ workers=2", r"^   ROMEO:", r"losses\.svg"):
            self.assertRegex(out, re.compile(told, re.M))
        parts = re.findall(r"^(\d+)\. ", out, re.M)
        self.assertEqual(parts, [str(number + 1) for number in range(len(parts))])
        plot = xml.etree.ElementTree.parse(f"{self.folder}/kept/losses.svg").getroot()
        words = " ".join(plot.itertext())
        for mark in ("kill -9", "SIGTERM, resumed on 2", "1 worker, undisturbed"):
            self.assertIn(mark, words)

    def test_a_python_that_is_not_there_is_told(self):
        code, _, err = self.run_it("--build", ARGS.build, "--python", "/nowhere/python3")
        self.assertEqual(code, 2)
        self.assertIn("there is no Python /nowhere/python3", err)

    def put(self, name, *lines):
        """A build folder with our programs, but for one, which is a script."""
        os.makedirs(f"{self.folder}/other/bin")
        for program in {"keel", "keelrun", "gpt_train"} - {name}:
            os.symlink(f"{ARGS.build}/bin/{program}", f"{self.folder}/other/bin/{program}")
        with open(f"{self.folder}/other/bin/{name}", "w", encoding="utf-8") as file:
            file.write("\n".join(["#!/bin/sh", *lines, ""]))
        os.chmod(file.name, 0o755)

    def test_it_fails_where_the_bits_differ(self):
        self.put("keelrun", f'exec {ARGS.build}/bin/keelrun "$@" --seed 1')
        code, out, err = self.run_it("--build", "other", "--steps", "100")
        self.assertEqual(code, 1, out + err)
        self.assertIn("they differ", err)
        self.assertNotIn("The same,", out)

    def test_a_job_that_fails_is_told_with_its_words(self):
        self.put("gpt_train", "echo no luck today >&2", "exit 1")
        code, _, err = self.run_it("--build", "other")
        self.assertEqual(code, 1)
        self.assertIn("no luck today", err)

    def test_options(self):
        code, out, _ = self.run_it("--help")
        self.assertEqual(code, 0)
        self.assertIn("--keep DIR", out)
        for wrong in (["--what"], ["--keep"], ["--steps", "3"], ["--steps", "many"],
                      ["--keep", "full"]):
            os.makedirs(f"{self.folder}/full/of/things", exist_ok=True)
            code, _, err = self.run_it(*wrong)
            self.assertEqual(code, 2, err)
            self.assertIn("quickstart: ", err)


def main():
    global ARGS
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", required=True, type=os.path.abspath)
    parser.add_argument("--build", required=True, type=os.path.abspath)
    ARGS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
