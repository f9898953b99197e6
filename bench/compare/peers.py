"""The peers: installed from the package index that pip is configured for, in an environment of
their own.

Promises   who cannot be installed, or imported, is named with the reason, and costs the others
           nothing. What is there already is not installed again. The PyTorch is that of the Python
           which is named, the one that we are built with, so that both run the same kernels.
Does not   touch any other Python.
"""
import collections
import glob
import json
import os
import re
import shutil
import subprocess

# `alone`: packages whose own requirements are left out, since they would bring another PyTorch.
Peer = collections.namedtuple("Peer", "name module packages alone")
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
with open(f"{ROOT}/tools/torch.sh", encoding="utf-8") as script:
    TORCH = "torch==" + re.search(r"^readonly kTorchVersion=(\S+)$", script.read(), re.M)[1]
PEERS = [
    Peer("torch", "torch.distributed", [], [TORCH]),
    Peer("numpy", "numpy", ["numpy==2.4.6"], []),
    Peer("zstandard", "zstandard", ["zstandard==0.25.0"], []),
    Peer("safetensors", "safetensors.torch", ["safetensors==0.8.0"], []),
    Peer("torchft", "torchft", ["opentelemetry-api", "opentelemetry-sdk",
                                "opentelemetry-exporter-otlp-proto-http"], ["torchft==0.2.0"]),
    Peer("torchsnapshot", "torchsnapshot",
         ["psutil", "PyYAML", "aiofiles", "aiohttp", "nest_asyncio", "importlib_metadata<9"],
         ["torchsnapshot==0.1.0"]),
]
INSTALL_LIMIT_S = 1200


def last_line(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:")]
    return (errors or lines or ["it said nothing"])[-1][:300]


class Environment:
    def __init__(self, folder, our_python, say):
        self.folder, self.our_python, self.say = folder, our_python, say
        self.python = os.path.join(folder, "bin/python")

    def make(self):
        """Why not, or None. One that was made for another PyTorch is made anew."""
        ours = self.where_torch_is()
        for path in glob.glob(f"{self.folder}/lib/python3*/site-packages/torch.pth"):
            with open(path, encoding="utf-8") as file:
                is_ours = file.read().strip() == ours
            if ours and not is_ours:
                self.say(f"{self.folder} has another PyTorch than {self.our_python}: made anew")
                shutil.rmtree(self.folder)
        if os.path.exists(self.python):
            return None
        failed = self.run([self.our_python, "-m", "venv", self.folder])
        if failed:
            return failed
        theirs = glob.glob(f"{self.folder}/lib/python3*/site-packages")
        if ours and theirs:
            with open(f"{theirs[0]}/torch.pth", "w", encoding="utf-8") as file:
                file.write(f"{ours}\n")
        return None

    def where_torch_is(self):
        """The folder that holds our_python's, or nothing."""
        ask = ("import importlib.util as u; "
               "print(u.find_spec('torch').submodule_search_locations[0])")
        try:
            done = subprocess.run([self.our_python, "-c", ask], capture_output=True, text=True,
                                  cwd="/", check=False)
        except OSError:
            return ""
        found = done.stdout.strip()
        return os.path.dirname(os.path.realpath(found)) if found else ""

    def run(self, command):
        """Why it failed, or None."""
        clean = {name: value for name, value in os.environ.items()
                 if name not in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")}
        try:
            done = subprocess.run(command, capture_output=True, text=True, errors="replace",
                                  env=clean, timeout=INSTALL_LIMIT_S, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
        return last_line(done.stderr or done.stdout) if done.returncode else None

    def works(self, peer):
        return self.run([self.python, "-c", f"import {peer.module}"])

    def install(self, peer):
        if not self.works(peer):
            return None
        self.say(f"installing {peer.name}")
        pip = [self.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        alone = ["--no-deps"] if peer.packages or peer.module != "torch.distributed" else []
        for packages, more in ((peer.packages, []), (peer.alone, alone)):
            failed = packages and self.run([*pip, *more, *packages])
            if failed:
                return f"pip could not install {' '.join(packages)}: {failed}"
        failed = self.works(peer)
        return failed and f"installed, but it cannot be imported: {failed}"

    def version(self, peer):
        ask = "import importlib.metadata as m, sys; print(m.version(sys.argv[1]))"
        done = subprocess.run([self.python, "-c", ask, peer.name], capture_output=True, text=True,
                              check=False)
        return done.stdout.strip()


def install_all(folder, our_python, say):
    """{name: {"version": V} or {"why_not": reason}}, and the interpreter."""
    environment = Environment(folder, our_python, say)
    failed = environment.make()
    found = {}
    for peer in PEERS:
        why = failed or environment.install(peer)
        found[peer.name] = {"why_not": why} if why else {"version": environment.version(peer)}
        if why:
            say(f"going on without {peer.name}: {why}")
    return found, environment.python


def main():
    """For a look at what can be installed here: peers.py FOLDER PYTHON."""
    import sys
    found, python = install_all(os.path.abspath(sys.argv[1]), sys.argv[2],
                                lambda text: print(text, file=sys.stderr))
    print(json.dumps({"python": python, "peers": found}, indent=1))


if __name__ == "__main__":
    main()
