"""From a trace to what happens to which seat, and when: pure functions.

Promises   the same trace, options and seed give the same plan. Never more hosts at once than seats.
           A seat's host is one of the trace, from when it comes until it goes.
Does not   start anything (fleet.py).
"""
import dataclasses
import itertools
import random


@dataclasses.dataclass
class Tenure:
    """A host in a seat. Seconds; `gone` is the plan's end where it stays."""
    seat: int
    host: str
    come: float
    gone: float
    goes: bool = False          # before the end
    notice: float | None = None  # when it is told so; None: it never is
    is_spot: bool = True


@dataclasses.dataclass
class Plan:
    seconds: float
    tenures: list
    speed: float     # trace seconds in one second

    def kinds(self):
        spot = [tenure for tenure in self.tenures if tenure.is_spot]
        return {"come": len(spot),
                "go_with_notice": sum(one.goes and one.notice is not None for one in spot),
                "go_without_notice": sum(one.goes and one.notice is None for one in spot)}


class Seats:
    """Who sits where, as the trace goes on."""

    def __init__(self, count, peak, mapping):
        self.count, self.peak, self.mapping = count, peak, mapping
        self.live = {}      # the trace's hosts, in the order in which they came
        self.taken = {}     # seat: (host, since), in the order in which they were taken
        self.tenures = []

    def wanted(self):
        if self.mapping == "first":
            return min(self.count, len(self.live))
        return -(-self.count * len(self.live) // self.peak)

    def take(self, event):
        if event.comes:
            self.live[event.host] = True
        else:
            self.live.pop(event.host)

    def settle(self, at):
        """After all that happened at one instant."""
        for seat in [seat for seat, (host, _) in self.taken.items() if host not in self.live]:
            self.leave(seat, at, True)
        while len(self.taken) > self.wanted():
            self.leave(next(iter(self.taken)), at, True)
        sitting = {host for host, _ in self.taken.values()}
        waiting = (host for host in self.live if host not in sitting)
        for host in itertools.islice(waiting, self.wanted() - len(self.taken)):
            seat = min(set(range(self.count)) - set(self.taken))
            self.taken[seat] = (host, at)

    def leave(self, seat, at, goes):
        host, since = self.taken.pop(seat)
        if at > since:
            self.tenures.append(Tenure(seat, host, since, at, goes))


def tenures(trace, count, mapping, start, end):
    """In the trace's own seconds, as they come. `scale`: as large a part of the seats is taken as
    the hosts that are there are of the most that ever were; `first`: all, if there are as many."""
    seats = Seats(count, max(here for _, here in trace.counts()), mapping)
    events = list(trace.events)
    for event in events:
        if event.at <= start:
            seats.take(event)
    seats.settle(start)
    later = (event for event in events if start < event.at < end)
    for at, group in itertools.groupby(later, key=lambda event: event.at):
        for event in group:
            seats.take(event)
        seats.settle(at)
    for seat in list(seats.taken):
        seats.leave(seat, end, False)
    return sorted(seats.tenures, key=lambda one: (one.come, one.seat))


def make(trace, seconds, hosts, options):
    """`options`: mapping, stable (whether one host is never taken away), lead (trace seconds
    between notice and end), notice_share, seed, start and end (trace seconds or None)."""
    start = trace.start if options.start is None else options.start
    end = trace.end if options.end is None else options.end
    if not start < end:
        raise ValueError(f"there is nothing between {start:g} and {end:g} seconds of this trace, "
                         f"which goes from {trace.start:g} to {trace.end:g}")
    speed = (end - start) / seconds
    rng = random.Random(options.seed)
    first_seat = 1 if options.stable else 0
    if hosts - first_seat < 1:
        raise ValueError("no seat is left for the trace: at least 2 hosts are needed where one "
                         "of them is the store's")
    found = tenures(trace, hosts - first_seat, options.mapping, start, end)
    if not found:
        raise ValueError("no host is there in this part of the trace")
    for one in found:
        one.seat += first_seat
        one.come, one.gone = (one.come - start) / speed, (one.gone - start) / speed
        announced = rng.random() < options.notice_share   # of all, so that seeds compare
        if one.goes and announced:
            one.notice = max(one.come, one.gone - options.lead / speed)
    if options.stable:
        found.insert(0, Tenure(0, "stable", 0, seconds, is_spot=False))
    return Plan(seconds, found, speed)
