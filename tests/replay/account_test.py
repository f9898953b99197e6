#!/usr/bin/env python3
"""What counts as work, and what was lost, by what workers told."""
import unittest

import parts  # noqa: F401  finds what follows

import account
import plan

Told = account.Told


def log(steps, come=0, gone=10, pid=1, world=1, **more):
    """`steps`: {step: at}."""
    known = ("epochs", "resumed", "receiving", "killed")
    fields = {name: more.pop(name) for name in known if name in more}
    told = [Told(at, step, world, pid) for step, at in steps.items()]
    return account.HostLog(plan.Tenure(0, "a", come, gone, **more), told, **fields)


def steady(first, last, begin, every=1.0):
    return {step: begin + every * (step - first) for step in range(first, last + 1)}


class Goodput(unittest.TestCase):
    def spent(self, *logs):
        result = account.report(list(logs))
        self.assertAlmostEqual(sum(result["spent"].values()), result["worker_seconds"], 2)
        return result

    def test_starting_and_what_is_broken_off_are_lost(self):
        result = self.spent(log(steady(1, 7, 3), goes=True))
        self.assertEqual(result["spent"], {"starting": 2, "useful": 7, "reforming": 0,
                                           "broken off": 1})
        self.assertAlmostEqual(result["goodput"], 0.7)

    def test_who_is_told_leaves_early(self):
        result = self.spent(log(steady(1, 8, 1), goes=True, notice=8))
        self.assertEqual(result["spent"], {"starting": 0, "useful": 8, "reforming": 0,
                                           "left early": 2})

    def test_a_step_in_which_the_epoch_changed_counts_as_a_usual_one(self):
        steps = {1: 1, 2: 2, 3: 3, 4: 5.5, 5: 6.5, 6: 7.5, 7: 8.5}
        result = self.spent(log(steps, epochs=[3.2]))
        self.assertEqual(result["spent"]["reforming"], 1.5)
        self.assertEqual(result["stall_s"], {"count": 1, "median": 1.5, "p99": 1.5, "worst": 1.5})

    def test_slow_steps_are_work_but_standing_still_is_not(self):
        slow = self.spent(log({1: 1, 2: 2, 3: 3, 4: 6.5}, gone=6.5))
        self.assertEqual(slow["spent"]["useful"], 6.5)
        still = self.spent(log({1: 1, 2: 2, 3: 3, 4: 9.5}))
        self.assertEqual(still["spent"]["reforming"], 5.5)

    def test_what_is_made_again_counts_once(self):
        first = log(steady(1, 5, 1), gone=5, goes=True)
        second = log(steady(3, 6, 6), come=5, pid=2, resumed=[(5.5, 2)])
        result = self.spent(first, second)
        self.assertEqual((result["steps"], result["steps_lost"]), (6, 3))
        self.assertEqual(result["spent"]["undone"], 3)
        self.assertEqual(result["spent"]["useful"], 6)

    def test_steps_that_went_with_all_who_knew_them_are_told_apart(self):
        later = log({}, come=4, gone=9, resumed=[(6, 2)])
        for gone, notice, left in ((5, None, 0), (7, None, 3), (7, 5.5, 0)):
            first = log(steady(1, 5, 1), gone=gone, goes=True, notice=notice)
            found = account.Rewinds([first, later])
            self.assertEqual((found.steps_lost, found.with_hosts_left), (3, left), (gone, notice))

    def test_a_newcomer_that_still_receives_the_state_knows_no_step(self):
        later = log({}, come=5.5, gone=9, resumed=[(6, 2)])
        again = [(2, True), (4, False), (5, True)]
        for receiving, left in (([], 3), ([(2, True)], 0), ([(2, True), (4, False)], 3),
                                (again, 0), ([(2, True), (7, False)], 0)):
            newcomer = log(steady(1, 5, 1), receiving=receiving)
            found = account.Rewinds([newcomer, later])
            self.assertEqual((found.steps_lost, found.with_hosts_left), (3, left), receiving)

    def test_all_workers_of_a_restart_tell_of_one_loss(self):
        logs = [log({**steady(1, 5, 1)}, resumed=[(6, 2)]), log({}, resumed=[(6.1, 2), (7, 2)])]
        self.assertEqual(account.Rewinds(logs).steps_lost, 3)

    def test_what_was_lost_on_the_way_is_not_lost_again_in_the_end(self):
        first = log(steady(1, 6, 1), gone=6, goes=True)
        later = log(steady(3, 4, 7), come=6, pid=2, resumed=[(6.5, 2)])
        self.assertEqual(account.Rewinds([first, later]).high, 4)
        self.assertEqual(account.Rewinds([first]).high, 6)
        self.assertEqual(account.Rewinds([]).high, 0)

    def test_a_second_worker_of_a_host_has_to_start_too(self):
        one = log(steady(1, 3, 1))
        one.told += [Told(8, 4, 1, 2), Told(9, 5, 1, 2), Told(10, 6, 1, 2)]
        self.assertEqual(self.spent(one)["spent"]["restarting"], 4)

    def test_who_never_made_a_step_did_nothing(self):
        result = self.spent(log({}, goes=True), log(steady(1, 10, 1)))
        self.assertEqual(result["spent"]["never stepped"], 10)
        self.assertEqual(result["goodput"], 0.5)

    def test_the_stores_own_host_is_counted_apart(self):
        result = account.report([log(steady(1, 10, 1), is_spot=False), log(steady(1, 5, 6))])
        self.assertEqual((result["goodput"], result["with_store_host"]["goodput"]), (0.5, 0.75))

    def test_the_longest_time_without_any_step_is_told(self):
        result = account.report([log({3: 4, 4: 8}, gone=9), log({1: 1, 2: 2, 3: 4.5}, gone=9)])
        self.assertEqual(result["longest_pause_s"], 3.5)

    def test_nobody(self):
        self.assertIsNone(account.report([])["goodput"])
        self.assertEqual(account.report([log({})])["goodput"], 0)


class Recovery(unittest.TestCase):
    def test_lasts_until_another_host_makes_a_step_in_a_newer_epoch(self):
        dead = log({1: 1, 2: 2}, killed=2.5, goes=True)
        # Told after the kill, but decided before: its epoch is the old one.
        left = log({1: 1, 2: 2, 3: 2.6, 4: 4}, pid=2, epochs=[0.5, 3])
        self.assertEqual(account.recoveries([dead, left]), ([1.5], 0, 0))

    def test_is_not_asked_of_a_host_that_had_made_no_step(self):
        dead, left = log({}, killed=2.5), log(steady(1, 9, 1), pid=2, epochs=[0.5])
        self.assertEqual(account.recoveries([dead, left]), ([], 1, 0))

    def test_may_be_cut_by_the_end(self):
        dead, left = log({1: 1}, killed=9), log(steady(1, 9, 1), pid=2, epochs=[0.5])
        self.assertEqual(account.recoveries([dead, left]), ([], 0, 1))

    def test_quantiles_are_of_the_values(self):
        self.assertEqual(account.quantile([3, 1, 2], 0.5), 2)
        self.assertEqual(account.quantile([1, 2, 3, 4], 0.99), 4)
        self.assertIsNone(account.quantile([], 0.5))


if __name__ == "__main__":
    unittest.main()
