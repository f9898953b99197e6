"""A real Slurm of several nodes on this one machine: each is a network namespace with a name, a
/proc and a slurmd of its own. Slurm is Debian's: the installed one, or else its packages are
unpacked into the build, where only these nodes see them.

Promises   nothing outside the build and the namespaces is touched, and nobody outlives the test.
           A node that is killed loses all its processes at once.
Does not   have GPUs: a node's are files that Slurm counts and numbers.
"""
import os
import pathlib
import re
import shutil
import stat
import subprocess
import sys
import unittest

import checks

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../net"))
import hosts  # noqa: E402
import marked  # noqa: E402

PACKAGES = ("slurmctld", "slurmd", "slurm-client", "munge")
DAEMONS = ("slurmctld", "slurmd", "slurmstepd")
INSTALL = f"apt-get install --no-install-recommends {' '.join(PACKAGES)}"

NULL_DEVICE = os.makedev(1, 3)   # what stands for a GPU: Slurm wants device files

CONFIG = """ClusterName=keel
SlurmctldHost=control({control})
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SlurmdTimeout=10
SlurmdParameters=config_overrides
MailProg=/bin/true
KillWait=60
SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
GresTypes=gpu
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
PartitionName=spare Nodes=ALL Default=YES MaxTime=INFINITE State=UP PriorityTier=1 GraceTime=60
PartitionName=urgent Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=2
"""

OVERLAY = 'mount -t overlay overlay -o lowerdir="$3/usr:/usr" /usr'

# "$@" is no exec, so that the shell, the first process of the node, takes over lost children.
NODE = f"""set -e
hostname "$1"
mount --bind "$2" /etc/hosts
if [ "$3" ]; then {OVERLAY}; fi
shift 3
"$@" &
wait "$!"
"""


def why_not():
    """What keeps this machine from making such nodes; None: nothing that one could see before."""
    if os.geteuid() != 0:
        return "Slurm's daemons want to be root"
    return hosts.why_not()


def unpacked(build):
    """A folder with Debian's packages of Slurm and of what they need, or '' where it is installed.
    Skips where it can be neither."""
    if all(shutil.which(name) for name in (*DAEMONS, "sbatch", "munged")):
        return ""
    root = build / "slurm"
    if not (root / ".complete").exists():
        shutil.rmtree(root, ignore_errors=True)
        (root / "packages").mkdir(parents=True)
        unpack(root)
        (root / ".complete").touch()
    try:
        checks.run("unshare", "--mount", "sh", "-c", f"{OVERLAY} && slurmd -V", "sh", "", "", root)
    except AssertionError as error:
        raise unittest.SkipTest(f"Slurm is not installed ({INSTALL}), and does not run from where "
                                f"it was unpacked: {error}") from None
    return root


def unpack(root):
    cure = f"Slurm is not installed ({INSTALL}), and could not be unpacked either: "
    try:
        listed = checks.run("apt-get", "install", "--simulate", "--no-install-recommends",
                            *PACKAGES)
        names = re.findall(r"(?m)^Inst (\S+)", listed)
        checks.run("apt-get", "download", *names, cwd=root / "packages")
    except (AssertionError, FileNotFoundError) as error:
        raise unittest.SkipTest(cure + str(error)) from None
    for package in (root / "packages").glob("*.deb"):
        checks.run("dpkg-deb", "--extract", package, root)
    for name in DAEMONS:   # links that the packages make as they are installed
        if not (root / "usr/sbin" / name).exists():
            (root / "usr/sbin" / name).symlink_to(f"{name}-wlm")


