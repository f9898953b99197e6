"""What all parts of this bench share: durable, evicted from the page cache, peak memory.

Promises figures that mean the same for every system. Linux only.
"""
import glob
import os
import subprocess
import time

now = time.perf_counter
END_LIMIT_S = 600


def files_of(path):
    if os.path.isfile(path):
        return [path]
    found = glob.glob(path + "/**", recursive=True, include_hidden=True)
    return [p for p in found if os.path.isfile(p)]


def bytes_of(path):
    return sum(os.path.getsize(p) for p in files_of(path))


def make_durable(path):
    """Syncs every file, every directory that holds one, and the parent."""
    dirs = {os.path.dirname(path.rstrip("/"))} | {os.path.dirname(p) for p in files_of(path)}
    for p in files_of(path) + sorted(dirs):
        descriptor = os.open(p, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)


def evict(path):
    """Drops the files from the page cache; they must be durable."""
    for p in files_of(path):
        descriptor = os.open(p, os.O_RDONLY)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def status_mb(field, pid="self"):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        for line in file:
            if line.startswith(field + ":"):
                return int(line.split()[1]) / 1024
    return 0.0


def reset_peak_mb():
    """From here on VmHWM counts from what is held now, which it returns."""
    with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
        file.write("5")
    return status_mb("VmRSS")


def load_state(path):
    """Tensors in memory of their own, not in a mapped file."""
    from safetensors.torch import load_file
    return {name: value.clone() for name, value in load_file(path).items()}


def lay_out_state(programs, state, folder):
    """The state as ours reads it: what make_state.py wrote, as a checkpoint in that folder."""
    if not os.path.isdir(f"{folder}/state"):
        subprocess.run([f"{programs}/keel", "import", f"{state}/state.safetensors",
                        f"{folder}/state", "--codec=none"], check=True)


class Part:
    """A process that is ready and waits for the word."""

    def __init__(self, command, env=None):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, env=env)
        self.expect("READY")

    def expect(self, word):
        line = self.process.stdout.readline()
        if not line.startswith(word):
            raise RuntimeError(f"{self.process.args[:2]} said {line!r} where {word} was due")
        return line[len(word):]

    def tell(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def end(self):
        self.process.stdin.close()
        if self.process.wait(END_LIMIT_S) != 0:
            raise RuntimeError(f"{self.process.args[:2]} ended with {self.process.returncode}")
