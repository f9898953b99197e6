#!/usr/bin/env python3
"""What a trace becomes for a few seats."""
import argparse
import os
import unittest

import parts

import plan
import traces

OPTIONS = {"mapping": "first", "stable": False, "lead": 0, "notice_share": 0, "seed": 1,
           "start": None, "end": None}


def make(text, seconds, hosts, **options):
    trace = traces.parse(text) if "," in text else traces.load(os.path.join(parts.TRACES, text))
    return plan.make(trace, seconds, hosts, argparse.Namespace(**{**OPTIONS, **options}))


def rows(the_plan):
    return [(one.seat, one.host, one.come, one.gone, one.goes) for one in the_plan.tenures]


class Seats(unittest.TestCase):
    def test_time_is_scaled_and_begins_with_the_first_event(self):
        the_plan = make("10000,add,a\n15000,add,b\n20000,remove,a\n30000,remove,b\n", 2, 4)
        self.assertEqual(rows(the_plan), [(0, "a", 0, 1, True), (1, "b", 0.5, 2, False)])
        self.assertEqual(the_plan.speed, 10)

    def test_whoever_waits_takes_the_seat_that_becomes_free(self):
        the_plan = make("0,add,a\n0,add,b\n0,add,c\n4000,remove,a\n6000,remove,b\n8000,add,d\n",
                        8, 2)
        self.assertEqual(rows(the_plan), [(0, "a", 0, 4, True), (1, "b", 0, 6, True),
                                          (0, "c", 4, 8, False)])

    def test_seats_shrink_and_grow_with_the_whole(self):
        text = ("0,add,a\n0,add,b\n0,add,c\n0,add,d\n4000,remove,d\n4000,remove,c\n6000,add,e\n"
                "8000,add,f\n")
        the_plan = make(text, 8, 2, mapping="scale")
        # Of four hosts two have seats; of two one; of three two.
        self.assertEqual(rows(the_plan), [(0, "a", 0, 4, True), (1, "b", 0, 8, False),
                                          (0, "a", 6, 8, False)])

    def test_the_stores_host_is_one_of_them_and_stays(self):
        the_plan = make("0,add,a\n0,add,b\n4000,remove,a\n8000,remove,b\n", 8, 2, stable=True)
        self.assertEqual(rows(the_plan), [(0, "stable", 0, 8, False), (1, "a", 0, 4, True),
                                          (1, "b", 4, 8, False)])
        self.assertEqual([one.is_spot for one in the_plan.tenures], [False, True, True])
        with self.assertRaisesRegex(ValueError, "no seat is left"):
            make("0,add,a\n1000,remove,a\n", 8, 1, stable=True)

    def test_a_part_begins_with_who_is_there(self):
        the_plan = make("0,add,a\n2000,remove,a\n3000,add,b\n9000,add,c\n", 4, 2, start=3.5,
                        end=7.5)
        self.assertEqual(rows(the_plan), [(0, "b", 0, 4, False)])
        for start, end in ((5, 5), (6, 5), (None, -1)):
            with self.assertRaisesRegex(ValueError, "nothing between"):
                make("0,add,a\n2000,remove,a\n", 4, 2, start=start, end=end)
        with self.assertRaisesRegex(ValueError, "no host is there"):
            make("0,add,a\n2000,remove,a\n3000,add,a\n", 4, 2, start=2, end=2.5)

    def test_notices_come_before_the_end_and_not_before_the_host(self):
        text = "0,add,a\n10000,add,b\n12000,remove,b\n20000,remove,a\n30000,add,c\n"
        told = make(text, 30, 2, lead=5, notice_share=1)
        self.assertEqual([(one.host, one.notice) for one in told.tenures],
                         [("a", 15), ("b", 10), ("c", None)][:len(told.tenures)])
        self.assertEqual(told.kinds(), {"come": 2, "go_with_notice": 2, "go_without_notice": 0})

    def test_a_seed_draws_the_same_again(self):
        for share, some in ((0.5, True), (0, False)):
            first, again, other = (make("bamboo/p3-trace.csv", 600, 6, mapping="scale", lead=120,
                                        notice_share=share, seed=seed) for seed in (1, 1, 2))
            self.assertEqual(first, again)
            self.assertEqual(first != other, some)

    def test_real_traces_never_take_more_seats_than_there_are(self):
        names = ("bamboo/p3-trace.csv", "bamboo/g4dn-trace.csv", "bamboo/a100x1-east1b.txt",
                 "spotserve/trace_0203_real.txt")
        for name in names:
            for mapping in ("scale", "first"):
                found = make(name, 600, 6, mapping=mapping).tenures
                for one in found:
                    self.assertLess(one.come, one.gone)
                    self.assertLess(one.seat, 6)
                    beside = [two for two in found if two is not one and two.seat == one.seat
                              and two.come < one.gone and one.come < two.gone]
                    self.assertEqual(beside, [])
                    twice = [two for two in found if two is not one and two.host == one.host
                             and two.come < one.gone and one.come < two.gone]
                    self.assertEqual(twice, [])


if __name__ == "__main__":
    unittest.main()
