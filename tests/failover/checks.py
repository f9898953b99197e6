"""What tests of jobs whose coordinator goes do and check alike: a part of their test cases."""
import collections
import signal

SAVED = 75


class Checks:
    """`job`: a machines.Job."""

    def check_epochs(self, job, before=None):
        """`before`: those that another job of this name had formed."""
        formed = job.epochs_formed() - (before or collections.Counter())
        twice = {number: count for number, count in formed.items() if count > 1}
        self.assertEqual(twice, {}, f"formed by two coordinators\n{job.text()}")

    def check_steps(self, job, may_miss=0):
        """All steps were told of, the same of each; but for what died with who had to tell it."""
        told = job.steps()
        missing = [step for step in range(1, max(told) + 1) if step not in told]
        self.assertLessEqual(len(missing), may_miss, f"steps {missing}\n{job.text()}")
        differing = {step: losses for step, losses in told.items() if len(set(losses)) > 1}
        self.assertEqual(differing, {}, job.text())

    def take_over(self, job, how, world, code=SAVED):
        """The coordinator goes, and exits with that code where it is told to leave; until the
        others are an epoch of their own. The machine that went."""
        gone = job.drop(job.coordinator())
        since = job.marks()
        if how == "leave":
            gone.send(signal.SIGTERM)
            self.assertEqual(gone.end(), code, job.text())
        else:
            gone.kill()
        job.whole(world, since)
        return gone

    def join(self, job, number, world, **how):
        since = job.marks()
        machine = job.start(number, **how)
        job.whole(world, since)
        return machine

    def stand_still(self, job):
        """The coordinator of three stands still, until the two others go on, and then on again. The
        machine."""
        still = job.drop(job.coordinator())
        since = job.marks()
        still.send(signal.SIGSTOP)
        try:
            job.whole(2, since)
            since = job.marks()
        finally:
            still.send(signal.SIGCONT)
        job.machines[still.number] = still
        job.whole(3, {**since, still.number: still.mark()})
        return still
