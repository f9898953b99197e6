"""From what the benches wrote, a line of JSON each, to tables.

Promises   pure; a system without a good record has a row that says why; one that was not installed
           too. Unknown records are passed over.
"""
import collections
import statistics

from tables import Metric, Row, Table

AGAIN = "bench/compare.sh --only"


def good(values):
    return [value for value in values if value is not None]


def by(records, key):
    found = collections.OrderedDict()
    for record in records:
        found.setdefault(record[key], []).append(record)
    return found


def is_ours(system):
    return system.startswith(("keel", "exact", "all-reduce"))


def first_ours(rows):
    """Ours on top; the order is otherwise as it came."""
    return sorted(rows, key=lambda row: not row.ours)


# --- Recovery ---

def notes(records):
    """What went wrong, each with how often; and the last words of who never ran."""
    every = collections.Counter(record["note"] for record in records if record.get("note"))
    said = [record["said"].strip().splitlines()[-1] for record in records
            if record.get("note") == "never ran" and record.get("said", "").strip()]
    return "; ".join([f"{count} x {note}" for note, count in every.items()] + said[-1:])


def recovery_row(system, records):
    came = [record for record in records if record.get("stall") is not None]
    return Row(system, is_ours(system), {
        "came": [len(came) / len(records)] if records else [],
        "runs": f"{len(came)}/{len(records)}",
        "stall": [record["stall"] for record in came],
        "back": good(record.get("back") for record in came),
        "lost": good(record.get("lost") for record in came)}, notes(records))


RECOVERY = [Metric("runs", "recovered", None), Metric("came", "share recovered", "more"),
            Metric("stall", "s without a committed step", "less", 3),
            Metric("back", "s until a new process commits", "less", 3),
            Metric("lost", "steps lost", "less", 0)]


def recovery(records):
    tables = []
    imports = [record["seconds"] for record in records if record.get("what") == "import torch"]
    records = [record for record in records if record.get("what") == "recovery"]
    for place, (group, own) in enumerate(by(records, "group").items()):
        rows = [recovery_row(system, runs) for system, runs in by(own, "system").items()]
        tables.append(Table(
            f"recovery-{place + 1}", f"SIGKILL: {group}",
            "Two workers, steps of 50 ms, the peers' script saves every 20 steps; killed after 30 "
            "steps. min / median / max of the runs that recovered.",
            f"{AGAIN} recovery", RECOVERY, first_ours(rows), "stall"))
    return [*tables, *unchanged(tables), *starts(records, imports), *phases(records)]


SCRIPT = "keelrun, the DDP script"


def unchanged(tables):
    """The launchers alone: the peers' script under keelrun, beside torchrun."""
    for table in tables:
        rows = [row for row in table.rows
                if row.system == SCRIPT or row.system.startswith("torchrun")]
        if any(row.system == SCRIPT for row in rows):
            yield table._replace(
                name="recovery-script", rows=rows,
                title="SIGKILL of a worker of the same DDP script, under both launchers",
                about="The script goes back to its checkpoint under either; most of the time is "
                      "Python's, importing PyTorch.")


STARTS = {"keelrun": "keelrun, its trainer", SCRIPT: SCRIPT,
          "torchrun": "torchrun --standalone, the DDP script"}


def starts(records, imports):
    rows = []
    for system, runs in by(records, "system").items():
        values = good(run.get("start") for run in runs)
        if system in STARTS and values:
            rows.append(Row(STARTS[system], is_ours(system), {"start": values}))
    if imports:
        rows.append(Row("import torch, by itself", None, {"start": imports}))
    if not rows:
        return []
    return [Table("start", "From exec to the first step",
                  "The launcher, two workers, their group, the model, and one step.",
                  f"{AGAIN} recovery", [Metric("start", "s", "less")], first_ours(rows), "start")]


# The launcher's own are the first and the third; the others are Python's.
LAUNCHERS = ("main", "group")
PHASES = [("main", "until a new process runs"), ("imported", "import torch"), ("group", "group"),
          ("model", "optimizer, checkpoint, model, DDP"), ("back", "first step")]


def phase_values(runs):
    """{phase: seconds that it took itself}, of runs that tell all."""
    found = collections.defaultdict(list)
    for run in runs:
        marks = {**run.get("phases", {}), "back": run.get("back")}
        before = 0
        for name, _ in PHASES:
            if marks.get(name) is None:
                break
            found[name].append(marks[name] - before)
            before = marks[name]
    return found


