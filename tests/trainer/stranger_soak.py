#!/usr/bin/env python3
"""Plays a stranger who reaches every port of a job with a token, and does not have the token.

Promises   --messages messages are sent to jobs of three hosts while workers are killed: forged
           values of the board and of the workers' keys, values put back, moved to another key,
           cut or with a flipped bit, lines of the peer ports, and bytes to every other port.
           Each job must end with 0 on every host, with the last line and the losses of a quiet
           run, and its logs must show nothing that a message would have caused: no death, break,
           end, stop, move or shunned host but those of the kills, and breaks that a worker
           reports while its group is being built. Nobody may come to the address that the
           stranger names. A launcher without the token, and one with another token, must be
           refused within DOOR_LIMIT.
Does not   do what a stranger may still do, since these disturbances stay open: remove keys, lower
           a counter or write words into it, write one key over and over on purpose, spoil what a
           newcomer reads before it has seen anything of the board (so the newcomers come before
           the stranger writes), or keep a worker from its first connections, which breaks that
           epoch and no other. It comes to that now and then by chance, and the breaks are told.
           Send the same messages for the same seed: what is drawn depends on the moment, too.
"""
import argparse
import collections
import json
import os
import random
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path += [os.path.join(HERE, "../harness"), os.path.join(HERE, "../dropin")]
import kill_soak  # noqa: E402
import launchers  # noqa: E402  tests/dropin/launchers.py
import marked  # noqa: E402
import soak_job  # noqa: E402
from free_port import free_port  # noqa: E402

HOSTS = 3
JOB = "stranger"
OURS = "127.0.0.9"         # the stranger's address
DOOR_LIMIT = 20
FORMING_S = 0.8            # after a kill, in which the next epoch's workers meet
FORMING_PAUSE_S = 0.005
CONF = "last_call_timeout=2,keep_alive_interval=1,keep_alive_max_attempt=3"
MARK = "KEEL_STRANGER_RUN"
WORDS = "a stranger says so"
HAIL = b"\x00\xce\xf7\x85\x3c\x0dkey\n"   # store/store_hail.h
SEALED = b"sealed1:"
SEALED_BYTES = 40          # before a sealed value begins
OPEN = ("slots", "news")   # numbers, which are added to
MANNERS = ["forged", "replayed", "moved", "flipped", "cut"]
# How often each kind of port is chosen: while all train, and while workers meet.
TRAINING = {"board": 45, "workers": 12, "peer": 20, "gloo": 13, "store": 5, "other": 5}
FORMING = {"board": 20, "workers": 40, "peer": 10, "gloo": 25, "store": 4, "other": 1}

STEP = re.compile(r"^(?:\[[^\]]*\]:)?step (\d+) rank \d+ of \d+ pid \d+ (loss .* lanes .*)$", re.M)
FORMED = re.compile(r" epoch-formed epoch=(\d+) reason=\"([^\"]*)\"")
BROKEN = re.compile(r" epoch-broken epoch=(\d+) cause=(\S+) reason=\"([^\"]*)\"")
LEFT = re.compile(r" epoch-left epoch=(\d+) reason=\"([^\"]*)\"")
DIED = re.compile(r" worker-died [^\n]*? how=\"([^\"]*)\"")
# What a launcher or a worker may complain of.
EXPECTED = {"doctor", "epoch-broken", "epoch-breaks", "worker-died", "stranger", "store-stranger",
            "straggler", "stays-polite", "still-waiting", "threads-above-processors",
            "save-given-up"}
COMPLAINT = re.compile(r"^\S+Z (?:warn|error) ([a-z-]+).*$", re.M)
CAUSED = re.compile(r" info (?:board-|coordinator-lost|endpoint-told|epoch-taken-up|joining-anew|"
                    r"job-stops|stop-|save-wanted|unknown-message|worker-signalled)|" + WORDS)


# Where the stranger's address may be told: it was heard, or was let into a group being built.
FROM_US = re.compile(r" (?:warn stranger|warn store-stranger|info epoch-left|warn torch) ")
# What c10d's store says of bytes that are no message to it.
GARBAGE = re.compile(r" warn torch .*Error processing client message")


class Failure(RuntimeError):
    pass


# --- The job ---

