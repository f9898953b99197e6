#!/usr/bin/env python3
"""From records to the report, where we lose, and that what fails costs only itself."""
import argparse
import contextlib
import io
import os
import subprocess
import sys
import tempfile
import unittest
import xml.dom.minidom

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BENCH = os.path.join(ROOT, "bench")
sys.path.insert(0, os.path.join(BENCH, "compare"))

import compare  # noqa: E402
import peers  # noqa: E402
import records  # noqa: E402
import report  # noqa: E402
import tables  # noqa: E402
from tables import Metric, Row, Table  # noqa: E402

# As the programs of bench/trainer and bench/ckpt wrote them, rounded.
WORKER = "a worker is killed"
RECOVERY = [
    {"what": "import torch", "round": 0, "seconds": 1.9},
    {"what": "recovery", "system": "torchrun", "round": 0, "group": WORKER, "stall": 5.9,
     "back": 5.9, "lost": 10, "start": 4.5, "error": 0.06,
     "phases": {"main": 0.4, "imported": 2.6, "group": 2.8, "model": 5.7}},
    {"what": "recovery", "system": "keelrun", "round": 0, "group": WORKER, "stall": 0.09,
     "back": 0.65, "lost": 0, "start": 0.9, "phases": {}, "error": None},
    {"what": "recovery", "system": "torchrun", "round": 1, "group": WORKER, "stall": None,
     "back": None, "note": "not within 90 s", "said": "x", "start": 4.7},
    {"what": "recovery", "system": "keelrun", "round": 1, "group": WORKER, "stall": 0.11,
     "back": 0.75, "lost": 0, "start": 1.0, "phases": {}, "error": None},
    {"what": "recovery", "system": "torchft", "round": 0, "group": WORKER, "stall": None,
     "back": None, "note": "never ran", "said": "Traceback\nImportError: a | b <c>\n"}]
STEPS = [
    {"what": "step", "size": "6M", "system": "exact", "round": 0, "seconds": 0.08},
    {"what": "step", "size": "6M", "system": "DDP, fused AdamW", "round": 0, "seconds": 0.1},
    {"what": "step", "size": "6M", "system": "DDP, default AdamW", "round": 0, "seconds": None,
     "error": "the job ended with 1"}]
ANCHOR = {"system": "anchors", "world": 1, "round": 0, "bytes": 458e6, "memcpy": 8e9,
          "memcpy_fresh": 2e9, "write_fsync": 1e9, "write_direct": 1.1e9, "read_cold": 5e8,
          "zstd1": 6e8}


def saved(system, world=1, **more):
    return {"system": system, "world": world, "round": 0, "call_s": 0.4, "durable_s": 0.4,
            "slow_s": 0.0, "cpu_s": 0.4, "bytes": 458000000, "peak_mb": -3, "load_s": 0.5,
            "ok": True, "steps": 0, "step_ms": None, **more}


CHECKPOINTS = [
    ANCHOR, saved("torch_save", cpu_s=0.3, durable_s=0.5), saved("keel", bytes=380000000),
    saved("dcp_async", slow_s=0.94, steps=100, step_ms=10.0), saved("keel_background"),
    {"system": "torchsnapshot", "world": 1, "round": 0, "error": "x\nno module\n"},
    {"what": "ratio", "part": "parameters", "bytes": 1e8, "zstd1": 1.08, "planes": 1.19,
     "keel": 1.2},
    {"what": "fault", "fault": "none", "system": "dcp", "counts": {"error": 1}, "said": "it broke"},
    {"what": "fault", "fault": "flip", "system": "dcp", "counts": {"WRONG": 50}, "touched": None},
    {"what": "fault", "fault": "flip", "system": "keel", "counts": {"error": 50}, "touched": 0},
    {"what": "fault", "fault": "kill one of 2", "system": "dcp",
     "counts": {"old": 12, "new": 56, "error": 29, "mixed": 3}, "touched": 116}]
