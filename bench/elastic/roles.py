"""Jobs whose coordinator goes, and machines that come: for how long nobody makes a step, and how
long it takes to join.

Promises   a round counts only once the others are an epoch of their own and step again; a newcomer
           takes the place of who went, so that each round begins with three hosts. A job in which
           two epochs have one number, or in which a step was told of that no other run of it would
           have made, is no measurement: it fails. What all printed is kept, if KEEP names a folder.
Does not   judge the job's results: tests/failover does.
"""
import os
import signal
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../tests/failover"))
import machines  # noqa: E402  tests/failover/machines.py: launchers at loopback addresses
import marked  # noqa: E402  tests/harness/marked.py

SETTLED_S = 1   # of steps, before the coordinator goes
STEPS_AFTER = 20
LOOK_S = 0.005
OPTIONS = ["--max-restarts=1000"]
KEEP = None     # a folder for what all launchers of a round printed
_kept = 0


def trainer_words(trainer, folder, saves=True):
    words = [trainer, "--steps=100000000", "--log-every=1"]
    return words + ([f"--checkpoint-dir={os.path.join(folder, 'checkpoints')}"] if saves else [])


def sleeper_words(model, folder, saves=True):
    """Of workers that leave the processors to others: each micro-batch of a step sleeps."""
    return [*trainer_words(model, folder, saves), "--lanes=6", "--lane-time=10ms"]


def step_times(several):
    return sorted(at for machine in several for at, _, _ in list(machine.steps))


def longest_gap(several, since):
    """Between two steps that any of these machines told of; the later one came after that
    moment."""
    at = step_times(several)
    return max(later - earlier for earlier, later in zip(at, at[1:]) if later > since)


def first_step(several, since, limit_s=machines.HANG_LIMIT_S):
    """When the next step after that moment was told of."""
    end = time.monotonic() + limit_s
    while True:
        later = [at for machine in several for at, _, _ in machine.steps[-50:] if at > since]
        if later:
            return min(later)
        if time.monotonic() > end:
            raise AssertionError(f"no step in {limit_s} s")
        time.sleep(LOOK_S)


def check(formed, several):
    """What holds in every job: {epoch: how often it was formed}, and each step has one loss."""
    twice = {number: count for number, count in formed.items() if count > 1}
    if twice:
        raise SystemExit(f"epochs formed twice: {twice}")
    told = {}
    for machine in several:
        for _, step, loss in machine.steps:
            if told.setdefault(step, loss) != loss:
                raise SystemExit(f"step {step} has the losses {told[step]} and {loss}")


def keep(what, several):
    """Of a round that is over, or of a job; steps are left out."""
    global _kept
    _kept += 1
    if KEEP:
        with open(os.path.join(KEEP, f"{_kept:03}-{what}.txt"), "w", encoding="utf-8") as file:
            file.writelines(f"{machine.name}| {line}\n" for machine in several
                            for line in list(machine.lines)
                            if not machines.STEP.search(line) and not line.startswith("step "))


def missing(several):
    """Steps of which nobody told."""
    told = {step for machine in several for _, step, _ in machine.steps}
    return [step for step in range(1, max(told, default=0) + 1) if step not in told]


def stop_whole(machine):
    """It stands still, launcher, worker and all: from outside it is silent."""
    for pid in marked.marked(*machine.mark_of_all):
        os.kill(pid, signal.SIGSTOP)


GOING = {"leaves": lambda machine: machine.send(signal.SIGTERM),
         "killed": lambda machine: machine.kill(), "silent": stop_whole}


def one_round(job, how):
    gone = job.drop(job.coordinator())
    since, begin = job.marks(), time.monotonic()
    GOING[how](gone)
    job.whole(2, since)
    job.go_on(STEPS_AFTER)
    gap = longest_gap(job.started, begin)
    if how != "leaves":
        gone.kill()
    gone.end()
    return gap


def gaps(job, words, how, rounds):
    """Yields the longest gap of each round, in seconds. `words`: the worker's, of the job's
    folder."""
    with job:
        job.command = words(job.folder)
        job.start_all()
        for number in range(rounds):
            job.go_on()
            time.sleep(SETTLED_S)
            gap = one_round(job, how)
            keep(f"{how}-{gap:.3f}", job.started)
            yield gap
            since = job.marks()
            job.start(4 + number)
            job.whole(3, since)
        check(job.epochs_formed(), job.started)
        job.stop()


# --- Who comes: seconds until it is in the job, and until the first step of an epoch with it ---

def joined(job, number, endpoints=None):
    since, begin = job.marks(), time.monotonic()
    machine = job.start(number, endpoints=endpoints)
    machine.wait_for(" epoch epoch=")   # told by the job's board, which has it as a host
    known = time.monotonic() - begin
    job.whole(3, since)
    return known, first_step(job.started, time.monotonic()) - begin


def comes(job, how):
    """Into a job whose first coordinator, at the endpoint, was killed."""
    gone = job.drop(job.coordinator())
    since = job.marks()
    gone.kill()
    job.whole(2, since)
    job.go_on(STEPS_AFTER)
    if how == "same address":
        return joined(job, gone.number)
    if how == "same address, no other named":
        return joined(job, gone.number, f"127.0.0.{gone.number}:{job.port}")
    if how == "other address":
        return joined(job, 4)
    keeper = job.coordinator()
    other = next(one for one in job.machines.values() if one is not keeper)
    return joined(job, 5, f"127.0.0.{other.number}:{job.port}")


COMING = ("same address", "same address, no other named", "other address", "knows one live host")


def joins(keelrun, model, how, rounds):
    """Yields what joined() gives of each newcomer; each meets a job of its own."""
    for _ in range(rounds):
        with machines.Job(keelrun, [], options=OPTIONS) as job:
            job.command = sleeper_words(model, job.folder)
            if how == "same address, no other named":   # to the others neither
                job.endpoints = lambda: f"127.0.0.1:{job.port}"
            job.start_all()
            job.go_on()
            found = comes(job, how)
            keep(f"{how}-{found[0]:.3f}-{found[1]:.3f}", job.started)
            yield found
            check(job.epochs_formed(), job.started)
            job.stop()
