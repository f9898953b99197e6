"""Lays out what a wheel holds, from a build folder, and one for each engine.

    evenkeel/*.py                       the package
    evenkeel/torchX.Y/                  for one minor version of PyTorch: the engine, and what of
                                        keelrun depends on PyTorch
    evenkeel/bin/                       keelrun and keel; evenkeel_programs.py starts them
    evenkeel_spare.py                   what keelrun starts to have a process at hand
    evenkeel/lib/evenkeel/              what keelrun and keel load or start
    evenkeel/_sources.tar.xz            for evenkeel_build.py, which makes further engines

Promises   libraries look for PyTorch's and for ours in the same site-packages, and nowhere else.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile

PROGRAMS = ("keelrun", "keel")
MODULES = ("libkeel_numeric_names.so", "libkeel_s3.so")
OF_TORCH = ("python/evenkeel/libevenkeel_python.so", "lib/evenkeel/libkeel_store_module.so")
# What CMake's preset `engine` reads.
SOURCES = ("CMakeLists.txt", "CMakePresets.json", "LICENSE", "meson_options.txt", "base", "ckpt",
           "cmake", "elastic", "python", "store", "trainer", "tools/debian-packages.txt")
ONLY_OF_PROGRAMS = tuple(f"elastic/{wing}/" for wing in
                         ("board", "doctor", "launch", "notice", "status"))
UNREAD = (".md", ".py", ".pyi", ".sh", ".svg")
METADATA = """Metadata-Version: 2.1
Name: evenkeel-torch
Version: {version}
Summary: Elastic training that is exact to the last bit, for scripts that own their loop
License: Apache-2.0
Requires-Python: >=3.10
Requires-Dist: torch>={first},<{behind}
Description-Content-Type: text/markdown

"""


def version_of(root):
    with open(f"{root}/CMakeLists.txt", encoding="utf-8") as file:
        return re.search(r"project\(Evenkeel VERSION (\S+)", file.read())[1]


def torch_of(engine):
    """(2, 11) of a build folder."""
    with open(f"{engine}/keel_torch_version.txt", encoding="utf-8") as file:
        major, minor = file.read().split(".")[:2]
    return int(major), int(minor)


def torches_of(engines):
    """{(2, 11): folder}, in order; or ends with why no range of versions names just these."""
    torches = {}
    for engine in engines:
        torch = torch_of(engine)
        if torch in torches:
            sys.exit(f"assemble: {torches[torch]} and {engine} are both for PyTorch "
                     f"{torch[0]}.{torch[1]}; name one of them")
        torches[torch] = engine
    ordered = sorted(torches)
    for (major, minor), after in zip(ordered, ordered[1:]):
        if after != (major, minor + 1):
            sys.exit(f"assemble: there are engines for PyTorch {major}.{minor} and "
                     f"{after[0]}.{after[1]}, and none between: pip could not be told which "
                     f"versions this wheel is for; add those that are missing")
    return {torch: torches[torch] for torch in ordered}


def copy(source, folder, patchelf=None, rpath=None):
    os.makedirs(folder, exist_ok=True)
    target = os.path.join(folder, os.path.basename(source))
    shutil.copy(os.path.realpath(source), target)
    if patchelf:
        subprocess.run(["strip", "--strip-unneeded", target], check=True)
        where = ["--set-rpath", rpath] if rpath else ["--remove-rpath"]
        subprocess.run([patchelf, *where, target], check=True)


def pack_sources(root, package):
    """The same bytes whoever packs them, whenever."""
    def of_nobody(entry):
        if "__pycache__" in entry.name or entry.name.endswith(UNREAD):
            return None
        if f"{entry.name}/".startswith(ONLY_OF_PROGRAMS):
            return None
        entry.uid = entry.gid = entry.mtime = 0
        entry.uname = entry.gname = ""
        entry.mode = 0o755 if entry.mode & 0o100 else 0o644
        return entry
    with tarfile.open(f"{package}/_sources.tar.xz", "w:xz") as archive:
        for name in SOURCES:
            archive.add(f"{root}/{name}", name, filter=of_nobody)


def lay_out(root, build, torches, into, patchelf):
    package, built = f"{into}/evenkeel", f"{build}/python/evenkeel"
    for name in sorted(os.listdir(built)):
        if name.endswith((".py", ".pyi", ".typed")):
            copy(f"{built}/{name}", package)
    for name in ("evenkeel_programs.py", "evenkeel_build.py"):
        copy(f"{root}/packaging/wheel/{name}", into)
    copy(f"{root}/python/evenkeel_spare.py", into)
    pack_sources(root, package)
    for (major, minor), engine in torches.items():
        for path in OF_TORCH:
            copy(f"{engine}/{path}", f"{package}/torch{major}.{minor}", patchelf,
                 "$ORIGIN/../../torch/lib:$ORIGIN/../lib/evenkeel")
    for name in PROGRAMS:
        copy(f"{build}/bin/{name}", f"{package}/bin", patchelf)
    for name in MODULES:
        copy(f"{build}/lib/evenkeel/{name}", f"{package}/lib/evenkeel", patchelf)
    copy(f"{root}/tools/keel/gpu_product.py", f"{package}/lib/evenkeel")
    # It finds libcrypto's functions where the system's curl has them. With one of its own beside
    # curl's, each would call functions of the other.
    subprocess.run([patchelf, "--remove-needed", "libcrypto.so.3",
                    f"{package}/lib/evenkeel/libkeel_s3.so"], check=True)


def describe(root, torches, into):
    version = version_of(root)
    first, last = min(torches), max(torches)
    info = f"{into}/evenkeel_torch-{version}.dist-info"
    copy(f"{root}/LICENSE", info)
    with open(f"{root}/docs/python.md", encoding="utf-8") as file:
        description = file.read()
    metadata = METADATA.format(version=version, first=f"{first[0]}.{first[1]}",
                               behind=f"{last[0]}.{last[1] + 1}")
    texts = {"METADATA": metadata + description,
             "WHEEL": "Wheel-Version: 1.0\nGenerator: evenkeel\nRoot-Is-Purelib: false\n"
                      "Tag: py3-none-linux_x86_64\n",
             "entry_points.txt": "[console_scripts]\n" + "".join(
                 f"{name} = evenkeel_programs:{name}\n" for name in PROGRAMS)}
    for name, text in texts.items():
        with open(f"{info}/{name}", "w", encoding="utf-8") as file:
            file.write(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    for name in ("root", "build", "into", "patchelf"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("engines", nargs="+", help="build folders, each for another PyTorch")
    args = parser.parse_args()
    torches = torches_of(args.engines)
    lay_out(args.root, args.build, torches, args.into, args.patchelf)
    describe(args.root, torches, args.into)


if __name__ == "__main__":
    main()
