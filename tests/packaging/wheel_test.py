#!/usr/bin/env python3
"""The wheel, in an environment that has nothing else but PyTorch: a script trains alone and under
its keelrun with the same last line, keel reads what it saved, and a PyTorch that it was not made
for is told of.

Skips, and says why, without a Python that has PyTorch.
"""
import argparse
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "dropin"))
import launchers

ARGS = None
LIMIT_S = 300
SIZE_MAX = 15 << 20


def run(command, code=0, **more):
    clean = {name: value for name, value in os.environ.items()
             if not name.startswith(("PYTHON", "PET_", "TORCH", "KEEL"))}
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False,
                          env=clean | more)
    if done.returncode != code:
        raise AssertionError(f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr[-5000:]}")
    return done


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory(prefix="keel-wheel-")
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = temporary.name
        run([f"{ARGS.source}/packaging/wheel.sh", "--build", ARGS.build, "--out",
             f"{cls.folder}/dist"])
        cls.wheel, = glob.glob(f"{cls.folder}/dist/*.whl")
        run([ARGS.python, "-m", "venv", f"{cls.folder}/venv"])
        cls.bin = f"{cls.folder}/venv/bin"
        packages = run([f"{cls.bin}/python", "-c",
                        "import site; print(site.getsitepackages()[0])"]).stdout.strip()
        # PyTorch as if it had been installed there, with what it needs behind it.
        os.symlink(ARGS.torch, f"{packages}/torch")
        with open(f"{packages}/of_torch.pth", "w", encoding="utf-8") as file:
            file.write(os.path.dirname(ARGS.torch) + "\n")
        run([f"{cls.bin}/python", "-m", "pip", "install", "--no-deps", "--no-index", cls.wheel])
        cls.packages = packages

    def test_it_is_small_and_for_every_python(self):
        self.assertLess(os.path.getsize(self.wheel), SIZE_MAX)
        self.assertRegex(os.path.basename(self.wheel),
                         r"^evenkeel_torch-[\d.]+-py3-none-manylinux_2_\d+_x86_64\.whl$")

    def test_a_script_trains_alone_and_under_its_keelrun(self):
        script = f"{ARGS.source}/examples/python/digits.py"
        options = ["--steps=20", f"--checkpoint-dir={self.folder}/ckpts"]
        alone = run([f"{self.bin}/python", script, *options]).stdout.splitlines()[-1]
        self.assertTrue(alone.startswith("final step=20 "), alone)
        shutil.rmtree(f"{self.folder}/ckpts")
        job = run([f"{self.bin}/keelrun", "--standalone", "--nproc-per-node=2", script, *options])
        self.assertEqual(set(re.findall("^final .*$", job.stdout, re.M)), {alone})
        listed = run([f"{self.bin}/keel", "ls", f"{self.folder}/ckpts"]).stdout
        self.assertRegex(listed, r"\b20\b")

    def test_another_pytorch_is_told_of(self):
        engine, = glob.glob(f"{self.packages}/evenkeel/torch*")
        os.rename(engine, f"{self.packages}/evenkeel/torch9.9")
        try:
            told = run([f"{self.bin}/python", "-c", "import evenkeel"], code=1).stderr
        finally:
            os.rename(f"{self.packages}/evenkeel/torch9.9", engine)
        self.assertIn("evenkeel has no engine for torch", told)
        self.assertIn("only for 9.9", told)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--source", required=True)
    parser.add_argument("--build", required=True)
    parser.add_argument("--torch", required=True, type=os.path.realpath)
    ARGS, rest = parser.parse_known_args()
    ARGS.python, why_not = launchers.find_python(ARGS.torch)
    if ARGS.python is None:
        launchers.say(f"skipped: {why_not}; tools/setup.sh installs one")
        sys.exit(0)
    unittest.main(argv=[sys.argv[0], *rest])
