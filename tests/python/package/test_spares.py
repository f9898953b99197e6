#!/usr/bin/env python3
"""Spares: a process that has imported PyTorch becomes a worker, as if it had been started as one.

Whom() plays keelrun before evenkeel_spare.py, with a PyTorch that is two empty modules; Replaced
has the real ones.
"""
import os
import re
import signal
import socket
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "dropin")]
import launchers
import makers
import scripts

MODULES = os.path.join(HERE, "..", "..", "..", "python")
TOLD = """
import os, sys
print("argv", sys.argv, sys.orig_argv[1:], __name__, globals().get("__file__"))
print("path", sys.path[0])
print("environment", sorted(name for name in os.environ if name.startswith("SPARE_")))
print("mine", os.environ.get("MINE"), os.read(3, 100))
print("modules", __import__("__main__").__dict__ is globals())
"""


class Whom(scripts.Case):
    """What it becomes is compared with what a fresh Python of the same words does."""

    @classmethod
    def setUpClass(cls):
        makers.play_keelrun()

    def setUp(self):
        super().setUp()
        os.makedirs(f"{self.folder}/stubs/torch")
        for name in ("__init__", "_dynamo"):
            self.file(f"stubs/torch/{name}.py", "")

    def file(self, name, text):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def environment(self, **more):
        return {"PATH": os.environ["PATH"], "PYTHONPATH": f"{self.folder}/stubs:{MODULES}",
                "PYTHONDONTWRITEBYTECODE": "1", **more}

    def link(self):
        """What a worker's control link is: it holds one line."""
        ours, theirs = socket.socketpair()
        ours.sendall(b"hello")
        self.addCleanup(ours.close)
        self.addCleanup(theirs.close)
        return theirs

    def fresh(self, words):
        with makers.at_the_gates_number(self.link()):
            return subprocess.run([sys.executable, "-u", *words], env=self.environment(MINE="a=b"),
                                  capture_output=True, text=True, pass_fds=[makers.GATE],
                                  cwd=self.folder)

    def maker(self, *before):
        """What keelrun starts."""
        maker = makers.Maker([*before, sys.executable, "-u", "-m", "evenkeel_spare"],
                             scripts.HANG_LIMIT_S, env=self.environment(SPARE_ONLY="1"),
                             cwd=self.folder)
        self.addCleanup(maker.gate.close)
        return maker

    def become(self, words):
        """What a spare that the maker makes becomes; the maker goes first."""
        maker = self.maker()
        self.assertEqual(maker.said(), b"m")
        pid, spare = maker.make()
        self.addCleanup(spare.close)
        maker.process.kill()
        maker.process.wait()
        return self.become_at(spare, words, lambda: os.waitstatus_to_exitcode(
            os.waitpid(pid, 0)[1]))

    def become_at(self, gate, words, wait):
        outputs = [os.pipe(), os.pipe()]
        with open(os.devnull, "rb") as nothing:
            makers.become(gate, [sys.executable, "-u", *words], self.environment(MINE="a=b"),
                          {0: nothing.fileno(), 1: outputs[0][1], 2: outputs[1][1],
                           3: self.link().fileno()})
        for _, write in outputs:
            os.close(write)
        texts = []
        for read, _ in outputs:
            with open(read, encoding="utf-8") as file:
                texts.append(file.read())
        out, err = texts
        return subprocess.CompletedProcess(words, wait(), out, err)

    def same(self, *words):
        fresh, became = self.fresh(words), self.become(words)
        for expected, actual in ((fresh.stdout, became.stdout), (fresh.stderr, became.stderr)):
            self.assertEqual(actual, expected)
        self.assertEqual(became.returncode, fresh.returncode, became)
        return became

    def test_a_script_a_module_code_and_a_folder(self):
        script = self.file("scripts/told.py", TOLD)
        became = self.same(script, "--width", "a b", "\N{SNOWMAN}")
        self.assertIn("mine a=b b'hello'", became.stdout)
        self.assertIn("environment []", became.stdout)
        self.assertIn("modules True", became.stdout)
        self.same("scripts/told.py")
        self.same("-c", TOLD, "x")
        self.file("told_module.py", TOLD)
        self.same("-m", "told_module", "y")
        self.file("folder/__main__.py", TOLD)
        self.same("folder", "z")

    def test_the_folder_that_it_was_started_in_has_nothing_for_it(self):
        for name in ("torch", "socket", "types"):
            self.file(f"{name}.py", "raise RuntimeError('not this one')")
        self.same(self.file("scripts/told.py", TOLD))

    def test_how_it_ends(self):
        for text in ("raise ValueError('out of ink')", "import sys; sys.exit(7)",
                     "import sys; sys.exit('told')", "def f(:\n", "import os; os._exit(9)",
                     "import os; os.kill(os.getpid(), 9)",
                     "import atexit; x = [1]; atexit.register(lambda: print('at exit', x))"):
            with self.subTest(text=text):
                self.same(self.file("script.py", text))
        self.file("raises.py", "def f():\n    raise ValueError('out of ink')\nf()\n")
        self.same("-m", "raises")
        self.same("-m", "there_is_no_such_module")

    def test_its_processes_and_threads_find_its_main(self):
        self.file("has_more.py", """
import multiprocessing, pickle, threading, time

class Here:
    pass

def tell():
    print("told", __name__, pickle.loads(pickle.dumps(Here())).__class__, flush=True)

def later():
    threading.main_thread().join()
    tell()

if __name__ == "__main__":
    for way in ("spawn", "forkserver", "fork"):
        process = multiprocessing.get_context(way).Process(target=tell)
        process.start()
        process.join()
    threading.Thread(target=later).start()
""")
        for words in (["has_more.py"], ["-m", "has_more"]):
            became = self.same(*words)
            self.assertEqual(became.stdout.count("told"), 4, became)

    def test_it_ends_with_keelrun(self):
        maker = self.maker()
        self.assertEqual(maker.said(), b"m")
        made = [maker.make() for _ in range(3)]
        maker.gate.close()
        self.assertEqual(maker.process.wait(scripts.HANG_LIMIT_S), 0)
        for pid, its in made:
            its.close()
            self.assertEqual(os.waitpid(pid, 0), (pid, 0))

    def becomes_it_itself(self, *before):
        maker = self.maker(*before)
        self.assertEqual(maker.said(), b"r")
        became = self.become_at(maker.gate, [self.file("told.py", TOLD)], maker.process.wait)
        self.assertEqual(became.returncode, 0, became)
        self.assertIn("mine a=b b'hello'", became.stdout)

    def test_with_threads_it_makes_none(self):
        self.file("stubs/torch/__init__.py", """
import threading
threading.Thread(target=threading.Event().wait, daemon=True).start()
""")
        self.becomes_it_itself()

    def test_below_a_program_that_stays_it_makes_none(self):
        self.becomes_it_itself("sh", "-c", '"$@"; exit $?', "sh")


