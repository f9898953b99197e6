"""Shows on one GPU whether the trainer works there, stage by stage.

Each stage has a time limit, prints its figures, and the next one runs whatever became of it. At the
end there is a table, and all of it in results.json. Two workers share the GPU: NCCL is told that
they are on two hosts, so the times of exchanges are those of the loopback, and not of NVLink.
"""
import argparse
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# NCCL refuses two ranks on one GPU, unless it takes them for ranks on two hosts.
AS_HOSTS = ["sh", "-c", 'NCCL_HOSTID=host$LOCAL_RANK exec "$@"', "sh"]
SHARED = {"NCCL_SOCKET_IFNAME": "lo", "NCCL_MAX_CTAS": "1", "NCCL_MULTI_RANK_GPU_ENABLE": "1"}


class Failed(Exception):
    pass


def kill(process):
    os.killpg(process.pid, signal.SIGKILL)


class Bench:
    """What the stages share: how programs are started, and by when they must have ended."""

    def __init__(self, python, device):
        self.python, self.device, self.deadline = python, f"--device={device}", 0.0
        self.on_gpu = device != "cpu"
        self.folder = os.path.join(HERE, "work")
        os.makedirs(self.folder, exist_ok=True)

    def left(self):
        return max(self.deadline - time.monotonic(), 0.1)

    def job(self, workers, program, *options):
        command = program if isinstance(program, list) else [f"{HERE}/bin/{program}"]
        return [f"{HERE}/bin/keelrun", "--standalone", f"--nproc-per-node={workers}",
                "--no-python", *AS_HOSTS, *command, *options]

    def start(self, command):
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                text=True, env=os.environ | SHARED, start_new_session=True)

    def end(self, process, code=0):
        try:
            text, _ = process.communicate(timeout=self.left())
        except subprocess.TimeoutExpired:
            kill(process)
            try:
                text, _ = process.communicate(timeout=10)
            except subprocess.TimeoutExpired:   # one of its workers cannot even be killed
                text = ""
            raise Failed(f"not done in time\n{text[-3000:]}") from None
        if process.returncode != code:
            raise Failed(f"exit code {process.returncode}\n{text[-3000:]}")
        return text

    def run(self, command, code=0):
        return self.end(self.start(command), code)

    def last_line(self, workers, program, *options):
        """Of a training program: the same for all workers."""
        found = set(re.findall(r"^final step=.*$",
                               self.run(self.job(workers, program, self.device,
                                                   *options)), re.M))
        if len(found) != 1:
            raise Failed(f"last lines: {sorted(found)}")
        return found.pop()

    def same(self, *lines):
        if len(set(lines)) != 1:
            raise Failed("bits differ:\n" + "\n".join(lines))
        return {"digest": lines[0].rpartition("=")[2]}


def figures(text, word):
    """{"median_ms": 1.2, ...} of the line that begins with the word."""
    line = re.search(rf"^{word} .*$", text, re.M)
    if not line:
        raise Failed(f"nothing about {word!r}\n{text[-2000:]}")
    return {name: float(value) for name, value in re.findall(r"(\w+)=([\d.]+)", line[0])}


# --- The stages ---

def one_rank(bench):
    text = bench.run(bench.job(1, "nccl_probe"))
    if "sum right" not in text:
        raise Failed(text[-2000:])
    return {"found": re.search(r"^found (.*)$", text, re.M)[1]}


def two_ranks(bench):
    text = bench.run(bench.job(2, "nccl_probe"))
    digests = set(re.findall(r"^digest (\w+)$", text, re.M))
    if text.count("sum right") != 2 or len(digests) != 1:
        raise Failed(text[-2000:])
    return {f"sum_{name}": value for name, value in figures(text, r"sum ranks=\d+").items()}


def twice(bench):
    return bench.same(*(bench.last_line(1, "minimal_train", "--steps=50") for _ in range(2)))


def one_or_two_workers(bench):
    return bench.same(*(bench.last_line(n, "minimal_train", "--steps=50") for n in (1, 2)))


def models(bench):
    found = {}
    for model, options in (("resnet", ["--precision=bf16"]), ("gpt", ["--precision=bf16"]),
                           ("gpt", ["--clip-norm=0.5"])):
        lines = [bench.last_line(n, "model_train", f"--model={model}", "--steps=20", "--lanes=4",
                                 *options) for n in (1, 2)]
        found[f"{model} {options[0]}"] = bench.same(*lines)["digest"]
    return found


