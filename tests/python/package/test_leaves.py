"""Numbers of Python objects in tensors: every scheduler of torch goes on elsewhere as it was.

Promises   a scheduler that a newer torch adds, and that the table does not have, fails by name.
Does not   need the engine: where it would send or restore tensors, a test copies them.
"""
import collections
import copy
import fractions
import functools
import importlib
import math
import unittest
import warnings

import torch
from torch import nn
from torch.optim import lr_scheduler, swa_utils

import without_engine  # noqa: F401, before the module below

_leaves = importlib.import_module("evenkeel._leaves")

STEPS = 24


class Warmup:
    """A rate that depends on what the object has counted, so that its state matters."""

    def __init__(self):
        self.calls = 0

    def __call__(self, epoch):
        self.calls += 1
        return 1 if self.calls > 5 else self.calls / 5   # an int and a float


def sequential(optimizer):
    first = lr_scheduler.LinearLR(optimizer, total_iters=4)
    last = lr_scheduler.ExponentialLR(optimizer, 0.9)
    return lr_scheduler.SequentialLR(optimizer, [first, last], milestones=[5])


def chained(optimizer):
    return lr_scheduler.ChainedScheduler([lr_scheduler.ConstantLR(optimizer, total_iters=4),
                                          lr_scheduler.LambdaLR(optimizer, Warmup())])


SCHEDULERS = {
    "ChainedScheduler": [chained],
    "ConstantLR": [lambda it: lr_scheduler.ConstantLR(it, total_iters=7)],
    "CosineAnnealingLR": [lambda it: lr_scheduler.CosineAnnealingLR(it, 10, eta_min=1e-4)],
    "CosineAnnealingWarmRestarts": [
        lambda it: lr_scheduler.CosineAnnealingWarmRestarts(it, 3, T_mult=2)],
    "CyclicLR": [lambda it: lr_scheduler.CyclicLR(it, 1e-3, 0.1, step_size_up=3),
                 lambda it: lr_scheduler.CyclicLR(it, 1e-3, 0.1, 3, mode="exp_range", gamma=0.9),
                 lambda it: lr_scheduler.CyclicLR(it, 1e-3, 0.1, 3, scale_fn=Warmup())],
    "ExponentialLR": [lambda it: lr_scheduler.ExponentialLR(it, 0.9)],
    "LambdaLR": [lambda it: lr_scheduler.LambdaLR(it, lambda epoch: 0.9 ** epoch),
                 lambda it: lr_scheduler.LambdaLR(it, [lambda epoch: min(1, epoch / 4), Warmup()]),
                 lambda it: lr_scheduler.LambdaLR(it, functools.partial(pow, 0.9))],
    "LinearLR": [lambda it: lr_scheduler.LinearLR(it, total_iters=9)],
    "MultiStepLR": [lambda it: lr_scheduler.MultiStepLR(it, [3, 3, 9], gamma=0.5)],
    "MultiplicativeLR": [lambda it: lr_scheduler.MultiplicativeLR(it, lambda epoch: 0.9),
                         lambda it: lr_scheduler.MultiplicativeLR(it, Warmup())],
    "OneCycleLR": [lambda it: lr_scheduler.OneCycleLR(it, 0.1, total_steps=60),
                   lambda it: lr_scheduler.OneCycleLR(it, [0.1, 0.2], total_steps=60,
                                                      three_phase=True)],
    "PolynomialLR": [lambda it: lr_scheduler.PolynomialLR(it, total_iters=20, power=2.0)],
    "ReduceLROnPlateau": [
        lambda it: lr_scheduler.ReduceLROnPlateau(it, factor=0.5, patience=1, cooldown=1),
        lambda it: lr_scheduler.ReduceLROnPlateau(it, "max", 0.5, 2, min_lr=[0.001, 0])],
    "SequentialLR": [sequential],
    "StepLR": [lambda it: lr_scheduler.StepLR(it, 3)],
    "SWALR": [lambda it: swa_utils.SWALR(it, 0.5, anneal_epochs=8),
              lambda it: swa_utils.SWALR(it, 0.5, 8, anneal_strategy="linear")],
}
# Of the last two, one has ints in its groups, and the other has a tensor that schedulers fill.
OPTIMIZERS = [lambda groups: torch.optim.SGD(groups, lr=0.02, momentum=0.9),
              lambda groups: torch.optim.AdamW(groups, lr=0.02),
              lambda groups: torch.optim.SGD(groups, lr=1, momentum=0.9, weight_decay=0),
              lambda groups: torch.optim.Adam(groups, lr=torch.tensor(0.02))]