class Cluster:
    """A controller and nodes; `gpus`: how many each node has, by its name, in this order."""

    def __init__(self, build, gpus):
        self.root = unpacked(build)
        self.bin = build / "bin"
        self.gpus = gpus
        self.names = ["control", *gpus]
        self.lan = hosts.Lan(len(self.names))
        self.folder = pathlib.Path(self.lan.folder)
        self.daemons = {}   # by the node's name

    def __enter__(self):
        self.lan.__enter__()
        try:
            self.write_config()
            self.daemons["munged"] = self.launch(
                "control", "munged", "--foreground", "--force",
                f"--socket={self.folder}/munge.socket", f"--key-file={self.folder}/munge.key",
                f"--pid-file={self.folder}/munged.pid", f"--seed-file={self.folder}/munged.seed",
                f"--log-file={self.folder}/munged.log")
            checks.await_true((self.folder / "munge.socket").exists, "munged", self.logs)
            self.daemons["control"] = self.launch("control", "slurmctld", "-D")
            for name in self.gpus:
                self.start_node(name)
            for name in self.gpus:
                self.await_there(name)
        except BaseException:
            self.stop()
            self.lan.remove()
            raise
        return self

    def __exit__(self, kind=None, *_):
        self.stop()
        self.lan.__exit__(kind)

    def stop(self):
        for launcher in reversed(list(self.daemons.values())):
            launcher.kill()

    def write_config(self):
        self.folder.chmod(0o755)
        (self.folder / "state").mkdir()
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o600)
        addresses = {name: self.lan.address(n) for n, name in enumerate(self.names)}
        (self.folder / "hosts").write_text("127.0.0.1 localhost\n" + "".join(
            f"{address} {name}\n" for name, address in addresses.items()))
        nodes, devices = "", ""
        for name, count in self.gpus.items():
            nodes += f"NodeName={name} NodeAddr={addresses[name]} CPUs=4 Gres=gpu:{count}\n"
            for number in range(count):
                os.mknod(self.folder / f"gpu-{name}-{number}", stat.S_IFCHR | 0o600, NULL_DEVICE)
            if count:
                devices += (f"NodeName={name} Name=gpu "
                            f"File={self.folder}/gpu-{name}-[0-{count - 1}]\n")
        config = CONFIG.format(folder=self.folder, control=addresses["control"])
        (self.folder / "slurm.conf").write_text(config.replace("Partition", nodes + "Partition", 1))
        (self.folder / "gres.conf").write_text(devices)
        # These nodes see no cgroups; the plugin is loaded all the same, and must not look for them.
        (self.folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")

    def environment(self):
        clean = {name: value for name, value in self.lan.environment().items()
                 if not name.startswith("SLURM")}
        return {**clean, "SLURM_CONF": f"{self.folder}/slurm.conf",
                "PATH": f"{self.bin}:{os.environ['PATH']}"}

    def inside(self, name, *command):
        """What runs a command on that node, beside what runs there already."""
        number = self.names.index(name)
        return ["ip", "netns", "exec", self.lan.hosts[number], "unshare", "--uts", "--mount",
                "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", NODE, "sh", name,
                f"{self.folder}/hosts", str(self.root), *map(str, command)]

    def launch(self, name, *command):
        launcher = hosts.Launcher(f"{name}: {command[0]}", self.inside(name, *command),
                                  self.environment(), self.folder)
        self.lan.launchers.append(launcher)
        return launcher

    def start_node(self, name):
        """Anew, if it was killed."""
        if name in self.daemons:
            self.run("scontrol", "update", f"nodename={name}", "state=resume", may_fail=True)
        (self.folder / f"spool-{name}").mkdir(exist_ok=True)
        # -b: the node has booted just now, as Slurm would see of a machine.
        self.daemons[name] = self.launch(name, "slurmd", "-D", "-b")

    def await_there(self, name):
        """It answers. Slurm may call it busy for minutes after its last job has ended."""
        checks.await_true(lambda: re.fullmatch(
            "idle|mixed|allocated|planned", self.run(
                "sinfo", "--noheader", "--partition=spare", f"--nodes={name}", "--format=%T",
                may_fail=True).strip()), f"{name} to be there", self.logs)

    def kill(self, name):
        """As if its power were cut."""
        number = self.names.index(name)
        self.lan.cut(number)
        self.daemons[name].kill()
        self.lan.join(number)

    def kill_launcher(self, name):
        host = self.lan.hosts[self.names.index(name)]
        pids = subprocess.run(["ip", "netns", "pids", host], capture_output=True, text=True,
                              check=True).stdout.split()
        launcher, = [pid for pid in map(int, pids)
                     if marked.command_line(pid).startswith("keelrun ")]
        marked.kill(launcher)

    def lose(self, name):
        """Slurm takes a node for dead at once, for which it would need half a minute."""
        self.run("scontrol", "update", f"nodename={name}", "state=down", "reason=killed")

    def free(self):
        """No job is left, and each node is there."""
        self.run("scancel", "--user=root", may_fail=True)
        for name in self.gpus:
            if self.daemons[name].process.poll() is not None:
                self.start_node(name)
        for name in self.gpus:
            self.await_there(name)
        checks.await_true(lambda: not self.run("squeue", "--noheader").strip(), "the end of all",
                          self.logs)

    def which(self, program):
        """Where it is, as the nodes see it."""
        return self.run("sh", "-c", f"command -v {program}").strip()

    def run(self, *command, may_fail=False):
        """What a command says that is typed where the controller is."""
        done = subprocess.run(self.inside("control", *command), env=self.environment(),
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, cwd=self.folder,
                              timeout=checks.HANG_LIMIT_S, check=False)
        if done.returncode != 0 and not may_fail:
            raise AssertionError(f"{command}: {done.stdout}\n{self.logs()}")
        return done.stdout

    def logs(self):
        """Of all but munged, which tells of each message."""
        return "\n".join(launcher.text() for launcher in self.lan.launchers
                         if launcher is not self.daemons["munged"])
