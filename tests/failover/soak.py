#!/usr/bin/env python3
"""Lets the coordinator of one training job go again and again: told to leave, or killed.

Promises   --rounds of each, in an order drawn from the seed, a newcomer after each. The job fails
           where an epoch's number is formed twice, where a step has other losses than a quiet run
           of one worker, where a hand-over loses a step, or where anything stands still.
Does not   care at which moment of a step the coordinator goes: that is the scheduler's.
"""
import argparse
import os
import random
import sys
import time
import unittest

import failover_test
import machines

ADDRESSES = range(1, machines.MOST)


class Soak(failover_test.Case):
    def test_the_coordinator_goes_again_and_again(self):
        args = failover_test.ARGS
        rng = random.Random(args.seed)
        rounds = ["leave", "kill"] * args.rounds
        rng.shuffle(rounds)
        print(f"seed {args.seed}", file=sys.stderr, flush=True)
        with failover_test.training() as job:
            job.start_all()
            for number, how in enumerate(rounds):
                job.go_on(10)
                time.sleep(rng.uniform(0, 0.5))
                begun = job.last_step()
                gone = self.take_over(job, how, 2)
                job.go_on(10)
                # The one that went comes back at times: it is the endpoint's machine at first.
                free = [one for one in ADDRESSES if one not in job.machines]
                again = gone.number if rng.random() < 0.3 else rng.choice(free)
                self.join(job, again, 3)
                print(f"round {number}: host {gone.number} {how} at step {begun}, host {again} "
                      f"came; {len(job.epochs_formed())} epochs", file=sys.stderr, flush=True)
            self.assertEqual(set(job.stop().values()), {failover_test.SAVED}, job.text())
            self.check_epochs(job)
            # Whoever is killed may take along what it was about to tell of its last steps.
            self.check_steps(job, may_miss=2 * args.rounds)
            self.check_as_alone(job)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keelrun", required=True, type=os.path.abspath)
    parser.add_argument("--trainer", required=True, type=os.path.abspath, help="minimal_train")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "little"))
    failover_test.ARGS, rest = parser.parse_known_args()
    unittest.main(argv=[__file__, *rest])


if __name__ == "__main__":
    main()