class Scheduled:
    """An optimizer with two groups, its scheduler, and the leaves of both."""

    def __init__(self, optimizer, schedule, fractional=False):
        parameters = [nn.Parameter(torch.ones(2)) for _ in range(3)]
        self.optimizer = optimizer([{"params": parameters[:1]},
                                    {"params": parameters[1:], "weight_decay": 0.5}])
        self.schedule = schedule(self.optimizer)
        self.fractional = fractional
        self.leaves = [_leaves.of_groups("groups", self.optimizer),
                       _leaves.of_object("schedule", self.schedule)]

    def train(self, first, last):
        """The settings of the groups after each step."""
        told = []
        for step in range(first, last):
            self.optimizer.step()
            if isinstance(self.schedule, lr_scheduler.ReduceLROnPlateau):
                self.schedule.step(math.cos(step))
            elif self.fractional:
                self.schedule.step(step / 3)
            else:
                self.schedule.step()
            told.append([{key: float(value) if isinstance(value, torch.Tensor) else value
                          for key, value in group.items() if key != "params"}
                         for group in self.optimizer.param_groups])
            for one in self.leaves:
                one.store()
        return told


def move(old, new):
    """What the engine does for a worker that joins, or after a restart."""
    for one, other in zip(old, new, strict=True):
        with torch.no_grad():
            for (name, source), (same, tensor) in zip(one.tensors(), other.tensors(), strict=True):
                assert name == same and source.dtype == tensor.dtype
                tensor.copy_(source)
        other.load()


class Thing:
    """An object with a state_dict() that a test fills."""

    def __init__(self, **entries):
        self.__dict__.update(entries)

    def state_dict(self):
        return dict(self.__dict__)

    def load_state_dict(self, state):
        self.__dict__.update(state)