class Job:
    """Launchers of HOSTS hosts at loopback addresses of their own, which have one token."""

    def __init__(self, args, rng, options):
        self.args, self.rng = args, rng
        self.folder = tempfile.mkdtemp(prefix="keel-stranger-")
        self.token, self.port = secrets.token_hex(32), free_port()
        self.nnodes = rng.choice([str(HOSTS), f"2:{HOSTS}"])
        self.options = [*options, "--pause", f"{args.pause}ms", "--save-every", "50",
                        "--checkpoint-dir", os.path.join(self.folder, "checkpoints")]
        self.launchers = [self.launch(host, self.token) for host in range(1, HOSTS + 1)]

    def launch(self, host, token):
        clean = {name: value for name, value in os.environ.items()
                 if not name.startswith(("PET_", "TORCH", "KEELRUN_"))}
        clean |= {"TMPDIR": self.folder, "OMP_NUM_THREADS": "1", MARK: self.folder}
        if token:
            clean["KEELRUN_TOKEN"] = token
        status = [f"--status=127.0.0.{host}:{free_port()}"] if host == 2 else []
        if status:
            clean["KEELRUN_STATUS_TOKEN"] = secrets.token_hex(16)
        command = [self.args.keelrun, f"--nnodes={self.nnodes}", "--nproc-per-node=1",
                   "--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{self.port}",
                   f"--rdzv-id={JOB}", f"--rdzv-conf={CONF}", f"--local-addr=127.0.0.{host}",
                   "--max-restarts=100000", "--shun-after=100000", *status,
                   "--no-python", self.args.program]
        with open(self.path("out", host), "wb") as out, open(self.path("log", host), "wb") as log:
            return subprocess.Popen([*command, *self.options], stdin=subprocess.DEVNULL, env=clean,
                                    stdout=out, stderr=log, cwd=self.folder)

    def path(self, name, host):
        return os.path.join(self.folder, f"{name}{host}")

    def read(self, name, host):
        with open(self.path(name, host), encoding="utf-8", errors="replace") as file:
            return file.read()

    def is_over(self):
        return any(one.poll() is not None for one in self.launchers)

    def is_over_soon(self):
        """Its store goes a moment before its launchers do."""
        end = time.monotonic() + soak_job.HANG_LIMIT
        while not self.is_over() and time.monotonic() < end:
            time.sleep(0.02)
        return self.is_over()

    def wait_for_steps(self, step):
        end = time.monotonic() + soak_job.HANG_LIMIT
        while not any(f"\nstep {step} " in self.read("out", host) for host in (1, 2, 3)):
            if self.is_over() or time.monotonic() > end:
                raise Failure(f"the job has not come to step {step}")
            time.sleep(0.02)

    def processes(self):
        """{launcher: those that it has started, and theirs}"""
        found = {}
        for one in self.launchers:
            parents = found[one.pid] = [one.pid]
            for pid in parents:
                parents += kill_soak.children_of(pid)
        return found

    def workers(self):
        return [pid for family in self.processes().values() for pid in family
                if kill_soak.is_worker(pid)]

    def codes(self):
        """The exit codes; raises where the job makes no step for HANG_LIMIT."""
        size, end = -1, 0
        while any(one.poll() is None for one in self.launchers):
            now = sum(os.path.getsize(self.path("out", host)) for host in (1, 2, 3))
            if now != size:
                size, end = now, time.monotonic() + soak_job.HANG_LIMIT
            elif time.monotonic() > end:
                raise Failure("the job stands still")
            time.sleep(0.05)
        return [one.returncode for one in self.launchers]

    def refused_at_the_door(self, token):
        """What a launcher says that comes with that token, or with none."""
        begun = time.monotonic()
        late = self.launch(HOSTS + 1, token)
        try:
            code = late.wait(DOOR_LIMIT)
        except subprocess.TimeoutExpired:
            raise Failure(f"a launcher at the door waits for more than {DOOR_LIMIT} s") from None
        said = [line for line in self.read("log", HOSTS + 1).splitlines()
                if line.startswith(f"job {JOB}: ")]
        if code != 78 or len(said) != 1 or "token" not in said[0]:
            raise Failure(f"a launcher at the door ended with {code}: {said}")
        return f"{said[0]} [{time.monotonic() - begun:.2f} s]"

    def __enter__(self):
        return self

    def __exit__(self, kind, error, _):
        marked.kill_marked(MARK, self.folder)
        for one in self.launchers:
            one.wait()
        if kind is None:
            shutil.rmtree(self.folder)
        else:
            for host in (1, 2, 3):
                lines = [line for line in self.read("log", host).splitlines()
                         if " info step " not in line]
                sys.stderr.write("".join(f"host {host}| {line[:400]}\n" for line in lines[-60:]))
            sys.stderr.write(f"kept: {self.folder}\n")


