#!/usr/bin/env python3
"""Recorded traces are read as they are, and what is none is refused where it is wrong."""
import glob
import os
import random
import tempfile
import unittest

import parts

import traces

EVENTS = "0,add,a\n5000,add,b\n9000,remove,a\n"
COUNTS = "2021-12-11, 11:00:00, 2\n2021-12-11, 11:01:40, 3\n2021-12-11, 11:03:00, 1\n"
JSON = ('[0, "add", {"nodes": ["a", "b"]}]\n[1000, "other", {"why": "x"}]\n'
        '[2000, "remove", {"nodes": ["a"]}]\n[3000, "DONE", {"nodes": []}]\n')


def events(text):
    return [(one.at, one.comes, one.host) for one in traces.parse(text).events]


def real(name):
    return traces.load(os.path.join(parts.TRACES, name))


class Read(unittest.TestCase):
    def test_events_by_line(self):
        self.assertEqual(events(EVENTS), [(0, True, "a"), (5, True, "b"), (9, False, "a")])
        self.assertEqual(traces.parse(EVENTS).end, 9)

    def test_counts_name_hosts_and_take_the_oldest_away(self):
        self.assertEqual(events(COUNTS), [
            (0, True, "host1"), (0, True, "host2"), (100, True, "host3"),
            (180, False, "host1"), (180, False, "host2")])

    def test_json_lines_end_where_they_say(self):
        self.assertEqual(events(JSON), [(0, True, "a"), (0, True, "b"), (2, False, "a")])
        self.assertEqual(traces.parse(JSON).end, 3)

    def test_either_line_end(self):
        for text in (EVENTS, COUNTS, JSON):
            self.assertEqual(events(text.replace("\n", "\r\n")), events(text))
            self.assertEqual(events(text.rstrip("\n")), events(text))
            self.assertEqual(events(text + "\r\n\n"), events(text))

    def test_what_happens_at_once_is_one_change(self):
        self.assertEqual(traces.parse(COUNTS).counts(), [(0, 2), (100, 3), (180, 1)])

    def test_a_host_may_come_back(self):
        self.assertEqual(len(events(EVENTS + "9000,add,a\n")), 4)


class Recorded(unittest.TestCase):
    def test_p3(self):
        trace = real("bamboo/p3-trace.csv")
        here = [count for at, count in trace.counts() if at > 0]
        gone = [event.at for event in trace.events if not event.comes]
        self.assertEqual((len(trace.events), len(gone), len(set(gone))), (344, 167, 79))
        self.assertEqual((min(here), max(here), trace.end), (10, 32, 40920))

    def test_g4dn(self):
        trace = real("bamboo/g4dn-trace.csv")
        self.assertEqual((len(trace.events), max(here for _, here in trace.counts())), (153, 24))
        self.assertEqual(trace.start, 480)

    def test_a100(self):
        here = [count for _, count in real("bamboo/a100x1-east1b.txt").counts()]
        self.assertEqual((here[0], here[-1], min(here), max(here)), (55, 64, 17, 64))
        self.assertEqual(min(b - a for a, b in zip(here, here[1:])), -36)

    def test_spotserve(self):
        ends = {os.path.basename(path): traces.load(path).end
                for path in glob.glob(f"{parts.TRACES}/spotserve/*.txt")}
        self.assertEqual(ends, {"trace_0203_real.txt": 720, "trace_0304_real.txt": 1320,
                                "trace_0506_real.txt": 1020})


