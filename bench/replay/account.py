"""What became of the worker-seconds that a trace left: pure functions over what workers told.

Promises   goodput = worker-seconds in steps that counted / worker-seconds that the trace left. A
           step counts from when its worker told the one before until it tells it, unless the job
           went back behind it later. A worker's first step, one between whose ends its epoch
           changed, and one that took more than STALLED times the median of so many workers count
           as long as that median; what is more is lost. The times that lost and useful parts take
           add up to what the trace left.
Does not   know what a step did inside: a worker that waits for slower ones within a step works.
"""
import collections
import dataclasses
import math

STALLED = 4

Told = collections.namedtuple("Told", "at step world pid")


@dataclasses.dataclass
class HostLog:
    """What was heard of a host in a seat; times in seconds since the replay began."""
    tenure: object                                  # plan.Tenure
    told: list = dataclasses.field(default_factory=list)       # Told
    epochs: list = dataclasses.field(default_factory=list)     # when its launcher was in a new one
    resumed: list = dataclasses.field(default_factory=list)    # (at, step gone on from)
    receiving: list = dataclasses.field(default_factory=list)  # (at, whether from then on)
    killed: float | None = None                     # without a notice before

    @property
    def span(self):
        return self.tenure.gone - self.tenure.come


def quantile(values, share):
    """None of no values."""
    ordered = sorted(values)
    return ordered[min(math.ceil(share * len(ordered)), len(ordered)) - 1] if ordered else None


def pairs(log):
    """(told before by the same worker or None, told, whether its epoch changed between)."""
    before = {}
    for told in log.told:
        former = before.get(told.pid)
        if former and told.step != former.step + 1:
            former = None
        changed = former is not None and any(former.at < at <= told.at for at in log.epochs)
        yield former, told, changed
        before[told.pid] = told


def medians(logs):
    """How long an undisturbed step takes, by number of workers."""
    seen = collections.defaultdict(list)
    for log in logs:
        for former, told, changed in pairs(log):
            if former and not changed:
                seen[told.world].append(told.at - former.at)
    return {world: quantile(values, 0.5) for world, values in seen.items()}


def usual(typical, world):
    """Of that many workers, or of the nearest number that made one."""
    if not typical:
        return 0.0
    return typical[min(typical, key=lambda one: (abs(one - world), one))]


def knew(log, at):
    """Whether that host was there then, had made steps, was not told to leave, and did not lack
    the state, as a newcomer does for some steps."""
    until = log.tenure.gone if log.tenure.notice is None else log.tenure.notice
    lacks = [receives for when, receives in log.receiving if when < at][-1:] == [True]
    return until > at and any(told.at < at for told in log.told) and not lacks


class Rewinds:
    """Where the job went back, and so which steps did not count."""

    def __init__(self, logs):
        told = sorted((one.at, one.step) for log in logs for one in log.told)
        self.back, self.steps_lost = [], 0   # (at, step)
        self.with_hosts_left = 0             # of the steps lost: where somebody knew them
        turn, high = 0, 0
        for at, step in sorted(one for log in logs for one in log.resumed):
            while turn < len(told) and told[turn][0] <= at:
                high, turn = max(high, told[turn][1]), turn + 1
            self.steps_lost += max(0, high - step)
            if any(knew(log, at) for log in logs):
                self.with_hosts_left += max(0, high - step)
            high = min(high, step)
            self.back.append((at, step))
        # How far the job had come in the end, of the steps that it did not lose on its way.
        self.high = max([high] + [step for _, step in told[turn:]])

    def undone(self, told):
        return any(told.at <= at and told.step > step for at, step in self.back)


def spend(log, typical, rewinds):
    """{part: seconds} of one host; they add up to its span."""
    parts = collections.Counter()
    end, last_pid = log.tenure.come, None
    for former, told, changed in pairs(log):
        least = usual(typical, told.world)
        took = told.at - end
        credit = took
        if former is None or changed or took > STALLED * least:
            credit = min(took, least)
        parts["undone" if rewinds.undone(told) else "useful"] += credit
        if last_pid is None:
            parts["starting"] += took - credit
        elif told.pid != last_pid:
            parts["restarting"] += took - credit
        else:
            parts["reforming"] += took - credit
        end, last_pid = told.at, told.pid
    rest = log.tenure.gone - end
    if last_pid is None:
        parts["never stepped"] += rest
    elif log.tenure.notice is not None:
        parts["left early"] += rest
    else:
        parts["broken off" if log.tenure.goes else "at the end"] += rest
    return parts


def first_step_after_epoch(log, at):
    """When it told its first step in an epoch that is newer than `at`; None: never."""
    epoch = next((when for when in log.epochs if when > at), None)
    if epoch is None:
        return None
    return next((told.at for told in log.told if told.at > epoch), None)


def recoveries(logs):
    """(seconds from each kill of a host that made steps to the next step of any other; how many
    kills there were before their host's first step; how many were not followed by a step)."""
    seconds, idle, unfinished = [], 0, 0
    for log in logs:
        if log.killed is None:
            continue
        if not any(told.at < log.killed for told in log.told):
            idle += 1
            continue
        came = [first_step_after_epoch(other, log.killed) for other in logs if other is not log]
        came = [at for at in came if at is not None]
        if came:
            seconds.append(min(came) - log.killed)
        else:
            unfinished += 1
    return seconds, idle, unfinished


def stalls(logs, typical):
    """How much longer than usual a step took in which the epoch changed, of each worker that lived
    through it."""
    return [max(0.0, told.at - former.at - usual(typical, told.world))
            for log in logs for former, told, changed in pairs(log) if changed]


def joins(logs):
    """Seconds from a host's coming to its first step."""
    return [log.told[0].at - log.tenure.come for log in logs if log.told]


def longest_pause(logs):
    """The longest time without a step of anybody, from the first coming to the last end."""
    times = [told.at for log in logs for told in log.told]
    times += [log.tenure.come for log in logs[:1]] + [max(log.tenure.gone for log in logs)]
    times.sort()
    return max(after - before for before, after in zip(times, times[1:]))


def three(values):
    return {"count": len(values), "median": quantile(values, 0.5), "p99": quantile(values, 0.99),
            "worst": max(values, default=None)}


def sums(logs, typical, rewinds):
    parts = collections.Counter()
    for log in logs:
        parts.update(spend(log, typical, rewinds))
    left = sum(log.span for log in logs)
    told = sum(log.tenure.gone - log.tenure.notice for log in logs if log.tenure.notice is not None)
    return {"goodput": parts["useful"] / left if left else None, "worker_seconds": left,
            "of_these_after_a_notice": told,
            "spent": {name: round(value, 3) for name, value in sorted(parts.items())}}


def report(logs):
    typical, rewinds = medians(logs), Rewinds(logs)
    seconds, idle, unfinished = recoveries(logs)
    spot = [log for log in logs if log.tenure.is_spot]
    return {**sums(spot, typical, rewinds), "with_store_host": sums(logs, typical, rewinds),
            "steps": max((told.step for log in logs for told in log.told), default=0),
            "steps_lost": rewinds.steps_lost, "rewinds": len(rewinds.back),
            "steps_lost_with_hosts_left": rewinds.with_hosts_left,
            "recovery_s": {**three(seconds), "before_first_step": idle,
                           "cut_by_the_end": unfinished},
            "stall_s": three(stalls(logs, typical)), "join_s": three(joins(spot)),
            "longest_pause_s": longest_pause(logs) if logs else None,
            "median_step_s": {str(world): value for world, value in sorted(typical.items())}}