# --- Ports ---

def listening():
    """{inode of the socket: (address, port)}"""
    found = {}
    for name, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        with open(f"/proc/net/{name}", encoding="ascii") as table:
            for line in table.readlines()[1:]:
                words = line.split()
                if words[3] != "0A":
                    continue
                digits, port = words[1].split(":")
                raw = b"".join(bytes.fromhex(digits[i:i + 8])[::-1]
                               for i in range(0, len(digits), 8))
                found[words[9]] = (socket.inet_ntop(family, raw), int(port, 16))
    return found


def sockets_of(pid):
    found = []
    try:
        for number in os.listdir(f"/proc/{pid}/fd"):
            text = os.readlink(f"/proc/{pid}/fd/{number}")
            if text.startswith("socket:["):
                found.append(text[8:-1])
    except OSError:
        pass   # it has ended
    return found


class Ports:
    """All ports at which the job listens, by kind: store, peer, gloo (a worker's), other."""

    def __init__(self, job):
        self.job, self.kinds, self.of = job, {}, {}
        self.looked = 0

    def look(self, pause):
        if time.monotonic() < self.looked + pause:
            return
        self.looked = time.monotonic()
        table, found = listening(), collections.defaultdict(list)
        for family in self.job.processes().values():
            for pid in family:
                for inode in sockets_of(pid):
                    if inode in table:
                        found[self.kind(pid, table[inode])].append(table[inode])
        self.of = found

    def kind(self, pid, where):
        if kill_soak.is_worker(pid):
            return "gloo"
        if (pid, where) not in self.kinds:
            answer = talk(where, HAIL)[0]
            self.kinds[pid, where] = {b"key\n": "store", b"peer\n": "peer"}.get(answer, "other")
        return self.kinds[pid, where]


def connect(where):
    """From the stranger's own address, if `where` is of the same family."""
    family = socket.AF_INET6 if ":" in where[0] else socket.AF_INET
    one = socket.socket(family)
    one.settimeout(0.3)
    if family == socket.AF_INET:
        one.bind((OURS, 0))
    one.connect(where)
    return one


def talk(where, *pieces):
    """What is answered to each; nothing where that takes long."""
    answers = []
    try:
        with connect(where) as one:
            for piece in pieces:
                one.sendall(piece)
                try:
                    answers.append(one.recv(4096))
                except socket.timeout:
                    answers.append(b"")
    except OSError:
        pass
    return answers + [b""] * (len(pieces) - len(answers))


# --- What the stranger knows of the board ---

