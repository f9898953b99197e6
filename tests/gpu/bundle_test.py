#!/usr/bin/env python3
"""The bundle for machines with a GPU: made, unpacked elsewhere, and run where neither this project
nor the libraries that it brings are there."""
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ["KEEL_BUILD"]
TORCH = os.environ["KEEL_TORCH_DIR"]
# Python itself uses these.
PYTHONS_OWN = ("libssl", "libcrypto", "libz.")
HANG_LIMIT_S = 600


def run(*command, **more):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=HANG_LIMIT_S, check=False, **more)


class Bundle(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="keel-bundle-")
        cls.made = run(f"{ROOT}/tools/gpu_bundle.sh", "--build", BUILD, "--out",
                       f"{cls.folder}/made.tar.gz")
        assert cls.made.returncode == 0, cls.made.stdout
        subprocess.run(["tar", "-C", cls.folder, "-xf", f"{cls.folder}/made.tar.gz"], check=True)
        cls.bundle = f"{cls.folder}/evenkeel-gpu"
        site = os.path.dirname(TORCH)
        cls.python = f"{site.rpartition('/lib/python')[0]}/bin/python"

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def test_it_is_small_and_says_what_it_holds(self):
        self.assertLess(os.path.getsize(f"{self.folder}/made.tar.gz"), 55 << 20)
        for name in ("bin/nccl_probe", "lib/evenkeel/libkeel_nccl.so",
                     "lib/evenkeel/gpu_product.py", "scripts/stages.py"):
            self.assertRegex(self.made.stdout, rf"(?m)^ *\d+ {name}$")
        self.assertRegex(self.made.stdout, r"\d+ KB, for PyTorch \d+\.\d+, after \d+ s")

    def test_without_a_gpu_it_says_so_where_only_python_and_pytorch_are(self):
        """They are put where the rest of the project is not, and what it brings is hidden."""
        if shutil.which("nvidia-smi"):
            self.skipTest("this machine has a GPU")
        if run("unshare", "-m", "true").returncode != 0:
            self.skipTest("no mounts on this machine")
        home = os.path.dirname(os.path.dirname(self.python))
        hidden = []
        for name in os.listdir(f"{self.bundle}/lib"):
            for folder in ("/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu"):
                if os.path.isfile(f"{folder}/{name}") and not name.startswith(PYTHONS_OWN):
                    hidden.append(os.path.realpath(f"{folder}/{name}"))
        self.assertTrue(hidden)
        script = f"""set -e
mkdir -p {self.folder}/python
mount --bind {home} {self.folder}/python
mount -t tmpfs none {ROOT}
for library in {' '.join(sorted(set(hidden)))}; do mount --bind /dev/null $library; done
cd /
PYTHON={self.folder}/python/bin/python {self.bundle}/run.sh || exit $?
"""
        told = run("unshare", "-m", "sh", "-c", script)
        self.assertEqual(told.returncode, 3, told.stdout)
        self.assertIn("no GPU here", told.stdout)
        self.assertIn("two ranks on one GPU, within 120 s", told.stdout)

    def test_its_stages_run_on_the_cpu_too(self):
        stages = ("1 or 2 workers", "kills while forming", "save, stop, resume",
                  "steps beside DDP")
        out = f"{self.folder}/results.json"
        told = run(f"{self.bundle}/run.sh", "--device=cpu", f"--out={out}",
                   *(f"--only={stage}" for stage in stages), cwd=self.folder,
                   env=os.environ | {"PYTHON": self.python})
        self.assertEqual(told.returncode, 0, told.stdout)
        with open(out, encoding="utf-8") as file:
            found = {one["stage"]: one["figures"] for one in json.load(file)["stages"]}
        self.assertEqual(set(found), set(stages))
        self.assertRegex(found["save, stop, resume"]["digest"], r"^\w{32}$")
        self.assertRegex(found["kills while forming"]["told"], r"^all \d+ kills in \d+ jobs left")
        self.assertGreater(found["steps beside DDP"]["ratio"], 0)
        self.assertTrue(re.search(r"(?m)^ok +1 or 2 workers ", told.stdout), told.stdout)

    def test_a_stage_that_fails_is_told_and_the_next_one_runs(self):
        os.rename(f"{self.bundle}/bin/gpt_bench", f"{self.bundle}/bin/away")
        self.addCleanup(os.rename, f"{self.bundle}/bin/away", f"{self.bundle}/bin/gpt_bench")
        told = run(f"{self.bundle}/run.sh", "--device=cpu", f"--out={self.folder}/failed.json",
                   "--only=steps beside DDP", "--only=the same bits twice", cwd=self.folder,
                   env=os.environ | {"PYTHON": self.python})
        self.assertEqual(told.returncode, 1, told.stdout)
        self.assertRegex(told.stdout, r"(?m)^FAILED +steps beside DDP .* exit code")
        self.assertRegex(told.stdout, r"(?m)^ok +the same bits twice ")

    def test_programs_that_do_not_start_are_told_with_what_they_said(self):
        name = next(one for one in os.listdir(f"{self.bundle}/lib") if one.startswith("libspdlog"))
        library = f"{self.bundle}/lib/{name}"
        os.rename(library, f"{library}.away")
        self.addCleanup(lambda: os.replace(f"{library}.away", library))
        with open(library, "wb") as file:
            file.write(b"garbage")
        told = run(f"{self.bundle}/run.sh", "--device=cpu", cwd=self.folder,
                   env=os.environ | {"PYTHON": self.python})
        self.assertEqual(told.returncode, 1, told.stdout)
        self.assertRegex(told.stdout, rf"do not run here: minimal_train ended with \d+, and "
                                      rf"said:\n.*{name}")

    def test_another_pytorch_is_refused_with_a_cure(self):
        other = f"{self.folder}/torch"
        os.makedirs(other)
        with open(f"{other}/version.py", "w", encoding="utf-8") as file:
            file.write("__version__ = '1.13.0'\n")
        told = run(f"{self.bundle}/run.sh", f"--torch={other}",
                   env=os.environ | {"PYTHON": self.python})
        self.assertEqual(told.returncode, 1, told.stdout)
        self.assertIn("in " + other + " is 1.13.0; name one: run.sh --torch=", told.stdout)


if __name__ == "__main__":
    unittest.main()
