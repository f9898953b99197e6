"""Installs the current build, moves the installation away, and lets a stranger's project use it.

Promises   fails if an installed CMake file, program or module names the source or build tree or
           LibTorch's folder, if the package stops working when its prefix is moved, or if the
           stranger's programs do not build, run and say what they should. One of them is the
           program of docs/own-program.md, as it stands there.
Does not   build Evenkeel: the tests run after the build.
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys


def run(*command):
    """Runs a command; its output, or the end of this test with that output."""
    command = [str(word) for word in command]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"FAILED ({done.returncode}): {' '.join(command)}\n{done.stdout}")
    return done.stdout


def expect(condition, message):
    """Ends this test with the message unless the condition holds."""
    if not condition:
        sys.exit(f"FAILED: {message}")


def install_elsewhere(args):
    """Installs below one prefix and moves it to another, which it returns."""
    first, moved = args.work / "first", args.work / "moved"
    run(args.cmake, "--install", args.build, "--prefix", first)
    first.rename(moved)
    return moved


def trees_of(args):
    """Folders that users lack. LibTorch's is theirs to choose: a link says where it is."""
    return [str(tree) for tree in (args.source, args.build, args.work, args.torch) if str(tree)]


def foreign_paths(prefix, args):
    """Lines of installed CMake files that name our trees or the prefix that is no more."""
    found = []
    files = sorted(prefix.rglob("*.cmake"))
    expect(files, f"no CMake files were installed in {prefix}")
    for file in files:
        for number, line in enumerate(file.read_text().splitlines(), 1):
            if any(tree in line for tree in trees_of(args)):
                found.append(f"{file.relative_to(prefix)}:{number}: {line.strip()}")
    return found


def foreign_run_paths(prefix, args):
    """Where installed programs and modules would look for libraries, in those trees."""
    found = []
    for file in [*(prefix / "bin").iterdir(), *(prefix / "lib/evenkeel").glob("*.so")]:
        for line in run("readelf", "-d", file).splitlines():
            if "PATH)" in line and any(tree in line for tree in trees_of(args)):
                found.append(f"{file.name}: {line.strip()}")
    return found


def build_project(name, prefix, args):
    """Configures and builds the project in that folder; returns where its programs are."""
    source, build = args.work / name, args.work / f"{name}-build"
    lines = (source / "CMakeLists.txt").read_text().splitlines()
    expect(len(lines) <= 10, f"{name}'s CMakeLists.txt has {len(lines)} lines, more than 10")
    run(args.cmake, "-S", source, "-B", build, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}",
        f"-DCMAKE_CXX_COMPILER={args.compiler}", "-DCMAKE_FIND_PACKAGE_NO_PACKAGE_REGISTRY=ON")
    run(args.cmake, "--build", build, "-j", "2")
    return build


def build_stranger(prefix, args):
    """What is in tests/install/stranger."""
    shutil.copytree(args.source / "tests/install/stranger", args.work / "stranger")
    return build_project("stranger", prefix, args)


def check_documented(prefix, args):
    """The program of docs/own-program.md: it ends the same alone and under the launcher."""
    page = (args.source / "docs/own-program.md").read_text()
    folder = args.work / "documented"
    folder.mkdir()
    for language, file in (("cmake", "CMakeLists.txt"), ("cpp", "sine.cc")):
        found = re.findall(rf"(?ms)^```{language}\n(.*?)^```", page)
        expect(len(found) == 1, f"docs/own-program.md has {len(found)} blocks of {language}")
        (folder / file).write_text(found[0])
    train = [build_project("documented", prefix, args) / "sine", "--steps", "60",
             "--log-every", "0"]
    alone = run(*train).splitlines()[-1]
    expect(alone.startswith("final step=60 "), f"sine said: {alone}")
    together = run(prefix / "bin/keelrun", "--standalone", "--nproc-per-node", "2", *train)
    expect(alone in together.splitlines(), f"alone: {alone}\nunder keelrun: {together}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("source", "build", "work"):
        parser.add_argument(f"--{name}", type=pathlib.Path, required=True)
    for name in ("cmake", "compiler", "torch"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--trainer", action="store_true", help="this build has a trainer")
    args = parser.parse_args()
    shutil.rmtree(args.work, ignore_errors=True)
    args.work.mkdir(parents=True)

    prefix = install_elsewhere(args)
    found = foreign_paths(prefix, args) + foreign_run_paths(prefix, args)
    expect(not found, "installed files name trees that users lack:\n" + "\n".join(found))
    programs = build_stranger(prefix, args)
    said = run(programs / "hello")
    expect(said == "peer-lost: step 7: rank 2 is gone\n", f"hello said: {said!r}")
    if args.trainer:
        expect((programs / "train").exists(), "the installed package has no Evenkeel::trainer")
        said = run(programs / "train")
        expect("loss below 0.001: yes" in said, f"train said: {said!r}")
        if list(prefix.rglob("libkeel_nccl.so")):
            expect("NCCL 2." in said, f"train did not find the NCCL module: {said!r}")
        check_documented(prefix, args)
    shutil.rmtree(args.work)


if __name__ == "__main__":
    main()