class Board:
    """A client of the stores, who can read and write all of it."""

    def __init__(self, torch_store, place):
        self.torch_store, self.place = torch_store, place
        self.clients = {}
        self.past = collections.defaultdict(list)   # by key: what others wrote, the newest last
        self.own = set()                            # values that the stranger wrote
        self.traced = []
        self.read_at = 0
        self.generation = self.text("generation", self.read_key(f"keel/{JOB}/generation"))
        self.prefix = f"keel/{JOB}/{self.generation}/"
        self.read()

    def store(self, place=None):
        place = place or self.place
        if place not in self.clients:
            self.clients[place] = self.torch_store(place[0], place[1])
        return self.clients[place]

    @staticmethod
    def text(name, value):
        if not value.startswith(SEALED):
            raise Failure(f"{name} is not sealed: {value[:60]}")
        return value[SEALED_BYTES:].decode()

    def read_key(self, key, place=None):
        store = self.store(place)
        return store.get(key) if store.check([key]) else None

    def read(self, pause=0.3):
        """Notes what is there now. All values but three must be sealed."""
        if time.monotonic() < self.read_at + pause:
            return
        self.read_at = time.monotonic()
        for key in self.store().list_keys():
            if not key.startswith(f"keel/{JOB}/") or self.name(key) in OPEN:
                continue
            value = self.read_key(key)
            if value is None or value in self.own:
                continue
            if "/workers/" not in key:
                self.text(key, value)
            if not self.past[key] or self.past[key][-1] != value:
                self.past[key] = [*self.past[key][-19:], value]
        self.read_first_workers()

    def read_first_workers(self):
        """The first epoch is formed before its kind is known, and has a store of its own."""
        key = f"{self.prefix}workers/1//book"
        if self.epoch() == 1 and not self.past.get(key):
            store = self.record("epoch/1")["store"]
            book = self.read_key(store["prefix"] + "/book", (store["address"], store["port"]))
            if book is not None and book not in self.own:
                self.past[key] = [book]

    def name(self, key):
        return key.removeprefix(self.prefix)

    def newest(self, name):
        """The words of the board's key of that name."""
        return self.text(name, self.past[self.prefix + name][-1])

    def record(self, name):
        return json.loads(self.newest(name))

    def names(self, begin=""):
        """Of the board's keys that are sealed."""
        return sorted(self.name(key) for key, values in self.past.items()
                      if values and self.name(key).startswith(begin) and "/workers/" not in key)

    def members(self):
        """{name of the key: record} of all hosts that were not buried."""
        records = {name: self.record(name) for name in self.names("member/")}
        return {name: record for name, record in records.items() if "gone" not in record}

    def epoch(self):
        return max([int(name.split("/")[1]) for name in self.names("epoch/")], default=0)

    def write(self, key, value, place=None):
        """Tells `traced` when it wrote what, since the logs say nothing of most of it."""
        self.own.add(value)
        self.traced.append(f"{time.strftime('%T', time.gmtime())} {time.time() % 1:.3f} {key} "
                           f"{value[:100]}\n")
        self.store(place).set(key, value)


# --- What it sends ---

