#!/usr/bin/env python3
"""Replays a recorded spot trace with real launchers on this machine, and tells what it cost.

Each host of the trace that has a seat is a launcher with one worker of a small training job. Hosts
come and go as recorded, faster: some with a notice (SIGTERM, and SIGKILL when their time is over),
some without (SIGKILL of all at once). At the end the job is stopped, gone on with, and its last
line compared with that of a quiet run on one worker.
"""
import argparse
import json
import os
import re
import shutil
import sys
import tempfile
import time

import account
import fleet
import plan
import systems
import traces

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
INSTANT_S = 0.001   # before the replay's end
MORE_STEPS = 10     # of the job that goes on after the replay
EPILOG = """\
examples:
  what a whole trace would be, without running it:
    bench/replay/run.sh --trace bench/replay/traces/bamboo/p3-trace.csv --dry-run
  an hour of it in half a minute:
    bench/replay/run.sh --trace bench/replay/traces/bamboo/p3-trace.csv --to 1h --minutes 0.5
  torchrun on the same events, and torchft:
    bench/replay/run.sh --trace bench/replay/traces/bamboo/p3-trace.csv --system torchrun
    bench/replay/run.sh --trace bench/replay/traces/bamboo/p3-trace.csv --system torchft

exit codes:
  0  replayed; the job has the bits of a quiet run (torchrun, torchft: not compared)
  1  it hangs, a launcher failed, or the bits differ; what all printed is shown
  2  the options or the trace make no sense; nothing was started
  3  the peer does not run here, or never made a step; the result says why
"""


def seconds(text):
    """90, 90s, 15m, 2.5h."""
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)(s|m|h)?", text)
    if not found:
        raise argparse.ArgumentTypeError(f"'{text}' is no time: 90, 90s, 15m or 2.5h")
    return float(found[1]) * {"s": 1, "m": 60, "h": 3600, None: 1}[found[2]]


def share(text):
    value = float(text)
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError("must be from 0 to 1")
    return value


def more_than_zero(kind):
    def read(text):
        value = kind(text)
        if not value > 0:
            raise argparse.ArgumentTypeError("must be more than 0")
        return value
    read.__name__ = kind.__name__
    return read


def add_plan_options(parser):
    group = parser.add_argument_group("what is replayed")
    group.add_argument("--trace", required=True, metavar="FILE",
                       help="one of bench/replay/traces, or another of their forms")
    group.add_argument("--minutes", type=more_than_zero(float), default=10,
                       help="how long the replay takes; the trace's time is scaled to it (10)")
    group.add_argument("--from", dest="start", type=seconds, metavar="TIME",
                       help="begin at this time of the trace: 90s, 15m, 2.5h (its first event)")
    group.add_argument("--to", dest="end", type=seconds, metavar="TIME",
                       help="... and end (its end)")
    group.add_argument("--max-hosts", type=more_than_zero(int), default=6, metavar="N",
                       help="hosts at once, the store's included; each has one worker (6)")
    group.add_argument("--map", dest="mapping", choices=["scale", "first"], default="scale",
                       help="which of the trace's hosts have a seat. scale: as large a part of "
                            "the seats is taken as the trace's hosts are of its most; first: all "
                            "seats, while there are hosts enough, and who goes is replaced at once "
                            "(scale)")
    group.add_argument("--store", choices=["stable", "spot", "directory"],
                       default="stable",
                       help="who keeps the job's store. stable: a host of its own that is never "
                            "taken away, as one would rent it beside spot machines; spot: "
                            "whichever host is first, and the next one when that has gone; "
                            "directory: the same, and hosts meet in a directory that all share, "
                            "with no endpoint (stable)")
    group.add_argument("--lead", type=seconds, default=120, metavar="TIME",
                       help="of the trace, from a notice to the end; no trace records it (120s)")
    group.add_argument("--notice-share", type=share, default=0.5, metavar="SHARE",
                       help="of those that go, how many are told so before (0.5)")
    group.add_argument("--seed", type=int, default=1, help="draws who is told (1)")
    group.add_argument("--dry-run", action="store_true", help="show the plan, start nothing")


