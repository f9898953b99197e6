"""REPORT.md and its plots, from what a run of compare.py left.

Promises   pure: `about` (the machine, the peers, how each part went) and the records, to texts.
           What was asked for and has no record is named.
"""
import records
from tables import contender, escape, markdown, plot, where_we_lose

PARTS = {"recovery": ("Recovery", records.recovery),
         "throughput": ("Throughput beside Python's DDP", records.throughput),
         "checkpoints": ("Checkpoints", records.checkpoints)}
SCOPE = ("One machine, CPU and Gloo on the loopback. Not measured: GPUs and NCCL, several machines "
         "and real networks, a power loss (a killed process leaves the page cache as it is).")


def machine_line(about):
    machine = about["machine"]
    return (f"{machine['cores']} cores of {machine['cpu']}, {machine['memory_gb']:.0f} GB, "
            f"{machine['system']}, Linux {machine['kernel']}, {machine['disk']}")


def ran(about, part):
    how = about["parts"].get(part, {})
    load = f", load {how['load_before']:.1f} before" if "load_before" in how else ""
    return f"Ran on {machine_line(about)}; {how.get('began', 'at an unknown time')}{load}."


def missing(expected, table_list):
    """Expected systems that no table has."""
    there = {row.system for table in table_list for row in table.rows}
    return [name for name in expected if name not in there]


def not_installed(about):
    return {name: found["why_not"] for name, found in about["peers"].items()
            if "why_not" in found}


def part_section(name, about, lines, drawn):
    title, read = PARTS[name]
    how = about["parts"].get(name)
    if how is None:
        return
    yield f"## {title}\n"
    for failure in how.get("failed", []):
        yield f"**Not finished**: {escape(failure)}\n"
    tables = read(lines.get(name, []))
    for table in tables:
        yield from markdown(table, ran(about, name), table.name in drawn)
    left = missing(how.get("expected", []), tables)
    if left:
        yield f"Not measured in this run: {'; '.join(left)}.\n"


def versions(about):
    found = [f"{name} {peer['version']}" for name, peer in about["peers"].items()
             if "version" in peer]
    return f"Evenkeel {about['ours']}; Python {about['python']}; {', '.join(found)}"


def summary(all_tables):
    """A table of tables: how often we lose, and to whom to look."""
    rows = []
    for table in all_tables:
        if contender(table) or any(row.ours is False for row in table.rows):
            found = where_we_lose(table)
            rows.append((table.title, found))
    yield "## Where we lose, in short\n"
    lost = [(title, found) for title, found in rows if found]
    yield f"In {len(lost)} of {len(rows)} tables.\n"
    for title, found in lost:
        yield f"- {title}: " + "; ".join(found)
    yield ""


def render(about, lines):
    """{file name: text}. `lines`: {part: [records]}."""
    tables = {name: read(lines.get(name, [])) for name, (_, read) in PARTS.items()}
    every = [table for name in PARTS for table in tables[name] if name in about["parts"]]
    plots = {table.name: plot(table) for table in every}
    drawn = {name: svg for name, svg in plots.items() if svg}
    text = ["# Evenkeel beside its peers\n",
            f"Made by `{about['command']}` on {about['began']}, in {about['took_s'] / 60:.0f} "
            "minutes.\n"]
    quick = [name for name, how in about["parts"].items() if how.get("quick")]
    if quick:
        text.append(f"**A quick run** of {', '.join(quick)}: few rounds and a small state. It "
                    "shows that everything works; its figures say nothing.\n")
    text += [f"On {machine_line(about)}. {versions(about)}.\n", SCOPE + "\n",
             "Several values in a cell are min / median / max. Bold rows are ours; the first of "
             "them is what the others are compared with, by medians.\n"]
    for name, why in not_installed(about).items():
        text.append(f"**{name} could not be installed**, so its rows are missing: {escape(why)}\n")
    text += summary(every)
    for name in PARTS:
        text += part_section(name, about, lines, drawn)
    return {"REPORT.md": "\n".join(text).rstrip() + "\n",
            **{f"{name}.svg": svg for name, svg in drawn.items()}}
