"""The points of a test of faults: each request of a trial, in each way that makes sense for it."""
import collections
import concurrent.futures
import os
import random
import sys
import threading
import time

import proxy as proxies
import weed

SLOW_S = 20


def go_on_with_python():
    """With --python EXE: in that one, which has boto3. Exits where there is none."""
    if "--python" not in sys.argv:
        return
    at = sys.argv.index("--python")
    python = sys.argv[at + 1]
    if not os.access(python, os.X_OK):
        print(f"skipped: there is no {python}: tools/setup.sh --tests makes it")
        sys.exit(77)
    os.execv(python, [python, "-B", sys.argv[0], *sys.argv[1:at], *sys.argv[at + 2:]])


def add_options(parser, seed):
    parser.add_argument("--share", type=int, default=0,
                        help="so many points, drawn at random; 0: all")
    parser.add_argument("--seed", type=int, default=seed)
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--only", default="", help="a trial, or TRIAL/AT/FAULT")


def exit_if_no_server():
    if not os.access(weed.program(), os.X_OK):
        print(f"skipped: there is no {weed.program()}")
        sys.exit(77)


def points_of(field, trials):
    for trial in trials:
        for at, request in enumerate(field.count(trial)):
            for fault, (_, makes_sense) in proxies.FAULTS.items():
                if makes_sense(request):
                    yield trial, at, fault


def name_of(point):
    return f"{point[0].name}/{point[1]}/{point[2]}"


def run(field, trials, arguments, is_wanted=lambda point: True, told_codes=(), not_struck_most=0.1):
    """Tries them, closes the field, tells how they ended, and returns the exit code.

    field.point() returns the exit code of what was tried, or nothing if no request was struck."""
    counts, wrongs, lock = collections.Counter(), [], threading.Lock()

    def one(point):
        begin = time.monotonic()
        try:
            code = field.point(*point)
        except Exception as error:
            with lock:
                wrongs.append(str(error))
                print("WRONG:", error, flush=True)
            return
        with lock:
            counts["not struck" if code is None else "killed" if code < 0 else code] += 1
            took = time.monotonic() - begin
            if code in told_codes:
                print(f"{name_of(point)} ended with {code}", flush=True)
            if took > SLOW_S:
                print(f"{name_of(point)}: {took:.0f} s", flush=True)

    try:
        points = [point for point in points_of(field, trials) if is_wanted(point)]
        total = len(points)
        random.Random(arguments.seed).shuffle(points)
        wanted = arguments.only.split("/")
        points = [point for point in points if all(
            not word or word == str(value)
            for word, value in zip(wanted, (point[0].name, point[1], point[2])))]
        if arguments.share:
            points = points[:arguments.share]
        with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
            list(pool.map(one, points))
    finally:
        field.close()
    print(f"{len(points)} of {total} points (seed {arguments.seed}): " + ", ".join(
        f"{what}: {count}" for what, count in sorted(counts.items(), key=str))
        + f"; wrong: {len(wrongs)}")
    is_well = points and not wrongs and counts["not struck"] <= len(points) * not_struck_most
    return 0 if is_well else 1