# Takes all but 3 GB of the GPU's memory, until it is killed.
FILL = ("import torch, time; free, _ = torch.cuda.mem_get_info(); "
        "x = torch.empty(max(free - (3 << 30), 1), dtype=torch.uint8, device='cuda'); "
        "print('full', flush=True); time.sleep(1000)")


def little_memory(bench):
    """cuDNN falls back to other plans where memory is short."""
    command = ["model_train", "--model=resnet", "--steps=20", "--lanes=4"]
    expected = bench.last_line(1, *command)
    filler = bench.start([bench.python, "-c", FILL])
    try:
        told = filler.stdout.readline()
        if told != "full\n":
            raise Failed(told + filler.stdout.read())
        return bench.same(expected, bench.last_line(1, *command))
    finally:
        kill(filler)


def kills(bench, kind="single"):
    text = bench.run([bench.python, "-B", f"{HERE}/scripts/kill_soak.py", "--keelrun",
                      f"{HERE}/bin/keelrun", "--program", f"{HERE}/bin/model_train",
                      *(["--gpu"] if bench.on_gpu else []), "--models=mlp", "--workers", "2",
                      "--kills=6", "--kills-a-job=3", "--kinds", kind])
    return {"told": text.strip().splitlines()[-1]}


def kills_while_forming(bench):
    return kills(bench, "forming")


def save_and_resume(bench):
    folder = os.path.join(bench.folder, f"ckpts-{os.getpid()}-{time.time_ns()}")
    options = ["--steps=60", "--lanes=4"]
    expected = bench.last_line(1, "model_train", *options)
    command = bench.job(2, "model_train", bench.device, *options, "--pause=50ms",
                        "--checkpoint-dir", folder)
    process = bench.start(command)
    too_late = threading.Timer(bench.left(), kill, [process])
    too_late.start()
    for line in process.stdout:
        if line.startswith("step 10 "):
            break
    too_late.cancel()
    process.send_signal(signal.SIGTERM)
    bench.end(process, 75)
    line = bench.last_line(2, "model_train", *options, "--checkpoint-dir", folder)
    return bench.same(expected, line)


def times(bench):
    text = bench.run(bench.job(2, "nccl_probe", "times"))
    return {f"{word}_{name}": value for word in ("build", "abort")
            for name, value in figures(text, word).items() if name.endswith("ms")}


def steps(bench):
    """Beside Python's DDP with NCCL, on the same GPU."""
    size = ["--width=512", "--layers=8", "--length=128", "--lane-batch=8"] if bench.on_gpu else \
        ["--width=64", "--layers=2"]
    size += ["--steps=43", bench.device]
    ddp = [bench.python, "-B", f"{HERE}/scripts/ddp_peer.py"]
    ours = figures(bench.run(bench.job(2, "gpt_bench", *size)), r"steps=\d+")
    ddp = figures(bench.run(bench.job(2, ddp, *size, "--fused")), r"steps=\d+")
    return {"ours_s": ours["median_step_s"], "ddp_s": ddp["median_step_s"],
            "ratio": round(ours["median_step_s"] / ddp["median_step_s"], 3)}


def health(bench):
    """What `keel health` says of the machine, and what its GPUs compute. Another finding, of memory
    say, fails nothing here."""
    text = bench.run(["sh", "-c", '"$@" || true', "sh", f"{HERE}/bin/keel", "health", "--json",
                      "--seconds=5", "--python", bench.python, "--python-limit=60s"])
    told = json.loads(text)
    products = [one for one in told["findings"] if one["check"] == "gpu product"]
    if any(one["verdict"] != "fit" for one in products):
        raise Failed(text)
    return {"sentence": told["sentence"], "products": products[0]["found"]}


NEED_A_GPU = (one_rank, two_ranks, times, little_memory, health)
STAGES = [("one rank", 90, one_rank), ("two ranks on one GPU", 120, two_ranks),
          ("the same bits twice", 90, twice), ("1 or 2 workers", 120, one_or_two_workers),
          ("build and abort", 120, times), ("kills while training", 150, kills),
          ("kills while forming", 150, kills_while_forming),
          ("models, bf16, clipping", 240, models), ("little free memory", 120, little_memory),
          ("save, stop, resume", 150, save_and_resume),
          ("steps beside DDP", 180, steps), ("keel health", 90, health)]