def phases(records):
    rows = []
    group = [record for record in records if record["group"] == records[0]["group"]]
    for system, runs in by(group, "system").items():
        values = phase_values(runs)
        if values:
            errors = good(run.get("error") for run in runs)
            rows.append(Row(system, is_ours(system), {**values, "error": errors}))
    metrics = [Metric(name, head, "less" if name in LAUNCHERS else None) for name, head in PHASES]
    metrics.append(Metric("error", "a survivor's group failed after", None))
    return [Table("phases", "Where the time of a recovery goes: workers of Python",
                  "Seconds from the kill on, each phase by itself, of the process that committed "
                  "first. Programs of our trainer have no such phases: their survivors stay.",
                  f"{AGAIN} recovery", metrics, first_ours(rows))] if rows else []


# --- Throughput ---

def throughput(records):
    tables = []
    records = [record for record in records if record.get("what") == "step"]
    for size, own in by(records, "size").items():
        exact = {record["round"]: record["seconds"] for record in own
                 if record["system"] == "exact" and record.get("seconds")}
        rows = []
        for system, runs in by(own, "system").items():
            done = [run for run in runs if run.get("seconds")]
            ratios = [exact[run["round"]] / run["seconds"] for run in done if run["round"] in exact]
            rows.append(Row(system, is_ours(system), {
                "seconds": [run["seconds"] for run in done], "ratio": ratios},
                "; ".join({run["error"] for run in runs if run.get("error")})))
        tables.append(Table(
            f"throughput-{size}", f"Throughput: a GPT of {size} parameters",
            "Two workers with one thread each on Gloo, the median step of each run, in turns. "
            "`exact` has the same bits for any number of workers, which DDP has not.",
            f"{AGAIN} throughput",
            [Metric("seconds", "s a step", "less", 4),
             Metric("ratio", "samples/s against exact, same round", "more")],
            first_ours(rows), "seconds"))
    return tables


# --- Checkpoints ---

NAMES = {"torch_save": "torch.save + fsync", "safetensors": "safetensors + fsync", "dcp": "DCP",
         "dcp_zstd": "DCP zstd", "torchsnapshot": "torchsnapshot",
         "dcp_async": "DCP async (thread)", "dcp_async_process": "DCP async (process)",
         "keel": "keel", "keel_background": "keel, in the background",
         "keel_t2": "keel, two threads", "keel_buffered": "keel, through the page cache",
         "keel_none": "keel, not compressed"}
BESIDE = ("keel_background", "dcp_async", "dcp_async_process")
ANCHORS = {"memcpy": "memcpy to touched memory", "memcpy_fresh": "memcpy to fresh memory",
           "write_fsync": "write + fsync", "write_direct": "write with O_DIRECT + fsync",
           "read_cold": "cold read", "zstd1": "zstd -1, one core"}


def anchor_seconds(anchors, name):
    """{round: the median of its anchors, for the state's bytes}."""
    rounds = by(anchors, "round")
    return {turn: statistics.median(run["bytes"] / run[name] for run in runs)
            for turn, runs in rounds.items()}


def slower(run):
    """How many times longer a step takes beside the save."""
    if not run.get("steps") or not run.get("step_ms"):
        return None
    return 1 + run["slow_s"] / (run["steps"] * run["step_ms"] / 1e3)


def checkpoint_row(system, runs, anchors):
    done = [run for run in runs if "error" not in run]
    failed = [run["error"].strip().splitlines()[-1] for run in runs
              if run.get("error", "").strip()]
    note = f"{len(failed)} of {len(runs)} failed: {failed[-1]}" if failed else ""
    if any(run["ok"] is False for run in done):
        note = f"LOADED WRONG DATA {note}"

    def each(field):
        return [run[field] for run in done]

    def ratio(field, name):
        base = anchor_seconds(anchors, name)
        return [run[field] / base[run["round"]] for run in done if run["round"] in base]

    return Row(NAMES[system], is_ours(system), {
        "blocked": each("call_s"), "lost": [run["call_s"] + run["slow_s"] for run in done],
        "slower": good(slower(run) for run in done), "durable": each("durable_s"),
        "write": ratio("durable_s", "write_fsync"), "cpu": each("cpu_s"),
        "mb": [run["bytes"] / 1e6 for run in done],
        "memory": [max(0, run["peak_mb"]) for run in done], "load": each("load_s"),
        "read": ratio("load_s", "read_cold")}, note)


CHECKPOINTS = [Metric("blocked", "s blocked"), Metric("durable", "s until durable"),
               Metric("write", "x write + fsync"), Metric("cpu", "CPU s"),
               Metric("mb", "MB on disk", "less", 0), Metric("memory", "memory + MB", "less", 0),
               Metric("load", "s to load, cold"), Metric("read", "x cold read")]
STEPPING = [Metric("lost", "s the trainer loses in all"),
            Metric("slower", "x a step's time meanwhile")]