class Stranger:
    def __init__(self, job, board, ports, rng, trap):
        self.job, self.board, self.ports, self.rng = job, board, ports, rng
        self.trap = f"{OURS}:{trap}"
        self.id = "%016x" % rng.getrandbits(64)
        self.kept = collections.deque()   # sockets that stay open for a while
        self.heard = []                   # lines of peer ports, to be said again
        self.sent = collections.Counter()

    def send(self, weights):
        kinds = [kind for kind in weights if kind in ("board", "workers") or self.ports.of[kind]]
        kind = self.rng.choices(kinds, [weights[one] for one in kinds])[0]
        manner = getattr(self, f"to_{kind}")()
        self.sent[kind, manner] += 1
        while len(self.kept) > 12:
            self.kept.popleft().close()

    def garbage(self, most=4096):
        return self.rng.randbytes(self.rng.randrange(1, most))

    def flipped(self, value):
        at = self.rng.randrange(len(value))
        return value[:at] + bytes([value[at] ^ 1 << self.rng.randrange(8)]) + value[at + 1:]

    # The board.

    def to_board(self):
        self.board.read()
        manner = self.rng.choice([*MANNERS, "forged", "forged", "added"])
        if manner == "added":
            name, most = self.rng.choice([("news", 5), ("slots", 2)])
            self.board.store().add(self.board.prefix + name, self.rng.randrange(1, most))
            return manner
        if manner == "forged":
            name, words = self.forged()
            outside = name in ("generation", "protocol")
            key = f"keel/{JOB}/{name}" if outside else self.board.prefix + name
            self.board.write(key, self.as_if_sealed(key, words))
            return manner
        keys = [key for key in self.board.past if "/workers/" not in key]
        key = self.rng.choice(sorted(keys))
        self.board.write(key, self.spoilt(manner, key, sorted(keys)))
        return manner

    def spoilt(self, manner, key, keys):
        value = self.board.past[key][-1]
        if manner == "replayed":
            return self.rng.choice(self.board.past[key])
        if manner == "moved":
            others = [one for one in keys if one != key]
            return self.board.past[self.rng.choice(others or keys)][-1]
        if manner == "flipped":
            return self.flipped(value)
        return value[:self.rng.randrange(len(value))] or b"-"

    def as_if_sealed(self, key, words):
        """With a seal that fits as little as none does."""
        if self.rng.random() < 0.4:
            return words.encode()
        past = self.board.past.get(key)
        writer = past[-1][8:16] if past else self.rng.randbytes(8)
        count = self.rng.choice([1, 1 << 20, (1 << 64) - 1]).to_bytes(8, "little")
        return SEALED + writer + count + self.rng.randbytes(16) + words.encode()

    def forged(self):
        """A name of a key, and words that would do harm there."""
        board, rng, record = self.board, self.rng, {"version": 3}
        number = board.epoch()
        epoch = board.record(f"epoch/{number}")
        members = board.members()
        host = rng.choice(sorted(members))
        place = {"term": 9, "epoch": number + 1, "address": self.trap, "by": self.id}
        beat = rng.choice(board.names("beat/"))
        mine = epoch | {"number": number + 1, "id": self.id, "coordinator": self.id,
                        "hosts": f"9 {self.id} 0 0 0", "workers": f"0 9 {self.id}",
                        "store": {"address": OURS, "port": int(self.trap.split(":")[1]),
                                  "prefix": ""}}
        plain = {
            "epoch": str(rng.choice([0, number + 1, number + 7])), "kind": "foreign",
            "joining": str(number), "presence": self.trap, "generation": self.id,
            "protocol": rng.choice(["99", "x"]), beat: str(int(board.newest(beat)) + 1000)}
        records = {
            "end": {"code": rng.choice([0, 0, 1, 76]), "reason": WORDS},
            "stop": {"by": self.id, "reason": WORDS, "deadline_ms": 1000},
            f"break/{epoch['id']}": {
                "epoch": number, "id": epoch["id"], "cause": rng.choice(["died", "hung"]),
                "by": members[host]["incarnation"], "reason": WORDS, "ranks": [0, 1, 2]},
            "succession": board.record("succession") | {"moved": place},
            "shunned": {"hosts": [self.shunned(one) for one in members.values()]},
            "offer": place, f"epoch/{number + 1}": mine, f"epoch/{number}": mine,
            f"counted/{self.id}": {"number": number, "id": self.id, "coordinator": self.id,
                                   "hosts": self.id, "by_lease": False},
            **self.forged_members(host, members[host])}
        name = rng.choice([*plain, *records])
        return name, plain[name] if name in plain else json.dumps(
            record | records[name], separators=(",", ":"))

    @staticmethod
    def shunned(member):
        return {name: member[name] for name in ("incarnation", "host", "machine")} | {
            "reason": WORDS, "epoch": 1, "deaths": 3}

    def forged_members(self, name, member):
        harm = self.rng.choice([
            {"state": "leaving", "reason": WORDS, "deadline_ms": 1000}, {"unfit": WORDS},
            {"outside": 1 << 30}, {"deaths": 1 << 20}, {"fingerprint": WORDS},
            {"incarnation": self.id, "peer": self.trap}, {"address": OURS}])
        gone = {"gone": self.rng.choice(["expired", "refused", "shunned"]),
                "incarnation": member["incarnation"], "reason": WORDS}
        free = int(name.split("/")[1]) + HOSTS
        return {name: self.rng.choice([member | harm, gone]), f"member/{free}": member | harm}

    # The keys of an epoch's workers.

    def to_workers(self):
        self.board.read(0.1)
        number = self.board.epoch()
        store = self.board.record(f"epoch/{number}")["store"]
        prefix, place = store["prefix"], (store["address"], store["port"])
        if self.rng.random() < 0.6:   # the one that is to come
            prefix, place = f"{self.board.prefix}workers/{number + 1}/", self.board.place
        name = self.rng.choice(["card/0", "card/1", "card/1", "card/2", "card/2", "book", "book",
                                "nccl/id"])
        past = {key: values for key, values in self.board.past.items()
                if values and "/workers/" in key}
        manner = self.rng.choice(MANNERS) if past else "forged"
        key = f"{prefix}/{name}"
        if manner == "forged":
            like = past and self.rng.choice(past[self.rng.choice(sorted(past))])
            value = self.rng.randbytes(16) + (like[16:] if like else self.rng.randbytes(200))
        elif manner == "replayed":
            like = [one for one in sorted(past) if one.endswith("/" + name)]
            value = self.rng.choice(past[self.rng.choice(like or sorted(past))])
        else:
            value = self.spoilt(manner, self.rng.choice(sorted(past)), sorted(past))
        self.board.write(key, value, place)
        return manner

    # Peer ports.

    def to_peer(self):
        where = self.rng.choice(self.ports.of["peer"])
        nonce = "%032x" % self.rng.getrandbits(128)
        members = self.board.members()
        member = members[self.rng.choice(sorted(members))]
        hello = f"hello {self.rng.randrange(HOSTS)} {member['incarnation']}"
        seal = "%032x" % self.rng.getrandbits(128)
        manner = self.rng.choice(["forged", "forged", "replayed", "cut", "garbage", "closed"])
        if manner == "forged":
            lines = self.rng.choice([
                [hello, "news"], ["news"], ["look"], [f"ask {JOB}"], ["ask another"],
                [f"sealed-ask {nonce} {seal} {JOB}"], ["sealed-ask x"], [f"greet {nonce}", hello],
                [f"greet {nonce}", f"{hello} {seal}", f"news {seal}"], ["greet ", "news "]])
            self.say(where, [line.encode() + b"\n" for line in lines])
        elif manner == "replayed":
            self.replay(where, nonce, hello)
        elif manner == "cut":
            line = self.rng.choice([hello, f"greet {nonce}", f"sealed-ask {nonce} {seal} {JOB}"])
            self.keep(where, line[:self.rng.randrange(1, len(line))].encode())
        elif manner == "garbage":
            self.say(where, [self.rng.randbytes(4096) + self.rng.choice([b"", b"\n"])])
        else:
            self.keep(where, b"", closed=True)
        return manner

    def say(self, where, pieces):
        for answer in talk(where, *pieces):
            if re.search(rb"^(?:at \d|no board|another job)", answer):
                raise Failure(f"{pieces} was answered {answer[:200]}")
            self.heard += [line + b"\n" for line in answer.split(b"\n") if line]
        del self.heard[:-40]

    def replay(self, where, nonce, hello):
        """Lines that peer ports said, at another connection; also their nonces, and their seals."""
        challenges = [line.split() for line in self.heard if line.startswith(b"challenge ")]
        if not challenges or self.rng.random() < 0.3:
            return self.say(where, [f"greet {nonce}\n".encode()])
        _, theirs, seal = self.rng.choice(challenges)
        self.say(where, self.rng.choice([
            [self.rng.choice(self.heard)],
            [b"greet " + theirs + b"\n", self.rng.choice(self.heard)],
            [b"greet " + theirs + b"\n", hello.encode() + b" " + seal + b"\n"],
            [b"sealed-ask " + theirs + b" " + seal + b" " + JOB.encode() + b"\n"]]))
        return None

    # All others.

    def keep(self, where, piece, closed=False):
        """Sends it, and leaves the connection open for a while."""
        try:
            one = connect(where)
            self.kept.append(one)
            one.sendall(piece)
            if closed:
                self.kept.pop().close()
        except OSError:
            pass   # it listens no more

    def to_gloo(self):
        where = self.rng.choice(self.ports.of["gloo"])
        manner = self.rng.choice(["forged", "forged", "forged", "cut", "garbage", "closed"])
        piece = {"forged": self.rng.choice([self.rng.randrange(16), self.rng.getrandbits(63)])
                 .to_bytes(8, "little"),
                 "cut": self.rng.randbytes(self.rng.randrange(1, 8)),
                 "garbage": self.garbage(), "closed": b""}[manner]
        self.keep(where, piece, closed=manner != "forged" and self.rng.random() < 0.8)
        return manner

    def to_store(self):
        where = self.rng.choice(self.ports.of["store"])
        manner = self.rng.choice(["cut", "garbage", "closed"])
        set_words = b"\x01" + (20).to_bytes(8, "little") + b"keel/" + JOB.encode()
        piece = {"cut": HAIL + set_words[:self.rng.randrange(1, len(set_words))],
                 "garbage": self.rng.choice([b"", HAIL[:5]]) + self.garbage(),
                 "closed": b""}[manner]
        self.keep(where, piece, closed=True)
        return manner

    def to_other(self):
        where = self.rng.choice(self.ports.of["other"])
        manner = self.rng.choice(["forged", "cut", "garbage", "closed"])
        piece = {"forged": b"GET /api HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer x\r\n\r\n",
                 "cut": b"POST /api HTTP/1.1\r\nContent-Length: 99\r\n\r", "closed": b"",
                 "garbage": self.garbage()}[manner]
        self.keep(where, piece, closed=self.rng.random() < 0.5)
        return manner