class Replaced(scripts.Watched):
    SCRIPT = """
        import os, time
        os.write(1, f"up {os.getpid()} of {os.environ['LOCAL_RANK']}\\n".encode())
        job.prepare(model, optimizer, data)
        trains = False
        for x, y in job:
            if not trains:
                trains = True   # so it has the state
                os.write(1, f"trains {os.getpid()}\\n".encode())
            if not os.path.exists(os.path.dirname(__file__) + "/go"):
                time.sleep(0.1)
            job.backward(F.cross_entropy(model(x), y))
        os.write(1, f"{job.result}\\n".encode())
        """

    def begin(self, workers, *options, beginning=scripts.SMALL):
        script = self.written(self.SCRIPT, beginning.replace("steps=4", "steps=800"))[-1]
        self.launch(workers, script, "--max-restarts=100", *options)

    def last(self, name, pattern, times=1):
        return self.found(pattern, times, name)[-1]

    def end(self):
        """At full speed."""
        self.tell("go")
        self.ends(0)
        lines = set(scripts.FINAL.findall(self.read("out")))
        self.assertEqual(len(lines), 1, self.read("out"))
        return lines.pop()

    def maker(self):
        """keelrun has started it, and it is no worker and has made the spares."""
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children",
                  encoding="ascii") as file:
            children = [int(word) for word in file.read().split()]
        spares = re.findall(r"spare-ready pid=(\d+)", self.read("err"))
        workers = re.findall(r"up (\d+) of", self.read("out"))
        makers = []
        for pid in children:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if b"evenkeel_spare" in file.read() and str(pid) not in spares + workers:
                    makers.append(pid)
        self.assertEqual(len(makers), 1, makers)
        return makers[0]

    def test_a_spare_takes_the_place_of_each_worker_that_dies(self):
        self.begin(2)
        for death in range(1, 4):
            spare = self.last("err", r"spare-ready pid=(\d+)", death)
            rank = death % 2
            victim = self.last("out", rf"up (\d+) of {rank}\n")
            os.kill(int(victim), signal.SIGKILL)
            self.last("out", rf"up {spare} of {rank}\n")
            self.last("out", rf"trains {spare}\n")
        self.assertEqual(len(re.findall("spare-taken", self.read("err"))), 3, self.all_told())
        self.assertEqual(len(re.findall("state-agreed.* 1 receive the state", self.read("err"))), 3,
                         self.all_told())
        replaced = self.end()
        self.assertNotIn("leftover-killed", self.read("err"))
        self.begin(1, "--spares=0")
        self.assertEqual(self.end(), replaced)
        self.assertNotIn("spare", self.read("err"))

    def test_two_that_die_at_once_find_a_spare_each_of_one_maker(self):
        self.begin(2, "--spares=2")
        spares = self.found(r"spare-ready pid=(\d+)", 2, "err")
        self.maker()
        for pid in self.found(r"up (\d+) of", 2):
            os.kill(int(pid), signal.SIGKILL)
        for spare in spares:
            self.last("out", rf"up {spare} of ")
        self.process.send_signal(signal.SIGTERM)
        self.ends(77)   # without a place to save

    def test_one_that_is_killed_is_replaced_as_well(self):
        self.begin(1)
        spare = self.last("err", r"spare-ready pid=(\d+)")
        os.kill(int(spare), signal.SIGKILL)
        again = self.last("err", r"spare-ready pid=(\d+)", 2)
        # Its maker dies as well: who is there stays, and another maker makes the next one.
        os.kill(self.maker(), signal.SIGKILL)
        self.last("err", "spare-maker-lost")
        os.kill(int(self.last("out", r"up (\d+) of 0\n")), signal.SIGKILL)
        self.last("out", rf"up {again} of 0\n")
        self.last("err", r"spare-ready pid=(\d+)", 3)
        self.process.send_signal(signal.SIGTERM)
        self.ends(77)   # without a place to save

    def test_where_the_package_is_not_found_there_is_none(self):
        beginning = f"import sys\nsys.path.insert(0, {scripts.ARGS.package!r})\n" + scripts.SMALL
        package, scripts.ARGS.package = scripts.ARGS.package, self.folder
        try:
            self.begin(1, beginning=beginning)
            self.last("err", "no-spares .*is the package evenkeel where .* looks for modules")
        finally:
            scripts.ARGS.package = package


if __name__ == "__main__":
    scripts.main(__doc__, launchers.find_python)
