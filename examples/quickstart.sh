#!/usr/bin/env bash
# The first thing to try: a small GPT learns Shakespeare on three workers; one is killed, the job is
# preempted and goes on with two. It must end with the very bits of an undisturbed run on one.
# Promises   exits with 0 only if it does; every command is shown before it runs; leaves no process.
# Does not   need the network once things are set up; write anywhere but into the folder it names.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
readonly root
build=
folder=
python=
steps=
# With an installation it lies in share/evenkeel/examples, and the programs are beside share/.
if [[ ! -e $root/tools/setup.sh ]]; then
  build=$root/../..
  python=${PYTHON_EXEC:-python3}
fi

Usage() {
  cat <<'END'
usage: examples/quickstart.sh [--keep DIR] [--steps N] [--build DIR] [--python PYTHON]

Sets up what is missing (tools/setup.sh), then trains a small GPT twice: undisturbed on one worker,
and on three of which one is killed, with a stop and a resume on two. Both must end with the same
bits. Takes about a minute on two cores, set-up excluded.

  --keep DIR       where checkpoints, logs and the plot are left; new or empty (default: a new
                   folder in the temporary one)
  --steps N        how long to train: 100 or more (default: 600; a script: 240)
  --build DIR      take the programs of this build folder, or of the installation in it (an unpacked
                   tarball, /usr, a virtual environment with the wheel), and set nothing up
  --python PYTHON  train with the script examples/python/gpt.py and the PyTorch of this Python,
                   instead of the program in C++ (default where this script is a part of an
                   installation: $PYTHON_EXEC, or python3)

Exit codes: 0 the bits are the same; 1 they are not, or something failed; 2 unknown options.
END
}

Fail() {
  echo "quickstart: $1" >&2
  exit "${2:-1}"
}

while (($# > 0)); do
  case $1 in
    --help | -h) Usage; exit 0 ;;
    --keep | --steps | --build | --python)
      if (($# < 2)); then Fail "$1 needs a value" 2; fi
      case $1 in
        --keep) folder=$2 ;;
        --steps) steps=$2 ;;
        --python) python=$2 ;;
        *) build=$2 ;;
      esac
      shift 2
      ;;
    *) Fail "unknown argument '$1' (see --help)" 2 ;;
  esac
done
if [[ $python ]]; then
  # Before the folder changes, to which a path may be relative.
  found=$(command -v -- "$python") || Fail "there is no Python $python" 2
  python=$(realpath -s -- "$found")
fi
if [[ ! $steps ]]; then steps=$([[ $python ]] && echo 240 || echo 600); fi
if [[ ! $steps =~ ^[1-9][0-9]{2,5}$ ]]; then Fail "--steps must be a number of at least 100" 2; fi
if [[ $folder && -e $folder && ! -d $folder ]]; then Fail "--keep $folder: it is not a folder" 2; fi
if [[ $folder && $(ls -A "$folder" 2>/dev/null) ]]; then Fail "--keep $folder: is not empty" 2; fi

# --- The story's tools ---

part=0
Part() {
  part=$((part + 1))
  printf '\n%d. %s\n' "$part" "$1"
}
Tell() { sed 's/^/   /'; }
# As one would type it.
Show() {
  local word quoted=
  for word; do
    if [[ $word == *[!A-Za-z0-9_./:=,@+-]* ]]; then word="'$word'"; fi
    quoted+=" $word"
  done
  echo "   \$$quoted"
}

# Of one job: what it said of steps, every so often, and its results.
ShowTraining() {
  sed -nE 's/.* info step (step=[0-9]+) .*(loss=[0-9.]+) .*(workers=[0-9]+) .*/\1 \2 \3/p' \
    "$1.log" | awk 'NR % 10 == 0' | Tell
  Tell <"$1"
}
# What its launcher did about deaths and stops.
ShowEvents() {
  local events='worker-died|epoch-formed|joining|signal|checkpoint|end-decided'
  sed -nE "s/^[^ ]+ [a-z]+ (($events) .*)/\1/p" "$1.log" | cut -c1-96 | Tell
}
FinalOf() { grep -o 'final step=.*' "$1" | tail -n 1 || true; }
ResumedAt() { sed -nE 's/^resumed step=([0-9]+) .*/\1/p' "$1" | tail -n 1; }
Why() { tail -n 5 "$1.log"; }

# Starts a job whose output goes to files of this name.
job=
Start() {
  local name=$1
  shift
  Show "$@"
  : >"$name.log"   # here, since AwaitStep may look at it before the job's own shell has run
  "$@" >"$name" 2>"$name.log" </dev/null &
  job=$!
}
# Its exit code must be this one.
Expect() {
  local code=0
  wait "$job" || code=$?
  job=
  if ((code != $2)); then Fail "exit code $code instead of $2: $(Why "$1")"; fi
}
# Of the launcher's children the last one that trains; a fresh Debian has no pgrep.
NewestWorker() {
  local child children newest=
  mapfile -t -d ' ' children < <(cat "/proc/$job/task/"*/children)
  for child in "${children[@]}"; do
    if { tr '\0' '\n' <"/proc/$child/cmdline"; } 2>/dev/null | grep -qFx -- "$worker"; then
      newest=$child
    fi
  done
  if [[ ! $newest ]]; then Fail "no worker is left: $(Why killed)"; fi
  echo "$newest"
}
# Until the job has logged the entry of this step.
AwaitStep() {
  until grep -q " info step step=$2 " "$1.log"; do
    if ! kill -0 "$job" 2>/dev/null; then Fail "the job ended too early: $(Why "$1")"; fi
    sleep 0.02
  done
}