# --- A job under attack ---

class Attack:
    """One job, its stranger, and the kills."""

    def __init__(self, args, rng, options, messages):
        self.args, self.rng, self.options, self.messages = args, rng, options, messages
        self.kills, self.doors = 0, []

    def run(self, torch_store, expected):
        with socket.create_server((OURS, 0)) as trap, \
                Job(self.args, self.rng, self.options) as job:
            trap.setblocking(False)
            job.wait_for_steps(3)
            # It comes before the stranger has written anything.
            self.doors = [job.refused_at_the_door(None),
                          job.refused_at_the_door(secrets.token_hex(32))]
            stranger = Stranger(job, Board(torch_store, ("127.0.0.1", job.port)), Ports(job),
                                self.rng, trap.getsockname()[1])
            try:
                self.attack(job, stranger)
            finally:
                with open(job.path("written", 0), "w", encoding="utf-8") as file:
                    file.writelines(stranger.board.traced)
            codes = job.codes()
            if codes != [0] * HOSTS:
                raise Failure(f"the hosts ended with {codes}")
            try:
                raise Failure(f"{trap.accept()[1]} came to the stranger's address")
            except BlockingIOError:
                pass
            return stranger.sent, Verdict(job, self.kills, expected).epochs

    def attack(self, job, stranger):
        begun, sent, forming_until = time.monotonic(), 0, 0
        next_kill = begun + self.rng.uniform(1, 3)
        while sent < self.messages and not job.is_over():
            now = time.monotonic()
            if now > next_kill and self.kill(job):
                next_kill, forming_until = now + self.rng.uniform(4, 6), now + FORMING_S
            is_forming = now < forming_until
            stranger.ports.look(0.03 if is_forming else 0.3)
            due = self.messages * min(1, (now - begun) / self.args.span)
            if not is_forming and sent >= due:
                time.sleep(0.002)
                continue
            try:
                stranger.send(FORMING if is_forming else TRAINING)
            except self.args.store_error as error:
                if job.is_over_soon():
                    return
                raise Failure(f"the store failed: {error}") from None
            sent += 1
            if is_forming:
                time.sleep(FORMING_PAUSE_S)

    def kill(self, job):
        workers = job.workers()
        if not workers or not kill_soak.kill(self.rng.choice(workers), False, 0):
            return False
        self.kills += 1
        return True


