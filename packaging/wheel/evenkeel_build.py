"""Makes evenkeel's engine for the PyTorch that is installed: python -m evenkeel_build.

For a version of PyTorch that the wheel has no engine for. It compiles the sources that the wheel
brings, which takes some minutes, and puts the engine into the package, where `import evenkeel`
and keelrun find it.

Promises   the package changes only when all is there; an error says what is missing, and the cure.
Does not   import PyTorch or evenkeel, download, or install anything else.
"""
import argparse
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time

SOURCES = "_sources.tar.xz"
# Of tools/debian-packages.txt, what an engine is made with.
NEEDED = ("g++", "cmake", "ninja-build", "libgloo-dev", "libboost-dev",
          "libboost-program-options-dev", "libboost-filesystem-dev", "libzstd-dev",
          "libxxhash-dev", "libssl-dev", "libcurl4-openssl-dev", "libspdlog-dev",
          "nlohmann-json3-dev")
MADE = ("python/evenkeel/libevenkeel_python.so", "lib/evenkeel/libkeel_store_module.so")
LAST_LINES = 30


class Refused(Exception):
    """What is wrong, and what to do."""


def folder_of(name):
    found = importlib.util.find_spec(name)
    if found is None or not found.submodule_search_locations:
        raise Refused(f"there is no {name} for {sys.executable}: install it there first")
    return os.path.realpath(list(found.submodule_search_locations)[0])


def version_of(torch):
    """The minor version of the PyTorch in a folder, as 2.11."""
    try:
        with open(os.path.join(torch, "version.py"), encoding="utf-8") as file:
            found = re.search(r"^__version__ = '(\d+\.\d+)", file.read(), re.M)
    except OSError as error:
        raise Refused(f"{torch} is no PyTorch: {error}") from None
    if found is None:
        raise Refused(f"{torch}/version.py does not say which PyTorch that is")
    return found[1]


def is_there(probe):
    kind, _, what = probe.partition(":")
    if kind == "command":
        return shutil.which(what) is not None
    compiler = os.environ.get("CXX", "c++")
    return subprocess.run([compiler, "-E", "-x", "c++", "-"], input=f"#include <{what}>\n",
                          text=True, capture_output=True, check=False).returncode == 0


def check_needs(archive):
    text = archive.extractfile("tools/debian-packages.txt").read().decode()
    rows = [line.split()[:2] for line in text.splitlines() if line and not line.startswith("#")]
    probes = {package: probe for package, probe in rows if package in NEEDED}
    # Without a compiler no header is found, so it alone is named.
    first = [package for package in NEEDED if probes[package].startswith("command:")]
    missing = ([package for package in first if not is_there(probes[package])] or
               [package for package in NEEDED if not is_there(probes[package])])
    if missing:
        what = ", ".join(probes[package].split(":")[1] for package in missing)
        raise Refused(f"these are missing here: {what}. On Debian and Ubuntu: "
                      f"sudo apt-get install --no-install-recommends {' '.join(missing)}. "
                      f"Elsewhere, install what has these names there")


def run(command, folder, log):
    """Passes on the lines that say how far it is."""
    with subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace") as process:
        lines, told = [], time.monotonic()
        for line in process.stdout:
            lines.append(line)
            log.write(line)
            if line.startswith("[") and time.monotonic() - told > 10:
                told = time.monotonic()
                print("evenkeel_build:", line.split("]")[0] + "] files", flush=True)
    if process.returncode != 0:
        print("".join(lines[-LAST_LINES:]), file=sys.stderr)
        raise Refused(f"`{' '.join(command[:2])} ...` failed with {process.returncode}; its last "
                      f"lines are above, and all of them in {log.name}")


def compile_all(sources, torch, built, jobs):
    with open(f"{built}.log", "w", encoding="utf-8") as log:
        run(["cmake", "--preset", "engine", "-B", built, f"-DKEEL_TORCH={torch}"], sources, log)
        run(["cmake", "--build", built, "-j", str(jobs), "--target", "evenkeel_python",
             "keel_store_module"], sources, log)


def put(built, target):
    """All of it, or nothing."""
    part = os.path.join(os.path.dirname(target), "_part_of_an_engine")
    shutil.rmtree(part, ignore_errors=True)
    os.mkdir(part)
    for path in MADE:
        made = os.path.join(part, os.path.basename(path))
        shutil.copy(f"{built}/{path}", made)
        if shutil.which("strip"):
            subprocess.run(["strip", "--strip-unneeded", made], check=True)
    shutil.rmtree(target, ignore_errors=True)
    os.rename(part, target)


def build(args):
    package, torch = folder_of("evenkeel"), folder_of("torch")
    version = version_of(torch)
    target = os.path.join(package, f"torch{version}")
    if os.path.exists(target) and not args.again:
        print(f"evenkeel_build: there is an engine for torch {version} in {target}; "
              f"--again makes another one")
        return
    if not os.access(package, os.W_OK):
        raise Refused(f"you may not write to {package}, where the engine belongs: run this as the "
                      f"user who installed evenkeel-torch, or install it into an environment of "
                      f"your own (python -m venv)")
    with tarfile.open(os.path.join(package, SOURCES)) as archive:
        check_needs(archive)
        work = os.path.abspath(args.work or tempfile.mkdtemp(prefix="evenkeel-build-"))
        sources, built = f"{work}/sources", f"{work}/torch{version}"
        shutil.rmtree(sources, ignore_errors=True)
        archive.extractall(sources, **({"filter": "data"} if hasattr(tarfile, "data_filter")
                                       else {}))
    print(f"evenkeel_build: making the engine for torch {version} in {work}; "
          f"this takes some minutes", flush=True)
    compile_all(sources, torch, built, args.jobs)
    put(built, target)
    if not args.work:
        shutil.rmtree(work)
    print(f"evenkeel_build: there is an engine for torch {version} now, in {target}")


def main():
    about = __doc__.split("\n\nPromises", maxsplit=1)[0]
    parser = argparse.ArgumentParser(prog="python -m evenkeel_build", description=about,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--again", action="store_true",
                        help="also where there is an engine for this PyTorch")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), metavar="N",
                        help="compile N files at a time, which take 1 GB of memory each "
                             "(default: as many as there are processors)")
    parser.add_argument("--work", metavar="DIR",
                        help="compile in this folder, which stays and makes a second time quick "
                             "(default: a temporary one, which stays if it fails)")
    args = parser.parse_args()
    try:
        build(args)
    except Refused as refused:
        sys.exit(f"evenkeel_build: {refused}.")


if __name__ == "__main__":
    main()
