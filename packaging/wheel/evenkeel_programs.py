"""keelrun and keel of the wheel: each becomes the program, without importing PyTorch.

Workers are started with the Python that this script runs in, unless PYTHON_EXEC names another.
"""
import importlib.util
import os
import sys


def _become(name):
    package = importlib.util.find_spec("evenkeel").submodule_search_locations[0]
    os.environ.setdefault("PYTHON_EXEC", sys.executable)
    program = os.path.join(package, "bin", name)
    os.execv(program, [program, *sys.argv[1:]])


def keelrun():
    _become("keelrun")


def keel():
    _become("keel")
