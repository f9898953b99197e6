"""Reads recorded spot traces: when hosts came and went.

Promises   each format of traces/README.md is known by its first line; what does not fit it is
           refused with its line number and the reason, never guessed at or left out. Line ends are
           LF or CRLF. Time that goes back is refused.
Does not   know any notice: no trace tells of one. Where only numbers of hosts were recorded, names
           are made up, and who has been there longest goes first.
"""
import collections
import dataclasses
import datetime
import json
import os
import re

BYTES_MAX = 64 << 20
HOSTS_MAX = 100000        # of one sample
MS_MAX = 10 ** 14
NAME = re.compile(r"[^\s,\x00-\x1f\x7f]{1,200}")
WHOLE = re.compile(r"[0-9]{1,15}")
SAMPLE = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2}),\s*([0-9]{2}:[0-9]{2}:[0-9]{2}),\s*(\S+)")
FORMATS = ("MILLISECONDS,add|remove,HOST", "YYYY-MM-DD, HH:MM:SS, COUNT",
           '[MILLISECONDS, "add"|"remove"|"other"|"DONE", {"nodes": [...]}]')


class TraceError(Exception):
    """What is wrong with a trace: "NAME:LINE: reason"."""

    def __init__(self, name, line, reason):
        super().__init__(f"{name}:{line}: {reason}")
        self.line, self.reason = line, reason


@dataclasses.dataclass(frozen=True)
class Event:
    at: float       # seconds, as recorded
    comes: bool     # else it goes
    host: str


@dataclasses.dataclass(frozen=True)
class Trace:
    name: str
    format: str
    events: tuple
    end: float      # seconds

    @property
    def start(self):
        return self.events[0].at

    def counts(self):
        """(seconds, hosts that are there from then on), once for each instant."""
        found, here = [], 0
        for event in self.events:
            here += 1 if event.comes else -1
            if found and found[-1][0] == event.at:
                found.pop()
            found.append((event.at, here))
        return found


class Wrong(Exception):
    """The reason alone; whoever catches it knows the line."""


class Reader:
    """What all formats share: who is here, and that time does not go back."""

    def __init__(self):
        self.events, self.here, self.last = [], set(), None

    def at(self, seconds, text):
        if self.last is not None and seconds < self.last:
            raise Wrong(f"time goes back: {text} is before the line above")
        self.last = seconds
        return seconds

    def come(self, seconds, host):
        if host in self.here:
            raise Wrong(f"{host} comes, but is here already")
        self.here.add(host)
        self.events.append(Event(seconds, True, host))

    def go(self, seconds, host):
        if host not in self.here:
            raise Wrong(f"{host} goes, but is not here")
        self.here.remove(host)
        self.events.append(Event(seconds, False, host))


def milliseconds(text):
    if not WHOLE.fullmatch(text) or int(text) > MS_MAX:
        raise Wrong(f"{shown(text)} is no number of milliseconds from 0 to {MS_MAX}")
    return int(text) / 1000


def host_name(text):
    if not isinstance(text, str) or not NAME.fullmatch(text):
        raise Wrong(f"{shown(text)} is no name of a host")
    return text


def shown(value):
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


class EventLines(Reader):
    format = FORMATS[0]

    def read(self, line):
        parts = [part.strip() for part in line.split(",")]
        if len(parts) != 3:
            raise Wrong(f"{len(parts)} values instead of the three of {self.format}")
        at = self.at(milliseconds(parts[0]), parts[0])
        if parts[1] not in ("add", "remove"):
            raise Wrong(f"{shown(parts[1])} is neither add nor remove")
        (self.come if parts[1] == "add" else self.go)(at, host_name(parts[2]))


class CountLines(Reader):
    format = FORMATS[1]

    def __init__(self):
        super().__init__()
        self.first, self.named = None, 0
        self.queue = collections.deque()

    def read(self, line):
        found = SAMPLE.fullmatch(line.strip())
        if not found:
            raise Wrong(f"this is not of the form {self.format}")
        try:
            when = datetime.datetime.fromisoformat(f"{found[1]}T{found[2]}")
        except ValueError as error:
            raise Wrong(f"no such time: {error}") from None
        if not WHOLE.fullmatch(found[3]) or int(found[3]) > HOSTS_MAX:
            raise Wrong(f"{shown(found[3])} is no number of hosts from 0 to {HOSTS_MAX}")
        self.first = self.first or when
        at = self.at((when - self.first).total_seconds(), f"{found[1]}, {found[2]}")
        while len(self.queue) > int(found[3]):
            self.go(at, self.queue.popleft())
        while len(self.queue) < int(found[3]):
            self.named += 1
            self.queue.append(f"host{self.named}")
            self.come(at, self.queue[-1])


class JsonLines(Reader):
    format = FORMATS[2]

    def __init__(self):
        super().__init__()
        self.done = False

    def read(self, line):
        if self.done:
            raise Wrong("a line after DONE")
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise Wrong(f"no JSON: {shown(str(error))}") from None
        if not isinstance(value, list) or len(value) != 3:
            raise Wrong(f"this is not of the form {self.format}")
        if isinstance(value[0], bool) or not isinstance(value[0], int):
            raise Wrong(f"{shown(value[0])} is no whole number of milliseconds")
        at = self.at(milliseconds(str(value[0])), str(value[0]))
        what, nodes = value[1], self.nodes(value[2], value[1])
        if what == "DONE":
            self.done = True
        elif what in ("add", "remove"):
            for node in nodes:
                (self.come if what == "add" else self.go)(at, host_name(node))
        elif what != "other":
            raise Wrong(f"{shown(what)} is none of add, remove, other, DONE")

    @staticmethod
    def nodes(value, what):
        if not isinstance(value, dict):
            raise Wrong(f"{shown(value)} is no object with nodes")
        nodes = value.get("nodes", [] if what in ("other", "DONE") else None)
        if not isinstance(nodes, list):
            raise Wrong(f"{shown(nodes)} is no list of nodes")
        return nodes


def reader_for(line):
    if line.lstrip().startswith("["):
        return JsonLines()
    if re.match(r"\s*[0-9]{4}-[0-9]{2}-[0-9]{2}\s*,", line):
        return CountLines()
    if re.match(r"\s*[0-9]+\s*,", line):
        return EventLines()
    raise Wrong(f"{shown(line)} is of no known form; these are known: " + "; ".join(FORMATS))


def parse(text, name="trace"):
    """The Trace of that text; TraceError where it is none."""
    lines = [line[:-1] if line.endswith("\r") else line for line in text.split("\n")]
    while lines and not lines[-1].strip():
        lines.pop()
    if not lines:
        raise TraceError(name, 1, "the trace is empty")
    reader, number = None, 0
    try:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                raise Wrong("an empty line before the end")
            reader = reader or reader_for(line)
            reader.read(line)
        if not reader.events:
            raise Wrong("no host ever comes")
        if reader.last <= reader.events[0].at:
            raise Wrong("nothing happens after the first instant: there is nothing to replay")
    except Wrong as wrong:
        raise TraceError(name, number, str(wrong)) from None
    return Trace(name, reader.format, tuple(reader.events), reader.last)


def load(path):
    """The Trace of that file; TraceError where it is none, OSError where it cannot be read."""
    name = os.path.basename(path)
    with open(path, "rb") as file:
        content = file.read(BYTES_MAX + 1)
    if len(content) > BYTES_MAX:
        raise TraceError(name, 1, f"more than {BYTES_MAX} bytes")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise TraceError(name, line, "this is no text in UTF-8") from None
    return parse(text, name)
