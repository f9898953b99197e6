#!/usr/bin/env python3
"""A LightningModule of the real Lightning: the same last line on one worker and on three, of which
one is killed; what its steps see; and what is refused by name.

Skips, and says why, without a Python that has PyTorch, or without Lightning.
"""
import os
import re
import sys
import textwrap

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)),
                os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "dropin")]
import launchers
import scripts

EXAMPLE = os.path.join(scripts.HERE, "..", "..", "..", "examples", "python",
                       "lightning_digits.py")
BEGINNING = """
import evenkeel.lightning
import lightning
import torch
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset
lightning.seed_everything(0, verbose=False)
samples = TensorDataset(torch.randn(20, 3), torch.randint(0, 2, (20,)))
class Small(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(3, 2)
    def training_step(self, batch):
        return {"loss": F.cross_entropy(self.net(batch[0]), batch[1])}
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.5)
    def train_dataloader(self):
        return DataLoader(samples, batch_size=2, shuffle=True)
def fit(module, *given, **options):
    return evenkeel.lightning.fit(module, *given, **({"lanes": 2, "epochs": 2, "log_every": 0}
                                                     | options))
"""
# Pairs of a script's text, which fails, and words of its error.
REFUSED = {
    "manual optimization": ("""
        module = Small()
        module.automatic_optimization = False
        fit(module)
        """, "automatic_optimization=False"),
    "two optimizers": ("""
        class Two(Small):
            def configure_optimizers(self):
                return [Small.configure_optimizers(self), Small.configure_optimizers(self)]
        fit(Two())
        """, "returned 2 optimizers"),
    "a schedule by a metric": ("""
        class Plateau(Small):
            def configure_optimizers(self):
                optimizer = Small.configure_optimizers(self)
                return {"optimizer": optimizer, "monitor": "loss", "lr_scheduler":
                        torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)}
        fit(Plateau())
        """, "ReduceLROnPlateau"),
    "a hook": ("""
        class Hooked(Small):
            def on_train_epoch_end(self):
                pass
        fit(Hooked())
        """, "Hooked.on_train_epoch_end() would not be called"),
    "a hook of a data module": ("""
        class Data(lightning.LightningDataModule):
            def on_after_batch_transfer(self, batch, dataloader_idx):
                return batch
        fit(Small(), Data())
        """, "Data.on_after_batch_transfer() would not be called"),
    "no module": ("fit(torch.nn.Linear(3, 2))", "takes a LightningModule, not a Linear"),
    "a stream": ("""
        class Stream(torch.utils.data.IterableDataset):
            def __len__(self):
                return 20
            def __iter__(self):
                return iter(samples)
        fit(Small(), DataLoader(Stream(), batch_size=2))
        """, "Stream is not a map-style dataset"),
    "a sampler": ("""
        weighted = torch.utils.data.WeightedRandomSampler([1.0] * 20, 20)
        fit(Small(), DataLoader(samples, batch_size=2, sampler=weighted))
        """, "has a WeightedRandomSampler"),
    "a sampler of some": ("""
        some = torch.utils.data.RandomSampler(samples, num_samples=8)
        fit(Small(), DataLoader(samples, batch_size=2, sampler=some))
        """, "has a RandomSampler of 8 samples, and a dataset of 20"),
    "a sampler of the first": ("""
        first = torch.utils.data.SequentialSampler(range(6))
        fit(Small(), DataLoader(samples, batch_size=2, sampler=first))
        """, "has a SequentialSampler of 6 samples, and a dataset of 20"),
    "a stream without a length": ("""
        class Endless(torch.utils.data.IterableDataset):
            def __iter__(self):
                return iter(samples)
        fit(Small(), DataLoader(Endless(), batch_size=2))
        """, "Endless is not a map-style dataset"),
    "a stream in no loader": ("""
        class Bare(torch.utils.data.IterableDataset):
            def __iter__(self):
                return iter(samples)
        fit(Small(), Bare(), lane_batch=2)
        """, "Bare is not a map-style dataset"),
    "several loaders": ("fit(Small(), [DataLoader(samples), DataLoader(samples)])",
                        "several DataLoaders"),
    "no length": ("fit(Small(), epochs=None)", "either epochs or steps"),
}
# The same, where the training has begun.
REFUSED_LATER = {
    "a batch that is left out": ("""
        class Leaving(Small):
            def training_step(self, batch, batch_idx):
                return None
        fit(Leaving())
        """, "training_step returned None"),
    "an evaluation that tells nothing": ("""
        class Silent(Small):
            def validation_step(self, batch, batch_idx):
                pass
        fit(Silent(), validation=samples)
        """, "validation_step logged nothing"),
}


