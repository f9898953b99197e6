"""Optimizers as users and other packages write them: what each does with its state is in its name.

Promises   each trains by itself, without the engine. REFUSED has those that cannot be materialized.
"""
import collections
import random
import warnings

import torch

LR = 0.01


class Plain(torch.optim.Optimizer):
    """The base of the classes below, as users write them."""

    def __init__(self, params, lr=LR, **settings):
        super().__init__(params, {"lr": lr, **settings})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self.update(group, parameter, self.state[parameter])


class CountsInAnInt(Plain):
    def update(self, group, parameter, state):
        if not state:
            state.update(step=0, sum=torch.zeros_like(parameter), last=0.5)
        state["step"] += 1
        state["last"] = state["last"] * 0.9 + state["step"]
        state["sum"].add_(parameter.grad)
        parameter.sub_(state["sum"], alpha=group["lr"] * state["last"])


class CountsInItsGroup(Plain):
    def __init__(self, params, lr=LR):
        super().__init__(params, lr, k=0)

    def update(self, group, parameter, state):
        group["k"] += 1
        parameter.sub_(parameter.grad, alpha=group["lr"] / group["k"])


class DrawsNoise(Plain):
    def update(self, group, parameter, state):
        average = state.setdefault("average", torch.zeros_like(parameter))
        average.lerp_(parameter.grad, 0.1).add_(torch.randn_like(parameter), alpha=random.random())
        parameter.sub_(average, alpha=group["lr"])


class Warns(Plain):
    def update(self, group, parameter, state):
        warnings.warn("the first step is slow")


class KeepsTheStart(Plain):
    def update(self, group, parameter, state):
        if "start" not in state:
            state["start"] = parameter.detach().clone()
            state["sums"] = [torch.zeros_like(parameter), {"count": 0}]
        state["sums"][0].add_(parameter.grad)
        state["sums"][1]["count"] += 1
        parameter.copy_(state["start"]).sub_(state["sums"][0], alpha=group["lr"])


class MomentumLikeSgd(torch.optim.SGD):
    def __init__(self, params, lr=LR):
        super().__init__(params, lr, momentum=0.9, weight_decay=0.1)

    def step(self, closure=None):
        with torch.no_grad():
            for group in self.param_groups:
                for parameter in group["params"]:
                    if parameter.grad is not None:
                        parameter.grad.mul_(0.5)
        return super().step(closure)


class TakesTheFirstGradient(Plain):
    def update(self, group, parameter, state):
        if "average" not in state:
            state["average"] = parameter.grad.clone()
        state["average"].lerp_(parameter.grad, 0.5)
        parameter.sub_(state["average"], alpha=group["lr"])


class MakesNewTensors(Plain):
    def update(self, group, parameter, state):
        old = state.get("average", torch.zeros_like(parameter))
        state["average"] = old * 0.9 + parameter.grad
        parameter.sub_(state["average"], alpha=group["lr"])


class CountsInItself(Plain):
    steps = 0

    def update(self, group, parameter, state):
        self.steps = self.steps + 1
        parameter.sub_(parameter.grad, alpha=group["lr"])


class SumsInItself(Plain):
    def update(self, group, parameter, state):
        sums = self.__dict__.setdefault("sums", {})
        sums.setdefault(parameter, torch.zeros_like(parameter)).add_(parameter.grad)


class AddsToItsGroup(Plain):
    def update(self, group, parameter, state):
        group["k"] = group.get("k", 0) + 1
        parameter.sub_(parameter.grad, alpha=group["lr"] / group["k"])


class AddsATensorToItsGroup(Plain):
    def update(self, group, parameter, state):
        group["k"] = group.get("k", 0) + parameter.grad.norm()


class DividesByTheGradient(Plain):
    def update(self, group, parameter, state):
        parameter.sub_(parameter.grad, alpha=group["lr"] / parameter.grad.norm().item())


class AddsStateLater(Plain):
    def update(self, group, parameter, state):
        state["step"] = state.get("step", 0) + 1
        if state["step"] == 2:
            state["previous"] = parameter.grad.clone()


class KeepsAnObject(Plain):
    def update(self, group, parameter, state):
        state.setdefault("history", collections.deque(maxlen=2)).append(1.0)


class KeepsCommonState(Plain):
    def update(self, group, parameter, state):
        self.state["all"]["step"] = self.state["all"].get("step", 0) + 1


class ReplacesTheDict(Plain):
    def update(self, group, parameter, state):
        if not state:
            self.state[parameter] = {"average": torch.zeros_like(parameter)}


class NeedsTheLoss(Plain):
    def step(self, closure):
        closure()


class WrapsAnother(Plain):
    def __init__(self, params, lr=LR):
        super().__init__(params, lr)
        self.inner = torch.optim.Adam(self.param_groups[1]["params"])
        self.inner.param_groups = self.param_groups
        for group in self.param_groups:
            for key, value in self.inner.defaults.items():
                group.setdefault(key, value)

    def step(self, closure=None):
        self.inner.step()


WITH_NUMBERS = (CountsInAnInt, CountsInItsGroup, AddsToItsGroup, KeepsTheStart)
REFUSED = {   # what the refusal says
    TakesTheFirstGradient: "first step differently.*'average'",
    MakesNewTensors: "replaces its state 'average'",
    CountsInItself: "in its attribute steps",
    SumsInItself: "in its attribute sums",
    AddsATensorToItsGroup: "adds or removes 'k' in its groups",
    DividesByTheGradient: "fails in a step with gradients of zero.*ZeroDivision",
    AddsStateLater: "adds or removes its state 'previous'",
    KeepsAnObject: "object of the class deque in its state 'history'",
    KeepsCommonState: "belongs to none of its parameters",
    ReplacesTheDict: "another dict",
    NeedsTheLoss: "'closure'",
    WrapsAnother: "in its attribute inner",
}