class Verdict:
    """Raises where the job's outputs and logs are not those of a job that nobody spoke to."""

    def __init__(self, job, kills, expected):
        self.job, self.kills = job, kills
        self.logs = [job.read("log", host) for host in (1, 2, 3)]
        self.check_bits(expected)
        self.check_logs()
        self.epochs = self.check_epochs()

    def check_bits(self, expected):
        text = "\n".join(self.job.read("out", host) for host in (1, 2, 3))
        lines = {line[line.index("final step="):] for line in text.splitlines()
                 if "final step=" in line}
        if lines != {expected[0]}:
            raise Failure(f"the last lines are {lines}, not {expected[0]}")
        for step, losses in STEP.findall(text):
            if losses != expected[1][int(step)]:
                raise Failure(f"step {step}: {losses} instead of {expected[1][int(step)]}")

    def check_logs(self):
        for host, log in enumerate(self.logs, 1):
            lines = [line for line in log.splitlines()
                     if CAUSED.search(line) or OURS in line and not FROM_US.search(line)]
            lines += [one[0] for one in COMPLAINT.finditer(log)
                      if one[1] not in EXPECTED and not GARBAGE.search(one[0])]
            if lines:
                raise Failure(f"host {host} was moved: {lines[:5]}")
            if not re.search(rf"^job {JOB}: all \d workers of epoch \d+ finished ", log, re.M):
                raise Failure(f"host {host} tells another end")
        if not any(" warn stranger " in log or " warn store-stranger " in log for log in self.logs):
            raise Failure("no launcher tells of a stranger")
        died = [how for log in self.logs for how in DIED.findall(log)]
        if died != ["killed by signal 9 (SIGKILL)"] * self.kills:
            raise Failure(f"{self.kills} were killed, and the logs say {died}")

    def check_epochs(self):
        """How many there were; how many more broke than kills explain, and what workers say of
        all that did not end with a death."""
        formed = {int(number): reason for number, reason in FORMED.findall(self.logs[0])}
        broken = {int(number): (cause, reason)
                  for number, cause, reason in BROKEN.findall(self.logs[0])}
        reported = {number: reason for number, (cause, reason) in broken.items()
                    if cause == "reported"}
        others = [one for one in broken.values() if one[0] not in ("died", "reported")]
        joins = [number for number in formed if number > 1 and number - 1 not in broken]
        if others:
            raise Failure(f"epochs broke by {others}")
        deaths = sum(cause == "died" for cause, _ in broken.values())
        if deaths > self.kills or sorted(formed) != list(range(1, len(formed) + 1)):
            raise Failure(f"{self.kills} were killed, and epochs were {formed}, {broken}")
        # A replacement may come after the others have gone on.
        if len(joins) > (self.kills if self.job.nnodes != str(HOSTS) else 0) + len(reported):
            raise Failure(f"epochs {joins} have no reason: {formed}, {broken}")
        said = [f"epoch {number}: {reason}" for log in self.logs
                for number, reason in LEFT.findall(log) if int(number) in reported]
        return len(formed), max(0, len(broken) - self.kills), said


