"""Runs tools/setup.sh in a made-up world: its apt, pip, cmake, df and id are stand-ins.

Promises   nothing is downloaded, built or installed; the stand-ins note what they were asked.
"""

import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
HANG_LIMIT_S = 60

STAND_INS = {
    # Everything in the list is installed, but for what the file `missing` names.
    "dpkg-query": """
for word; do
  case $word in -*|*{*) ;; *) grep -qx "$word" "$WORLD/missing" || echo "installed $word" ;; esac
done""",
    "dpkg": "",
    "apt-get": """
echo "apt-get $*" >>"$WORLD/calls"
case "$*" in *install*) : >"$WORLD/missing" ;; esac""",
    "sudo": 'echo "sudo $*" >>"$WORLD/calls"',
    "id": 'cat "$WORLD/uid"',
    "df": 'echo "disk size used free"; echo "disk 1 1 $(cat "$WORLD/free_mb")"',
    "cmake": """
echo "cmake $*" >>"$WORLD/calls"
case "$*" in
  --version) echo "cmake version 3.25.1" ;;
  *--preset*)
    mkdir -p build
    touch build/build.ninja
    { echo "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD"; echo "CMAKE_GENERATOR:INTERNAL=Ninja"
      for word; do case $word in -D*) echo "${word#-D}" | sed 's/=/:STRING=/' ;; esac; done
    } >build/CMakeCache.txt ;;
esac""",
    # `python -I -m venv DIR` makes DIR/bin/python, which is the stand-in for pip.
    "python": 'mkdir -p "$4/bin"; cp "$WORLD/bin/pip" "$4/bin/python"',
    "pip": """
case "$*" in *" -c import torch"*) echo "compiled" >>"$WORLD/calls"; exit ;; esac
echo "pip $*" >>"$WORLD/calls"
env >"$WORLD/pip_env"
log=$(echo "$*" | sed 's/.*--log \\([^ ]*\\).*/\\1/')
if [ -e "$WORLD/started" ]; then echo $$ >"$WORLD/started"; exec 3<"$WORLD/go"; fi
if [ -e "$WORLD/pip_says" ]; then cp "$WORLD/pip_says" "$log"; exit 1; fi
mkdir -p "$(dirname "$0")/../lib/python3.11/site-packages/torch" """,
}