LINES = {"recovery": RECOVERY, "throughput": STEPS, "checkpoints": CHECKPOINTS}


def about(**more):
    how = {"began": "2026-01-02 03:04 UTC", "load_before": 0.1, "failed": [], "expected": []}
    return {"machine": {"cores": 2, "cpu": "EPYC", "memory_gb": 23.4, "kernel": "6.1",
                        "system": "Debian 12", "disk": "ext4 on /dev/x"},
            "peers": {"torch": {"version": "2.11.0"}}, "ours": "0.2.0", "python": "3.11.2",
            "began": "2026-01-02 03:04 UTC", "took_s": 600,
            "command": "bench/compare.sh", "parts": {part: dict(how) for part in LINES}, **more}


def table(*rows, metrics=(Metric("s", "seconds", "less", 2),)):
    return Table("t", "T", "", "again", list(metrics), list(rows), "s")


def named(found, name):
    return next(one for one in found if one.name == name)


class WhereWeLose(unittest.TestCase):
    def test_to_whom_is_better_by_the_median(self):
        found = tables.where_we_lose(table(Row("keel", True, {"s": [2, 3, 4]}),
                                           Row("fast", False, {"s": [1, 1.5, 0.5]}),
                                           Row("slow", False, {"s": [9]})))
        self.assertEqual(found, ["seconds: keel 3.00, but fast 1.00, 3.0 times"])

    def test_more_may_be_better(self):
        metric = Metric("s", "share", "more", 2)
        self.assertEqual(tables.where_we_lose(table(Row("keel", True, {"s": [0.5]}),
                                                    Row("peer", False, {"s": [1]}),
                                                    metrics=[metric])),
                         ["share: keel 0.50, but peer 1.00, 2.0 times"])

    def test_the_same_is_no_loss_and_neither_is_what_has_no_better(self):
        rows = Row("keel", True, {"s": [1], "n": [9]}), Row("peer", False, {"s": [1], "n": [1]})
        metrics = [Metric("s", "seconds"), Metric("n", "runs", None)]
        self.assertEqual(tables.where_we_lose(table(*rows, metrics=metrics)), [])
        self.assertEqual(tables.compared(table(*rows, metrics=metrics)), 1)

    def test_ranges_that_overlap_are_said_to(self):
        found = tables.where_we_lose(table(Row("keel", True, {"s": [1, 3, 4]}),
                                           Row("peer", False, {"s": [2, 2, 2]})))
        self.assertIn("their ranges overlap", found[0])

    def test_only_our_first_row_competes(self):
        self.assertEqual(tables.where_we_lose(table(Row("keel", True, {"s": [1]}),
                                                    Row("keel_t2", True, {"s": [9]}),
                                                    Row("peer", False, {"s": [2]}))), [])

    def test_what_we_have_no_figure_of_is_lost(self):
        self.assertEqual(tables.where_we_lose(table(Row("keel", True, {}, "2 x hung"),
                                                    Row("peer", False, {"s": [2]}))),
                         ["keel: 2 x hung", "seconds: no figure of keel"])
        self.assertEqual(tables.where_we_lose(table(Row("peer", False, {"s": [2]}))),
                         ["nothing of ours was measured here"])

    def test_nobody_loses_against_a_yardstick(self):
        alone = table(Row("memcpy", None, {"s": [1]}))
        self.assertEqual(tables.where_we_lose(alone), [])
        self.assertEqual(list(tables.losing(alone)), [])
        self.assertEqual(tables.where_we_lose(table(Row("keel", True, {"s": [2]}),
                                                    Row("memcpy", None, {"s": [1]}))), [])

    def test_zero_beats_without_a_factor(self):
        found = tables.where_we_lose(table(Row("keel", True, {"s": [1]}),
                                           Row("peer", False, {"s": [0]})))
        self.assertEqual(found, ["seconds: keel 1.00, but peer 0.00"])

    def test_without_peers_nothing_is_claimed(self):
        said = "".join(tables.losing(table(Row("keel", True, {"s": [1]}))))
        self.assertIn("unknown", said)