class Fitted(scripts.WithPackages):
    IMPORTED = ("lightning", "torchmetrics")

    def script(self, text):
        return self.alone(*self.written(text, BEGINNING))

    def test_the_same_line_on_one_worker_and_on_three_of_which_one_dies(self):
        command = [scripts.ARGS.python, "-B", EXAMPLE, "6"]
        alone = self.line_of(self.alone(*command))
        run = self.job_that_loses_a_worker(command)
        self.assertEqual(self.line_of(run), alone)

    # What Lightning shows at those moments, of 50 samples and steps of 4.
    def test_steps_and_epochs_are_counted_as_ever(self):
        run = self.script("""
            many = torch.utils.data.TensorDataset(torch.randn(50, 3), torch.randint(0, 2, (50,)))
            class Counting(Small):
                def on_before_optimizer_step(self, optimizer):
                    print("step", self.global_step, self.current_epoch)
                def validation_step(self, batch, batch_idx):
                    print("validation", self.global_step, self.current_epoch)
                    return torch.zeros(())
                def configure_optimizers(self):
                    print("epochs", self.trainer.max_epochs)
                    return Small.configure_optimizers(self)
            evenkeel.lightning.fit(Counting(), DataLoader(many, batch_size=2, shuffle=True),
                                   validation=many, epochs=3, lanes=2, log_every=0)
            """)
        self.assertEqual(run.code, 0, run)
        said = run.out.splitlines()
        self.assertIn("epochs 3", said)
        self.assertEqual([one for one in said if one.startswith("step ")],
                         [f"step {step} {step * 4 // 50}" for step in range(38)], run)
        found = list(dict.fromkeys(one for one in said if one.startswith("validation")))
        self.assertEqual(found, ["validation 12 0", "validation 24 1", "validation 36 2"], run)

    def test_what_a_module_sees(self):
        run = self.script("""
            import torchmetrics
            class Data(lightning.LightningDataModule):
                def prepare_data(self):
                    print("prepared")
                def setup(self, stage):
                    self.samples = samples
                def teardown(self, stage):
                    module.calls.append(f"the data's {stage} is torn down")
                def train_dataloader(self):
                    return DataLoader(self.samples, batch_size=2, shuffle=True)
                def val_dataloader(self):
                    return DataLoader(samples, batch_size=4, collate_fn=lambda found: (
                        torch.stack([x for x, _ in found]), torch.stack([y for _, y in found])))
            class Watched(Small):
                def __init__(self):
                    super().__init__()
                    self.accuracy = torchmetrics.Accuracy("multiclass", num_classes=2)
                    self.seen, self.calls = [], []
                def training_step(self, batch, batch_idx):
                    self.accuracy(self.net(batch[0]), batch[1])
                    self.log_dict({"accuracy": self.accuracy, "rate":
                                   self.optimizers().param_groups[0]["lr"]}, prog_bar=True)
                    self.seen.append((self.global_step, self.current_epoch, batch_idx,
                                      self.optimizers().param_groups[0]["lr"]))
                    return Small.training_step(self, batch)["loss"]
                def validation_step(self, batch, batch_idx, dataloader_idx=0):
                    self.log("other", 1)
                    self.log("loss", F.cross_entropy(self.net(batch[0]), batch[1]))
                def on_train_start(self):
                    assert self.trainer.datamodule.samples is samples
                    self.calls.append("start")
                def on_before_optimizer_step(self, optimizer):
                    self.calls.append("step")
                def on_train_end(self):
                    self.calls.append("end")
                def teardown(self, stage):
                    self.calls.append(f"{stage} is torn down")
                def on_train_epoch_end(self):
                    self.calls.append("never")
                def configure_optimizers(self):
                    optimizer = Small.configure_optimizers(self)
                    halves = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
                    tenths = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.1)
                    return [optimizer], [halves, {"scheduler": tenths, "interval": "step",
                                                  "frequency": 4}]
            module, logged, evaluated = Watched(), [], []
            result = fit(module, Data(), monitor="loss", leave_out=["on_train_epoch_end"],
                         on_step=lambda report: logged.append(sorted(report["logged"])),
                         on_evaluation=evaluated.append)
            assert module.seen[::2] == module.seen[1::2], module.seen    # two lanes
            seen = [one[:3] for one in module.seen[::2]]
            assert seen == [(step, step // 5, step % 5) for step in range(10)], seen
            # Lightning counts steps within the epoch, here of five.
            tenths = [step // 5 + (step % 5) // 4 for step in range(10)]
            rates = [0.5 * 0.5 ** (step // 5) * 0.1 ** tenths[step] for step in range(10)]
            for (*_, rate), expected in zip(module.seen[::2], rates):
                assert abs(rate / expected - 1) < 1e-9, (module.seen, rates)
            assert module.calls == ["start", *["step"] * 10, "end", "the data's fit is torn down",
                                    "fit is torn down"], module.calls
            assert logged == [["accuracy", "rate"]] * 10, logged
            assert [one["step"] for one in evaluated] == [5, 10], evaluated
            assert sorted(evaluated[0]["logged"]) == ["loss", "other"], evaluated
            print(result)
            """)
        self.line_of(run)
        self.assertIn("prepared", run.out)

    def test_what_is_refused_by_name(self):
        texts = {name: textwrap.dedent(text) for name, (text, _) in REFUSED.items()}
        run = self.script(f"""
            for name, text in {texts!r}.items():
                try:
                    exec(text)
                except TypeError as error:
                    print(f"{{name}}: {{error}}")
            """)
        for name, (_, words) in REFUSED.items():
            self.assertRegex(run.out, f"(?m)^{name}: .*{re.escape(words)}", run)
        for name, (text, words) in REFUSED_LATER.items():
            with self.subTest(name):
                run = self.script(text)
                self.assertEqual(run.code, 1, run)
                self.assertIn(words, run.err)

    def test_an_evaluation_that_would_never_come_is_refused(self):
        run = self.script("""
            class Evaluated(Small):
                def validation_step(self, batch, batch_idx):
                    return torch.zeros(())
            few = torch.utils.data.Subset(samples, [])
            for others, every in ((samples, 0), (samples, -1), (few, None)):
                try:
                    fit(Evaluated(), validation=others, evaluate_every=every)
                except ValueError as error:
                    print("refused:", error)
            """)
        self.assertEqual(re.findall(r"refused: .* (0 steps|-1 steps|no samples)", run.out),
                         ["0 steps", "-1 steps", "no samples"], run)

    # Of five steps an epoch, the last one of the first epoch has no number for a loss.
    SKIPPING = """
        class Skipping(Small):
            def training_step(self, batch, batch_idx):
                print("lane", self.global_step, self.current_epoch, batch_idx)
                loss = Small.training_step(self, batch)["loss"]
                return loss * float("nan") if (self.current_epoch, batch_idx) == (0, 4) else loss
            def validation_step(self, batch, batch_idx):
                print("validation", self.global_step, self.current_epoch)
                return torch.zeros(())
            def configure_optimizers(self):
                optimizer = Small.configure_optimizers(self)
                halves = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
                tenths = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.1)
                return [optimizer], [halves, {"scheduler": tenths, "interval": "step",
                                              "frequency": 5}]
        def tell(report):
            print("made", report["step"], report["applied"], f"{report['learning_rate']:.4g}")
        for steps in STEPS:
            lightning.seed_everything(0, verbose=False)
            print(fit(Skipping(), validation=samples, epochs=None, steps=steps, on_step=tell,
                      non_finite="skip", MORE))
        """

    def test_epochs_follow_the_data_where_a_step_is_skipped(self):
        run = self.script(self.SKIPPING.replace("STEPS", "[11]").replace("MORE", ""))
        self.assertEqual(run.code, 0, run)
        said = run.out.splitlines()
        lanes = [one for one in said if one.startswith("lane")]
        self.assertEqual(lanes[::2], lanes[1::2], run)
        self.assertEqual(lanes[::2], [f"lane {step - (step > 4)} {step // 5} {step % 5}"
                                      for step in range(11)], run)
        self.assertEqual([one for one in said if one.startswith("made")],
                         [f"made {step + 1} {step != 4} {0.5 * 0.05 ** (step // 5):.4g}"
                          for step in range(11)], run)
        found = list(dict.fromkeys(one for one in said if one.startswith("validation")))
        self.assertEqual(found, ["validation 4 0", "validation 9 1"], run)

    def test_a_job_that_goes_on_after_a_skipped_step_knows_its_epoch(self):
        whole = self.script(self.SKIPPING.replace("STEPS", "[11]").replace("MORE", ""))
        more = "checkpoint_dir='ckpts', save_every=100"
        parts = self.script(self.SKIPPING.replace("STEPS", "[5, 11]").replace("MORE", more))
        self.assertEqual(parts.code, 0, parts)
        lines = [run.out.splitlines() for run in (whole, parts)]
        told = [[one for one in said if one.startswith(("lane", "made", "validation 9"))]
                for said in lines]
        self.assertEqual(told[0], told[1], parts)
        self.assertEqual(whole.lines[-1], parts.lines[-1], parts)

    KEEPING = """
        class Data(lightning.LightningDataModule):
            def __init__(self):
                super().__init__()
                self.count, self.mean = 0, torch.zeros(2)
            def train_dataloader(self):
                return DataLoader(samples, batch_size=2, shuffle=True)
        class Keeping(Data):
            def state_dict(self):
                return {"count": self.count, "mean": self.mean}
            def load_state_dict(self, state):
                self.count, self.mean = state["count"], state["mean"]
        class Empty(Data):
            def state_dict(self):
                return {}
            def load_state_dict(self, state):
                self.count = state["count"]
        class Half(Data):
            def state_dict(self):
                return {"count": self.count}
        class Odd(Keeping):
            def state_dict(self):
                return {"count": {1, 2}}
        class Counting(Small):
            def on_before_optimizer_step(self, optimizer):
                self.trainer.datamodule.count += 1
                self.trainer.datamodule.mean += 0.5
        def trained(kind, **more):
            data = kind()
            fit(Counting(), data, **more)
            print(kind.__name__, data.count, data.mean.tolist())
        """

    def test_the_state_of_a_data_module_goes_on(self):
        run = self.script(self.KEEPING + """
        for kind, left in (Keeping, []), (Empty, []), (Half, ["state_dict"]), (Odd, ["state_dict"]):
            for steps in 4, 6:
                trained(kind, checkpoint_dir=kind.__name__, save_every=100, epochs=None,
                        steps=steps, leave_out=iter(left))
        """)
        self.assertEqual(re.findall(r"(?m)^[A-Z].*", run.out),
                         ["Keeping 4 [2.0, 2.0]", "Keeping 6 [3.0, 3.0]",
                          "Empty 4 [2.0, 2.0]", "Empty 2 [1.0, 1.0]",
                          "Half 4 [2.0, 2.0]", "Half 2 [1.0, 1.0]",
                          "Odd 4 [2.0, 2.0]", "Odd 2 [1.0, 1.0]"], run)

    def test_the_state_of_a_data_module_that_cannot_be_kept_is_refused(self):
        run = self.script(self.KEEPING + """
        for kind in Half, Odd:
            try:
                trained(kind)
            except TypeError as error:
                print("refused:", error)
        trained(Keeping)
        """)
        self.assertRegex(run.out, r"(?s)refused: Half.state_dict\(\) has something to keep.*"
                                  r"refused: datamodule.count is of the type builtins.set.*"
                                  r"Keeping 10 ", run)

    def test_a_list_of_one_loader_or_of_none(self):
        run = self.script("""
            class Validated(Small):
                def __init__(self, given):
                    super().__init__()
                    self.given = given
                def validation_step(self, batch, batch_idx):
                    return F.cross_entropy(self.net(batch[0]), batch[1])
                def val_dataloader(self):
                    return self.given
            loader = DataLoader(samples, batch_size=2)
            for given in loader, [loader], (loader,), [], ():
                lightning.seed_everything(0, verbose=False)
                found = []
                fit(Validated(given), on_evaluation=lambda report: found.append(report["value"]))
                print("evaluated", found)
            for given in [loader], []:   # what Lightning gives to training_step then is a list
                try:
                    fit(Small(), given)
                except TypeError as error:
                    print("refused:", error)
            """)
        found = re.findall(r"(?m)^evaluated (.*)$", run.out)
        self.assertEqual(len(found), 5, run)
        self.assertRegex(found[0], r"\[0\.\d+, 0\.\d+\]", run)
        self.assertEqual(found, [found[0]] * 3 + ["[]"] * 2, run)
        self.assertRegex(run.out, "(?s)refused: .*a list of one DataLoader.*refused: .*or none",
                         run)


if __name__ == "__main__":
    scripts.main(__doc__, launchers.find_python)