# Where scripts find `evenkeel`, unless their Python has it: below a build or an installation.
UsePackage() {
  local place
  for place in "$build/python" "$build/lib/evenkeel/python"; do
    if [[ -e $place/evenkeel/__init__.py ]]; then
      Show export "PYTHONPATH=$place"
      export PYTHONPATH=$place${PYTHONPATH:+:$PYTHONPATH}
      return
    fi
  done
}

# --- The story ---

Part "Setting up: packages, LibTorch and the build. The first time takes minutes, later none."
if [[ $build ]]; then
  build=$(cd "$build" && pwd -P)
  echo "   Not asked for: the programs are those in $build/bin."
else
  "$root/tools/setup.sh" --programs
  build=$root/build
fi
if [[ $folder ]]; then
  mkdir -p "$folder"
else
  folder=$(mktemp -d "${TMPDIR:-/tmp}/evenkeel-quickstart.XXXXXX")
fi
cd "$folder"
folder=$(pwd -P)
trap 'if [[ $job ]]; then kill "$job" 2>/dev/null && wait "$job" || true; fi' EXIT
readonly each=$((steps / 60))                      # steps between two log entries
readonly kill_at=$((15 * each)) stop_at=$((33 * each))
if [[ $python ]]; then
  UsePackage
  Show export "PYTHON_EXEC=$python"
  export PYTHON_EXEC=$python
  readonly worker=$root/examples/python/gpt.py
  readonly train=("$worker" --steps "$steps" --log-every "$each") alone=("$python")
else
  readonly worker=gpt_train alone=()
  readonly train=("$worker" --data train.tokens --validate valid.tokens --steps "$steps"
    --schedule "cosine:warmup=30,total=$steps" --evaluate-every "$((15 * each))"
    --log-every "$each")
fi
PATH=$build/bin:$PATH
readonly launch=(keelrun --standalone --max-restarts 3 --nproc-per-node)
readonly saving=(--checkpoint-dir checkpoints --log-jsonl disturbed.jsonl)
SECONDS=0

if [[ ! $python ]]; then
  Part "Two plays of Shakespeare become numbers to learn from, a third one to be tested with."
  for pair in "train.tokens shakespeare.txt" "valid.tokens tempest.txt"; do
    Show keel tokens "${pair% *}" "examples/data/${pair#* }"
    keel tokens "${pair% *}" "$root/examples/data/${pair#* }" | Tell
  done
fi

Part "A quiet run to compare with: one worker, nobody disturbs it."
Start quiet "${alone[@]}" "${train[@]}" --log-jsonl quiet.jsonl
Expect quiet 0
ShowTraining quiet

Part "The same on three workers. At step $kill_at one of them is killed with -9."
Start killed "${launch[@]}" 3 "${train[@]}" "${saving[@]}"
AwaitStep killed "$kill_at"
victim=$(NewestWorker)
Show kill -9 "$victim"
kill -9 "$victim" 2>/dev/null || Fail "the worker was gone before it could be killed"

Part "The others go on at once, and a new one joins them when it is there. At step $stop_at the
   machine is wanted back: SIGTERM to the launcher. All stop at one step, save it, and say so with
   exit code 75."
AwaitStep killed "$stop_at"
Show kill -TERM "$job"
kill -TERM "$job" 2>/dev/null || Fail "the job was over before it could be stopped"
Expect killed 75
ShowTraining killed
echo "   What happened, in the launcher's words:"
ShowEvents killed
echo "   exit code 75: stopped and saved, start me again"

Part "What is there to go on from, and is it whole?"
for command in ls verify; do
  Show keel "$command" checkpoints
  keel "$command" checkpoints | Tell
done

Part "The same command, with the two workers that we can get today. It goes on where it stopped."
Start resumed "${launch[@]}" 2 "${train[@]}" "${saving[@]}"
Expect resumed 0
ShowTraining resumed

Part "Comparing the last lines: steps, a digest of every loss, a digest of the whole state."
quiet=$(FinalOf quiet)
resumed=$(FinalOf resumed)
echo "   one worker, undisturbed:      $quiet"
echo "   3, killed, stopped, then 2:   $resumed"
if [[ -z $quiet || $quiet != "$resumed" ]]; then Fail "they differ; all of it is in $folder"; fi
echo "   The same, to the last bit."

if [[ ! $python ]]; then
  Part "What it has learned to write, from the newest checkpoint:"
  write=(gpt_train --generate 160 --from checkpoints@latest --prompt "ROMEO:" --seed 4)
  Show "${write[@]}"
  "${write[@]}" | Tell
fi

Part "A plot of both runs' losses."
plot=(plot_losses.py losses.svg --run quiet.jsonl "1 worker, undisturbed"
  --run disturbed.jsonl "killed, stopped, resumed" --mark "$kill_at" "kill -9"
  --mark "$(ResumedAt resumed)" "SIGTERM, resumed on 2")
Show "examples/${plot[0]}" "${plot[@]:1}"
"${python:-python3}" "$root/examples/${plot[0]}" "${plot[@]:1}" | Tell

printf '\nAll of it took %d s after set-up. It is left in %s:\n' "$SECONDS" "$folder"
echo "losses.svg (open it in a browser), checkpoints/, logs."