def add_job_options(parser):
    group = parser.add_argument_group("the job")
    group.add_argument("--system", choices=list(systems.SYSTEMS), default="keelrun",
                       help="keelrun: our trainer; torchrun: a DDP script under PyTorch's "
                            "launcher; keelrun-ddp: the same script under ours; torchft: its "
                            "managers and lighthouse, with the same job (keelrun)")
    group.add_argument("--lanes", type=more_than_zero(int), default=12,
                       help="micro-batches of a step, shared by all workers (12)")
    group.add_argument("--lane-time", type=more_than_zero(float), default=30, metavar="MS",
                       help="what each takes: the worker sleeps, as if a device computed (30)")
    group.add_argument("--save-every", type=int, default=100, metavar="STEPS",
                       help="between two checkpoints; the peers' scripts save every 20 (100)")
    group.add_argument("--store-limit", type=seconds, default=60, metavar="TIME",
                       help="how long the job waits for a store that has gone (60s)")
    group.add_argument("--hang-limit", type=seconds, default=120, metavar="TIME",
                       help="a job without a step for so long has failed, unless it is "
                            "a peer's (120s)")
    group = parser.add_argument_group("this program")
    group.add_argument("--json", action="store_true", help="print the result as one JSON object")
    group.add_argument("--keep", metavar="DIR",
                       help="leave what all hosts printed there, and checkpoints; an empty folder, "
                            "or a new one")
    group.add_argument("--bin", type=os.path.abspath, default=f"{ROOT}/build/bin", metavar="DIR",
                       help="where keelrun and model_train are (build/bin)")
    group.add_argument("--python", type=os.path.abspath, default=sys.executable, metavar="FILE",
                       help="an interpreter with PyTorch, for the DDP script (run.sh gives the one "
                            "whose PyTorch the build has)")
    group.add_argument("--torchft-python", type=os.path.abspath,
                       default=f"{ROOT}/build/peers/bin/python", metavar="FILE",
                       help="an interpreter with torchft; bench/compare/peers.py makes it "
                            "(build/peers/bin/python)")


