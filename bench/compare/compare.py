#!/usr/bin/env python3
"""Measures Evenkeel and its peers side by side, and writes REPORT.md with plots.

The peers (PyTorch's torchrun, DDP and DCP, torchft, torchsnapshot, safetensors) are installed from
PyPI into an environment of their own. Recovery, throughput and checkpoints are measured by the
programs of bench/trainer and bench/ckpt, in turns with ours; each table of the report says how to
repeat it, on what it ran, and where we lose.
"""
import argparse
import collections
import json
import os
import shutil
import subprocess
import sys
import time

import machine
import peers
import records
import report

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "bench/trainer"))
import cases  # noqa: E402  bench/trainer/cases.py: what recovery.py kills
from common import keep_byte_code  # noqa: E402

EPILOG = """\
examples:
  does everything work here? some ten minutes, figures that say nothing:
    bench/compare.sh --quick --out /tmp/compare
  the whole comparison, on a quiet machine (about three hours on 2 cores, of which up to one trains
  the state whose checkpoints are compared):
    bench/compare.sh
  one part again; the others stay as they are in the report:
    bench/compare.sh --only recovery
  the report anew from the records that are there:
    bench/compare.sh --report

what is left in DIR:
  REPORT.md, *.svg   the report and its plots
  PART.jsonl         every single measurement
  about.json         the machine, the versions, how each part went
  logs/              what the measuring programs said

exit codes:
  0  the report is made; a peer that could not be installed or that crashed is named in it
  1  nothing could be measured, or a measuring program failed; the report says which
  2  the options make no sense; nothing was started
"""
QUICK_SYSTEMS = ["keelrun", "keelrun, the DDP script", "torchrun", "torchft",
                 "keelrun, launcher gone", "torchrun tuned, launcher gone"]
THROUGHPUT = ["exact", "exact, native numerics", "all-reduce", "DDP, fused AdamW",
              "DDP, default AdamW"]
PROGRAMS = ["keelrun", "keel", "model_train", "gpt_bench", "ckpt_cycle"]
# `writes`: lines of JSON on stdout, or by itself into the part's file.
Step = collections.namedtuple("Step", "name command writes")


def arguments():
    parser = argparse.ArgumentParser(
        prog="bench/compare.sh", description=__doc__, epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", metavar="DIR", type=os.path.abspath,
                        default=f"{ROOT}/build/compare",
                        help="where the report goes, and on whose disk checkpoints are measured "
                             "(build/compare)")
    parser.add_argument("--only", metavar="PARTS", default=",".join(report.PARTS),
                        help=f"some of them: {','.join(report.PARTS)} (all)")
    parser.add_argument("--quick", action="store_true",
                        help="few rounds and a small state: to see that it works")
    parser.add_argument("--report", action="store_true",
                        help="measure nothing; make the report from the records in DIR")
    parser.add_argument("--rounds", type=int, metavar="N",
                        help="how often each system runs (5; with --quick once)")
    parser.add_argument("--state", metavar="DIR", type=os.path.abspath,
                        help="where the trained state is, or will be (build/ckpt-bench)")
    parser.add_argument("--bin", metavar="DIR", type=os.path.abspath, default=f"{ROOT}/build/bin",
                        help="our programs; with it nothing is built (build/bin)")
    parser.add_argument("--python", metavar="FILE", type=os.path.abspath,
                        help="whose PyTorch the peers use (that of the build)")
    parser.add_argument("--peers", metavar="DIR", type=os.path.abspath,
                        default=f"{ROOT}/build/peers",
                        help="the peers' environment; made where it is missing (build/peers)")
    args = parser.parse_args()
    args.only = args.only.split(",")
    unknown = [part for part in args.only if part not in report.PARTS]
    if unknown:
        parser.error(f"there is no part '{unknown[0]}': {', '.join(report.PARTS)}")
    if args.rounds is not None and args.rounds < 1:
        parser.error("--rounds must be 1 or more")
    lacking = [name for name in PROGRAMS if not os.path.exists(f"{args.bin}/{name}")]
    if lacking and not args.report:
        parser.error(f"{args.bin} has no {', '.join(lacking)}: tools/setup.sh builds them")
    if not args.python and not args.report:
        parser.error(f"{args.bin} lies in no build that tells its PyTorch: --python names a Python "
                     "that has the same")
    args.rounds = args.rounds or (1 if args.quick else 5)
    args.state = args.state or f"{ROOT}/build/{'compare-state' if args.quick else 'ckpt-bench'}"
    return args


