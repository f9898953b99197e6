"""Jobs that the measurements start: a launcher whose lines arrive with the time of their arrival.

Promises   whatever a job started is killed at its end, orphans too (by a mark in the environment).
Does not   correct for the pipe: a line's time is that at which this program has it, so what is
           measured is never too good.
"""
import os
import re
import subprocess
import tempfile
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tests/harness"))
from marked import kill, marked  # noqa: E402

MARK = "KEEL_BENCH_JOB"
LIMIT_S = 180
_count = 0


class Job:
    def __init__(self, command, environment=None, folder="/tmp"):
        global _count
        _count += 1
        self.temporary = tempfile.TemporaryDirectory(prefix="keel-bench-")
        self.mark = f"{os.getpid()}.{_count}"
        self.lines = []  # (seconds, text)
        self.changed = threading.Condition()
        clean = {name: value for name, value in os.environ.items()
                 if not name.startswith(("PET_", "TORCH", "KEELRUN_"))}
        self.started = time.monotonic()
        self.process = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace",
            env={**clean, MARK: self.mark, "OMP_NUM_THREADS": "1", "TMPDIR": self.temporary.name,
                 **(environment or {})})
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            now = time.monotonic()
            with self.changed:
                self.lines.append((now, line.rstrip()))
                self.changed.notify_all()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        for pid in self.descendants():
            kill(pid)
        self.process.wait()
        self.reader.join(10)
        self.process.stdout.close()
        self.temporary.cleanup()

    def descendants(self):
        return marked(MARK, self.mark)

    def mark_here(self):
        with self.changed:
            return len(self.lines)

    def collect(self, pattern, count, since=0, limit_s=LIMIT_S):
        """The first `count` matches from line `since` on, as (seconds, match); None if they do not
        come."""
        def matches():
            every = ((at, re.search(pattern, text)) for at, text in self.lines[since:])
            return [(at, found) for at, found in every if found]

        with self.changed:
            came = self.changed.wait_for(lambda: len(matches()) >= count, limit_s)
            return matches()[:count] if came else None

    def tail(self):
        return "\n".join(text for _, text in self.lines[-20:])


def quantile(values, share):
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]
