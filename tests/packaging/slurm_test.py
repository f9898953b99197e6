"""The batch scripts of packaging/slurm, with stand-ins for Slurm's commands. slurm_real_test.py has
them under a real one.
"""
import os
import pathlib
import re
import shutil
import signal
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
    # and ends with the largest of their exit codes. As Slurm does, it makes SIGKILL of SIGTERM, and
    # passes SIGUSR1 on to all of their processes, or with $WORLD/cgroups to the first of each.
    "srun": """
gpus=($NODE_GPUS) pids=() worst=0
set -m  # each has a group of its own
group=-
[[ ! -e $WORLD/cgroups ]] || group=
trap 'kill -KILL "${pids[@]/#/-}"' TERM
trap 'kill -USR1 "${pids[@]/#/$group}"' USR1
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
    SLURMD_NODENAME=node$((7 + ${#pids[@]})) SLURM_GPUS_ON_NODE=${gpus[${#pids[@]}]} \\
      "${command[@]}" & pids+=($!)
  done
done
for pid in "${pids[@]}"; do
  # A wait that a signal cuts short may lose the code.
  while kill -0 "$pid"; do sleep 0.02; done 2>/dev/null
  code=0
  wait "$pid" || code=$?
  ((code <= worst)) || worst=$code
done
exit "$worst" """,
    "keelrun": """
# In one write, as others write there at the same time.
printf -v words ' <%s>' "$@"
echo "keelrun$words" >>"$WORLD/calls"
if [[ -e $WORLD/wait ]]; then
  # It hears a signal once or twice. A trap that exits would not do: where bash hears the second in
  # the middle of that, it ends with 255.
  told=
  trap 'told=yes' TERM USR1
  sleep 1000 & pause=$!
  echo >"$WORLD/ready"
  while [[ ! $told ]]; do wait "$pause"; done
  trap '' TERM USR1
  kill "$pause" 2>/dev/null
  echo "keelrun was told" >>"$WORLD/calls"
  exit 75
fi
exit "$(<"$WORLD/code")" """,
    "scontrol": """
echo "scontrol $*" >>"$WORLD/calls"
case $* in
  "show hostnames "*) printf '%s\\n' ${3//,/ } ;;
  *"show job"*) cat "$WORLD/details" ;;
esac""",
    "scancel": """
echo "scancel $*" >>"$WORLD/calls" """,
    "squeue": """
if [[ -e $WORLD/slow ]]; then echo >"$WORLD/ready"; while [[ -e $WORLD/slow ]]; do :; done; fi
case $* in
  *%T*) cat "$WORLD/state" ;;
  *%e*) cat "$WORLD/end" ;;
  *--states=RUNNING*%N*) cat "$WORLD/nodes" ;;
esac""",
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
        self.write("nodes", "node7,node8,node9")
        self.write("end", "2026-03-01T12:00:00")
        self.write("details", "JobId=4711 JobName=one   Requeue=1")

    def write(self, name, text):
        (self.world / name).write_text(text + "\n")

    def calls(self):
        return (self.world / "calls").read_text()

    def start(self, script, *words, **variables):
        environment = {"PATH": f"{self.world}/bin:{os.environ['PATH']}", "WORLD": str(self.world),
                       "SLURM_JOB_ID": "4711", "SLURM_JOB_NUM_NODES": "1",
                       "SLURM_JOB_NODELIST": "node7", "SLURMD_NODENAME": "node7",
                       "TZ": "UTC", **variables}
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

    def test_a_job_without_its_first_node_is_queued_again_by_another(self):
        for nodes, queued in (("node8,node9", 2), ("node8\nnode9", 2), ("node9,node7", 0),
                              ("", 0)):
            with self.subTest(nodes):
                self.write("calls", "")
                self.write("nodes", nodes)
                code, said = self.end("train.sbatch", "./train", **self.THREE)
                self.assertEqual(code, 0, said)
                self.assertEqual(self.calls().count("scontrol requeue 4711\n"), queued)
                self.assertEqual(said.count("node7 has failed"), queued)

    def test_a_job_without_its_first_node_ends_where_it_is_not_to_be_queued_again(self):
        self.write("nodes", "node8,node9")
        for ended, restarts, queued in ((75, "0", True), (128, "99", True), (75, "100", False),
                                        (1, "0", False), (77, "0", False), (78, "0", False)):
            with self.subTest(code=ended, restarts=restarts):
                self.write("calls", "")
                self.write("code", str(ended))
                self.end("train.sbatch", "./train", SLURM_RESTART_COUNT=restarts, **self.THREE)
                # Of both that are left; the script, which lives here, has its own say.
                said = "scontrol requeue 4711\n" if queued else "scancel 4711\n"
                self.assertGreaterEqual(self.calls().count(said), 2)
                self.assertEqual("scancel" in self.calls(), not queued)

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
        self.write("nodes", "node7,node8,node9")
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
        for code, states, queued in (
                (75, "RUNNING\nRUNNING", True), (0, "RUNNING\nRUNNING", False),
                # Slurm has queued one component again, as its node failed.
                (75, "PENDING\nRUNNING", True), (75, "COMPLETING\nRUNNING", True),
                (0, "RUNNING\nPENDING", True), (1, "RUNNING\nPENDING", True),
                (75, "PENDING", False), (75, "COMPLETING\nCOMPLETING", False),
                (75, "CANCELLED", False)):
            with self.subTest(code=code, states=states):
                self.write("calls", "")
                self.write("code", str(code))
                self.write("state", states)
                ended, said = self.end("train.sbatch", "./train", **self.UNLIKE)
                self.assertEqual(ended, code, said)
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

    def test_where_slurm_has_cgroups_launchers_are_told_by_the_shells_around_them(self):
        self.write("cgroups", "")
        self.test_a_signal_to_the_script_reaches_the_launchers()

    def test_a_signal_to_the_script_reaches_the_launchers(self):
        self.write("wait", "")
        with self.start("train.sbatch", "./train") as batch:
            checks.await_true((self.world / "ready").exists, "the launcher")
            batch.send_signal(signal.SIGTERM)
            said = heard(batch)
        self.assertEqual(batch.returncode, 75, said)
        self.assertIn("keelrun was told", self.calls())
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


if __name__ == "__main__":
    checks.main()
