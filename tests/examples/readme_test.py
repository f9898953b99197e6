#!/usr/bin/env python3
"""Runs the commands of one README, as they stand there, in a folder of their own.

    readme_test.py README.md --source ROOT --build FOLDER [--shorten 20] [--torch LIBTORCH]

What the word behind three backticks means:
  sh            a script: each command must end well
  sh same-end   the same, and each command's last line of output must be that of the first
  sh exits 77   a script that must end with this code
  sh elsewhere  not run: it needs other hosts, a scheduler, a cloud
  text seen     each line stands in what the script above it has written, `...` being anything
  others        no commands: output, code to read

Promises   `build`, `examples` and `tools` are there as from the repository's root, and our programs
           in PATH; what commands write goes away with the folder. --shorten divides how long jobs
           train: steps, epochs and what is counted in them. Nothing that was started is left over.
Does not   compare what is shown as output without `seen`. It skips, and says why, where --torch is
           given and is not part of a Python.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile
import tomllib

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "dropin"))
import launchers  # noqa: E402

COUNTED = re.compile(r"((?:--(?:steps|epochs|save-every|evaluate-every)[ =]|warmup=|total=|@))"
                     r"(\d+)")
COUNTED_IN_FILES = re.compile(r"((?:\b(?:steps|save_every|evaluate_every) = |warmup=|total=))(\d+)")


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


def shortened(script, factor, counted=COUNTED):
    return counted.sub(lambda found: found[1] + str(max(1, int(found[2]) // factor)), script)


def link_examples(source, folder, factor):
    """As they are, but for their config files, which are shortened as commands are."""
    os.mkdir(f"{folder}/examples")
    for name in os.listdir(f"{source}/examples"):
        there, here = f"{source}/examples/{name}", f"{folder}/examples/{name}"
        if not os.path.exists(f"{there}/train.toml"):
            os.symlink(there, here)
            continue
        os.mkdir(here)
        for other in set(os.listdir(there)) - {"train.toml"}:
            os.symlink(f"{there}/{other}", f"{here}/{other}")
        with open(f"{there}/train.toml", encoding="utf-8") as file:
            text = file.read()
        tomllib.loads(text)   # that is what READMEs call it
        with open(f"{here}/train.toml", "w", encoding="utf-8") as file:
            file.write(shortened(text, factor, COUNTED_IN_FILES))


def run(script, folder, environment, limit_s, code=0):
    """What it wrote to stdout, and what to stderr."""
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=folder, env=environment,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, errors="replace", timeout=limit_s, check=False)
    if done.returncode != code:
        raise Wrong(f"exit code {done.returncode} of:\n{script}\n{done.stdout[-1500:]}\n"
                    f"{done.stderr[-3000:]}")
    print(f"$ {script}\n{done.stdout}", flush=True)
    return done.stdout, done.stderr


def last_lines_agree(script, run_one):
    ends = []
    for command in script.replace("\\\n", " ").splitlines():
        lines = run_one(re.sub(r" +", " ", command))[0].splitlines()
        if not lines:
            raise Wrong(f"no output of: {command}")
        ends.append(lines[-1])
    if len(ends) < 2:
        raise Wrong("same-end wants two commands at least")
    if any(end != ends[0] for end in ends):
        raise Wrong("these should be the same:\n" + "\n".join(ends))


def check_seen(shown, written):
    """Each line that is shown stands in a line that was written."""
    if written is None:
        raise Wrong("no script above it has written anything")
    for line in filter(None, map(str.strip, shown.splitlines())):
        pattern = ".*".join(map(re.escape, re.split(r" *\.\.\. *", line)))
        if not any(re.search(pattern, each) for each in written):
            raise Wrong("nothing was written like this:\n" + line + "\nbut this:\n" +
                        "\n".join(written)[-4000:])


def run_block(info, content, run_one, written):
    """What was written, in lines; None: this is nothing to run."""
    if info == ["text", "seen"]:
        check_seen(content, written)
        return None
    if info[:1] != ["sh"] or info == ["sh", "elsewhere"]:
        return None
    if info == ["sh", "same-end"]:
        last_lines_agree(content, run_one)
        return []
    if info == ["sh"]:
        return "\n".join(run_one(content)).splitlines()
    if len(info) == 3 and info[1] == "exits" and info[2].isdigit():
        return "\n".join(run_one(content, int(info[2]))).splitlines()
    raise Wrong(f"nobody knows what ```{' '.join(info)} means")


def run_readme(path, factor, folder, environment, limit_s):
    """How many blocks were run."""
    def run_one(script, code=0):
        return run(shortened(script, factor), folder, environment, limit_s, code)

    with open(path, encoding="utf-8") as file:
        text = file.read()
    ran, written = 0, None
    for info, content, line in blocks(text):
        try:
            lines = run_block(info, content, run_one, written)
        except Wrong as wrong:
            raise Wrong(f"the block at line {line}: {wrong}") from None
        if lines is not None:
            ran, written = ran + 1, lines
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
    environment["PATH"] = f"{options.build}/bin" + os.pathsep + environment["PATH"]
    if options.torch is not None:
        python, why_not = launchers.find_python(options.torch)
        if python is None:
            launchers.say(f"skipped: {why_not}; tools/setup.sh installs one")
            return 0
        environment["PATH"] = os.path.dirname(python) + os.pathsep + environment["PATH"]
    with tempfile.TemporaryDirectory(prefix="keel-readme-") as folder:
        os.symlink(options.build, f"{folder}/build")
        os.symlink(f"{options.source}/tools", f"{folder}/tools")
        if options.torch is None:
            os.symlink(f"{options.source}/.deps", f"{folder}/.deps")
        else:  # the build may be for another PyTorch than the one that lies there
            os.mkdir(f"{folder}/.deps")
            os.symlink(os.path.dirname(os.path.dirname(python)), f"{folder}/.deps/venv")
        link_examples(options.source, folder, options.shorten)
        environment[launchers.MARK] = folder
        try:
            ran = run_readme(options.readme, options.shorten, folder, environment,
                             launchers.HANG_LIMIT_S)
        except (Wrong, subprocess.TimeoutExpired) as wrong:
            launchers.say(f"{options.readme}: {wrong}")
            return 1
        finally:
            launchers.kill_left(folder)
    if ran == 0:
        launchers.say(f"{options.readme}: no block of commands was found")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