def arguments():
    parser = argparse.ArgumentParser(
        prog="bench/replay/run.sh", description=__doc__, epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    add_plan_options(parser)
    add_job_options(parser)
    args = parser.parse_args()
    args.stable = args.store == "stable"
    return args


class Progress:
    """A line now and then on stderr; on a terminal it is always the same one."""

    def __init__(self):
        self.is_terminal = sys.stderr.isatty()
        self.every = 1 if self.is_terminal else 10

    def say(self, moment):
        kinds = moment.happened
        went = kinds["went with notice"] + kinds["went without notice"]
        self.put(f"{moment.now():.0f} of {moment.plan.seconds:.0f} s: {len(moment.alive())} hosts, "
                 f"{kinds['came']} came, {went} went, step {moment.high}")

    def put(self, text):
        if self.is_terminal:
            sys.stderr.write(f"\r\x1b[K{text}")
        else:
            sys.stderr.write(f"replay: {text}\n")
        sys.stderr.flush()


def compare(system, args, fleet_run, progress):
    """Whether the job, gone on with to its end, is the quiet run to the last bit."""
    saved = system.saved()
    if saved is None:
        raise fleet.Failed("the stop left no checkpoint")
    steps = saved + MORE_STEPS
    progress.put(f"the job goes on from step {saved} to {steps}")
    line, later = system.finish(steps)
    progress.put(f"a quiet run of {steps} steps on one worker, to compare with")
    quiet_line, quiet = system.quiet(steps)
    told = {**fleet_run.losses, **later}
    wrong = sorted(step for step, text in told.items() if step <= steps and quiet[step] != text)
    return {"line": line, "quiet_line": quiet_line, "same": line == quiet_line,
            "steps_told_with_other_losses": wrong + [text for text in fleet_run.differing],
            "saved_at": saved}


def replay(the_plan, args, folder):
    """The result; raises Failed."""
    progress = Progress()
    system = systems.SYSTEMS[args.system](args, folder)
    run = fleet.Fleet(the_plan, system, folder, args.hang_limit, progress)
    try:
        run.run()
        run.stop()
        result = account.report([host.log for host in run.hosts])
        if run.high == 0 and system.ours:
            raise fleet.Failed("no step was ever made")
        if run.high == 0:
            sys.stderr.write(run.tails())
            result["why_not"] = systems.why_no_step(run.codes, run.last_words())
        if system.exact:
            result["final"] = compare(system, args, run, progress)
            high = account.Rewinds([host.log for host in run.hosts]).high
            unsaved = max(0, high - result["final"]["saved_at"])
            result["steps_lost"] += unsaved
            if any(account.knew(host.log, the_plan.seconds - INSTANT_S) for host in run.hosts):
                result["steps_lost_with_hosts_left"] += unsaved
    except fleet.Failed:
        sys.stderr.write(run.tails())
        raise
    finally:
        left = run.destroy()
    if left:
        raise fleet.Failed(f"these outlived their launchers: {left}")
    if progress.is_terminal:
        progress.put("")
    return {**result, "events": dict(run.happened), "launchers_ended_with": dict(run.codes),
            "started_again": run.started_again}


def is_same(result):
    final = result.get("final")
    return not final or (final["same"] and not final["steps_told_with_other_losses"])


def number(value, unit=" s"):
    return "-" if value is None else f"{value:.3g}{unit}"


def three(values):
    return (f"median {number(values['median'])}, p99 {number(values['p99'])}, "
            f"worst {number(values['worst'])} ({values['count']} times)")


def show(result):
    """As a person reads it."""
    print(f"{result['system']} on {result['trace']}, {result['trace_seconds'] / 3600:.2g} h in "
          f"{result['seconds']:.0f} s, at most {result['max_hosts']} hosts")
    if "why_not" in result:
        print(f"DID NOT RUN: {result['why_not']}")
        return
    print(f"goodput     {number(result['goodput'], '')} of the {result['worker_seconds']:.0f} "
          "worker-seconds that the trace left")
    for name, value in result["spent"].items():
        print(f"  {name:<14} {value:9.1f} s  {100 * value / result['worker_seconds']:5.1f} %")
    print(f"steps       {result['steps']} made, {result['steps_lost']} lost and made again, "
          f"{result['steps_lost_with_hosts_left']} of these while somebody was left who knew them")
    print(f"recovery    {three(result['recovery_s'])}")
    print(f"stall       {three(result['stall_s'])}")
    print(f"join        {three(result['join_s'])}")
    print(f"no step     for {number(result['longest_pause_s'])} at most")
    print("events      " + ", ".join(f"{count} {name}" for name, count in result["events"].items()))
    beside = sum(one["beside"] > 0 for one in result["started_again"])
    print(f"launchers   {len(result['started_again'])} were started again, {beside} of these while "
          "others ran")
    if "final" in result:
        final = result["final"]
        print(f"last line   {final['line']}\nquiet run   {final['quiet_line']}")
        print("the same, to the last bit" if is_same(result) else "THEY DIFFER, or steps do")


def tell(result, args):
    """The exit code."""
    if args.json:
        print(json.dumps(result))
    else:
        show(result)
    if "why_not" in result:
        return 3
    return 0 if is_same(result) else 1


def describe(the_plan, trace, args):
    return {"system": args.system, "trace": trace.name, "format": trace.format,
            "trace_events": len(trace.events), "seconds": the_plan.seconds,
            "trace_seconds": the_plan.speed * the_plan.seconds, "max_hosts": args.max_hosts,
            "map": args.mapping, "store": args.store, "seed": args.seed,
            "lead_s": args.lead / the_plan.speed, "planned": the_plan.kinds()}


def show_plan(the_plan, about):
    print(json.dumps(about, indent=1))
    for one in the_plan.tenures:
        end = "stays" if not one.goes else "goes" if one.notice is None else "goes, told so before"
        print(f"{one.come:9.2f} {one.gone:9.2f}  seat {one.seat}  {one.host}: {end}")


def main():
    args = arguments()
    try:
        trace = traces.load(args.trace)
        the_plan = plan.make(trace, args.minutes * 60, args.max_hosts, args)
        if args.keep and os.path.isdir(args.keep) and os.listdir(args.keep):
            raise ValueError(f"--keep: {args.keep} is not empty, and the job would go on from what "
                             "another has saved there")
    except (traces.TraceError, OSError, ValueError) as error:
        print(f"bench/replay: {error}", file=sys.stderr)
        return 2
    about = describe(the_plan, trace, args)
    if args.dry_run:
        show_plan(the_plan, about)
        return 0
    systems.keep_byte_code()
    reason = systems.why_not(args.system, args)
    if reason:
        return tell({**about, "goodput": None, "why_not": reason}, args)
    folder = os.path.abspath(args.keep) if args.keep else tempfile.mkdtemp(prefix="keel-replay-")
    os.makedirs(folder, exist_ok=True)
    try:
        begun = time.monotonic()
        result = {**about, **replay(the_plan, args, folder), "took_s": time.monotonic() - begun}
    except fleet.Failed as failed:
        print(f"bench/replay: {failed}", file=sys.stderr)
        return 1
    finally:
        if not args.keep:
            shutil.rmtree(folder, ignore_errors=True)
    return tell(result, args)


if __name__ == "__main__":
    sys.exit(main())