class Tables(unittest.TestCase):
    def test_cells(self):
        self.assertEqual(tables.cell([], 2), "-")
        self.assertEqual(tables.cell([1.234], 1), "1.2")
        self.assertEqual(tables.cell([3, 1, 2], 0), "1 / 2 / 3")
        self.assertEqual(tables.cell("5/6", 2), "5/6")

    def test_words_of_others_stay_in_their_cell(self):
        lines = list(tables.markdown(table(Row("peer", False, {}, "a | b\n<c>")), "Ran.", False))
        row = next(line for line in lines if line.startswith("| peer"))
        self.assertEqual(row, "| peer | - | a \\| b &lt;c> |")

    def test_a_plot_is_drawn_of_what_has_figures(self):
        svg = tables.plot(table(Row("keel <1>", True, {"s": [1, 2]}),
                                Row("peer", False, {}, "2 x hung " + 99 * "-")))
        drawn = xml.dom.minidom.parseString(svg)
        self.assertEqual(len(drawn.getElementsByTagName("rect")), 2)   # the paper, and one bar
        self.assertIn("2 x hung -", svg)
        self.assertNotIn(99 * "-", svg)
        self.assertIsNone(tables.plot(table(Row("peer", False, {}))))
        self.assertIsNone(tables.plot(table(Row("peer", False, {"s": [1]}))._replace(plot=None)))
        self.assertIsNotNone(tables.plot(table(Row("peer", False, {"s": [0]}))))


class Records(unittest.TestCase):
    def test_recovery(self):
        made = named(records.recovery(RECOVERY), "recovery-1")
        self.assertEqual([row.system for row in made.rows], ["keelrun", "torchrun", "torchft"])
        self.assertEqual(made.rows[1].values["runs"], "1/2")
        self.assertEqual(made.rows[1].note, "1 x not within 90 s")
        self.assertEqual(made.rows[2].note, "1 x never ran; ImportError: a | b <c>")
        self.assertEqual(tables.where_we_lose(made), [])

    def test_phases_take_what_they_take_themselves(self):
        made = named(records.recovery(RECOVERY), "phases")
        self.assertEqual([row.system for row in made.rows], ["torchrun"])
        values = {key: round(one[0], 3) for key, one in made.rows[0].values.items()}
        self.assertEqual(values, {"main": 0.4, "imported": 2.2, "group": 0.2, "model": 2.9,
                                  "back": 0.2, "error": 0.06})

    def test_the_same_script_is_compared_by_itself(self):
        script = {**RECOVERY[2], "system": "keelrun, the DDP script", "stall": 6.5, "back": 6.5}
        made = named(records.recovery([*RECOVERY, script]), "recovery-script")
        self.assertEqual([row.system for row in made.rows],
                         ["keelrun, the DDP script", "torchrun"])
        self.assertIn("without a committed step: keelrun, the DDP script 6.500, but torchrun 5.9",
                      tables.where_we_lose(made)[0])
        self.assertNotIn("recovery-script", [one.name for one in records.recovery(RECOVERY)])

    def test_starts(self):
        made = named(records.recovery(RECOVERY), "start")
        self.assertEqual([(row.system, row.ours, row.values["start"]) for row in made.rows],
                         [("keelrun, its trainer", True, [0.9, 1.0]),
                          ("torchrun --standalone, the DDP script", False, [4.5, 4.7]),
                          ("import torch, by itself", None, [1.9])])

    def test_throughput_is_compared_within_a_round(self):
        made = named(records.throughput(STEPS), "throughput-6M")
        ratios = [[round(one, 3) for one in row.values["ratio"]] for row in made.rows]
        self.assertEqual(ratios, [[1], [0.8], []])
        self.assertEqual(made.rows[2].note, "the job ended with 1")

    def test_checkpoints(self):
        made = named(records.checkpoints(CHECKPOINTS), "checkpoints-1")
        self.assertEqual([row.system for row in made.rows],
                         ["keel", "torch.save + fsync", "torchsnapshot"])
        self.assertAlmostEqual(made.rows[1].values["write"][0], 0.5 / 0.458)
        self.assertEqual(made.rows[1].values["memory"], [0])
        self.assertEqual(made.rows[2].note, "1 of 1 failed: no module")
        self.assertEqual(tables.where_we_lose(made),
                         ["CPU s: keel 0.40, but torch.save + fsync 0.30, 1.33 times"])

    def test_what_runs_beside_the_training_costs_steps(self):
        made = named(records.checkpoints(CHECKPOINTS), "checkpoints-1-beside")
        self.assertEqual([row.system for row in made.rows],
                         ["keel, in the background", "DCP async (thread)"])
        self.assertAlmostEqual(made.rows[1].values["slower"][0], 1.94)
        self.assertAlmostEqual(made.rows[1].values["lost"][0], 1.34)

    def test_wrong_data_is_told_first(self):
        runs = [ANCHOR, saved("dcp", ok=False), saved("keel")]
        made = named(records.checkpoints(runs), "checkpoints-1")
        self.assertTrue(made.rows[1].note.startswith("LOADED WRONG DATA"))

    def test_faults(self):
        made = records.checkpoints(CHECKPOINTS)
        flip = named(made, "fault-flip")
        self.assertEqual([row.system for row in flip.rows], ["keel", "DCP"])
        self.assertEqual(flip.rows[1].values["WRONG"], [50])
        self.assertEqual(tables.where_we_lose(flip), [])
        kill = named(made, "fault-kill-one-of-2")
        self.assertEqual(kill.rows[0].values["mixed"], [3])
        self.assertEqual(named(made, "fault-none").rows[0].note, "it broke")

    def test_unknown_records_are_passed_over(self):
        odd = [{"what": "news"}, {}, {"system": "new", "world": 1}]
        for read in (records.recovery, records.throughput, records.checkpoints):
            self.assertEqual(read(odd), [])


