"""Optimizers that were materialized, against fresh ones: every class of torch.optim, bit for bit.

Promises   a class that a newer torch adds, and that stands in none of the tables, fails by name.
Does not   need the engine: where it would send or restore tensors, a test copies them.
"""
import importlib
import inspect
import itertools
import random
import unittest
import warnings

import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

import foreign_optimizers as foreign
import without_engine  # noqa: F401, before the modules below

_leaves = importlib.import_module("evenkeel._leaves")
_optimizer = importlib.import_module("evenkeel._optimizer")

LR = 0.01
BEFORE, AFTER = 3, 5   # steps before and after another worker takes over
SETTINGS = {
    "ASGD": [{}, {"t0": 1, "lambd": 0.1}],
    "Adadelta": [{}, {"weight_decay": 0.1}],
    "Adafactor": [{}, {"weight_decay": 0.1}],
    "Adagrad": [{}, {"initial_accumulator_value": 0.1, "lr_decay": 0.1}],
    "Adam": [{}, {"amsgrad": True}, {"weight_decay": 0.1}],
    "AdamW": [{}, {"amsgrad": True, "weight_decay": 0.1}],
    "Adamax": [{}, {"weight_decay": 0.1}],
    "Muon": [{}, {"nesterov": False}, {"adjust_lr_fn": "match_rms_adamw"}],
    "NAdam": [{}, {"weight_decay": 0.1, "decoupled_weight_decay": True}],
    "RAdam": [{}, {"weight_decay": 0.1, "decoupled_weight_decay": True}],
    "RMSprop": [{}, {"momentum": 0.9, "centered": True}],
    "Rprop": [{}],
    "SGD": [{}, {"momentum": 0.9}, {"momentum": 0.9, "weight_decay": 0.1},
            {"momentum": 0.9, "nesterov": True}, {"momentum": 0.9, "dampening": 0.5},
            {"momentum": 0.9, "dampening": 1, "weight_decay": 0.1}],
}
REFUSED = {"LBFGS": "loss several times", "SparseAdam": "sparse gradients"}
OF_THE_RATE = (torch.optim.ASGD, torch.optim.Rprop)
# Each is tried where the class has it.
IMPLEMENTATIONS = [{}, {"foreach": True}, {"foreach": False}, {"fused": True}, {"maximize": True},
                   {"maximize": True, "foreach": True}]


def classes():
    found = {name: one for name, one in vars(torch.optim).items()
             if isinstance(one, type) and issubclass(one, torch.optim.Optimizer)}
    del found["Optimizer"]
    return found


def cases():
    """(class, settings) of all that a test is to run through."""
    for name, settings in SETTINGS.items():
        kind = getattr(torch.optim, name)
        taken = inspect.signature(kind).parameters
        for one in settings:
            for way in IMPLEMENTATIONS:
                if all(key in taken for key in way):
                    yield kind, {**one, **way}


def bits(tensor):
    return tensor.detach().reshape(-1).contiguous().view(torch.uint8)


class Training:
    """Some parameters, an optimizer with two groups, and a schedule."""

    def __init__(self, kind, settings, seed=1, schedule=None):
        generator = torch.Generator().manual_seed(seed)
        shapes = [(16, 8), (4, 16), (8, 8), (3, 3), (16,), (4,), ()]
        self.parameters = [torch.nn.Parameter(torch.randn(shape, generator=generator))
                           for shape in shapes if kind is not getattr(torch.optim, "Muon", None)
                           or len(shape) == 2]
        self.parameters[3].requires_grad_(False)
        # The parameter that has no gradient in the first steps. Fused SGD fails with such a one,
        # and ASGD and Rprop make its state out of the rate that there is then.
        self.late = None if settings.get("fused") or schedule and kind in OF_THE_RATE else 1
        self.names = {one: f"p{number}" for number, one in enumerate(self.parameters)}
        self.optimizer = kind([{"params": self.parameters[:2]},
                               {"params": self.parameters[2:], "lr": LR / 3}], lr=LR, **settings)
        self.schedule = schedule(self.optimizer) if schedule else None

    def materialize(self):
        _optimizer.materialize(self.optimizer)
        return self

    def train(self, first, last):
        for step in range(first, last):
            generator = torch.Generator().manual_seed(step)
            for one in self.parameters:
                gradient = torch.randn(one.shape, generator=generator)
                gradient.view(-1)[::3] = -0.0
                one.grad = gradient if one.requires_grad else None
            if self.late is not None and step < 2:
                self.parameters[self.late].grad = None
            self.optimizer.step()
            if self.schedule is not None:
                self.schedule.step()
        return self

    def leaves(self):
        found = [_leaves.of_groups("groups", self.optimizer),
                 _optimizer.state_numbers("state", self.optimizer, self.names)]
        if self.schedule is not None:
            found.append(_leaves.of_object("schedule", self.schedule))
        return found

    def listed(self, leaves):
        """All that the engine would list."""
        own = [(name, one) for one, name in self.names.items()]
        own += _optimizer.state_tensors(self.optimizer, self.names)
        return own + [item for one in leaves for item in one.tensors()]


