"""The batch scripts of packaging/slurm: with stand-ins for Slurm's commands, and under a real Slurm
of this machine alone.

Promises   the real one (munged, slurmctld, slurmd, on free ports, in a folder of its own) ends with
           the test, and its jobs with it. Where it is not installed, that part is skipped.
Does not   have several nodes: Slurm starts one daemon a machine. What the scripts do with more is
           seen with the stand-ins.
"""
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

import checks

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../harness"))
from free_port import free_port  # noqa: E402

GIVEN = checks.arguments()
SCRIPTS = GIVEN.source / "packaging/slurm"
BIN = GIVEN.build / "bin"

STAND_INS = {
    # Runs each component's command once for each of its tasks, on nodes that have $NODE_GPUS GPUs,
    # and ends with the largest of their exit codes.
    "srun": """
gpus=($NODE_GPUS) pids=() worst=0 told=
trap 'told=yes; kill -TERM "${pids[@]}"' TERM
while (($#)); do
  tasks=0 command=()
  while [[ $1 == --* ]]; do
    echo "srun $1" >>"$WORLD/calls"
    [[ $1 != --ntasks=* ]] || tasks=${1#*=}
    shift
  done
  while (($#)) && [[ $1 != : ]]; do command+=("$1"); shift; done
  shift || :
  for ((; tasks > 0; --tasks)); do
    echo "ends at $SLURM_JOB_END_TIME" >>"$WORLD/calls"
    SLURM_GPUS_ON_NODE=${gpus[${#pids[@]}]} "${command[@]}" & pids+=($!)
  done
done
for pid in "${pids[@]}"; do
  code=0
  wait "$pid" || code=$?
  if [[ $told ]]; then code=0; wait "$pid" || code=$?; fi
  ((code <= worst)) || worst=$code
done
exit "$worst" """,
    "keelrun": """
# In one write, as others write there at the same time.
printf -v words ' <%s>' "$@"
echo "keelrun$words" >>"$WORLD/calls"
if [[ -e $WORLD/wait ]]; then
  sleep 1000 & pause=$!
  trap 'echo "keelrun got TERM" >>"$WORLD/calls"; kill "$pause"; exit 75' TERM
  echo >"$WORLD/ready"
  wait "$pause"
fi
exit "$(<"$WORLD/code")" """,
    "scontrol": """
echo "scontrol $*" >>"$WORLD/calls"
case $* in
  "show hostnames "*) printf '%s\\n' ${3//,/ } ;;
  *"show job"*) cat "$WORLD/details" ;;
esac""",
    "squeue": """
if [[ -e $WORLD/slow ]]; then echo >"$WORLD/ready"; while [[ -e $WORLD/slow ]]; do :; done; fi
case $* in *%T*) cat "$WORLD/state" ;; *) cat "$WORLD/end" ;; esac""",
}


def heard(batch):
    """All it said. Where it hangs, it ends with all that it started, and the test with that."""
    try:
        return batch.communicate(timeout=checks.HANG_LIMIT_S)[0]
    except subprocess.TimeoutExpired:
        os.killpg(batch.pid, signal.SIGKILL)
        raise AssertionError(f"hangs after saying:\n{batch.communicate()[0]}") from None