class Report(unittest.TestCase):
    def test_every_table_says_how_where_and_what_we_lose(self):
        files = report.render(about(), LINES)
        text = files["REPORT.md"]
        sections = text.split("\n### ")[1:]
        self.assertEqual(len(sections), 11)
        for section in sections:
            self.assertIn("To repeat: `bench/compare.sh --only ", section)
            self.assertIn("Ran on 2 cores of EPYC, 23 GB, Debian 12, Linux 6.1, ext4 on /dev/x; "
                          "2026-01-02 03:04 UTC, load 0.1 before.", section)
        self.assertIn("- Checkpoints: one process, the training waits: CPU s: keel 0.40", text)
        for name in files:
            if name.endswith(".svg"):
                self.assertIn(f"({name})", text)
                xml.dom.minidom.parseString(files[name])
        self.assertIn("recovery-1.svg", files)

    def test_who_is_missing_is_named(self):
        made = about(peers={"torchft": {"why_not": "pip could not install it: no wheel"}})
        made["parts"]["recovery"]["expected"] = ["keelrun", "torchrun, plain", "x"]
        made["parts"]["throughput"]["failed"] = ["steps ended with 1: boom"]
        text = report.render(made, LINES)["REPORT.md"]
        self.assertIn("**torchft could not be installed**, so its rows are missing: pip could not",
                      text)
        self.assertIn("Not measured in this run: torchrun, plain; x.", text)
        self.assertIn("**Not finished**: steps ended with 1: boom", text)

    def test_parts_that_never_ran_are_left_out(self):
        made = about()
        del made["parts"]["checkpoints"], made["parts"]["throughput"]
        text = report.render(made, LINES)["REPORT.md"]
        self.assertIn("## Recovery", text)
        self.assertNotIn("## Checkpoints", text)

    def test_nothing_measured_is_a_report_too(self):
        text = report.render(about(), {})["REPORT.md"]
        self.assertIn("In 0 of 0 tables.", text)

    def test_a_quick_run_says_so(self):
        made = about()
        self.assertNotIn("A quick run", report.render(made, LINES)["REPORT.md"])
        made["parts"]["throughput"]["quick"] = True
        self.assertIn("**A quick run** of throughput:", report.render(made, LINES)["REPORT.md"])