class Refused(unittest.TestCase):
    def refused(self, text, line, reason):
        with self.assertRaises(traces.TraceError) as caught:
            traces.parse(text, "some.csv")
        self.assertEqual(caught.exception.line, line, caught.exception)
        self.assertIn(reason, str(caught.exception))
        self.assertTrue(str(caught.exception).startswith(f"some.csv:{line}: "))

    def test_of_no_known_form(self):
        for text in ("hello\n", "\ufeff0,add,a\n", "-1,add,a\n", "\x00\n", "{}\n"):
            self.refused(text, 1, "no known form")

    def test_empty(self):
        for text in ("", "\n", "\r\n \n"):
            self.refused(text, 1, "empty")
        self.refused("0,add,a\n\n1,remove,a\n", 2, "an empty line")

    def test_time_that_goes_back(self):
        self.refused(EVENTS + "8999,add,c\n", 4, "time goes back: 8999")
        self.refused(COUNTS + "2021-12-11, 11:02:59, 1\n", 4,
                     "time goes back: 2021-12-11, 11:02:59")
        self.refused('[5, "add", {"nodes": ["a"]}]\n[4, "DONE", {}]\n', 2, "time goes back: 4")

    def test_who_cannot_come_or_go(self):
        self.refused("0,add,a\n1,add,a\n", 2, "a comes, but is here")
        self.refused("0,add,a\n1,remove,b\n", 2, "b goes, but is not here")
        self.refused('[0, "add", {"nodes": ["a", "a"]}]\n', 1, "a comes, but is here")

    def test_values_that_make_no_sense(self):
        self.refused("0,add,a\n1,add\n", 2, "2 values instead of the three")
        self.refused("0,add,a\n1,add,b,c\n", 2, "4 values")
        self.refused("0,add,a\n1.5,add,b\n", 2, "'1.5' is no number of milliseconds")
        self.refused("0,add,a\n999999999999999,add,b\n", 2, "is no number of milliseconds")
        self.refused("0,add,a\n1,stop,b\n", 2, "'stop' is neither add nor remove")
        self.refused("0,add,a\n1,add,\n", 2, "'' is no name of a host")
        self.refused("0,add,a\n1,add,b c\n", 2, "'b c' is no name")

    def test_counts_that_make_no_sense(self):
        self.refused("2021-12-11, 11:00:00, many\n", 1, "'many' is no number of hosts")
        self.refused("2021-12-11, 11:00:00, -1\n", 1, "'-1' is no number of hosts")
        self.refused("2021-12-11, 11:00:00, 100001\n", 1, "is no number of hosts")
        self.refused("2021-02-30, 11:00:00, 1\n", 1, "no such time")
        self.refused("2021-12-11, 25:00:00, 1\n", 1, "no such time")
        self.refused("2021-12-11, 11:00, 1\n", 1, "is not of the form")

    def test_json_that_makes_no_sense(self):
        self.refused('[0, "add", {"nodes": ["a"]}\n', 1, "no JSON")
        self.refused("[" * 100000 + "\n", 1, "no JSON")
        self.refused('[0, "add"]\n', 1, "not of the form")
        self.refused('[true, "add", {"nodes": ["a"]}]\n', 1, "True is no whole number")
        self.refused('[0.5, "add", {"nodes": ["a"]}]\n', 1, "0.5 is no whole number")
        self.refused('[-1, "add", {"nodes": ["a"]}]\n', 1, "'-1' is no number of milliseconds")
        self.refused('[0, "add", ["a"]]\n', 1, "is no object with nodes")
        self.refused('[0, "add", {"nodes": "a"}]\n', 1, "'a' is no list of nodes")
        self.refused('[0, "add", {}]\n', 1, "None is no list of nodes")
        self.refused('[0, "add", {"nodes": [1]}]\n', 1, "1 is no name")
        self.refused('[0, "join", {"nodes": []}]\n', 1, "'join' is none of")
        self.refused(JSON + '[4000, "add", {"nodes": ["c"]}]\n', 5, "a line after DONE")

    def test_where_there_is_nothing_to_replay(self):
        self.refused("0,add,a\n0,add,b\n", 2, "nothing happens after the first instant")
        self.refused("2021-12-11, 11:00:00, 0\n2021-12-11, 11:01:00, 0\n", 2, "no host ever comes")

    def test_files_that_are_no_text(self):
        with tempfile.TemporaryDirectory(prefix="keel-traces-") as folder:
            path = os.path.join(folder, "x.csv")
            with open(path, "wb") as file:
                file.write(b"0,add,a\n1,add,\xff\n")
            with self.assertRaisesRegex(traces.TraceError, "x.csv:2: this is no text in UTF-8"):
                traces.load(path)

    def test_whatever_is_broken_is_refused_with_a_line(self):
        seed = int.from_bytes(os.urandom(4), "little")
        print(f"seed {seed}", flush=True)
        rng = random.Random(seed)
        read = 0
        for text in (EVENTS, COUNTS, JSON) * 700:
            content = list(text)
            for _ in range(rng.randrange(1, 4)):
                at = rng.randrange(len(content))
                content[at] = rng.choice(["", content[at] * 2, rng.choice('0,-]["{}\n\r x9\0é')])
            try:
                trace = traces.parse("".join(content))
            except traces.TraceError as error:
                self.assertGreater(error.line, 0)
                continue
            read += 1
            self.assertGreaterEqual(min(here for _, here in trace.counts()), 0)
        self.assertGreater(read, 0)


if __name__ == "__main__":
    unittest.main()