class StandInsTest(unittest.TestCase):
    TASK = {"SLURM_ARRAY_JOB_ID": "4700", "SLURM_ARRAY_TASK_ID": "3"}

    def setUp(self):
        self.world = pathlib.Path(tempfile.mkdtemp(prefix="keel-slurm-"))
        self.addCleanup(shutil.rmtree, self.world)
        (self.world / "bin").mkdir()
        for name, body in STAND_INS.items():
            path = self.world / "bin" / name
            path.write_text(f"#!/usr/bin/env bash\n{body}\n")
            path.chmod(0o755)
        self.write("code", "0")
        self.write("state", "RUNNING")
        self.write("end", "2026-03-01T12:00:00")
        self.write("details", "JobId=4711 JobName=one   Requeue=1")

    def write(self, name, text):
        (self.world / name).write_text(text + "\n")

    def calls(self):
        return (self.world / "calls").read_text()

    def start(self, script, *words, **variables):
        environment = {"PATH": f"{self.world}/bin:{os.environ['PATH']}", "WORLD": str(self.world),
                       "SLURM_JOB_ID": "4711", "SLURM_JOB_NUM_NODES": "1",
                       "SLURM_JOB_NODELIST": "node7", "TZ": "UTC", **variables}
        return subprocess.Popen(["bash", SCRIPTS / script, *words], env=environment,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, start_new_session=True)

    def end(self, script, *words, **variables):
        with self.start(script, *words, **variables) as batch:
            said = heard(batch)
        return batch.returncode, said

    def test_one_node_needs_no_meeting(self):
        for script in ("train.sbatch", "array.sbatch"):
            self.write("calls", "")
            code, said = self.end(script, "./train", "--steps", "6", NODE_GPUS="4", **self.TASK)
            self.assertEqual(code, 0, said)
            self.assertIn("keelrun <--nproc-per-node=4> <--standalone> ", self.calls())
            self.assertIn("<./train> <--steps> <6>\n", self.calls())
            self.assertIn("ends at 1772366400\n", self.calls())
            self.assertNotIn("requeue", self.calls())
            self.assertNotIn("--gpus", self.calls())

    def test_without_an_answer_no_end_is_told(self):
        self.write("end", "")
        code, said = self.end("train.sbatch", "./train")
        self.assertEqual(code, 0, said)
        self.assertIn("ends at \n", self.calls())

    def launchers(self):
        """The words of each, in no order."""
        return [re.findall("<(.*?)>", line) for line in self.calls().splitlines()
                if line.startswith("keelrun")]

    def workers(self):
        return sorted(words[0] for words in self.launchers())

    THREE = {"SLURM_JOB_NUM_NODES": "3", "SLURM_JOB_NODELIST": "node7,node8,node9"}

    def test_several_nodes_meet_at_the_first(self):
        code, said = self.end("train.sbatch", "./train", NODES_LEAST="2", **self.THREE)
        self.assertEqual(code, 0, said)
        self.assertEqual(len(self.launchers()), 3)
        words = self.launchers()[0]
        for word in ("--nnodes=2:3", "--rdzv-id=slurm-4711", "--nproc-per-node=1",
                     "--rdzv-endpoint=node7:24711,node8,node9"):
            self.assertIn(word, words)
        # What it is given is understood by the real launcher.
        checks.run(BIN / "keelrun", "--print-config", *words)

    def test_each_node_has_as_many_workers_as_it_has_gpus(self):
        # The script's own variable is that of its node, and says nothing of the others.
        code, said = self.end("train.sbatch", "./train", SLURM_GPUS_ON_NODE="8", NODE_GPUS="8 4",
                              **self.THREE)
        self.assertEqual(code, 0, said)
        self.assertEqual(self.workers(), [f"--nproc-per-node={n}" for n in (1, 4, 8)])
        self.write("calls", "")
        code, said = self.end("train.sbatch", "./train", NODE_GPUS="8 4 4", WORKERS_PER_NODE="cpu",
                              **self.THREE)
        self.assertEqual(code, 0, said)
        self.assertEqual(self.workers(), 3 * ["--nproc-per-node=cpu"])

    def test_gpus_that_came_with_whole_nodes_are_asked_for(self):
        for script in ("train.sbatch", "array.sbatch"):
            for details, asked in (
                    ("JOB_GRES=gpu:14   Nodes=a CPU_IDs=0 Mem=0 GRES=gpu:8(IDX:0-7)", "14"),
                    ("JOB_GRES=gpu:a100:8,nic:2,gpu:h100:4   Nodes=a", "12"),
                    ("JOB_GRES=gpu:14   Nodes=a   TresPerJob=gres:gpu:14", None),
                    ("JOB_GRES=gpu:14   Nodes=a   TresPerNode=gres/gpu:h100:7", None),
                    ("JOB_GRES=nic:2   Nodes=a   TresPerNode=gres:nic:1", None),
                    ("JOB_GRES=(null)", None), ("", None)):
                with self.subTest(script, details=details):
                    self.write("calls", "")
                    self.write("details", f"JobId=4711 Requeue=1   {details}")
                    code, said = self.end(script, "./train", **self.TASK)
                    self.assertEqual(code, 0, said)
                    self.assertEqual(re.findall(r"srun --gpus=(\d+)", self.calls()),
                                     [asked] if asked else [])

    UNLIKE = {"SLURM_HET_SIZE": "2", "SLURM_JOB_NODELIST": "big",
              "SLURM_JOB_NODELIST_HET_GROUP_0": "big", "SLURM_JOB_NUM_NODES_HET_GROUP_0": "1",
              "SLURM_CPUS_PER_TASK_HET_GROUP_0": "32",
              "SLURM_JOB_NODELIST_HET_GROUP_1": "node7,node8",
              "SLURM_JOB_NUM_NODES_HET_GROUP_1": "2", "NODE_GPUS": "8 4 4"}

    def test_a_heterogeneous_job_runs_on_the_nodes_of_all_components(self):
        self.write("end", "2026-03-01T14:00:00\nNONE\n2026-03-01T12:00:00")
        self.write("details", "JobId=4711 TresPerNode=gres:gpu:8\nJobId=4712 JOB_GRES=gpu:8")
        # Newer Slurms tell when the first component ends.
        code, said = self.end("train.sbatch", "./train", SLURM_JOB_END_TIME="1772373600",
                              **self.UNLIKE)
        self.assertEqual(code, 0, said)
        self.assertEqual(self.workers(), [f"--nproc-per-node={n}" for n in (4, 4, 8)])
        for words in self.launchers():
            self.assertIn("--nnodes=1:3", words)
            self.assertIn("--rdzv-endpoint=big:24711,node7,node8", words)
            self.assertEqual(words[-1], "./train")
        self.assertEqual(self.calls().count("ends at 1772366400\n"), 3)
        options = re.findall("(?m)^srun (.*)$", self.calls())
        second = options.index("--het-group=1")
        for first, other in (("--het-group=0", "--het-group=1"), ("--ntasks=1", "--ntasks=2"),
                             ("--cpus-per-task=32", "--cpus-per-task=1")):
            self.assertIn(first, options[:second])
            self.assertIn(other, options[second:])
        for option in ("--ntasks-per-node=1", "--no-kill", "--wait=0", "--kill-on-bad-exit=0"):
            self.assertEqual(options.count(option), 2)
        self.assertEqual([option for option in options if "gpus" in option], ["--gpus=8"])

    def test_a_heterogeneous_job_is_queued_again_as_a_whole(self):
        self.write("code", "75")
        for states, queued in (("RUNNING\nRUNNING", True),
                               # Slurm has queued one component again, as its node failed.
                               ("PENDING\nRUNNING", True), ("COMPLETING\nRUNNING", True),
                               ("COMPLETING\nCOMPLETING", False), ("CANCELLED", False)):
            with self.subTest(states):
                self.write("calls", "")
                self.write("state", states)
                code, said = self.end("train.sbatch", "./train", **self.UNLIKE)
                self.assertEqual(code, 75, said)
                self.assertEqual(self.calls().count("scontrol requeue 4711\n"), int(queued))

    def test_it_is_queued_again_where_that_makes_sense(self):
        for code, state, restarts, queued in (
                (75, "RUNNING", "0", True), (76, "RUNNING", "99", True),
                (79, "RUNNING", "0", True), (128, "RUNNING", "0", True),
                (137, "RUNNING", "0", True), (143, "COMPLETING", "0", False),
                (233, "RUNNING", "99", True), (233, "RUNNING", "100", False),
                (75, "COMPLETING", "0", False), (75, "RUNNING", "100", False),
                (77, "RUNNING", "0", False), (78, "RUNNING", "0", False),
                (1, "RUNNING", "0", False), (0, "RUNNING", "0", False)):
            self.write("code", str(code))
            self.write("state", state)
            for script in ("train.sbatch", "array.sbatch"):
                self.write("calls", "")
                ended, said = self.end(script, "./train", SLURM_RESTART_COUNT=restarts,
                                       **({} if script == "train.sbatch" else self.TASK))
                job = "4711" if script == "train.sbatch" else "4700_3"
                with self.subTest(script, code=code, state=state, restarts=restarts):
                    self.assertEqual(ended, code, said)
                    self.assertEqual(f"scontrol requeue {job}\n" in self.calls(), queued)
                    self.assertEqual("requeue" in self.calls(), queued)

    def test_real_launchers_of_several_nodes_meet(self):
        if not (BIN / "minimal_train").exists():
            self.skipTest("this build has no training program")
        (self.world / "bin/keelrun").unlink()
        code, said = self.end("train.sbatch", BIN / "minimal_train", "--steps", "40",
                              SLURM_JOB_NUM_NODES="2", SLURM_JOB_NODELIST="localhost,localhost",
                              SLURM_JOB_ID=str(free_port() % 10000), NODES_LEAST="2",
                              PATH=f"{self.world}/bin:{BIN}:{os.environ['PATH']}")
        self.assertEqual(code, 0, said)
        self.assertIn("epoch=1 workers=2 hosts=2", said)
        alone = checks.run(BIN / "minimal_train", "--steps", "40", stderr=subprocess.DEVNULL)
        self.assertIn(alone.strip().splitlines()[-1], said)

    def test_a_signal_to_the_script_reaches_the_launchers(self):
        self.write("wait", "")
        with self.start("train.sbatch", "./train") as batch:
            checks.await_true((self.world / "ready").exists, "the launcher")
            batch.send_signal(signal.SIGTERM)
            said = heard(batch)
        self.assertEqual(batch.returncode, 75, said)
        self.assertIn("keelrun got TERM", self.calls())
        self.assertIn("scontrol requeue 4711", self.calls())

    def test_a_signal_before_the_launchers_starts_none(self):
        for script in ("train.sbatch", "array.sbatch"):
            self.write("slow", "")
            self.write("calls", "")
            with self.start(script, "./train", **self.TASK) as batch:
                checks.await_true((self.world / "ready").exists, "the script to ask")
                batch.send_signal(signal.SIGUSR1)
                (self.world / "slow").unlink()
                said = heard(batch)
            self.assertEqual(batch.returncode, 75, said)
            self.assertEqual(self.launchers(), [])
            self.assertIn("scontrol requeue", self.calls())
            (self.world / "ready").unlink()

    def test_tasks_of_an_array_have_arguments_of_their_own(self):
        code, said = self.end("array.sbatch", "./train", "--seed={}", "runs/{}-{}", **self.TASK)
        self.assertEqual(code, 0, said)
        self.assertIn("<./train> <--seed=3> <runs/3-3>\n", self.calls())

    def test_misuse_is_said(self):
        self.assertEqual(self.end("train.sbatch")[0], 2)
        self.assertEqual(self.end("array.sbatch", "./train")[0], 2)

    def test_what_both_scripts_do_is_the_same(self):
        tails = {(SCRIPTS / name).read_text().split("# --- the same")[1]
                 for name in ("train.sbatch", "array.sbatch")}
        self.assertEqual(len(tails), 1)