def checkpoints(records):
    anchors = [record for record in records
               if record.get("system") == "anchors" and "error" not in record]
    runs = [record for record in records if record.get("system") in NAMES and "world" in record]
    tables = []
    for world, own in sorted(by(runs, "world").items()):
        for beside in (False, True):
            rows = [checkpoint_row(system, of, anchors) for system, of in by(own, "system").items()
                    if (system in BESIDE) == beside]
            if rows:
                tables.append(checkpoint_table(world, beside, rows, anchors))
    return [*tables, *anchor_tables(anchors), *ratio_tables(records), *fault_tables(records)]


def checkpoint_table(world, beside, rows, anchors):
    size = f"{anchors[0]['bytes'] / 1e6:.0f} MB of state" if anchors else "the state"
    how = "beside the training" if beside else "the training waits"
    who = "One process" if world == 1 else \
        f"{world} processes with the state replicated (for keel each writes its part)"
    return Table(
        f"checkpoints-{world}{'-beside' if beside else ''}",
        f"Checkpoints: {who.split(' with')[0].lower()}, {how}",
        f"{who}, {size}. Ratios are to the anchors of the same round. keel's times hold "
        "compression and digests, its loads verify them.",
        f"{AGAIN} checkpoints", CHECKPOINTS[:1] + STEPPING + CHECKPOINTS[1:] if beside
        else CHECKPOINTS, keel_first(rows), "durable")


def keel_first(rows):
    return sorted(rows, key=lambda row: (row.system != "keel", not row.ours))


def anchor_tables(anchors):
    rows = [Row(ANCHORS[name], None, {"speed": [run[name] / 1e9 for run in anchors]})
            for name in ANCHORS if anchors]
    return [Table("anchors", "What this machine did with the same bytes", "The yardsticks.",
                  f"{AGAIN} checkpoints", [Metric("speed", "GB/s", None)], rows)] if rows else []


def ratio_tables(records):
    found = [record for record in records if record.get("what") == "ratio"]
    tables = []
    for place, record in enumerate(found):
        values = (("keel", True, "keel"), ("zstd -1", False, "zstd1"),
                  ("byte planes + zstd -1", False, "planes"))
        tables.append(Table(
            f"ratio-{place + 1}", f"How far it compresses: {record['part']}",
            f"{record['bytes'] / 1e6:.0f} MB.", f"{AGAIN} checkpoints",
            [Metric("ratio", "times smaller", "more", 3)],
            [Row(name, ours, {"ratio": [record[key]]}) for name, ours, key in values]))
    return tables


FAULTS = {
    "flip": "One byte flipped",
    "short": "The payload one byte shorter",
    "key": "Into a model that lacks a tensor",
    "dtype": "Into a model with another dtype",
    "kill": "Killed while saving over an older one: one process",
    "kill both of 2": "Killed while saving over an older one: both of two processes",
    "kill one of 2": "Killed while saving over an older one: one of two processes"}
KILLS = [Metric("old", "loads old", None, 0), Metric("new", "loads new", None, 0),
         Metric("error", "unloadable", "less", 0), Metric("mixed", "silent mix", "less", 0),
         Metric("WRONG", "silently wrong", "less", 0)]
DAMAGES = [Metric("error", "refused", None, 0), Metric("WRONG", "silently wrong", "less", 0),
           Metric("new", "right all the same", None, 0),
           Metric("touched", "live tensors changed by a load that failed", "less", 0)]
FITS = [Metric("error", "refused", "more", 0),
        Metric("no error", "no word of it", "less", 0)]


def fault_tables(records):
    found = [record for record in records if record.get("what") == "fault"]
    tables = []
    for fault, own in by(found, "fault").items():
        if fault not in FAULTS:
            continue
        metrics = KILLS if fault.startswith("kill") else FITS if fault in ("key", "dtype") \
            else DAMAGES
        rows = [fault_row(record, metrics) for record in own]
        places = sum(own[0]["counts"].values())
        tables.append(Table(f"fault-{fault.replace(' ', '-')}", FAULTS[fault],
                            f"Loads after {places} such {'fault' if places == 1 else 'faults'}, on "
                            "two blocks of the state.", f"{AGAIN} checkpoints", metrics,
                            first_ours(rows)))
    return tables + broken(found)


def fault_row(record, metrics):
    values = {metric.key: [record["counts"].get(metric.key, 0)] for metric in metrics}
    if "touched" in values:
        values["touched"] = good([record.get("touched")])
    return Row(NAMES[record["system"]], is_ours(record["system"]), values)


def broken(found):
    """Who could not even load what was not damaged."""
    rows = [Row(NAMES[record["system"]], is_ours(record["system"]), {}, str(record.get("said")))
            for record in found if record["fault"] == "none" and set(record["counts"]) != {"new"}]
    return [Table("fault-none", "Could not load their own checkpoint", "", f"{AGAIN} checkpoints",
                  [], rows)] if rows else []