def find_torch(python, given):
    """The torch folder of the same minor version as the programs'; exits with words if not."""
    with open(f"{HERE}/torch_version.txt", encoding="ascii") as file:
        wanted = file.read().strip()
    if not given:
        found = subprocess.run([python, "-c", "import importlib.util as u; s = u.find_spec('torch')"
                                "; print(s.submodule_search_locations[0] if s else '')"],
                               stdout=subprocess.PIPE, text=True, check=False)
        given = found.stdout.strip()
    cure = "name one: run.sh --torch=/path/to/site-packages/torch, or --python=/path/to/python"
    if not given or not os.path.exists(f"{given}/version.py"):
        sys.exit(f"run.sh: no PyTorch in {given or python}; {cure}")
    with open(f"{given}/version.py", encoding="utf-8") as file:
        version = re.search(r"__version__ = '([^']*)'", file.read())[1]
    if not version.startswith(wanted + "."):
        sys.exit(f"run.sh: these programs are for PyTorch {wanted}; in {given} is {version}; "
                 f"{cure}")
    return os.path.abspath(given), version


def link_torch(folder):
    link = f"{HERE}/torch"
    if os.path.islink(link):
        os.unlink(link)
    os.symlink(folder, link)


def check_programs():
    """Whether they start here, with a GPU or without; exits with what they said if not."""
    tried = subprocess.run([f"{HERE}/bin/minimal_train", "--steps=2", "--lanes=2"], text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120,
                           check=False)
    if tried.returncode != 0:
        sys.exit(f"run.sh: these programs do not run here: minimal_train ended with "
                 f"{tried.returncode}, and said:\n{tried.stdout[-2000:]}")


def gpu():
    """What nvidia-smi says of the GPUs, or nothing."""
    try:
        found = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version,memory.total",
                                "--format=csv,noheader"], stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return found.stdout.strip() if found.returncode == 0 else ""


def show(results):
    for one in results["stages"]:
        told = one["error"].splitlines()[0] if one["error"] else \
            ", ".join(f"{name} {value}" for name, value in one["figures"].items())
        print(f"{'ok' if not one['error'] else 'FAILED':<7}{one['stage']:<24}{one['seconds']:>6} s"
              f"  {told}")


def main():
    parser = argparse.ArgumentParser(
        prog="run.sh", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable, help="a Python that has PyTorch")
    parser.add_argument("--torch", help="its folder, if Python does not find it")
    parser.add_argument("--only", action="append", metavar="STAGE",
                        help="one of: " + "; ".join(name for name, _, _ in STAGES))
    parser.add_argument("--device", default="cuda:0",
                        help="cpu: what needs no GPU (default: cuda:0)")
    parser.add_argument("--out", default="results.json", help="default: results.json")
    args = parser.parse_args()
    folder, version = find_torch(args.python, args.torch)
    link_torch(folder)
    wanted = [stage for stage in STAGES if (not args.only or stage[0] in args.only)
              and (args.device != "cpu" or stage[2] not in NEED_A_GPU)]
    found = gpu() if args.device != "cpu" else "on the CPU"
    check_programs()
    if not found:
        print("no GPU here (nvidia-smi finds none). With one, these would run:")
        for name, limit, _ in wanted:
            print(f"  {name}, within {limit} s")
        return 3
    print(f"{found}; PyTorch {version} in {folder}", flush=True)
    bench = Bench(args.python, args.device)
    results = {"gpu": found, "torch": version, "stages": []}
    for name, limit, run in wanted:
        print(f"--- {name} (within {limit} s)", flush=True)
        begun = time.monotonic()
        bench.deadline = begun + limit
        one = {"stage": name, "figures": {}, "error": ""}
        try:
            one["figures"] = run(bench)
        except Exception as error:   # the next stage may tell why
            one["error"] = f"{type(error).__name__}: {error}"
        one["seconds"] = round(time.monotonic() - begun, 1)
        results["stages"].append(one)
        print(one["error"] or json.dumps(one["figures"]), flush=True)
        with open(args.out, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)
    show(results)
    return 1 if any(one["error"] for one in results["stages"]) else 0


if __name__ == "__main__":
    sys.exit(main())