class SchedulersTest(unittest.TestCase):
    def setUp(self):
        warnings.simplefilter("ignore", UserWarning)   # of fractional epochs, and of OneCycleLR

    def test_no_class_is_forgotten(self):
        known = set(SCHEDULERS) | {"LRScheduler", "_LRScheduler"}
        found = {name for module in (lr_scheduler, swa_utils) for name, one in vars(module).items()
                 if isinstance(one, type) and issubclass(one, lr_scheduler.LRScheduler)}
        self.assertFalse(found - known, f"torch has {sorted(found - known)}: add it to the table")

    def test_each_goes_on_elsewhere(self):
        for name, ways in SCHEDULERS.items():
            for way, schedule in enumerate(ways):
                for number, optimizer in enumerate(OPTIMIZERS):
                    expected = Scheduled(optimizer, schedule).train(0, STEPS)
                    for steps in (0, 1, 4, 11):
                        old, new = (Scheduled(optimizer, schedule) for _ in range(2))
                        self.assertEqual(old.train(0, steps), expected[:steps])
                        move(old.leaves, new.leaves)
                        self.assertEqual(repr(new.schedule.state_dict()),
                                         repr(old.schedule.state_dict()))
                        self.assertEqual(new.train(steps, STEPS), expected[steps:],
                                         f"{name} {way} optimizer {number} after {steps}")

    def test_warm_restarts_with_parts_of_epochs(self):
        """T_cur is an int at first, and a float later."""
        for optimizer in OPTIMIZERS:
            schedule = SCHEDULERS["CosineAnnealingWarmRestarts"][0]
            one, old, new = (Scheduled(optimizer, schedule, True) for _ in range(3))
            expected = one.train(0, STEPS)
            old.train(0, 11)
            move(old.leaves, new.leaves)
            self.assertEqual(new.train(11, STEPS), expected[11:])

    def test_a_job_that_was_trained_may_be_given_older_tensors(self):
        for name, ways in SCHEDULERS.items():
            old, new = (Scheduled(OPTIMIZERS[0], ways[0]) for _ in range(2))
            expected = Scheduled(OPTIMIZERS[0], ways[0]).train(0, STEPS)
            old.train(0, 4)
            new.train(0, 15)
            move(old.leaves, new.leaves)
            self.assertEqual(new.train(4, STEPS), expected[4:], name)

    def test_a_scheduler_that_comes_after_the_groups_were_listed_is_an_error(self):
        optimizer = OPTIMIZERS[0]([{"params": [nn.Parameter(torch.ones(2))]}])
        groups = _leaves.of_groups("groups", optimizer)
        lr_scheduler.StepLR(optimizer, 3)
        with self.assertRaisesRegex(ValueError, "groups.0 had the keys .*initial_lr.* now"):
            groups.store()

    def test_a_group_that_is_added_is_an_error(self):
        one = Scheduled(OPTIMIZERS[0], SCHEDULERS["StepLR"][0])
        one.optimizer.add_param_group({"params": [nn.Parameter(torch.ones(2))]})
        with self.assertRaisesRegex(ValueError, "had 2 parameter groups .* has 3 now"):
            one.leaves[0].store()

    def test_functions_in_groups_stay_as_they_are(self):
        optimizer = torch.optim.SGD([{"params": [nn.Parameter(torch.ones(2))], "f": len}], lr=0.5)
        groups = _leaves.of_groups("groups", optimizer)
        self.assertNotIn("0.f", groups.names())
        groups.load()
        self.assertIs(optimizer.param_groups[0]["f"], len)


class NumbersTest(unittest.TestCase):
    VALUES = [0, 1, -1, 2**53 + 1, 2**63 - 1, -2**63, True, False, None, 0.0, -0.0, 0.1, 5e-324,
              math.inf, -math.inf, math.nan]

    def test_values_and_types_arrive(self):
        old = Thing(**{f"v{number}": value for number, value in enumerate(self.VALUES)})
        new = Thing(**{f"v{number}": 0 for number, value in enumerate(self.VALUES)})
        leaves = [[_leaves.of_object("it", it)] for it in (old, new)]
        move(*leaves)
        self.assertEqual(repr(new.state_dict()), repr(old.state_dict()))

    def test_a_number_may_change_its_type(self):
        for first in self.VALUES:
            for then in self.VALUES:
                old, new = Thing(v=first), Thing(v=first)
                leaves = [[_leaves.of_object("it", it)] for it in (old, new)]
                old.v = then
                leaves[0][0].store()
                move(*leaves)
                self.assertEqual((repr(new.v), type(new.v)), (repr(then), type(then)))

    def test_a_float_of_a_subclass_comes_back_plain(self):
        class Float64(float):   # as NumPy's
            pass
        old, new = Thing(v=Float64(0.1)), Thing(v=0)
        leaves = [[_leaves.of_object("it", it)] for it in (old, new)]
        leaves[0][0].store()
        move(*leaves)
        self.assertEqual((new.v, type(new.v)), (0.1, float))

    def test_containers_keep_their_classes(self):
        pair = collections.namedtuple("pair", "left right")

        def thing(start):
            return Thing(
                counter=collections.Counter({3: 1 + start, 7: 2}), pair=pair(start, [start]),
                ordered=collections.OrderedDict(b=start, a=0.5), shape=torch.Size([start, 2]),
                nested={"x": [(1.5, {"y": start})], 4: "text", True: None}, nothing={}, empty=[])
        old, new = thing(5), thing(0)
        ordered = new.ordered
        move(*[[_leaves.of_object("it", it)] for it in (old, new)])
        self.assertEqual(repr(new.state_dict()), repr(old.state_dict()))
        self.assertEqual(ordered["b"], 0, "an object's containers are not written into")

    def test_names_tell_where_a_number_is(self):
        leaves = _leaves.of_object("it", Thing(a=3, b=[0.5, None], c={"d": True}))
        self.assertEqual(leaves.names(), ["a", "b.0", "b.1", "c.d"])
        tensors = dict(leaves.tensors())
        self.assertEqual({name: tensor.tolist() for name, tensor in tensors.items()}, {
            "it.floats": [0, 0.5, 0, 0], "it.ints": [3, 0, 0, 1],
            "it.kinds": [_leaves.INT, _leaves.FLOAT, _leaves.NONE, _leaves.BOOL]})

    def test_an_object_without_numbers_lists_nothing(self):
        leaves = _leaves.of_object("it", Thing(a="text"))
        leaves.store()
        leaves.load()
        self.assertEqual(leaves.tensors(), [])

    def test_the_tensors_stay_the_same_ones(self):
        thing = Thing(a=3, t=torch.ones(2))
        leaves = _leaves.of_object("it", thing)
        before = leaves.tensors()
        thing.a, thing.t = 4, torch.zeros(2)
        leaves.store()
        leaves.load()
        for (name, tensor), (same, other) in zip(before, leaves.tensors(), strict=True):
            self.assertTrue(name == same and tensor is other)
        self.assertEqual(dict(before)["it.ints"].tolist(), [4])
        self.assertEqual(dict(before)["it.t"].tolist(), [0, 0])


