"""Jobs whose coordinator goes: for how long nobody makes a step.

Promises   a round counts only once the others are an epoch of their own and step again; a newcomer
           takes the place of who went, so that each round begins with three hosts.
Does not   judge the job's results: tests/failover does.
"""
import os
import signal
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../tests/failover"))
import machines  # noqa: E402  tests/failover/machines.py: launchers at loopback addresses

SETTLED_S = 1   # of steps, before the coordinator goes
STEPS_AFTER = 20


def longest_gap(job, since):
    """Between two steps that anybody told of, of which the later one came after that moment."""
    at = sorted(time_of for machine in job.started for time_of, _, _ in list(machine.steps))
    return max(later - earlier for earlier, later in zip(at, at[1:]) if later > since)


def one_round(job, how):
    gone = job.drop(job.coordinator())
    since, begin = job.marks(), time.monotonic()
    if how == "leaves":
        gone.send(signal.SIGTERM)
    else:
        gone.kill()
    job.whole(2, since)
    job.go_on(STEPS_AFTER)
    gap = longest_gap(job, begin)
    gone.end()
    return gap


def gaps(keelrun, trainer, how, rounds):
    """Yields the longest gap of each round, in seconds."""
    with machines.Job(keelrun, [], options=["--max-restarts=1000"]) as job:
        job.command = [trainer, "--steps=100000000", "--log-every=1",
                       f"--checkpoint-dir={os.path.join(job.folder, 'checkpoints')}"]
        job.start_all()
        for number in range(rounds):
            job.go_on()
            time.sleep(SETTLED_S)
            yield one_round(job, how)
            since = job.marks()
            job.start(4 + number)
            job.whole(3, since)
        job.stop()