CONFIG = """ClusterName=keel
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
MailProg=/bin/true
KillWait=60
SchedulerParameters=batch_sched_delay=0,sched_interval=1
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
NodeName={host} NodeAddr=127.0.0.1 CPUs=4 State=UNKNOWN
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
PartitionName=spare Nodes=ALL Default=YES MaxTime=INFINITE State=UP PriorityTier=1 GraceTime=60
PartitionName=urgent Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=2
"""


class RealSlurmTest(unittest.TestCase):
    """One node, which has a job's worth of real keelrun and real training."""

    @classmethod
    def setUpClass(cls):
        if os.geteuid() != 0:
            raise unittest.SkipTest("Slurm's daemons want to be root")
        for program in ("slurmctld", "slurmd", "munged", "sbatch"):
            if not shutil.which(program):
                raise unittest.SkipTest(f"this machine has no {program} (Debian: slurm-wlm)")
        if not (BIN / "minimal_train").exists():
            raise unittest.SkipTest("this build has no training program")
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="keel-slurm-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.folder.chmod(0o755)
        cls.daemons = []
        cls.addClassCleanup(cls.stop)
        cls.write_config()
        cls.launch("munged", "--foreground", "--force", f"--socket={cls.folder}/munge.socket",
                   f"--key-file={cls.folder}/munge.key", f"--pid-file={cls.folder}/munged.pid",
                   f"--seed-file={cls.folder}/munged.seed", f"--log-file={cls.folder}/munged.log")
        checks.await_true((cls.folder / "munge.socket").exists, "munged")
        cls.launch("slurmctld", "-D", "-f", cls.folder / "slurm.conf")
        cls.launch("slurmd", "-D", "-f", cls.folder / "slurm.conf", "-N", cls.host)
        checks.await_true(lambda: "idle" in cls.slurm("sinfo", "--noheader", "--format=%T",
                                                      may_fail=True), "an idle node", cls.logs)

    @classmethod
    def write_config(cls):
        cls.host = socket.gethostname().split(".")[0]
        (cls.folder / "state").mkdir()
        (cls.folder / "spool").mkdir()
        key = cls.folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o600)
        (cls.folder / "slurm.conf").write_text(
            CONFIG.format(host=cls.host, folder=cls.folder, ports=[free_port(), free_port()]))
        cls.environment = {
            **{name: value for name, value in os.environ.items()
               if not name.startswith(("SLURM", "PET_", "KEELRUN_", "TORCH"))},
            "SLURM_CONF": str(cls.folder / "slurm.conf"),
            "PATH": f"{BIN}:{os.environ['PATH']}", "WORKERS_PER_NODE": "2"}

    @classmethod
    def launch(cls, *command):
        with open(cls.folder / f"{command[0]}.out", "wb") as out:
            cls.daemons.append(subprocess.Popen([str(word) for word in command], stdout=out,
                                                stderr=out, stdin=subprocess.DEVNULL,
                                                env=cls.environment))

    @classmethod
    def stop(cls):
        cls.slurm("scancel", "--user=root", may_fail=True)
        if len(cls.daemons) == 3:
            checks.await_true(lambda: not cls.slurm("squeue", "--noheader", may_fail=True).strip(),
                              "the end of all jobs")
        for daemon in reversed(cls.daemons):
            daemon.terminate()
            daemon.wait(checks.HANG_LIMIT_S)

    @classmethod
    def logs(cls):
        return "\n".join(f"{path.name}: {path.read_text(errors='replace')[-3000:]}"
                         for path in cls.folder.glob("*.out"))

    @classmethod
    def slurm(cls, *command, may_fail=False):
        done = subprocess.run([str(word) for word in command], env=cls.environment,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=checks.HANG_LIMIT_S, check=False)
        if done.returncode != 0 and not may_fail:
            raise AssertionError(f"{command}: {done.stdout}\n{cls.logs()}")
        return done.stdout

    def submit(self, script, *words, options=()):
        said = self.slurm("sbatch", "--parsable", "--cpus-per-task=2", "--time=8",
                          f"--chdir={self.folder}", *options, SCRIPTS / script, *words)
        return said.strip().split(";")[0]

    def log(self, name):
        path = self.folder / name
        return path.read_text(errors="replace") if path.exists() else ""

    def await_text(self, name, text, times=1):
        checks.await_true(lambda: self.log(name).count(text) >= times,
                          f"{times} x {text!r} in {name}:\n{self.log(name)[-3000:]}\n{self.logs()}")

    def undisturbed(self, steps):
        out = checks.run(BIN / "minimal_train", "--steps", steps, env=self.environment,
                            stderr=subprocess.DEVNULL)
        return out.strip().splitlines()[-1]

    def train(self, steps, root):
        return ("minimal_train", "--steps", str(steps), "--checkpoint-dir", str(self.folder / root),
                "--save-every", "500")

    def finish(self, log, last, saved):
        """It ends, after it has gone on from a checkpoint, with the bits of an undisturbed one."""
        self.await_text(log, "final step=")
        text = self.log(log)
        self.assertIn("resumed step=", text)
        self.assertIn(last, text)
        checks.run(BIN / "keel", "verify", self.folder / saved)

    def test_a_signal_saves_queues_again_and_goes_on(self):
        job = self.submit("train.sbatch", *self.train(1500, "one"))
        log = f"evenkeel-{job}.log"
        self.await_text(log, " info step ")
        self.slurm("scancel", "--signal=USR1", job)
        self.await_text(log, "stopped with 75, queued again (restart 1)")
        # Not the half minute of --shutdown-timeout: the job had 8 minutes.
        self.assertRegex(self.log(log), r'warn signal signal=SIGUSR1 to_save="[67] min')
        self.finish(log, self.undisturbed(1500), "one")

    def test_a_requeue_by_an_administrator_saves_first(self):
        job = self.submit("train.sbatch", *self.train(1500, "two"))
        log = f"evenkeel-{job}.log"
        self.await_text(log, " info step ")
        self.slurm("scontrol", "requeue", job)
        self.finish(log, self.undisturbed(1500), "two")

    def test_preemption_by_another_partition_saves_and_goes_on(self):
        job = self.submit("train.sbatch", *self.train(1500, "four"))
        log = f"evenkeel-{job}.log"
        self.await_text(log, " info step ")
        self.slurm("sbatch", "--partition=urgent", "--exclusive", "--output=/dev/null", "--wrap",
                   "true")
        self.finish(log, self.undisturbed(1500), "four")

    def test_scancel_saves_and_ends_it_for_good(self):
        job = self.submit("train.sbatch", *self.train(1_000_000, "three"))
        log = f"evenkeel-{job}.log"
        self.await_text(log, " info step ")
        self.slurm("scancel", job)
        checks.await_true(lambda: not self.slurm("squeue", "--noheader", may_fail=True).strip(),
                          "its end")
        self.assertNotIn("queued again", self.log(log))
        checks.run(BIN / "keel", "verify", self.folder / "three")

    def test_each_task_of_an_array_is_a_job_of_its_own(self):
        job = self.submit("array.sbatch", *self.train(1500, "sweep-{}"), "--seed={}",
                          options=("--array=1-2",))
        logs = {task: f"evenkeel-{job}_{task}.log" for task in (1, 2)}
        for log in logs.values():
            self.await_text(log, " info step ")
        self.slurm("scancel", "--signal=TERM", f"{job}_2")
        self.await_text(logs[2], "queued again")
        for log in logs.values():
            self.await_text(log, "final step=1500")
        self.assertNotIn("resumed", self.log(logs[1]))
        self.assertIn("resumed", self.log(logs[2]))
        self.assertNotEqual(*(re.search("final .*", self.log(log))[0] for log in logs.values()))


if __name__ == "__main__":
    checks.main()