class ErrorsTest(unittest.TestCase):
    def test_a_structure_that_changes_is_named(self):
        for old, new, words in [
                ([1, 2], [1, 2, 3], "it.v.0 had the length 2 .* has the length 3 now"),
                ([1, 2], [], "it.v.0 had the length 2 .* has the length 0 now"),
                ({"a": 1}, {"b": 1}, r"it.v.0 had the keys \[a\] .* has the keys \[b\] now"),
                ({"a": 1}, {"a": 1, "b": 1}, r"it.v.0 had .* has the keys \[a, b\] now"),
                ({"a": {"b": "up"}}, {"a": {"b": "down"}}, "it.v.0.a.b was 'up' .* is 'down' now"),
                ("up", b"up", "it.v.0 was 'up' .* is b'up' now"),
                ("up", torch.ones(3), "it.v.0 was 'up'"),
                ("up", None, "it.v.0 was 'up' .* is None now"),
                (1, "1", "it.v.0 was a number or None and is now of the type builtins.str"),
                (None, [1], "it.v.0 was a number or None and is now of the type builtins.list"),
                (None, torch.ones(1), "it.v.0 was a number .* of the type torch.Tensor"),
                ([1], 1, "it.v.0 was a container and is now of the type builtins.int"),
                ([1], None, "it.v.0 was a container and is now of the type builtins.NoneType"),
                ([1], "a", "it.v.0 was a container and is now of the type builtins.str"),
                ([1], torch.ones(1), "it.v.0 was a container .* of the type torch.Tensor"),
                (1, 2**63, f"it.v.0 is {2**63}, and whole numbers are kept in 64 bits"),
                (0.5, -2**64, f"it.v.0 is -{2**64}"),
                (1.5, 1j, "it.v.0 was a number or None and is now of the type builtins.complex"),
                (torch.ones(2), 1.0, "it.v.0 was a tensor and is now of the type builtins.float"),
                (torch.ones(2), torch.ones(3), r"it.v.0 was a tensor \(2,\) .* \(3,\)"),
                (torch.ones(2), torch.ones(2).half(), "torch.float32 on cpu and is one .*float16")]:
            thing = Thing(v=[old], w=5)
            leaves = _leaves.of_object("it", thing)
            before = {name: tensor.tolist() for name, tensor in leaves.tensors()}
            thing.v, thing.w = [new], 6
            for call in (leaves.store, leaves.load):
                with self.assertRaisesRegex(ValueError, words):
                    call()
            self.assertEqual(before, {name: tensor.tolist() for name, tensor in leaves.tensors()},
                             "tensors are written all or not")

    def test_what_cannot_be_mirrored_is_named(self):
        endless = []
        endless.append(endless)
        sparse = torch.ones(2).to_sparse()
        for value, words in [
                (1j, "it.v.0 is of the type builtins.complex"), (len, "builtins.builtin_function"),
                (lambda: 1, "it.v.0 is of the type builtins.function"), ({1}, "builtins.set"),
                (fractions.Fraction(1), "fractions.Fraction"), (Thing(), "Thing"),
                (Thing, "builtins.type"), (collections.deque([1]), "collections.deque"),
                (range(3), "builtins.range"), ({(1, 2): 3}, "it.v.0 has a key of the type"),
                ({"a": {"b": object()}}, "it.v.0.a.b is of the type builtins.object"),
                (endless, "contain itself"), (sparse, "it.v.0 is a tensor that is sparse"),
                (torch.ones(2, device="meta"), "without memory")]:
            with self.assertRaisesRegex(TypeError, words):
                _leaves.of_object("it", Thing(v=[value]))

    def test_numpy_is_refused_by_name(self):
        try:
            import numpy
        except ImportError:
            self.skipTest("there is no numpy")
        for value in (numpy.float32(1), numpy.int64(1), numpy.ones(2), numpy.bool_(True)):
            with self.assertRaisesRegex(TypeError, "it.v is of the type numpy"):
                _leaves.of_object("it", Thing(v=value))

    def test_two_tensors_of_one_name_are_an_error(self):
        for entries in ({"a.b": torch.ones(1), "a": {"b": torch.ones(1)}},
                        {"ints": torch.ones(1), "a": 1}):
            with self.assertRaisesRegex(ValueError, "two tensors have the name it"):
                _leaves.of_object("it", Thing(**entries))

    def test_an_object_that_does_not_take_its_state_is_seen(self):
        class Forgets(Thing):
            def load_state_dict(self, state):
                pass

        class Doubles(Thing):
            def load_state_dict(self, state):
                self.t = state["t"] * 2
        for kind, words in ((Forgets, "it.a is 1 after load_state_dict.* given 2"),
                            (Doubles, "it.t has other values")):
            thing = kind(a=1, t=torch.ones(2))
            leaves = _leaves.of_object("it", thing)
            if kind is Forgets:
                dict(leaves.tensors())["it.ints"].fill_(2)
            with self.assertRaisesRegex(ValueError, words):
                leaves.load()

    def test_kinds_that_do_not_exist_are_seen(self):
        leaves = _leaves.of_object("it", Thing(a=1))
        dict(leaves.tensors())["it.kinds"].fill_(9)
        with self.assertRaisesRegex(ValueError, "it.kinds holds 9"):
            leaves.load()

    def test_objects_that_are_no_such_things_are_refused(self):
        with self.assertRaisesRegex(TypeError, "it is an optimizer: give it to job.prepare"):
            _leaves.of_object("it", torch.optim.SGD([nn.Parameter(torch.ones(1))]))
        with self.assertRaisesRegex(TypeError, "it is of the type .*has no state_dict"):
            _leaves.of_object("it", object())