def say(text):
    print(f"compare: {text}", file=sys.stderr, flush=True)


# --- What each part consists of ---

def recovery_steps(args, python, found):
    wanted = QUICK_SYSTEMS if args.quick else list(cases.CASES)
    if "why_not" in found["torchft"]:
        wanted = [name for name in wanted if not name.startswith("torchft")]
    command = [python, "-B", f"{ROOT}/bench/trainer/recovery.py", *wanted,
               f"--rounds={args.rounds}", f"--bin={args.bin}", f"--python={python}",
               f"--torchft-python={python}", f"--limit={30 if args.quick else 90}"]
    return [Step("import torch", [python, "-B", f"{HERE}/imports.py", str(args.rounds)], "stdout"),
            Step("kills", command, "stdout")], list(cases.CASES)


def throughput_steps(args, python, found):
    sizes = ["6M"] if args.quick else ["6M", "40M"]
    command = [python, "-B", f"{ROOT}/bench/trainer/measure.py", "throughput",
               f"--rounds={args.rounds}", f"--bin={args.bin}", f"--python={python}",
               f"--steps={8 if args.quick else 23}", "--sizes", *sizes]
    return [Step("steps beside DDP", command, "stdout")], THROUGHPUT


def checkpoint_steps(args, python, found):
    folder, tmp = f"{ROOT}/bench/ckpt", f"{args.out}/tmp"
    where = [f"--bin={args.bin}", f"--state={args.state}", f"--tmp={tmp}"]
    systems = [name for name in records.NAMES
               if name not in found or "why_not" not in found[name]]
    steps = []
    if not os.path.exists(f"{args.state}/state.safetensors"):
        small = ["--layers=2", "--steps=5"] if args.quick else []
        steps.append(Step("training the state", [
            python, "-B", f"{folder}/make_state.py", f"--out={args.state}", *small], "words"))
    steps.append(Step("saves and loads", [
        python, "-B", f"{folder}/measure.py", *where, f"--rounds={args.rounds}",
        f"--systems={','.join(systems)}", f"--json={args.out}/checkpoints.jsonl"], "words"))
    steps.append(Step("how far it compresses", [python, "-B", f"{folder}/ratios.py", *where],
                      "stdout"))
    few = ["--flips=5", "--kills=4"] if args.quick else []
    steps.append(Step("damage and kills", [python, "-B", f"{folder}/faults.py", *where, *few],
                      "stdout"))
    return steps, list(records.NAMES.values())


STEPS = {"recovery": recovery_steps, "throughput": throughput_steps,
         "checkpoints": checkpoint_steps}


def stand_ins(part, args, found):
    """Records of systems that could not be installed, so that their rows say so."""
    def why(peer):
        return "not installed: " + found[peer]["why_not"]

    if part == "recovery" and "why_not" in found["torchft"]:
        for name, case in cases.CASES.items():
            if name.startswith("torchft"):
                yield {"what": "recovery", "system": name, "group": case.group,
                       "note": why("torchft")}
    for name in records.NAMES if part == "checkpoints" else ():
        if "why_not" in found.get(name, {}):
            for world in (1, 2):
                yield {"system": name, "world": world, "error": why(name)}


# --- Running them ---

