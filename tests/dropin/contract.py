"""The table: what a program that was written for torchrun may count on, one Case a line of it.

`ours` is given where keelrun's exit code differs on purpose: it tells apart what torchrun calls 1.
"""
import os
from dataclasses import dataclass, field

ANY = r".+"


@dataclass
class Case:
    name: str
    options: object                  # of the launcher; a list of lists: several launchers
    program: str = "say"             # the words after the script
    outside: dict = field(default_factory=dict)   # the launcher's environment
    exit: int = 0                    # torchrun's
    ours: int = None                 # keelrun's, where it differs
    ranks: int = None                # how many ranks ran; None: 1; 0: no worker was started
    starts: int = 1                  # of rank 0
    env: dict = field(default_factory=dict)       # of each worker; {r}: its rank. A pattern
    unset: tuple = ()
    line: str = None                 # the worker's command line, a pattern
    out: tuple = ()                  # patterns in the launcher's stdout
    err: tuple = ()                  # ... in its stderr
    not_out: tuple = ()
    files: dict = field(default_factory=dict)     # below the log folder: path -> pattern
    no_files: tuple = ()
    script: list = None              # in place of the probe
    signal: str = None               # to the launcher, once all ranks have started
    signals_seen: tuple = ()         # "<rank> <signal>" as workers noted them
    ours_only: str = ""              # why this line is not true of torchrun itself
    ours_env: dict = field(default_factory=dict)  # where keelrun tells workers something else


