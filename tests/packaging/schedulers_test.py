"""What packaging/ has for SkyPilot and Ray, with their packages: each as it is on PyPI, in an
environment of its own below the build, since together they have 800 MB.

Promises   the same tests as of every run, of which none may be skipped here.
Does not   run where pip reaches no registry: then it is skipped.
"""
import pathlib
import shutil
import subprocess
import sys
import unittest

import checks

GIVEN = checks.arguments()
HERE = pathlib.Path(__file__).resolve().parent
LIMIT_S = 1800


class SchedulersTest(unittest.TestCase):
    def environment(self, name, *packages):
        """Its Python. It is made anew when other packages are asked for."""
        folder = GIVEN.build / "schedulers" / name
        stamp = folder / ".complete"
        python = folder / "bin/python"
        if stamp.exists() and stamp.read_text() == " ".join(packages):
            return python
        shutil.rmtree(folder, ignore_errors=True)
        checks.run(sys.executable, "-m", "venv", folder)
        pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet",
               "--no-cache-dir", *packages]
        done = subprocess.run(pip, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              stdin=subprocess.DEVNULL, timeout=LIMIT_S, check=False)
        if done.returncode != 0:
            self.skipTest(f"pip could not install {packages}:\n{done.stdout[-2000:]}")
        stamp.write_text(" ".join(packages))
        return python

    def whole(self, test, python):
        said = checks.run(python, "-B", HERE / test, "--source", GIVEN.source,
                          "--build", GIVEN.build, timeout=LIMIT_S)
        self.assertIn("\nOK\n", said)
        self.assertNotIn("skipped", said)

    def test_skypilot(self):
        self.whole("skypilot_test.py", self.environment("skypilot", "skypilot==0.14.1"))

    def test_ray(self):
        self.whole("ray_test.py", self.environment("ray", "ray==2.60.0"))


if __name__ == "__main__":
    checks.main()