def run_step(part, step, args):
    """Why it failed, or None."""
    name = step.name.replace(" ", "-")
    log = f"{args.out}/logs/{part}-{name}.log"
    lines = []
    with open(log, "w", encoding="utf-8") as errors, \
            open(f"{args.out}/{part}.jsonl", "a", encoding="utf-8") as into:
        process = subprocess.Popen(step.command, stdout=subprocess.PIPE, stderr=errors, text=True,
                                   errors="replace", env={**os.environ, "OMP_NUM_THREADS": "1"})
        try:
            for line in process.stdout:
                if step.writes == "stdout":
                    into.write(line)
                    into.flush()
                lines.append(line)
                say(f"{part}, {step.name}: {short(line)}")
        finally:
            process.stdout.close()   # if we were interrupted: it ends at its next line
            process.wait()
    with open(log, encoding="utf-8", errors="replace") as file:
        said = peers.last_line(file.read())
    if process.returncode:
        return f"{step.name} ended with {process.returncode}: {said}"
    return None if lines else f"{step.name} measured nothing: {said}"


def short(line):
    """A record as a person follows it."""
    try:
        record = json.loads(line)
    except ValueError:
        return line.rstrip()
    shown = {key: round(value, 3) if isinstance(value, float) else value
             for key, value in record.items()
             if key not in ("what", "group", "said", "phases", "start_phases", "bytes")}
    return ", ".join(f"{key} {value}" for key, value in shown.items())


def run_part(part, args, python, found):
    """How it went."""
    steps, expected = STEPS[part](args, python, found)
    with open(f"{args.out}/{part}.jsonl", "w", encoding="utf-8") as file:
        for record in stand_ins(part, args, found):
            file.write(json.dumps(record) + "\n")
    shutil.rmtree(f"{args.out}/tmp", ignore_errors=True)
    os.makedirs(f"{args.out}/tmp")
    how = {"began": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()), "expected": expected,
           "load_before": os.getloadavg()[0], "failed": [], "quick": args.quick,
           "rounds": args.rounds}
    start = time.monotonic()
    for step in steps:
        say(f"{part}: {step.name}")
        failed = run_step(part, step, args)
        if failed:
            say(failed)
            how["failed"].append(failed)
    shutil.rmtree(f"{args.out}/tmp", ignore_errors=True)
    how["took_s"] = time.monotonic() - start
    return how


def read_json(path, otherwise):
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):
        return otherwise


def read_lines(path):
    """Records; what a killed program left half written is passed over."""
    found = []
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            for line in file:
                try:
                    found.append(json.loads(line))
                except ValueError:
                    continue
    return [one for one in found if isinstance(one, dict)]


def write_report(args, about):
    with open(f"{args.out}/about.json", "w", encoding="utf-8") as file:
        json.dump(about, file, indent=1)
    lines = {part: read_lines(f"{args.out}/{part}.jsonl") for part in report.PARTS}
    for name, text in report.render(about, lines).items():
        with open(f"{args.out}/{name}", "w", encoding="utf-8") as file:
            file.write(text)
    print(f"{args.out}/REPORT.md")


def measure(args, about):
    begun = time.monotonic()
    found, python = peers.install_all(args.peers, args.python, say)
    if "why_not" in found["torch"]:
        say(f"there is no PyTorch to compare with: {found['torch']['why_not']}; name a Python that "
            "has it with --python")
        return None
    about |= {"machine": machine.describe(args.out), "peers": found,
              "ours": machine.our_version(ROOT, f"{args.bin}/keelrun"),
              "python": machine.version_of(python),
              "began": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
              "command": " ".join(["bench/compare.sh", *sys.argv[1:]])}
    for part in args.only:
        about["parts"][part] = run_part(part, args, python, found)
        about["took_s"] = time.monotonic() - begun
        write_report(args, about)   # after each part, so that a break costs only what is left
    return about


def main():
    args = arguments()
    path = f"{args.out}/about.json"
    about = read_json(path, {"parts": {}})
    if args.report:
        if not about.get("machine"):
            say(f"{args.out} holds no records of a run")
            return 1
        write_report(args, about)
        return 0
    os.makedirs(f"{args.out}/logs", exist_ok=True)
    keep_byte_code()
    about = measure(args, about)
    if about is None:
        return 1
    return 1 if any(about["parts"][part]["failed"] for part in args.only) else 0


if __name__ == "__main__":
    sys.exit(main())
