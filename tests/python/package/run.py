#!/usr/bin/env python3
"""Runs a test of the package in the Python that has PyTorch: run.py [options] test_wire.py [...]

Skips, and says why, without one.
"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "dropin")]
import launchers
import scripts

if __name__ == "__main__":
    args, rest = scripts.parsed(__doc__, launchers.find_python)
    os.execve(args.python, [args.python, "-B", os.path.join(HERE, rest[0]), *rest[1:]],
              scripts.environment())