class TensorsTest(unittest.TestCase):
    def model(self, seed):
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Linear(3, 2))

    def test_averaged_models_go_on_elsewhere(self):
        ways = [{}, {"multi_avg_fn": swa_utils.get_ema_multi_avg_fn(0.9)},
                {"avg_fn": swa_utils.get_ema_avg_fn(0.9), "use_buffers": True}]
        for way in ways:
            model = self.model(1)
            old, new = (swa_utils.AveragedModel(self.model(seed), **way) for seed in (1, 2))
            leaves = [[_leaves.of_object("ema", it)] for it in (old, new)]
            tensors = dict(leaves[0][0].tensors())
            for name, tensor in old.state_dict().items():
                self.assertEqual(tensors[f"ema.{name}"].data_ptr(), tensor.data_ptr(), name)
            self.assertEqual(leaves[0][0].names(), [])

            def train(averages, first, last):
                for step in range(first, last):
                    torch.manual_seed(step)
                    with torch.no_grad():
                        for parameter in [*model.parameters(), *model.buffers()]:
                            parameter.copy_(torch.rand(parameter.shape) * 9)
                    for average in averages:
                        average.update_parameters(model)
                    for one in leaves[0] + leaves[1]:
                        one.store()
            train([old], 0, 3)
            move(*leaves)
            train([old, new], 3, 6)
            for name, tensor in new.state_dict().items():
                self.assertTrue(torch.equal(tensor, old.state_dict()[name]), name)
            self.assertEqual(int(new.n_averaged), 6)

    def test_tensors_that_are_replaced_are_copied(self):
        """The average that most scripts write by hand."""
        def thing(value):
            return Thing(shadow={"w": torch.full((3,), value)}, decay=0.9)
        old, new = thing(1.0), thing(5.0)
        leaves = [[_leaves.of_object("ema", it)] for it in (old, new)]
        for step in range(6):
            if step == 3:
                move(*leaves)
            for it in (old, new):
                it.shadow["w"] = it.shadow["w"] * it.decay + step
            for one in leaves[0] + leaves[1]:
                one.store()
        self.assertTrue(torch.equal(old.shadow["w"], new.shadow["w"]))

    def test_copies_do_not_share_memory_with_the_object(self):
        thing = Thing(a=torch.ones(2), b=torch.zeros(2))
        leaves = _leaves.of_object("it", thing)
        for _ in range(3):
            thing.a, thing.b = thing.b, thing.a
            leaves.store()
            self.assertEqual([tensor.tolist() for _, tensor in leaves.tensors()],
                             [thing.a.tolist(), thing.b.tolist()])
            leaves.load()
        self.assertEqual(thing.a.tolist(), [0, 0])

    def test_a_live_tensor_must_stay(self):
        thing = Thing(t=torch.ones(2))
        leaves = _leaves.of_object("it", thing, live=True)
        thing.t.add_(1)
        leaves.store()
        self.assertEqual(dict(leaves.tensors())["it.t"].tolist(), [2, 2])
        thing.t = torch.ones(2)
        with self.assertRaisesRegex(ValueError, "it.t is another tensor than at first"):
            leaves.store()
        with self.assertRaisesRegex(ValueError, "it.t is another tensor than at first"):
            _leaves.Leaves("it", lambda: {"t": torch.ones(2)}, print, live=True)

    def test_what_is_known_is_left_out(self):
        model = self.model(1)
        known = [*model.parameters(), *model.buffers()]
        thing = Thing(model=model.state_dict(), own=torch.ones(2), n=1)
        for given in (known, {tensor.data_ptr() for tensor in known}):
            leaves = _leaves.of_object("it", thing, known=given)
            self.assertEqual([name for name, _ in leaves.tensors()],
                             ["it.floats", "it.ints", "it.kinds", "it.own"])
            leaves.store()
            leaves.load()
            self.assertEqual(thing.model["0.weight"].data_ptr(), model[0].weight.data_ptr())
        thing.model["0.weight"] = torch.ones(3, 4)
        with self.assertRaisesRegex(ValueError, "it.model.0.weight is another tensor"):
            leaves.store()

    def test_one_tensor_under_two_names_is_listed_once(self):
        model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
        model[1].weight = model[0].weight
        names = [name for name, _ in _leaves.of_object("it", model).tensors()]
        self.assertEqual(names, ["it.0.weight", "it.0.bias", "it.1.bias"])

    def test_tensors_of_all_types_are_compared_to_the_bit(self):
        values = [torch.tensor(math.nan), torch.tensor([True, False]), torch.ones(2, 2).t(),
                  torch.tensor([1 + 2j]), torch.ones(0), torch.ones(3, dtype=torch.bfloat16),
                  torch.tensor(5), torch.arange(12).reshape(3, 4)[:, ::2],
                  nn.Parameter(torch.ones(2))]
        old = Thing(v=copy.deepcopy(values))
        new = Thing(v=[torch.zeros_like(value) for value in values])
        move(*[[_leaves.of_object("it", it)] for it in (old, new)])
        for one, other in zip(old.v, new.v):
            self.assertTrue(_leaves.same_bits(one, other))

    def test_a_scaler_goes_on_elsewhere(self):
        old, new = (torch.amp.GradScaler("cpu", init_scale=2.0**scale, growth_interval=2)
                    for scale in (8, 4))
        leaves = [[_leaves.of_object("scaler", it)] for it in (old, new)]
        ends = []
        for scaler in (old, new):
            if scaler is new:
                move(*leaves)
            for _ in range(5):
                parameter = nn.Parameter(torch.ones(1))
                optimizer = torch.optim.SGD([parameter], lr=0.1)
                scaler.scale((parameter * 2).sum()).backward()
                scaler.step(optimizer)
                scaler.update()
            if scaler is old:
                leaves[0][0].store()
            ends.append(scaler.get_scale())
        self.assertEqual(ends, [2.0**10, 2.0**13])
        off = _leaves.of_object("scaler", torch.amp.GradScaler("cpu", enabled=False))
        self.assertEqual(off.tensors(), [])

    class Metric(nn.Module):
        """As torchmetrics has them: not persistent at first, and copied by state_dict()."""
        def __init__(self, state=None, is_persistent=False):
            super().__init__()
            self.metric_state = {"total": torch.zeros(()) if state is None else state}
            self.is_persistent = is_persistent

        def state_dict(self, *_, **__):
            return copy.deepcopy(self.metric_state) if self.is_persistent else {}

        def load_state_dict(self, state):
            self.metric_state = dict(state)

    def test_a_module_that_gives_nothing_of_its_tensors_is_refused(self):
        class Silent(nn.Linear):
            def state_dict(self, *_, **__):
                return {}
        late, tensor = nn.Sequential(nn.Identity()), nn.Identity()
        late[0].register_buffer("center", torch.zeros(2), persistent=False)
        tensor.table = torch.ones(2)
        for thing, name in ((self.Metric(), "total"), (self.Metric([]), "total"),
                            (nn.ModuleList([self.Metric()]), "0.total"), (late, "0.center"),
                            (tensor, "table"), (Silent(1, 1), "weight")):
            with self.subTest(name=name), self.assertRaisesRegex(
                    TypeError, rf"^it is .*its '{name}' would be lost at a resume: call pers"):
                _leaves.of_object("it", thing)
        for thing in (nn.ReLU(), nn.Sequential(nn.Flatten()), Thing()):
            self.assertEqual(_leaves.of_object("it", thing).tensors(), [])
        model = nn.Linear(1, 1)
        self.assertEqual(_leaves.of_object("it", model, known=model.parameters()).tensors(), [])

    def test_a_module_that_gives_copies_of_tensors_that_it_replaces_goes_on(self):
        old, new = (self.Metric(is_persistent=True) for _ in range(2))
        leaves = [[_leaves.of_object("it", it)] for it in (old, new)]
        old.metric_state["total"] = old.metric_state["total"] + 3
        leaves[0][0].store()
        move(*leaves)
        self.assertEqual(new.metric_state["total"], 3)

    def test_of_a_module_only_what_is_not_its_own_is_copied(self):
        class More(nn.Linear):
            seen = torch.zeros(())
            def get_extra_state(self):
                return self.seen
            def set_extra_state(self, state):
                self.seen = state
        old, new = More(2, 1), More(2, 1)
        leaves = [[_leaves.of_object("it", it)] for it in (old, new)]
        listed = dict(leaves[0][0].tensors())
        self.assertEqual(listed["it.weight"].data_ptr(), old.weight.data_ptr())
        old.seen = old.seen + 3
        leaves[0][0].store()
        move(*leaves)
        self.assertEqual(new.seen, 3)
        self.assertTrue(torch.equal(new.weight, old.weight))


if __name__ == "__main__":
    unittest.main()
