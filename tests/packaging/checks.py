"""What the tests of this folder share: how a command is run, and what a skipped test says.

Promises   every command has a limit against hanging; its output is in the message if it fails.
           Where each test of a run was skipped, the exit code is 77, by which CTest knows it.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
import unittest

HANG_LIMIT_S = 300
SKIPPED = 77


def run(*command, code=0, **more):
    """What a command wrote, stdout and stderr together."""
    command = [str(word) for word in command]
    more = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT,
            "text": True, "errors": "replace", "timeout": HANG_LIMIT_S, "check": False, **more}
    done = subprocess.run(command, **more)
    if done.returncode != code:
        raise AssertionError(f"{' '.join(command)}\nended with {done.returncode}, not {code}:\n"
                             f"{done.stdout}")
    return done.stdout


def need(program, package):
    """Skips the test where the program is not there."""
    if not shutil.which(program):
        raise unittest.SkipTest(f"this machine has no {program} (on Debian: {package})")


def await_true(condition, what, said=lambda: "", limit_s=HANG_LIMIT_S):
    """Looks until it holds; the limit is one against hanging."""
    end = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"waited {limit_s} s for {what}\n{said()}")
        time.sleep(0.05)


def arguments(**more):
    """--source, --build, and what else a test wants; taken off sys.argv."""
    parser = argparse.ArgumentParser()
    for name in ("source", "build"):
        parser.add_argument("--" + name, type=lambda path: pathlib.Path(path).resolve(),
                            required=True)
    for name, options in more.items():
        parser.add_argument("--" + name, **options)
    given, sys.argv[1:] = parser.parse_known_args()
    return given


def exit_codes(source):
    """name -> number, from the launcher's own list."""
    text = (source / "elastic/protocol/exit_codes.h").read_text()
    return {name: int(code) for name, code in re.findall(r"kExit(\w+) = (\d+)", text)}


def understood(keelrun, words):
    """What keelrun makes of these words of its command line: name -> value."""
    shown = run(keelrun, "--print-config", *words)
    return dict(re.findall(r'(?m)^([\w-]+) = "?([^"\s]*)"? +#', shown))


def main_under(python, given, file):
    """main() in the Python that has the packages for tests, where it is there."""
    if python and shutil.which(python) and sys.executable != python:
        os.execv(python, [python, "-B", file, "--source", str(given.source),
                          "--build", str(given.build), *sys.argv[1:]])
    main()


def main():
    """As unittest.main()."""
    result = unittest.main(exit=False, verbosity=2).result
    # A class that is skipped as a whole is in that list, too, but not as a test.
    skipped = [test for test, _ in result.skipped if isinstance(test, unittest.TestCase)]
    ran = result.testsRun - len(skipped)
    sys.exit(1 if not result.wasSuccessful() else 0 if ran else SKIPPED)