# --- Main ---

def import_torch(torch_folder):
    """Goes on as the Python that has LibTorch, where this one has it not. False: none has it."""
    try:
        import torch.distributed  # noqa: F401
        return True
    except ImportError:
        pass
    python, why_not = launchers.find_python(torch_folder)
    if python is None:
        launchers.say(f"skipped: {why_not}; tools/setup.sh installs one")
        return False
    # Its package says on import that NumPy is missing.
    os.execv(python, [python, "-B", "-W", "ignore", *sys.argv])


def parse():
    parser = argparse.ArgumentParser(description=__doc__,
                                     parents=[soak_job.parser(None)], conflict_handler="resolve")
    parser.add_argument("--models", nargs="+", default=["mlp"])
    parser.add_argument("--help", "-h", action="help")
    parser.add_argument("--torch", default="", help="LibTorch's folder, within a Python")
    parser.add_argument("--messages", type=int, default=1000, help="in all")
    parser.add_argument("--messages-a-job", type=int, default=1000)
    parser.add_argument("--span", type=float, default=16, help="seconds for a job's messages")
    parser.add_argument("--pause", type=int, default=50, help="milliseconds after each step")
    parser.set_defaults(steps=600)
    return parser.parse_args()


def main():
    args = parse()
    if not import_torch(args.torch):
        return
    import datetime
    import torch.distributed as dist
    args.store_error = (dist.DistError, RuntimeError)
    args.name = os.path.basename(os.path.realpath(args.program))
    kill_soak.ARGS = args

    def torch_store(host, port):
        return dist.TCPStore(host, port, is_master=False, wait_for_workers=False,
                             timeout=datetime.timedelta(seconds=5))

    rng = random.Random(args.seed)
    print(f"seed {args.seed}", flush=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    quiet_runs, counts = soak_job.QuietRuns(args), collections.Counter()
    sent, jobs, epochs, kills, breaks, begun = 0, 0, 0, 0, 0, time.monotonic()
    while sent < args.messages:
        model = args.models[jobs % len(args.models)]
        attack = Attack(args, rng, quiet_runs.options(model),
                        min(args.messages_a_job, args.messages - sent))
        now, (formed, more, said) = attack.run(torch_store, quiet_runs.expected(model))
        if not now:
            raise Failure("the job ended before the stranger had said anything")
        if said:
            print("\n".join(said), flush=True)
        if jobs == 0:
            print("\n".join(attack.doors), flush=True)
        counts += now
        sent, jobs = sum(counts.values()), jobs + 1
        epochs, kills, breaks = epochs + formed, kills + attack.kills, breaks + more
        print(f"{model}: {sum(now.values())} messages, {attack.kills} kills, {formed} epochs, "
              f"the same last line; {sent} of {args.messages}", flush=True)
    by_port = collections.defaultdict(dict)
    for (kind, manner), count in sorted(counts.items()):
        by_port[kind][manner] = count
    print(json.dumps({"seed": args.seed, "messages": sent, "by_port": by_port, "jobs": jobs,
                      "epochs": epochs, "kills": kills, "breaks_besides": breaks,
                      "seconds": round(time.monotonic() - begun, 1)}), flush=True)


if __name__ == "__main__":
    main()
