#!/usr/bin/env python3
"""Runs the commands of one README, as they stand there, in a folder of their own.

    readme_test.py README.md --source ROOT --build FOLDER [--shorten 20] [--torch LIBTORCH]

What the word behind three backticks means:
  sh            a script: each command must end well
  sh same-end   the same, and each command's last line of output must be that of the first
  sh elsewhere  not run: it needs other hosts, a scheduler, a cloud
  others        no commands: output, code to read

Promises   `build`, `examples` and `tools` are there as from the repository's root; what commands
           write goes away with the folder. --shorten divides how long jobs train: steps, epochs
           and what is counted in them. Nothing that was started is left over.
Does not   compare what is shown as output. It skips, and says why, where --torch is given and is
           not part of a Python.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "dropin"))
import launchers  # noqa: E402

COUNTED = re.compile(r"((?:--(?:steps|epochs|save-every|evaluate-every)[ =]|warmup=|total=|@))"
                     r"(\d+)")


class Wrong(Exception):
    """What is wrong with the README, in words."""


def blocks(text):
    """(info words, content, line number) of each fenced block."""
    found, fence = [], None
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```") and fence is None:
            fence = (line[3:].split(), [], number)
        elif line.startswith("```"):
            found.append((fence[0], "\n".join(fence[1]), fence[2]))
            fence = None
        elif fence is not None:
            fence[1].append(line)
        elif line.startswith("    ") and re.search(r"\b(build/bin|keelrun|torchrun)\b", line):
            raise Wrong(f"line {number}: a command that is not in a fenced block is not tested")
    if fence is not None:
        raise Wrong(f"line {fence[2]}: this block has no end")
    return found


def shortened(script, factor):
    return COUNTED.sub(lambda found: found[1] + str(max(1, int(found[2]) // factor)), script)


def run(script, folder, environment, limit_s):
    """What it wrote to stdout."""
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=folder, env=environment,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, errors="replace", timeout=limit_s, check=False)
    if done.returncode != 0:
        raise Wrong(f"exit code {done.returncode} of:\n{script}\n{done.stdout[-1500:]}\n"
                    f"{done.stderr[-3000:]}")
    print(f"$ {script}\n{done.stdout}", flush=True)
    return done.stdout


def last_lines_agree(script, run_one):
    ends = []
    for command in script.replace("\\\n", " ").splitlines():
        lines = run_one(re.sub(r" +", " ", command)).splitlines()
        if not lines:
            raise Wrong(f"no output of: {command}")
        ends.append(lines[-1])
    if len(ends) < 2:
        raise Wrong("same-end wants two commands at least")
    if any(end != ends[0] for end in ends):
        raise Wrong("these should be the same:\n" + "\n".join(ends))


def run_readme(path, factor, folder, environment, limit_s):
    """How many blocks were run."""
    def run_one(script):
        return run(shortened(script, factor), folder, environment, limit_s)

    with open(path, encoding="utf-8") as file:
        text = file.read()
    ran = 0
    for info, content, line in blocks(text):
        if info[:1] != ["sh"] or info == ["sh", "elsewhere"]:
            continue
        try:
            if info == ["sh", "same-end"]:
                last_lines_agree(content, run_one)
            elif info == ["sh"]:
                run_one(content)
            else:
                raise Wrong(f"nobody knows what ```{' '.join(info)} means")
        except Wrong as wrong:
            raise Wrong(f"the block at line {line}: {wrong}") from None
        ran += 1
    return ran


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("readme")
    parser.add_argument("--source", required=True, type=os.path.realpath)
    parser.add_argument("--build", required=True, type=os.path.realpath)
    parser.add_argument("--shorten", type=int, default=1)
    parser.add_argument("--torch", help="LibTorch's folder, where a Python with it is needed")
    options = parser.parse_args()
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    if options.torch is not None:
        python, why_not = launchers.find_python(options.torch)
        if python is None:
            launchers.say(f"skipped: {why_not}; tools/setup.sh installs one")
            return 0
        environment["PATH"] = os.path.dirname(python) + os.pathsep + environment["PATH"]
    with tempfile.TemporaryDirectory(prefix="keel-readme-") as folder:
        os.symlink(options.build, f"{folder}/build")
        for name in ("examples", "tools"):
            os.symlink(f"{options.source}/{name}", f"{folder}/{name}")
        environment[launchers.MARK] = folder
        try:
            ran = run_readme(options.readme, options.shorten, folder, environment,
                             launchers.HANG_LIMIT_S)
        except (Wrong, subprocess.TimeoutExpired) as wrong:
            launchers.say(f"{options.readme}: {wrong}")
            return 1
        finally:
            for pid in list(launchers.marked(folder)):
                os.kill(pid, 9)
    if ran == 0:
        launchers.say(f"{options.readme}: no block of commands was found")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
