# shellcheck shell=bash
# Which version of PyTorch is downloaded, and where each lies. To be sourced, with `deps` set to the
# folder of downloads.
# Promises   one answer for all our scripts: each version has an environment of its own, so that
#            clones which share a folder may build with different ones. $deps/venv is a link to that
#            of the version that we build with unless told otherwise.
# Does not   download: tools/setup.sh does, with all that `import torch` needs.

# shellcheck disable=SC2034  # of those who read this
readonly kTorchVersion=2.15.0
# Wheels of older ones have another C++ ABI (_GLIBCXX_USE_CXX11_ABI=0) than Debian's libraries.
readonly kTorchMinorMin=7

# True for a version as 2.15.0 that a package index may have, and our sources build with.
IsTorchVersion() {
  [[ $1 =~ ^2\.([0-9]+)\.[0-9]+$ ]] && ((BASH_REMATCH[1] >= kTorchMinorMin))
}

# TorchHome VERSION: the environment of Python that it is, or will be, in.
TorchHome() { echo "${deps:?}/venv-$1"; }

# True if all of it is there. The stamp is written last, so an environment without it is half made.
HasTorch() { [[ -e $(TorchHome "$1")/.complete ]] && TorchFolder "$1" >/dev/null; }

# TorchFolder VERSION: the folder `torch` that holds include/ and lib/, if there is one.
TorchFolder() { compgen -G "$(TorchHome "$1")/lib/python3*/site-packages/torch"; }