class Setup(unittest.TestCase):
    """Each test has a repository and a PATH of its own, in a temporary directory."""

    def setUp(self):
        self.world = pathlib.Path(tempfile.mkdtemp(prefix="keel-setup-"))
        self.addCleanup(shutil.rmtree, self.world)
        self.repo = self.world / "repo"
        (self.repo / "tools").mkdir(parents=True)
        for name in ("tools/setup.sh", "tools/torch.sh", "tools/debian-packages.txt",
                     "CMakePresets.json"):
            shutil.copy(ROOT / name, self.repo / name)
        (self.world / "bin").mkdir()
        for name, body in STAND_INS.items():
            program = self.world / "bin" / name
            program.write_text(f"#!/bin/sh\n{body}\n")
            program.chmod(0o755)
        self.write(missing="", uid="0", free_mb="10000", calls="")
        self.venv = self.repo / ".deps/venv"
        self.environment = {"PATH": f"{self.world}/bin:/usr/bin:/bin", "WORLD": str(self.world),
                            "KEEL_PYTHON": str(self.world / "bin/python"), "HOME": str(self.world)}

    def write(self, **files):
        for name, text in files.items():
            (self.world / name).write_text(text)

    def calls(self):
        return (self.world / "calls").read_text()

    def start(self, *arguments, **environment):
        process = subprocess.Popen([self.repo / "tools/setup.sh", *arguments], text=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, env=self.environment | environment,
                                   start_new_session=True)
        self.addCleanup(self.leave_nobody, process)
        return process

    @staticmethod
    def leave_nobody(process):
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
        process.stdout.close()

    def run_setup(self, *arguments, code=0, **environment):
        process = self.start(*arguments, **environment)
        output, _ = process.communicate(timeout=HANG_LIMIT_S)
        self.assertEqual(process.returncode, code, output)
        return output

    def test_everything_from_nothing_then_nothing_more(self):
        self.run_setup()
        self.assertEqual((self.venv / ".complete").read_text(),
                         "torch==2.15.0 nvidia-cuda-crt==13.2.86 nvidia-cuda-cccl==13.2.86\n")
        self.assertIn("install --no-compile --no-cache-dir torch==2.15.0 nvidia-cuda-crt==",
                      self.calls())
        self.assertIn("--preset release -DKEEL_WITH_TORCH=ON", self.calls())
        self.write(calls="")
        self.run_setup()
        self.assertEqual(self.calls().count("\n"), 1, self.calls())
        self.assertIn("cmake --build", self.calls())

    def test_tests_are_built_unless_only_programs_are_asked_for(self):
        self.run_setup("--programs")
        self.assertIn("--target programs ", self.calls())
        self.write(calls="")
        self.run_setup()
        self.assertIn("--target all ", self.calls())

    def test_without_root_a_missing_package_is_named_with_its_command(self):
        self.write(missing="libzstd-dev\n", uid="1000")
        output = self.run_setup(code=1)
        self.assertRegex(output, r"sudo apt-get install [^\n]* libzstd-dev\n")
        self.assertNotIn("libboost-dev", output)
        self.assertEqual(self.calls(), "")

    def test_without_root_nothing_missing_is_no_problem(self):
        self.write(uid="1000")
        self.run_setup()
        self.assertNotIn("apt-get", self.calls())

    def test_root_installs_what_is_missing_and_no_more(self):
        self.write(missing="libzstd-dev\niproute2\n")
        self.run_setup("--no-build")
        self.assertRegex(self.calls(), r"install [^\n]*recommends libzstd-dev iproute2\n")
        self.assertNotIn("sudo", self.calls())

    def test_keel_torch_downloads_nothing_and_is_remembered(self):
        own = self.world / "own"
        (own / "lib").mkdir(parents=True)
        (own / "lib/libtorch_cpu.so").touch()
        self.run_setup(KEEL_TORCH=str(own))
        self.assertIn(f"-DKEEL_TORCH={own}", self.calls())
        self.run_setup()
        self.assertNotIn("pip", self.calls())
        self.assertEqual(self.calls().count("--preset"), 1)
        self.run_setup(KEEL_TORCH="")
        self.assertIn("pip", self.calls())

    def test_keel_torch_without_libtorch_is_refused(self):
        output = self.run_setup(code=1, KEEL_TORCH=str(self.world))
        self.assertIn(f"KEEL_TORCH={self.world} is not a folder of LibTorch", output)

    def test_keel_deps_is_installed_once_and_handed_to_cmake(self):
        shared = self.world / "shared"
        self.run_setup(KEEL_DEPS=str(shared))
        torch = shared / "venv-2.15.0/lib/python3.11/site-packages/torch"
        self.assertIn(f"-DKEEL_TORCH={torch}", self.calls())
        self.assertFalse((self.repo / ".deps").exists())

    def test_another_version_has_an_environment_of_its_own_and_is_remembered(self):
        self.run_setup()
        own = (self.venv / ".complete").read_text()
        self.write(calls="")
        output = self.run_setup(KEEL_TORCH_VERSION="2.14.1")
        other = self.repo / ".deps/venv-2.14.1"
        self.assertIn(f"downloading PyTorch 2.14.1 into {other}", output)
        self.assertEqual((other / ".complete").read_text(), "torch==2.14.1\n")
        self.assertEqual((self.venv / ".complete").read_text(), own)
        torch = other / "lib/python3.11/site-packages/torch"
        self.assertIn(f"-DKEEL_TORCH={torch}", self.calls())
        self.write(calls="")
        self.assertIn("using PyTorch 2.14.1, which", self.run_setup())
        self.assertNotIn("pip", self.calls())
        self.assertNotIn("--preset", self.calls())
        self.run_setup(KEEL_TORCH_VERSION="")
        self.assertNotIn("pip", self.calls())
        self.assertIn("-DKEEL_TORCH= ", self.calls())

    def test_a_remembered_version_whose_environment_is_gone_is_installed_again(self):
        shared = self.world / "shared"
        self.run_setup(KEEL_TORCH_VERSION="2.14.1", KEEL_DEPS=str(shared))
        shutil.rmtree(shared)
        self.write(calls="")
        self.run_setup(KEEL_DEPS=str(shared))
        self.assertIn("install --no-compile --no-cache-dir torch==2.14.1 ", self.calls())
        self.assertFalse((shared / "venv").exists())

    def test_other_headers_of_cuda_are_those_that_cudas_package_names(self):
        toolkit = self.repo / ".deps/venv-2.14.1/lib/python3.11/site-packages/cuda_toolkit-13.1.0"
        output = self.run_setup(KEEL_TORCH_VERSION="2.14.1")
        self.assertIn("the module for GPUs will not be built", output)
        (self.world / "bin/pip").write_text(
            f"#!/bin/sh\nmkdir -p {toolkit}\n{STAND_INS['pip']}\n")
        shutil.rmtree(self.repo / ".deps")
        output = self.run_setup(KEEL_TORCH_VERSION="2.14.1")
        self.assertIn("cuda-toolkit[cccl,crt]", self.calls())
        self.assertNotIn("will not be built", output)

    def test_versions_that_cannot_be_taken_are_refused_before_the_download(self):
        for version in ("2.14", "newest", "2.6.0", "3.0.0", "2.14.1 torchvision"):
            output = self.run_setup(code=1, KEEL_TORCH_VERSION=version)
            self.assertIn(f"KEEL_TORCH_VERSION={version} is no version", output)
        output = self.run_setup(code=1, KEEL_TORCH_VERSION="2.14.1", KEEL_TORCH=str(self.world))
        self.assertIn("unset one of them", output)
        self.assertEqual(self.calls(), "")

    def test_torch_free_neither_downloads_nor_builds_it(self):
        self.run_setup("--torch-free")
        self.assertNotIn("pip", self.calls())
        self.assertIn("-DKEEL_WITH_TORCH=OFF", self.calls())

    def test_packages_for_tests_are_installed_once_and_only_when_asked_for(self):
        stamp = self.repo / ".deps/python-tests/.complete"
        self.run_setup("--torch-free")
        self.assertFalse(stamp.exists())
        self.run_setup("--torch-free", "--tests")
        self.assertRegex(stamp.read_text(),
                         r"\Anumpy==[\d.]+ zstandard==[\d.]+ safetensors==[\d.]+ "
                         r"tensorboard==[\d.]+ kubernetes-validate==[\d.]+ "
                         r"transformers==[\d.]+ boto3==[\d.]+ check-jsonschema==[\d.]+ "
                         r"zizmor==[\d.]+ kubeflow-trainer-api==[\d.]+ "
                         r"accelerate==[\d.]+ lightning==[\d.]+ "
                         r"lightning-utilities==[\d.]+ torchmetrics==[\d.]+\n\Z")
        packages, *alone = stamp.read_text().strip().rsplit(" ", 4)
        alone = " ".join(alone)
        self.assertIn(f"progress-bar off {packages}\n", self.calls())
        self.assertIn(f"progress-bar off --no-deps {alone}\n", self.calls())
        self.write(calls="")
        self.run_setup("--torch-free", "--tests")
        self.assertNotIn("pip", self.calls())
        stamp.write_text("numpy==1.0\n")
        self.run_setup("--torch-free", "--tests")
        self.assertEqual(self.calls().count("pip -I"), 3)   # one for each list, and the server

    def test_packages_for_tests_that_cannot_be_had_are_told_and_no_failure(self):
        self.write(pip_says="Max retries exceeded with url\n")
        output = self.run_setup("--torch-free", "--tests")
        self.assertIn("Check the network", output)
        self.assertIn("are skipped", output)
        self.assertFalse((self.repo / ".deps/python-tests").exists())
        self.assertIn("-DKEEL_WITH_TORCH=OFF", self.calls())

    def test_keel_deps_holds_the_packages_for_tests_too(self):
        shared = self.world / "shared"
        self.run_setup("--torch-free", "--tests", KEEL_DEPS=str(shared))
        python = shared / "python-tests/bin/python"
        self.assertTrue(python.exists())
        self.assertIn(f"-DKEEL_TEST_PYTHON={python}", self.calls())

    def test_half_made_environment_is_made_anew(self):
        self.venv.mkdir(parents=True)
        (self.venv / "half").touch()
        self.run_setup("--no-build")
        self.assertFalse((self.venv / "half").exists())
        self.assertTrue((self.venv / ".complete").exists())

    def test_the_environment_that_earlier_releases_made_gives_way_to_a_link(self):
        self.venv.mkdir(parents=True)
        (self.venv / ".complete").write_text("torch==2.11.0 nvidia-cuda-crt==13.0.88\n")
        self.run_setup("--no-build")
        self.assertEqual(os.readlink(self.venv), "venv-2.15.0")
        self.assertRegex((self.venv / ".complete").read_text(), r"^torch==2\.15\.0 ")

    def test_the_version_that_was_ours_before_stays_for_clones_that_want_it(self):
        self.run_setup("--no-build", KEEL_TORCH_VERSION="2.11.0")
        self.venv.symlink_to("venv-2.11.0")
        self.run_setup("--no-build")
        self.assertEqual(os.readlink(self.venv), "venv-2.15.0")
        self.write(calls="")
        self.run_setup("--no-build", KEEL_TORCH_VERSION="2.11.0")
        self.assertNotIn("pip", self.calls())
        self.venv.unlink()
        self.run_setup("--no-build")
        self.assertEqual(os.readlink(self.venv), "venv-2.15.0")
        self.assertNotIn("pip", self.calls())

    def test_a_build_folder_is_configured_anew_for_another_version_of_ours(self):
        self.run_setup()
        stamp = self.repo / "build/.setup"
        stamp.write_text(stamp.read_text().replace("2.15.0", "2.11.0"))
        self.write(calls="")
        self.run_setup()
        self.assertIn("--preset release", self.calls())

    def test_failures_of_pip_are_explained_and_leave_no_stamp(self):
        for said, explained in (("OSError: [Errno 28] No space left on device", "KEEL_DEPS="),
                                ("Max retries exceeded with url", "Check the network"),
                                ("ERROR: No matching distribution found", "KEEL_PYTHON="),
                                ("something else", "something else")):
            self.write(pip_says=said + "\n")
            output = self.run_setup(code=1)
            self.assertIn("pip could not install torch==2.15.0", output)
            self.assertIn(explained, output)
            self.assertFalse((self.venv / ".complete").exists())

    def test_too_little_disk_is_said_before_the_download(self):
        self.write(free_mb="8999")
        self.assertIn("has 8999 MB free", self.run_setup(code=1))
        self.assertNotIn("pip", self.calls())

    def test_settings_of_the_users_python_do_not_leak(self):
        leaks = {name: "/leak" for name in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PIP_TARGET",
                                            "PIP_PREFIX", "PIP_ROOT")}
        self.run_setup("--no-build", PIP_USER="1", PIP_INDEX_URL="https://index", **leaks)
        seen = (self.world / "pip_env").read_text()
        self.assertNotIn("/leak", seen)
        self.assertIn("PIP_USER=0\n", seen)
        self.assertIn("PIP_INDEX_URL=https://index\n", seen)
        self.assertIn(f"TMPDIR={self.repo}/.deps/tmp\n", seen)

    def hold_pip(self):
        """From now on pip says through one pipe that it is there, and waits for another."""
        os.mkfifo(self.world / "started")
        os.mkfifo(self.world / "go")

    def await_pip(self):
        return int((self.world / "started").read_text())

    def test_terminated_while_downloading_it_leaves_nobody_behind(self):
        self.hold_pip()
        process = self.start()
        pip = self.await_pip()
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=HANG_LIMIT_S)
        self.assertEqual(process.returncode, 143)
        with self.assertRaises(ProcessLookupError):
            os.kill(pip, 0)
        (self.world / "started").unlink()
        self.run_setup()

    def test_after_a_kill_the_next_run_waits_for_the_orphan_and_starts_over(self):
        self.hold_pip()
        first = self.start()
        self.await_pip()
        (self.world / "started").unlink()  # the next pip is not held
        first.kill()
        first.wait()
        second = self.start()
        self.assertIn("another set-up is at work", second.stdout.readline())
        (self.world / "go").write_text("")
        output, _ = second.communicate(timeout=HANG_LIMIT_S)
        self.assertEqual(second.returncode, 0, output)
        self.assertEqual(self.calls().count("pip -I"), 2)

    def test_two_at_once_take_turns(self):
        self.hold_pip()
        first = self.start()
        self.await_pip()
        second = self.start()
        self.assertIn("another set-up is at work", second.stdout.readline())
        (self.world / "go").write_text("")
        for process in (first, second):
            output, _ = process.communicate(timeout=HANG_LIMIT_S)
            self.assertEqual(process.returncode, 0, output)
        self.assertEqual(self.calls().count("pip -I"), 1)
        self.assertEqual(self.calls().count("--preset"), 1)

    def test_build_folder_of_other_sources_is_made_afresh(self):
        (self.repo / "build").mkdir()
        (self.repo / "build/CMakeCache.txt").write_text(
            "CMAKE_HOME_DIRECTORY:INTERNAL=/elsewhere\nCMAKE_GENERATOR:INTERNAL=Ninja\n")
        output = self.run_setup("--torch-free")
        self.assertIn("it was made for the sources in /elsewhere", output)
        self.assertIn("cmake --fresh --preset", self.calls())

    def test_unknown_arguments_are_refused(self):
        self.assertIn("unknown option '--frob'", self.run_setup("--frob", code=1))
        self.assertIn("no preset 'fast'", self.run_setup("--preset", "fast", code=1))
        self.assertEqual(self.calls(), "")


if __name__ == "__main__":
    unittest.main()
