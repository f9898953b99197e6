#!/usr/bin/env python3
"""Builds keel_fuzz with clang and lets it loose on one of our parsers: tests of CTest, label fuzz.

    fuzz_test.py --build build/fuzz build            configures and builds, in a folder of its own
    fuzz_test.py --build build/fuzz run shard 600    seeds and old finds, then 600 s of fuzzing

Promises   a crash, a failed KEEL_CHECK, a leak, undefined behaviour, ten seconds on one input, an
           allocation of over 64 MiB or 1 GiB in all fail the test, which names the input to repeat
           it with. Found ones belong into tests/fuzz/found/TARGET/ together with the cure.
Does not   need clang: without it, or its libFuzzer, it says so and exits with 77, CTest's skip.
           Keep what it learns: each run starts from the seeds.
"""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HERE = os.path.join(ROOT, "tests", "fuzz")
SKIP = 77
COMPILERS = ["clang++"] + [f"clang++-{version}" for version in range(22, 13, -1)]
FLAGS = "-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all"
LIMITS = ["-timeout=10", "-rss_limit_mb=1024", "-malloc_limit_mb=64"]
LENGTH_MAX = 32768
TARGET = '#include <cstdint>\nextern "C" int LLVMFuzzerTestOneInput(const uint8_t*, unsigned long)'


class Skipped(Exception):
    """This machine cannot fuzz; the text says what it lacks."""


def fixed_addresses():
    """The sanitizers of clang 14 do not know the address layouts that newer kernels draw."""
    try:
        with open("/proc/sys/vm/mmap_rnd_bits", encoding="ascii") as stream:
            wide = int(stream.read()) > 28
    except (OSError, ValueError):
        wide = False
    works = wide and shutil.which("setarch") and subprocess.run(
        ["setarch", "-R", "true"], capture_output=True, check=False).returncode == 0
    return ["setarch", "-R"] if works else []


def find_compiler():
    """A clang++ that can link libFuzzer."""
    found = [path for path in map(shutil.which, COMPILERS) if path]
    with tempfile.TemporaryDirectory(prefix="keel-fuzz-") as scratch:
        source = os.path.join(scratch, "probe.cc")
        with open(source, "w", encoding="ascii") as stream:
            stream.write(TARGET + " { return 0; }\n")
        for compiler in found:
            command = [compiler, "-fsanitize=fuzzer,address", source, "-o", source + ".out"]
            if subprocess.run(command, capture_output=True, check=False).returncode == 0:
                return compiler
    raise Skipped((f"{found[0]} cannot link libFuzzer" if found else "there is no clang++")
                  + ": apt-get install clang libclang-rt-14-dev")


def build(folder):
    settings = {
        "CMAKE_CXX_COMPILER": find_compiler(), "CMAKE_CXX_FLAGS": FLAGS,
        "CMAKE_BUILD_TYPE": "Release", "CMAKE_CXX_FLAGS_RELEASE": "-O1 -g1", "KEEL_FUZZERS": "ON",
        "KEEL_WITH_TORCH": "OFF", "KEEL_BENCH": "OFF", "KEEL_EXAMPLES": "OFF", "KEEL_TESTS": "ON"}
    subprocess.run(["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja"]
                   + [f"-D{name}={value}" for name, value in settings.items()], check=True)
    jobs = os.environ.get("KEEL_JOBS", str(os.cpu_count() or 1))
    subprocess.run(fixed_addresses() + ["cmake", "--build", folder, "--target", "keel_fuzz", "-j",
                                        jobs], check=True)


def fuzz(folder, target, seconds):
    program = os.path.join(folder, "bin", "keel_fuzz")
    if not os.path.exists(program):
        find_compiler()
        sys.exit(f"there is no {program}: the build has failed (ctest -R Fuzz.Build)")
    work = os.path.join(folder, "run", target)
    shutil.rmtree(work, ignore_errors=True)
    grown, seeds, finds = (os.path.join(work, name) for name in ("grown", "seeds", "finds"))
    for path in (grown, finds):
        os.makedirs(path)
    found = os.path.join(HERE, "found", target)
    corpus = [seeds] + [found] * os.path.isdir(found)
    command = fixed_addresses() + [program, f"--target={target}", f"-artifact_prefix={finds}/",
                                   f"-max_len={LENGTH_MAX}"] + LIMITS
    status = subprocess.run(command + [f"--seeds={seeds}", "-runs=0"] + corpus, check=False)
    if status.returncode == 0:
        status = subprocess.run(command + [f"-max_total_time={seconds}", "-print_final_stats=1",
                                           "-dict=" + os.path.join(HERE, "words.dict"), grown]
                                + corpus, check=False)
    for name in sorted(os.listdir(finds)):
        path = os.path.join(finds, name)
        print(f"\nfound: {path}\nagain: {program} --target={target} {path}")
    if status.returncode:
        print(f"keel_fuzz ended with {status.returncode}")
    return 1 if status.returncode else 0


def main():
    parser = argparse.ArgumentParser(description="Fuzzes our parsers with clang's libFuzzer.")
    parser.add_argument("--build", required=True, help="the folder of its own build")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("build", help="build keel_fuzz there")
    run = commands.add_parser("run", help="fuzz one target")
    run.add_argument("target")
    run.add_argument("seconds", type=int)
    given = parser.parse_args()
    try:
        if given.command == "run":
            return fuzz(given.build, given.target, given.seconds)
        build(given.build)
    except Skipped as skipped:
        print(f"skipped: {skipped}")
        return SKIP
    except subprocess.CalledProcessError as failed:
        print(f"{' '.join(failed.cmd)}\nfailed with {failed.returncode}")
        return 1
    return 0


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)
    sys.exit(main())
