"""Lays out what a wheel holds, from a build folder.

    evenkeel/*.py                       the package
    evenkeel/torchX.Y/                  the engine, for one minor version of PyTorch
    evenkeel/bin/                       keelrun and keel; evenkeel_programs.py starts them
    evenkeel_spare.py                   what keelrun starts to have a process at hand
    evenkeel/lib/evenkeel/              what keelrun loads

Promises   libraries look for PyTorch's in the same site-packages, and nowhere else.
"""
import argparse
import os
import re
import shutil
import subprocess

PROGRAMS = ("keelrun", "keel")
MODULES = ("libkeel_store_module.so", "libkeel_numeric_names.so")
METADATA = """Metadata-Version: 2.1
Name: evenkeel-torch
Version: {version}
Summary: Elastic training that is exact to the last bit, for scripts that own their loop
License: Apache-2.0
Requires-Python: >=3.10
Requires-Dist: torch>={torch},<{next_torch}
Description-Content-Type: text/markdown

"""


def versions(root, build):
    with open(f"{root}/CMakeLists.txt", encoding="utf-8") as file:
        version = re.search(r"project\(Evenkeel VERSION (\S+)", file.read())[1]
    with open(f"{build}/keel_torch_version.txt", encoding="utf-8") as file:
        major, minor = file.read().split(".")[:2]
    return version, f"{major}.{minor}", f"{major}.{int(minor) + 1}"


def copy(source, folder, patchelf=None, rpath=None):
    os.makedirs(folder, exist_ok=True)
    target = os.path.join(folder, os.path.basename(source))
    shutil.copy(os.path.realpath(source), target)
    if patchelf:
        subprocess.run(["strip", "--strip-unneeded", target], check=True)
        where = ["--set-rpath", rpath] if rpath else ["--remove-rpath"]
        subprocess.run([patchelf, *where, target], check=True)


def lay_out(root, build, into, patchelf):
    version, torch, next_torch = versions(root, build)
    package, built = f"{into}/evenkeel", f"{build}/python/evenkeel"
    for name in sorted(os.listdir(built)):
        if name.endswith((".py", ".pyi", ".typed")):
            copy(f"{built}/{name}", package)
    copy(f"{root}/packaging/wheel/evenkeel_programs.py", into)
    copy(f"{root}/python/evenkeel_spare.py", into)
    copy(f"{built}/libevenkeel_python.so", f"{package}/torch{torch}", patchelf,
         "$ORIGIN/../../torch/lib")
    for name in PROGRAMS:
        copy(f"{build}/bin/{name}", f"{package}/bin", patchelf)
    for name in MODULES:
        copy(f"{build}/lib/evenkeel/{name}", f"{package}/lib/evenkeel", patchelf,
             "$ORIGIN/../../../torch/lib")
    info = f"{into}/evenkeel_torch-{version}.dist-info"
    copy(f"{root}/LICENSE", info)
    with open(f"{root}/docs/python.md", encoding="utf-8") as file:
        description = file.read()
    texts = {"METADATA": METADATA.format(version=version, torch=torch, next_torch=next_torch)
                         + description,
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
    args = parser.parse_args()
    lay_out(args.root, args.build, args.into, args.patchelf)


if __name__ == "__main__":
    main()
