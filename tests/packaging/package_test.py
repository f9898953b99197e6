"""What cpack makes: the tarball runs where it is unpacked, both need what every Debian has.

Promises   fails if a packaged file names a folder of this machine, if the programs do not run, or
           if a job does not run once LibTorch is where the message says that it is looked for.
Does not   install the .deb: that would change this machine. Build Evenkeel: the tests run after it.
"""
import os
import pathlib
import re
import shutil
import tempfile
import unittest

import checks

GIVEN = checks.arguments(torch={"default": ""}, cpack={"required": True})


def version():
    return re.search(r"VERSION ([\d.]+)", (GIVEN.source / "CMakeLists.txt").read_text().split(
        "project(")[1])[1]


class PackageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.work = pathlib.Path(tempfile.mkdtemp(prefix="keel-package-"))
        cls.addClassCleanup(shutil.rmtree, cls.work)
        cls.made = cls.work / "made"
        generators = "TGZ;DEB" if shutil.which("dpkg-shlibdeps") else "TGZ"
        checks.run(GIVEN.cpack, "--config", GIVEN.build / "CPackConfig.cmake", "-G", generators,
                      "-B", cls.made)
        tarball, = cls.made.glob("evenkeel-*.tar.gz")
        (cls.work / "unpacked").mkdir()
        checks.run("tar", "-xzf", tarball, "-C", cls.work / "unpacked")
        cls.root, = (cls.work / "unpacked").iterdir()

    def test_both_builds_and_the_programs_have_one_version(self):
        meson = re.search(r"version : '([\d.]+)'", (GIVEN.source / "meson.build").read_text())[1]
        self.assertEqual(meson, version())
        for program in ("keelrun", "keel"):
            said = checks.run(self.root / "bin" / program, "--version")
            self.assertEqual(said, f"{program} (Evenkeel) {version()}\n")

    def test_it_has_what_is_looked_for_in_it(self):
        for name in ("bin/keelrun", "bin/keel", "include/evenkeel/base/result.h",
                     "lib/evenkeel/python/evenkeel/__init__.py",
                     "lib/evenkeel/python/evenkeel/lib/evenkeel/libkeel_numeric_names.so",
                     "lib/evenkeel/python/evenkeel/lib/evenkeel/gpu_product.py",
                     "lib/libkeel_base.a",
                     "lib/cmake/Evenkeel/EvenkeelConfig.cmake", "share/doc/evenkeel/LICENSE",
                     "lib/systemd/system/keelrun@.service", "share/man/man1/keelrun.1",
                     "share/man/man1/keel-verify.1", "share/evenkeel/slurm/train.sbatch",
                     "share/evenkeel/kubernetes/train.yaml",
                     "share/evenkeel/kubeflow/trainjob.yaml",
                     "share/evenkeel/ray/ray_train.py",
                     "share/evenkeel/skypilot/nodes.yaml",
                     "share/evenkeel/examples/quickstart.sh",
                     "share/evenkeel/examples/python/gpt.py",
                     "share/bash-completion/completions/keelrun",
                     "share/zsh/site-functions/_keelrun"):
            self.assertTrue((self.root / name).is_file(), name)

    def test_its_quick_start_is_a_command(self):
        said = checks.run(self.root / "share/evenkeel/examples/quickstart.sh", "--help")
        self.assertIn("--python PYTHON", said)

    def binaries(self):
        return [*self.root.rglob("*.so*"), *(self.root / "bin").iterdir()]

    def test_no_file_names_a_folder_of_this_machine(self):
        strange = [str(folder).encode() for folder in (GIVEN.build, GIVEN.source, self.made)]
        for path in self.root.rglob("*"):
            self.assertTrue(path.resolve().is_relative_to(self.root.resolve()), path)
            # In libraries' archives there are file names, of messages.
            if path.is_file() and path.suffix in (".cmake", ".1", ".service"):
                for folder in strange:
                    self.assertNotIn(folder, path.read_bytes(), path)
        for path in self.binaries():
            for line in checks.run("readelf", "-d", path).splitlines():
                if "PATH" in line:
                    folders = line.split("[")[1].rstrip("]").split(":")
                    self.assertTrue(all(one.startswith("$ORIGIN") for one in folders), line)

    def test_it_needs_what_every_debian_has_and_pytorch(self):
        own = {path.name for path in self.binaries()}
        needed = {}
        for path in self.binaries():
            for name in re.findall(r"NEEDED.*\[(.*)\]", checks.run("readelf", "-d", path)):
                needed.setdefault(name, path)
        self.assertIn("libc.so.6", needed)
        everywhere = (r"lib(c|m|stdc\+\+|gcc_s|dl|pthread|rt)\.so\.\d|ld-linux-|"
                      r"lib(torch_cpu|c10)\.so")
        for name, path in needed.items():
            # What is for buckets is loaded by those who name one.
            if name == "libcurl.so.4" and path.name == "libkeel_s3.so":
                continue
            self.assertTrue(name in own or re.match(everywhere, name), f"{path} needs {name}")

    def test_it_asks_for_no_newer_glibc_than_debian_12_has(self):
        for path in self.binaries():
            for major, minor in re.findall(r"\bGLIBC_(\d+)\.(\d+)",
                                           checks.run("readelf", "-V", path)):
                self.assertLessEqual((int(major), int(minor)), (2, 36), path)

    def test_a_job_runs_with_a_pytorch_that_is_named_or_linked(self):
        if not (GIVEN.build / "bin/minimal_train").exists():
            self.skipTest("this build is without the examples")
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith(("PET_", "KEEL", "LD_", "TORCH", "PYTHON",
                                               "VIRTUAL_ENV", "CONDA"))}
        launch = (self.root / "bin/keelrun", "--standalone", "--nproc-per-node=2")
        job = (*launch, GIVEN.build / "bin/minimal_train", "--steps=5")
        # Workers that need no store are not disturbed by its lack.
        nowhere = environment | {"PYTHON_EXEC": "/nowhere/python3"}
        said = checks.run(*launch, "--no-python", "true", env=nowhere)
        self.assertIn("no PyTorch was found; looked for in", said)
        said = checks.run(*job, env=environment | {"KEEL_TORCH": str(GIVEN.torch)})
        self.assertIn("final step=5 ", said)
        self.assertNotIn("no-store", said)
        link = self.root / "lib/evenkeel/torch"
        link.symlink_to(GIVEN.torch)
        self.addCleanup(link.unlink)
        said = checks.run(*job, env=nowhere)
        self.assertIn("final step=5 ", said)
        self.assertNotIn("no-store", said)

    def test_the_deb_says_what_it_needs(self):
        checks.need("dpkg-shlibdeps", "dpkg-dev")
        deb, = self.made.glob("*.deb")
        self.assertRegex(deb.name, rf"^evenkeel_{re.escape(version())}_\w+\.deb$")
        needs = checks.run("dpkg-deb", "--field", deb, "Depends")
        names = {one.split()[0] for one in needs.strip().split(", ")}
        self.assertEqual(names, {"libc6", "libstdc++6", "libgcc-s1"})
        listing = checks.run("dpkg-deb", "--contents", deb)
        here = {str(path.relative_to(self.root)) for path in self.root.rglob("*")
                if path.is_file()}
        there = set(re.findall(r"(?m)^[-l].* \./usr/(.*?)(?: -> .*)?$", listing))
        self.assertEqual(there, here)

    def test_the_deb_unpacks_and_runs(self):
        checks.need("dpkg-shlibdeps", "dpkg-dev")
        deb, = self.made.glob("*.deb")
        checks.run("dpkg-deb", "--extract", deb, self.work / "root")
        said = checks.run(self.work / "root/usr/bin/keelrun", "--version")
        self.assertIn(version(), said)


if __name__ == "__main__":
    checks.main()