def one_cycle(optimizer):
    return torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=0.1, total_steps=40,
        cycle_momentum=bool({"momentum", "betas"} & set(optimizer.defaults)))


def step_rate(optimizer):
    return torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)


class OptimizerTest(unittest.TestCase):
    def assert_same(self, one, other, message):
        """Parameters and state, to the bit; what only one has is FIRST_STEP or another class's."""
        for a, b in zip(one.parameters, other.parameters):
            self.assertTrue(torch.equal(bits(a), bits(b)), f"{message}: {one.names[a]}")
            state, expected = other.optimizer.state.get(b, {}), one.optimizer.state.get(a, {})
            self.assertLessEqual(set(expected), set(state), message)
            self.assertLessEqual(set(state) - set(expected), {_optimizer.FIRST_STEP}, message)
            for key in expected:
                if isinstance(expected[key], torch.Tensor):
                    self.assertTrue(torch.equal(bits(expected[key]), bits(state[key])),
                                    f"{message}: {one.names[a]}.{key}")
                    self.assertEqual((expected[key].dtype, expected[key].stride()),
                                     (state[key].dtype, state[key].stride()), message)
                else:
                    self.assertEqual(expected[key], state[key], message)


class EveryClassTest(OptimizerTest):
    def test_no_class_is_forgotten(self):
        unknown = set(classes()) - set(SETTINGS) - set(REFUSED)
        self.assertFalse(unknown, f"torch.optim has {sorted(unknown)}: add them to the tables")

    def test_materialized_trains_as_fresh(self):
        for kind, settings in cases():
            fresh = Training(kind, settings).train(0, 6)
            made = Training(kind, settings).materialize()
            listed = _optimizer.state_tensors(made.optimizer, made.names)
            made.train(0, 6)
            self.assert_same(fresh, made, f"{kind.__name__} {settings}")
            _optimizer.check_state(made.optimizer, made.names, listed)

    def test_state_at_once_is_that_of_no_step(self):
        for kind, settings in cases():
            made = Training(kind, settings).materialize()
            for parameter in made.parameters:
                if parameter.requires_grad:
                    state = made.optimizer.state.get(parameter, {})
                    self.assertEqual(float(state.get("step", 0)), 0, f"{kind.__name__} {settings}")

    def test_schedulers_are_not_disturbed(self):
        for kind, settings in cases():
            for schedule in (one_cycle, step_rate):
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    fresh = Training(kind, settings, schedule=schedule).train(0, 6)
                    made = Training(kind, settings, schedule=schedule).materialize().train(0, 6)
                self.assert_same(fresh, made, f"{kind.__name__} {settings} {schedule.__name__}")

    def test_a_scheduler_that_begins_with_the_rate_may_come_later(self):
        for kind, settings in cases():
            fresh = Training(kind, settings, schedule=step_rate).train(0, 6)
            made = Training(kind, settings).materialize()
            made.late, made.schedule = fresh.late, step_rate(made.optimizer)
            self.assert_same(fresh, made.train(0, 6), f"{kind.__name__} {settings}")

    def test_another_worker_goes_on(self):
        for kind, settings in cases():
            for steps in (0, 1, BEFORE):
                old = Training(kind, settings, schedule=one_cycle).materialize()
                old_leaves = old.leaves()
                listed = old.listed(old_leaves)
                old.train(0, steps)
                new = Training(kind, settings, seed=7, schedule=one_cycle).materialize()
                new_leaves = new.leaves()
                for one in old_leaves:
                    one.store()
                with torch.no_grad():
                    for (name, tensor), (other, source) in zip(new.listed(new_leaves), listed,
                                                               strict=True):
                        self.assertEqual(name, other)
                        tensor.copy_(source)
                for one in new_leaves:
                    one.load()
                old.train(steps, steps + AFTER)
                new.train(steps, steps + AFTER)
                message = f"{kind.__name__} {settings} after {steps}"
                self.assert_same(old, new, message)
                self.assertEqual([group["lr"] for group in old.optimizer.param_groups],
                                 [group["lr"] for group in new.optimizer.param_groups], message)

    def test_known_ones_are_refused_by_name(self):
        parameter = torch.nn.Parameter(torch.ones(3))
        for name, words in REFUSED.items():
            optimizer = getattr(torch.optim, name)([parameter])
            with self.assertRaisesRegex(TypeError, f"torch.optim.{name}.*{words}"):
                _optimizer.materialize(optimizer)
        with self.assertRaisesRegex(TypeError, "torch.optim.Adam has differentiable=True"):
            _optimizer.materialize(torch.optim.Adam([parameter], differentiable=True))

    def test_complex_and_half_parameters(self):
        for dtype in (torch.complex64, torch.bfloat16, torch.float64):
            for kind, settings in ((torch.optim.SGD, {"momentum": 0.9}), (torch.optim.Adam, {})):
                told = {False: [], True: []}
                for made in told:
                    generator = torch.Generator().manual_seed(3)
                    parameter = torch.nn.Parameter(torch.ones(6, dtype=dtype))
                    optimizer = kind([parameter], lr=LR, **settings)
                    if made:
                        _optimizer.materialize(optimizer)
                    for _ in range(4):
                        gradient = torch.zeros(6, dtype=dtype)
                        gradient[:3] = torch.randn(3, generator=generator).to(dtype)
                        parameter.grad = -gradient
                        optimizer.step()
                        state = optimizer.state[parameter]
                        told[made] += [bits(parameter).clone()] + [
                            bits(state[key]).clone() for key in sorted(state)
                            if key != _optimizer.FIRST_STEP]
                self.assertEqual(*map(len, told.values()))
                self.assertTrue(all(map(torch.equal, *told.values())), f"{kind} {dtype}")


