"""Finds the parts of bench/replay for their tests."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
REPLAY = os.path.join(os.path.dirname(os.path.dirname(HERE)), "bench", "replay")
TRACES = os.path.join(REPLAY, "traces")
sys.path.insert(0, REPLAY)