class Running(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="keel-compare-")
        self.addCleanup(folder.cleanup)
        self.out = folder.name
        os.mkdir(f"{self.out}/logs")
        self.args = argparse.Namespace(out=self.out, bin="/nowhere", state="/nowhere", quick=True,
                                       rounds=1)

    def run_step(self, code, writes="stdout"):
        step = compare.Step("a step", [sys.executable, "-c", code], writes)
        with contextlib.redirect_stderr(io.StringIO()):
            return compare.run_step("recovery", step, self.args)

    def test_records_of_a_program_that_fails_are_kept(self):
        failed = self.run_step('import sys; print(\'{"what":"x"}\', flush=True); print("{"); '
                               'sys.exit("boom")')
        self.assertEqual(failed, "a step ended with 1: boom")
        self.assertEqual(compare.read_lines(f"{self.out}/recovery.jsonl"), [{"what": "x"}])

    def test_a_program_that_measures_nothing_has_failed(self):
        self.assertIn("measured nothing", self.run_step("pass"))
        self.assertIsNone(self.run_step("print('{}')"))

    def test_who_is_not_installed_has_rows_that_say_so(self):
        found = {name: {"why_not": "no wheel"} for name in ("torchft", "torchsnapshot")}
        lines = {part: list(compare.stand_ins(part, self.args, found)) for part in LINES}
        rows = [row for made in records.recovery(lines["recovery"]) for row in made.rows]
        self.assertEqual({row.note for row in rows}, {"1 x not installed: no wheel"})
        self.assertEqual(len(rows), 3)
        rows = [row for made in records.checkpoints(lines["checkpoints"]) for row in made.rows]
        self.assertEqual([row.system for row in rows], ["torchsnapshot"] * 2)
        self.assertIn("no wheel", rows[0].note)
        command = compare.recovery_steps(self.args, "python", found)[0][-1].command
        self.assertEqual([word for word in command if word == "torchft"], [])
        command = " ".join(compare.checkpoint_steps(self.args, "python", found)[0][1].command)
        self.assertNotIn("torchsnapshot", command)

    def test_a_python_that_is_not_there_costs_no_exception(self):
        with contextlib.redirect_stderr(io.StringIO()):
            found, _ = peers.install_all(f"{self.out}/peers", "/nowhere/python", compare.say)
        self.assertIn("/nowhere/python", found["torchft"]["why_not"])


class CommandLine(unittest.TestCase):
    def said(self, *words, code):
        done = subprocess.run([os.path.join(BENCH, "compare.sh"), *words], capture_output=True,
                              text=True, check=False, timeout=300)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout + done.stderr

    def test_help_teaches(self):
        said = self.said("--help", code=0)
        for word in ("--quick", "--only", "--out", "--report", "REPORT.md", "examples:",
                     "exit codes:"):
            self.assertIn(word, said)

    def test_what_makes_no_sense_is_refused(self):
        self.assertIn("no part 'speed'", self.said("--bin=/x", "--only=speed", code=2))
        self.assertIn("1 or more", self.said("--bin=/x", "--rounds=0", code=2))
        self.assertIn("/x has no keelrun, keel,", self.said("--bin=/x", code=2))

    def test_a_report_of_nothing_is_refused(self):
        with tempfile.TemporaryDirectory(prefix="keel-compare-") as folder:
            self.assertIn("holds no records", self.said("--report", f"--out={folder}", code=1))


if __name__ == "__main__":
    unittest.main()