class NothingElseTest(OptimizerTest):
    """What materialize() must leave as it was."""

    def test_parameters_gradients_groups_and_generators(self):
        for kind, settings in cases():
            one = Training(kind, settings)
            gradient = torch.full_like(one.parameters[0], 5.0)
            one.parameters[0].grad = gradient
            parameters = [bits(parameter).clone() for parameter in one.parameters]
            groups = [{**group} for group in one.optimizer.param_groups]
            held = list(one.optimizer.param_groups)
            generators = torch.get_rng_state(), random.getstate()
            one.materialize()
            message = f"{kind.__name__} {settings}"
            self.assertIs(one.parameters[0].grad, gradient, message)
            self.assertTrue((gradient == 5).all(), message)
            self.assertTrue(all(item.grad is None for item in one.parameters[1:]), message)
            self.assertTrue(all(map(torch.equal, parameters, map(bits, one.parameters))), message)
            for now, then, entries in zip(one.optimizer.param_groups, held, groups):
                self.assertIs(now, then, message)
                self.assertEqual({key: now[key] for key in now if key != "params"},
                                 {key: entries[key] for key in entries if key != "params"}, message)
                self.assertTrue(all(a is b for a, b in zip(now["params"], entries["params"])))
            self.assertTrue(torch.equal(torch.get_rng_state(), generators[0]), message)
            self.assertEqual(random.getstate(), generators[1], message)
            self.assertNotIn(one.parameters[3], {
                parameter: 0 for parameter, state in one.optimizer.state.items()
                if state and kind is not torch.optim.Adagrad}, message)

    def test_hooks_are_silent_and_kept(self):
        calls = []
        one = Training(torch.optim.SGD, {"momentum": 0.9, "dampening": 0.5})
        one.optimizer.register_step_pre_hook(lambda *_: calls.append("before"))
        one.optimizer.register_step_post_hook(lambda *_: calls.append("after"))
        everywhere = register_optimizer_step_pre_hook(lambda *_: calls.append("global"))
        try:
            one.materialize()
            self.assertEqual(calls, [])
            one.train(0, 1)
            self.assertEqual(sorted(calls), ["after", "before", "global"])
        finally:
            everywhere.remove()

    def test_order_of_schedule_and_step_is_still_seen(self):
        one = Training(torch.optim.Adam, {}, schedule=step_rate).materialize()
        with self.assertWarnsRegex(UserWarning, "lr_scheduler.step.* before"):
            one.schedule.step()

    def test_state_that_is_there_stays(self):
        for kind, settings in cases():
            old = Training(kind, settings).train(0, BEFORE)
            new = Training(kind, settings, seed=7)
            new.optimizer.load_state_dict(old.optimizer.state_dict())
            new.materialize()
            with torch.no_grad():
                for parameter, source in zip(new.parameters, old.parameters):
                    parameter.copy_(source)
            self.assert_same(old, new, f"{kind.__name__} {settings}")

    def test_saved_first_step_of_sgd_is_served(self):
        settings = {"momentum": 0.9, "dampening": 0.5}
        saved = Training(torch.optim.SGD, settings).materialize().optimizer.state_dict()
        one = Training(torch.optim.SGD, settings)
        one.optimizer.load_state_dict(saved)
        one.materialize().materialize().train(0, 6)
        self.assert_same(Training(torch.optim.SGD, settings).train(0, 6), one, "loaded")

    def test_step_that_raises_keeps_the_momentum_of_sgd(self):
        one = Training(torch.optim.SGD, {"momentum": 0.9, "dampening": 0.5}).materialize()
        listed = _optimizer.state_tensors(one.optimizer, one.names)

        def fail():
            raise KeyError("the loss")
        with self.assertRaises(KeyError):
            one.optimizer.step(fail)
        one.train(0, 6)
        _optimizer.check_state(one.optimizer, one.names, listed)
        self.assert_same(Training(torch.optim.SGD, {"momentum": 0.9, "dampening": 0.5}).train(0, 6),
                         one, "after an error")

    def test_step_that_raises_halfway_keeps_the_listed_tensors_of_sgd(self):
        one = Training(torch.optim.SGD, {"momentum": 0.9, "dampening": 0.5}).materialize()
        listed = _optimizer.state_tensors(one.optimizer, one.names)
        one.optimizer.param_groups[1]["weight_decay"] = "much"   # after the step of the first group
        with self.assertRaises(TypeError):
            one.train(0, 1)
        one.optimizer.param_groups[1]["weight_decay"] = 0
        one.train(0, 3)
        _optimizer.check_state(one.optimizer, one.names, listed)

    def test_warnings_of_the_trial_are_not_shown(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            Training(foreign.Warns, {}).materialize()

    def test_small_portions_make_the_same_state(self):
        kept = _optimizer.CHUNK_BYTES
        for kind, settings in cases():
            _optimizer.CHUNK_BYTES = 1
            try:
                one = Training(kind, settings).materialize()
            finally:
                _optimizer.CHUNK_BYTES = kept
            self.assert_same(Training(kind, settings).materialize(), one, kind.__name__)


class ForeignClassesTest(OptimizerTest):
    def test_those_that_can_take_part(self):
        for kind in (*foreign.WITH_NUMBERS, foreign.DrawsNoise, foreign.MomentumLikeSgd):
            torch.manual_seed(5)
            random.seed(5)
            fresh = Training(kind, {}).train(0, 6)
            torch.manual_seed(5)
            random.seed(5)
            made = Training(kind, {}).materialize().train(0, 6)
            self.compare(fresh, made, kind.__name__)

    def compare(self, one, other, message):
        self.assertEqual([group.get("k") for group in one.optimizer.param_groups],
                         [group.get("k") for group in other.optimizer.param_groups])
        flat = [dict(_optimizer._flat([*map(bits, it.parameters), *(
            it.optimizer.state.get(parameter, {}) for parameter in it.parameters)], "it"))
            for it in (one, other)]
        self.assertEqual(*(list(it) for it in flat), message)
        for path in flat[0]:
            self.assertTrue(_optimizer._same(flat[0][path], flat[1][path]), f"{message}: {path}")

    def test_their_numbers_go_to_another_worker(self):
        for kind, steps, more in itertools.product(foreign.WITH_NUMBERS, (0, BEFORE), (0, 2)):
            old, new = Training(kind, {}).materialize(), Training(kind, {}, seed=7).materialize()
            leaves = [old.leaves(), new.leaves()]
            old.train(0, steps)
            new.train(0, more)
            for one in leaves[0]:
                one.store()
            with torch.no_grad():
                for (name, tensor), (other, source) in zip(
                        new.listed(leaves[1]), old.listed(leaves[0]), strict=True):
                    self.assertEqual(name, other)
                    tensor.copy_(source)
            for one in leaves[1]:
                one.load()
            self.compare(old.train(steps, 8), new.train(steps, 8), kind.__name__)

    def test_those_that_cannot_are_refused_and_left_alone(self):
        for kind, text in foreign.REFUSED.items():
            one = Training(kind, {})
            before = [bits(parameter).clone() for parameter in one.parameters]
            with self.assertRaisesRegex(TypeError, f"{kind.__name__}.*{text}"):
                one.materialize()
            self.assertTrue(all(map(torch.equal, before, map(bits, one.parameters))), kind)
            self.assertTrue(all(parameter.grad is None for parameter in one.parameters), kind)
            self.assertFalse(any(one.optimizer.state.get(parameter)
                                 for parameter in one.parameters), kind)


class ListTest(OptimizerTest):
    def test_names_are_in_the_order_of_groups_and_keys(self):
        one = Training(torch.optim.Adam, {}).materialize()
        names = [name for name, _ in _optimizer.state_tensors(one.optimizer, one.names)]
        self.assertEqual(names, [f"p{number}.{key}" for number in (0, 1, 2, 4, 5, 6)
                                 for key in ("exp_avg", "exp_avg_sq", "step")])
        old = [state.popitem() for state in one.optimizer.state.values()]
        for state, (key, value) in zip(one.optimizer.state.values(), old):
            items = [*state.items()]
            state.clear()
            state.update([(key, value), *items])   # another order of keys
        self.assertEqual(names, [name for name, _ in
                                 _optimizer.state_tensors(one.optimizer, one.names)])

    def test_a_parameter_without_a_name_is_an_error(self):
        one = Training(torch.optim.Adam, {}).materialize()
        del one.names[one.parameters[1]]
        for call in (lambda: _optimizer.state_tensors(one.optimizer, one.names),
                     lambda: _optimizer.state_numbers("state", one.optimizer, one.names)):
            with self.assertRaisesRegex(ValueError, r"\(4, 16\).*no name"):
                call()

    def test_torch_has_no_numbers_in_its_state(self):
        for kind, settings in cases():
            one = Training(kind, settings).materialize()
            leaves = _optimizer.state_numbers("state", one.optimizer, one.names)
            self.assertEqual(leaves.tensors(), [], f"{kind.__name__} {settings}")

    def test_state_that_is_replaced_or_appears_is_seen(self):
        one = Training(torch.optim.Adam, {}).materialize()
        listed = _optimizer.state_tensors(one.optimizer, one.names)
        one.train(0, 2)
        _optimizer.check_state(one.optimizer, one.names, listed)
        one.parameters[3].requires_grad_(True)
        one.train(2, 3)
        with self.assertRaisesRegex(ValueError, "p3.exp_avg appeared"):
            _optimizer.check_state(one.optimizer, one.names, listed)
        two = Training(torch.optim.Adam, {}).materialize()
        listed = _optimizer.state_tensors(two.optimizer, two.names)
        two.optimizer.load_state_dict(Training(torch.optim.Adam, {}).train(0, 1)
                                      .optimizer.state_dict())
        with self.assertRaisesRegex(ValueError, "removed or replaced"):
            _optimizer.check_state(two.optimizer, two.names, listed)


class DescriptionTest(unittest.TestCase):
    def test_it_tells_settings_apart_and_not_rates(self):
        texts = set()
        for kind, settings in cases():
            one, other = Training(kind, settings), Training(kind, settings, seed=7)
            other.optimizer.param_groups[0]["lr"] = 5.0
            text = _optimizer.describe(one.optimizer)
            self.assertEqual(text, _optimizer.describe(other.optimizer))
            self.assertEqual(text, _optimizer.describe(other.materialize().optimizer))
            self.assertNotIn(text, texts, f"{kind.__name__} {settings}")
            self.assertNotIn("0x", text)
            texts.add(text)

    def test_form(self):
        parameters = [torch.nn.Parameter(torch.ones(2)) for _ in range(3)]
        optimizer = foreign.CountsInAnInt([
            {"params": parameters[:1], "f": len},
            {"params": parameters[1:], "g": torch.tensor(0.5)}])
        self.assertEqual(_optimizer.describe(optimizer),
                         "foreign_optimizers.CountsInAnInt groups=2 [f=<builtins.len> params=1] "
                         "[g=tensor(torch.float32, 0.5) params=2]")

    def test_a_rate_that_is_no_number_is_refused(self):
        parameters = [torch.nn.Parameter(torch.ones(2)) for _ in range(2)]
        optimizer = torch.optim.SGD([{"params": [one]} for one in parameters],
                                    lr=torch.tensor(0.5))
        _optimizer.refuse_rates(optimizer)
        for rate in (None, torch.ones(2), "fast"):
            optimizer.param_groups[1]["lr"] = rate
            with self.assertRaisesRegex(TypeError, "group 1 of torch.optim.SGD has lr=.*: give it"):
                _optimizer.refuse_rates(optimizer)
        del optimizer.param_groups[1]["lr"]
        with self.assertRaisesRegex(TypeError, "group 1 of torch.optim.SGD has no lr, and a job"):
            _optimizer.refuse_rates(optimizer)


if __name__ == "__main__":
    torch.set_num_threads(1)   # threads that wait for each other take most of the time otherwise
    unittest.main()
