#!/usr/bin/env python3
"""The wheel, in an environment that has nothing else but PyTorch: a script trains alone and under
its keelrun with the same last line, keel reads what it saved, and a PyTorch that it was not made
for is told of. torch_versions_test.py tries all versions of PyTorch.

Skips, and says why, without a Python that has PyTorch.
"""
import argparse
import glob
import os
import re
import shutil
import sys
import tempfile
import unittest
import zipfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "dropin"))
import launchers
from clean_environment import CleanEnvironment, run

ARGS = None
SIZE_MAX = 15_000_000   # of a wheel with an engine for each version of PyTorch


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory(prefix="keel-wheel-")
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = temporary.name
        run([f"{ARGS.source}/packaging/wheel.sh", "--build", ARGS.build, "--out",
             f"{cls.folder}/dist"])
        cls.wheel, = glob.glob(f"{cls.folder}/dist/*.whl")
        cls.clean = CleanEnvironment(f"{cls.folder}/venv", ARGS.python, ARGS.torch)
        cls.clean.install(cls.wheel)
        cls.bin = cls.clean.bin

    def test_it_is_small_and_for_every_python(self):
        with zipfile.ZipFile(self.wheel) as wheel:
            engine = sum(one.compress_size for one in wheel.infolist()
                         if one.filename.startswith("evenkeel/torch"))
        with open(f"{ARGS.source}/packaging/wheel/torch_versions.txt", encoding="utf-8") as file:
            others = sum(not line.startswith("#") for line in file) - 1
        self.assertGreater(engine, 1_000_000)
        self.assertLess(os.path.getsize(self.wheel) + others * engine, SIZE_MAX)
        self.assertRegex(os.path.basename(self.wheel),
                         r"^evenkeel_torch-[\d.]+-py3-none-manylinux_2_\d+_x86_64\.whl$")

    def test_a_script_trains_alone_and_under_its_keelrun(self):
        script = f"{ARGS.source}/examples/python/digits.py"
        options = ["--steps=20", f"--checkpoint-dir={self.folder}/ckpts"]
        alone = run([f"{self.bin}/python", script, *options]).stdout.splitlines()[-1]
        self.assertTrue(alone.startswith("final step=20 "), alone)
        shutil.rmtree(f"{self.folder}/ckpts")
        job = run([f"{self.bin}/keelrun", "--standalone", "--nproc-per-node=2", script, *options])
        # Python writes a line and its end one after the other, so those of two workers may mix.
        final = r"final step=\d+ trail=[0-9a-f]{32} digest=[0-9a-f]{32}"
        self.assertEqual(re.findall(final, job.stdout), [alone, alone])
        listed = run([f"{self.bin}/keel", "ls", f"{self.folder}/ckpts"]).stdout
        self.assertRegex(listed, r"\b20\b")

    def test_a_path_in_a_bucket_is_asked_for_there(self):
        nobody = {"AWS_ENDPOINT_URL": "http://127.0.0.1:1", "AWS_ACCESS_KEY_ID": "id",
                  "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "here"}
        told = run([f"{self.bin}/keel", "ls", "s3://bucket/run"], code=3, **nobody).stderr
        self.assertRegex(told, r"127\.0\.0\.1.*port 1\b")
        told = self.clean.python("-c", "import evenkeel; evenkeel.load('s3://bucket/run')", code=1,
                                 **nobody).stderr
        self.assertRegex(told, r"127\.0\.0\.1.*port 1\b")

    def test_a_pytorch_without_an_engine_is_told_of(self):
        told = self.clean.python("-c", "import torch; torch.__version__ = '9.9.1+cpu'; "
                                       "import evenkeel", code=1).stderr
        self.assertIn("ImportError: evenkeel has no engine for torch 9.9.1+cpu, only for ", told)
        self.assertIn("install one of these, or make an engine", told)
        self.assertIn("python -m evenkeel_build", told)

    def test_an_engine_that_is_there_is_not_made_again(self):
        told = self.clean.python("-m", "evenkeel_build").stdout
        self.assertRegex(told, r"there is an engine for torch \d+\.\d+ in .*/evenkeel/torch")

    def test_what_an_engine_is_made_with_is_named_where_it_is_missing(self):
        told = self.clean.python("-m", "evenkeel_build", "--again", "--work",
                                 f"{self.folder}/work", code=1, PATH=self.bin).stderr
        self.assertIn("these are missing here: c++, cmake, ninja.", told)
        self.assertIn("sudo apt-get install --no-install-recommends g++ cmake ninja-build", told)

    def test_versions_with_a_gap_between_are_refused(self):
        for name, version in (("a", "2.11.0"), ("b", "2.12.1"), ("c", "2.14.0")):
            os.makedirs(f"{self.folder}/{name}")
            with open(f"{self.folder}/{name}/keel_torch_version.txt", "w",
                      encoding="utf-8") as file:
                file.write(f"{version}\n")
        for engines, words in ((("a", "c"), "for PyTorch 2.11 and 2.14, and none between"),
                               (("a", "b", "a"), "are both for PyTorch 2.11")):
            told = run([ARGS.python, "-B", f"{ARGS.source}/packaging/wheel/assemble.py",
                        "--root", ARGS.source, "--build", ARGS.build, "--patchelf", "none",
                        "--into", f"{self.folder}/none",
                        *(f"{self.folder}/{name}" for name in engines)], code=1).stderr
            self.assertIn(words, told)
        self.assertFalse(os.path.exists(f"{self.folder}/none"))


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