TWO = ["--standalone", "--nproc-per-node=2"]
CASES = [
    # --- Command line ---
    Case("four workers on one host", ["--nnodes=1", "--nproc-per-node=4", "--master-port={port}"],
         ranks=4),
    Case("underscores for dashes", ["--standalone", "--nproc_per_node=2", "--max_restarts=1"],
         ranks=2, env={"TORCHELASTIC_MAX_RESTARTS": "1"}),
    Case("abbreviations, as argparse takes them", ["--standalone", "--nproc-per=2", "--max-res=3"],
         ranks=2, env={"TORCHELASTIC_MAX_RESTARTS": "3"}),
    Case("a script runs as python -u", ["--standalone"], program="say",
         line=r"\S*python3?[\d.]* -u \S+probe\.py say"),
    Case("PYTHON_EXEC is the interpreter", ["--standalone"], outside={"PYTHON_EXEC": "{fake}"},
         out=(r"fake -u \S+probe\.py say",), ranks=0),
    Case("a module", ["--standalone", "-m"], script=["probe"],
         outside={"PYTHONPATH": "{here}"}, line=r"\S*python\S* -u -m probe say"),
    Case("no Python", ["--standalone", "--no-python"], script=["/bin/sh", "-c"],
         program="echo\\ rank=$RANK", out=(r"rank=0",), ranks=0),
    Case("--run-path runs it as __main__", ["--standalone", "--run-path"], out=(r"out-0",),
         ours_only="torchrun puts a process of its own between itself and the worker"),
    Case("as many workers as processors", ["--standalone", "--nproc-per-node=cpu"],
         ranks=os.cpu_count(), env={"WORLD_SIZE": str(os.cpu_count())}),
    Case("no GPU, none asked for", ["--standalone", "--nproc-per-node=auto"],
         outside={"CUDA_VISIBLE_DEVICES": ""}, ranks=os.cpu_count()),
    Case("options from PET_ variables", [], outside={
        "PET_NNODES": "1", "PET_NPROC_PER_NODE": "3", "PET_STANDALONE": "1"}, ranks=3),
    Case("the command line beats PET_", ["--standalone", "--nproc-per-node=1"],
         outside={"PET_NPROC_PER_NODE": "3"}, ranks=1),
    Case("no Python and a module contradict each other", ["--no-python", "--module"], exit=1,
         ranks=0),
    Case("a module that is none, from PET_ variables", ["--standalone"],
         outside={"PET_NO_PYTHON": "1", "PET_MODULE": "1"}, exit=1, ranks=0),
    Case("a flag that is off in its PET_ variable", ["--standalone"],
         outside={"PET_NO_PYTHON": "0", "PET_MODULE": "0"}),
    Case("what stands behind the script is the script's", TWO, ranks=2, program="--nnodes=7",
         line=r".* \S+probe\.py --nnodes=7"),
    Case("the local rank in the script's arguments", TWO, ranks=2, program="'${local_rank}-x'",
         line=r".* \S+probe\.py 0-x"),
    Case("two dashes before the script", ["--standalone", "--"]),
    Case("the options are told", ["--help"], ranks=0, out=(r"--nproc-per-node", r"--rdzv-backend")),
    Case("an unknown option", ["--nosuch"], exit=2, ranks=0, err=(r"usage",)),
    Case("no script", ["--standalone"], script=[], program="", exit=2, ranks=0, err=(r"usage",)),
    Case("a number that is none", ["--standalone", "--max-restarts=some"], exit=2, ranks=0,
         err=(r"max.restarts", r"some")),
    Case("a restart less than none", ["--standalone", "--max-restarts=-1"], exit=1, ranks=0),
    Case("MIN above MAX", ["--nnodes=4:2"], exit=1, ranks=0),
    Case("no host", ["--nnodes=0"], exit=1, ranks=0),
    Case("no such kind of count", ["--nproc-per-node=some"], exit=1, ranks=0),
    Case("as many workers as GPUs, of which there are none",
         ["--standalone", "--nproc-per-node=gpu"], outside={"CUDA_VISIBLE_DEVICES": ""}, exit=1,
         ranks=0),
    Case("--start-method is taken", ["--standalone", "--start-method=fork"]),
    Case("--start-method knows three words", ["--standalone", "--start-method=clone"], exit=2,
         ranks=0, err=(r"clone",)),
    Case("--monitor-interval is taken", ["--standalone", "--monitor-interval=0.05"]),
    Case("--monitor-interval is a number", ["--standalone", "--monitor-interval=often"], exit=2,
         ranks=0, err=(r"often",)),
    Case("--event-log-handler is taken", ["--standalone", "--event-log-handler=console"]),
    Case("--logs-specs of a name that nobody has", ["--standalone", "--logs-specs=mine"], exit=1,
         ranks=0, err=(r"mine",)),
    Case("--numa-binding is taken, and said to do nothing", ["--standalone", "--numa-binding=node"],
         err=(r"--numa-binding has no effect",),
         ours_only="torchrun binds to the processors near a GPU, and fails without one"),
    Case("--numa-binding knows four words", ["--standalone", "--numa-binding=moon"], exit=2,
         ranks=0, err=(r"moon",)),
    Case("an unknown backend is named", ["--rdzv-backend=nosuch"], exit=1, ranks=0,
         err=(r"nosuch",)),
    Case("a list of ranks that is none", ["--local-ranks-filter=a,b"], exit=1, ranks=0),
    Case("--rdzv-conf with a piece that is no pair", ["--rdzv-backend=c10d", "--rdzv-conf=a=1,"],
         exit=1, ranks=0),
    Case("--rdzv-conf with a key that nobody knows", ["--rdzv-backend=c10d",
         "--rdzv-endpoint=127.0.0.1:{port}", "--rdzv-conf=bogus=1"]),
    Case("... which is said to do nothing", ["--rdzv-backend=c10d",
         "--rdzv-endpoint=127.0.0.1:{port}", "--rdzv-conf=join_timeot=1"],
         err=(r"unknown key 'join_timeot' has no effect; did you mean 'join_timeout'",),
         ours_only="torchrun says nothing of it"),
    Case("a program that is not there", ["--standalone", "--no-python"], script=["./nosuch"],
         exit=1, ranks=0, err=(r"nosuch",)),

    # --- Environment ---
    Case("ranks and sizes", ["--standalone", "--nproc-per-node=4"], ranks=4, env={
        "RANK": "{r}", "LOCAL_RANK": "{r}", "ROLE_RANK": "{r}", "GROUP_RANK": "0",
        "WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "4", "ROLE_WORLD_SIZE": "4",
        "GROUP_WORLD_SIZE": "1"}),
    Case("where to meet", TWO, ranks=2, env={"MASTER_ADDR": ANY, "MASTER_PORT": r"\d+",
                                             "TORCHELASTIC_USE_AGENT_STORE": "True"}),
    Case("each worker sees its own GPU as the first", [*TWO, "--virtual-local-rank"], ranks=2,
         outside={"CUDA_VISIBLE_DEVICES": "4, 6"},
         env={"RANK": "{r}", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "2",
              "CUDA_VISIBLE_DEVICES": "(4|6)"}),
    Case("... by its number where none are named", [*TWO, "--virtual-local-rank"], ranks=2,
         env={"LOCAL_RANK": "0", "CUDA_VISIBLE_DEVICES": "{r}"}),
    Case("... and fails where too few are named", [*TWO, "--virtual-local-rank"],
         outside={"CUDA_VISIBLE_DEVICES": "4"}, exit=1, ranks=0, err=(r"CUDA_VISIBLE_DEVICES",)),
    Case("what torchelastic adds", [*TWO, "--max-restarts=1", "--role=trainer"], ranks=2, env={
        "TORCHELASTIC_RESTART_COUNT": "0", "TORCHELASTIC_MAX_RESTARTS": "1",
        "TORCHELASTIC_RUN_ID": ANY, "TORCHELASTIC_ERROR_FILE": r".*/attempt_0/{r}/error\.json",
        "TORCHELASTIC_SIGNALS_TO_HANDLE": "SIGTERM,SIGINT,SIGHUP,SIGQUIT",
        "TORCH_NCCL_ASYNC_ERROR_HANDLING": "1", "ROLE_NAME": "trainer"}),
    Case("the job's name", ["--rdzv-id=jobX", "--master-port={port}"],
         env={"TORCHELASTIC_RUN_ID": "jobX"}),
    Case("one thread each, of several", TWO, ranks=2, env={"OMP_NUM_THREADS": "1"}),
    Case("threads are left alone, of one", ["--standalone"], unset=("OMP_NUM_THREADS",)),
    Case("the user's threads stay", TWO, outside={"OMP_NUM_THREADS": "3"}, ranks=2,
         env={"OMP_NUM_THREADS": "3"}),
    Case("the user's NCCL choice stays", ["--standalone"],
         outside={"TORCH_NCCL_ASYNC_ERROR_HANDLING": "0"},
         env={"TORCH_NCCL_ASYNC_ERROR_HANDLING": "0"}),
    Case("the user's variables come through", ["--standalone"], outside={"MY_OWN": "a b=c"},
         env={"MY_OWN": "a b=c"}),
    Case("a given address", ["--master-addr=127.0.0.1", "--master-port={port}"],
         env={"MASTER_ADDR": r"127\.0\.0\.1"}),
    Case("a given address by name", ["--master-addr=localhost", "--master-port={port}"],
         env={"MASTER_ADDR": "localhost"},
         # Looked up once, by the launcher: workers that start again need no name service.
         ours_env={"MASTER_ADDR": r"127\.0\.0\.1|::1"}),
    Case("a given port", ["--master-addr=127.0.0.1", "--master-port={port}"],
         env={"MASTER_PORT": "{port}"},
         # A new one for each attempt: nothing of a dead attempt can be read.
         ours_env={"MASTER_PORT": r"\d+"}),
    Case("a given endpoint of fixed hosts", ["--rdzv-endpoint=127.0.0.1:{port}"],
         env={"MASTER_ADDR": r"127\.0\.0\.1", "MASTER_PORT": "{port}"},
         ours_env={"MASTER_PORT": r"\d+"}),
    Case("a local address", ["--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:{port}",
                             "--local-addr=127.0.0.1"], env={"MASTER_ADDR": r"127\.0\.0\.1"}),

    # --- Failures, restarts, exit codes ---
    Case("a failure is reported", TWO, program="fail 1 3 9", exit=1, ranks=2, err=(
        r"probe\.py FAILED", r"Root Cause \(first observed failure\)",
        r"rank\s*: 1 \(local_rank: 1\)",
        r"exitcode\s*: 3 \(pid: \d+\)", r"error_file\s*:")),
    Case("a death by SIGKILL is named", TWO, program="signal 1 9", exit=1, ranks=2,
         err=(r"exitcode\s*: -9 ", r"SIGKILL")),
    Case("a death by SIGSEGV is named", TWO, program="signal 0 11", exit=1, ranks=2,
         err=(r"exitcode\s*: -11 ", r"SIGSEGV")),
    Case("138 is no signal", TWO, program="fail 0 138 9", exit=1, ranks=2,
         err=(r"exitcode\s*: 138 ",)),
    Case("restarted until it works", [*TWO, "--max-restarts=2"], program="fail 1 3 2", ranks=2,
         starts=3, env={"TORCHELASTIC_RESTART_COUNT": "2", "WORLD_SIZE": "2"}),
    Case("restarts used up", [*TWO, "--max-restarts=1"], program="fail 1 3 9", exit=1, ranks=2,
         starts=2),
    Case("no restart by default", TWO, program="fail 1 3 9", exit=1, ranks=2, starts=1),
    Case("an error file is told", TWO, program="error 1", exit=1, ranks=2, err=(r"Boom: x",),
         ours_only="torchrun shows the traceback in the file, not the message"),
    Case("an error file is passed on", TWO, program="error 1", exit=1, ranks=2,
         outside={"TORCHELASTIC_ERROR_FILE": "{folder}/passed.json"},
         files={"../passed.json": r'(?s)"message": ?"Boom: x".*"errorCode": ?1'}),
    Case("no error file, none passed on", TWO, program="fail 1 3 9", exit=1, ranks=2,
         outside={"TORCHELASTIC_ERROR_FILE": "{folder}/passed.json"}, no_files=("../passed.json",)),

    Case("children of workers end with the job", TWO, program="fork", ranks=2),

    # --- Signals to the launcher ---
    Case("SIGTERM reaches each worker once", TWO, program="trap", exit=1, ours=75, ranks=2,
         signal="SIGTERM", signals_seen=("0 SIGTERM", "1 SIGTERM")),
    Case("Ctrl-C reaches the workers as it is", TWO, program="trap", exit=1, ours=75, ranks=2,
         signal="SIGINT", signals_seen=("0 SIGINT", "1 SIGINT")),
    Case("so does SIGQUIT", TWO, program="trap", exit=1, ours=75, ranks=2,
         signal="SIGQUIT", signals_seen=("0 SIGQUIT", "1 SIGQUIT")),
    Case("so does a terminal's end", TWO, program="trap", exit=1, ours=75, ranks=2,
         signal="SIGHUP", signals_seen=("0 SIGHUP", "1 SIGHUP")),
    Case("who ignores SIGTERM is killed in time", [*TWO, "--shutdown-timeout=2"], program="deaf",
         exit=1, ours=77, ranks=2, signal="SIGTERM",
         ours_only="torchrun has no --shutdown-timeout"),
    Case("other signals on request", [*TWO, "--signals-to-handle=SIGTERM,SIGUSR1"],
         program="trap", exit=1, ours=75, ranks=2, signal="SIGUSR1",
         signals_seen=("0 SIGUSR1", "1 SIGUSR1"),
         env={"TORCHELASTIC_SIGNALS_TO_HANDLE": "SIGTERM,SIGUSR1"}),
    Case("a signal that was not asked for stops the job, too", TWO, program="trap", exit=75,
         ranks=2, signal="SIGUSR1", signals_seen=("0 SIGTERM", "1 SIGTERM"),
         ours_only="SIGUSR1 ends torchrun alone, and leaves its workers behind"),

    # --- Logs ---
    Case("output goes to the console as it is", TWO, ranks=2, out=(r"(?m)^out-0$", r"(?m)^out-1$"),
         err=(r"(?m)^err-0$", r"(?m)^err-1$")),
    Case("all to files", [*TWO, "--log-dir={folder}/logs", "-r3"], ranks=2,
         not_out=(r"out-\d", r"err-\d"), files={
             "*/attempt_0/0/stdout.log": "out-0", "*/attempt_0/1/stderr.log": "err-1"}),
    Case("some to files", [*TWO, "--log-dir={folder}/logs", "-r", "0:1,1:2"], ranks=2,
         out=(r"out-1",), err=(r"err-0",), not_out=(r"out-0",), files={
             "*/attempt_0/0/stdout.log": "out-0", "*/attempt_0/1/stderr.log": "err-1"},
         no_files=("*/attempt_0/0/stderr.log", "*/attempt_0/1/stdout.log")),
    Case("teed, with the role and rank in front",
         [*TWO, "--log-dir={folder}/logs", "--role", "trainer", "-t", "1"], ranks=2,
         out=(r"(?m)^\[trainer0\]:out-0$", r"(?m)^\[trainer1\]:out-1$"),
         files={"*/attempt_0/1/stdout.log": "out-1"}),
    Case("only some ranks on the console",
         [*TWO, "--log-dir={folder}/logs", "--local-ranks-filter=0", "-t3"], ranks=2,
         out=(r"out-0",), not_out=(r"out-1",), files={"*/attempt_0/1/stdout.log": "out-1"}),
    Case("lines that a filter takes", [*TWO, "--log-dir={folder}/logs", "-t3",
                                       "--duplicate-stdout-filters=out-1"], ranks=2,
         files={"*/attempt_0/filtered_stdout.log": r"\A\[default1\]:out-1\n\Z"}),
    Case("lines of stderr that a filter takes", [*TWO, "--log-dir={folder}/logs", "-t3",
                                                 "--duplicate-stderr-filters=err-0"], ranks=2,
         files={"*/attempt_0/filtered_stderr.log": r"\A\[default0\]:err-0\n\Z"},
         no_files=("*/attempt_0/filtered_stdout.log",)),
    Case("a doubled comma in a filter", [*TWO, "--log-dir={folder}/logs", "-t3",
                                         "--duplicate-stdout-filters=out,,x,out-0"], ranks=2,
         files={"*/attempt_0/filtered_stdout.log": r"\A\[default0\]:out-0\n\Z"}),
    Case("words of one's own before each line", [*TWO, "--log-dir={folder}/logs", "-t1"], ranks=2,
         outside={"TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE": "<${role_name} ${local_rank} ${rank}>"},
         out=(r"(?m)^<default 0 0>out-0$", r"(?m)^<default 1 1>out-1$")),
    Case("a folder for each attempt", [*TWO, "--log-dir={folder}/logs", "-r3", "--max-restarts=1"],
         program="fail 1 3 1", ranks=2, starts=2, files={
             "*/attempt_0/0/stdout.log": r"\A\Z", "*/attempt_1/0/stdout.log": r"\A\Z"}),
    Case("the log folder is named after the job",
         ["--rdzv-id=jobX", "--master-port={port}", "--log-dir={folder}/logs", "-r3"],
         files={"jobX_*/attempt_0/0/stdout.log": "out-0"}),
    Case("a log folder that is a file", [*TWO, "--log-dir=/etc/hostname", "-r3"], exit=1, ranks=0),

    # --- Several launchers of one job ---
    Case("two jobs at once on one host", [["--standalone"]] * 2, starts=2),
    Case("two hosts with given numbers", [
        ["--nnodes=2", "--node-rank={n}", "--nproc-per-node=2", "--master-addr=127.0.0.1",
         "--master-port={port}"]] * 2, ranks=4, env={
             "WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "2", "GROUP_WORLD_SIZE": "2",
             "GROUP_RANK": "{g}", "LOCAL_RANK": "{l}", "MASTER_ADDR": r"127\.0\.0\.1"}),
    Case("two hosts that find each other", [
        ["--nnodes=2", "--nproc-per-node=2", "--rdzv-backend=c10d", "--rdzv-id=pair",
         "--rdzv-endpoint=127.0.0.1:{port}"]] * 2, ranks=4, env={
             "WORLD_SIZE": "4", "GROUP_RANK": "{g}", "LOCAL_RANK": "{l}",
             "TORCHELASTIC_RUN_ID": "pair"}),
    Case("ranks of a role have no gaps", [
        ["--nnodes=2", "--node-rank={n}", "--nproc-per-node=2", "--master-addr=127.0.0.1",
         "--master-port={port}", "--role=side{n}"]] * 2, ranks=4, env={
             "ROLE_NAME": "side{g}", "ROLE_RANK": "{l}", "ROLE_WORLD_SIZE": "2", "RANK": "{r}",
             "WORLD_SIZE": "4"}),
    Case("... and run through all hosts of it", [
        ["--nnodes=2", "--node-rank={n}", "--nproc-per-node=2", "--master-addr=127.0.0.1",
         "--master-port={port}", "--role=one"]] * 2, ranks=4, env={
             "ROLE_NAME": "one", "ROLE_RANK": "{r}", "ROLE_WORLD_SIZE": "4"}),
    Case("one of at most two begins after the last call", [
        "--nnodes=1:2", "--nproc-per-node=2", "--rdzv-backend=c10d", "--rdzv-id=one",
        "--rdzv-endpoint=127.0.0.1:{port}", "--rdzv-conf=last_call_timeout=1"], ranks=2,
         env={"WORLD_SIZE": "2", "GROUP_WORLD_SIZE": "1"}),
]
# Those that every run shows to be true of torchrun, one of each kind: a line takes it four seconds,
# and six of processor time. The night's run shows it of all.
SAMPLE = (
    "four workers on one host",
    "ranks and sizes",
    "a failure is reported",
    "restarted until it works",
    "SIGTERM reaches each worker once",
    "two hosts that find each other",
)
