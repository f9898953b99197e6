#!/usr/bin/env python3
"""What a script is told that makes a mistake, and what is none.

Skips, and says why, without a Python that has PyTorch.
"""
import os
import re
import sys
import textwrap

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)),
                os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "dropin")]
import launchers
import scripts


class Mistakes(scripts.Imported):
    def told(self, text, beginning=scripts.SMALL_OWN):
        run = self.alone(*self.written(text, beginning))
        self.assertEqual(run.code, 1, run)
        return run.err

    def told_in_a_session(self, texts, beginning=scripts.SMALL):
        """What each one raises in a process that goes on and makes another job, as a notebook's."""
        texts = [beginning + textwrap.dedent(text) for text in texts]
        run = self.alone(*self.written(f"""
            import traceback
            for text in {texts!r}:
                try:
                    exec(text, {{}})
                    told = "nothing"
                except Exception:
                    told = traceback.format_exc()
                print("told:", told)
            exec({scripts.SMALL!r}, {{}})   # the last one would be a loop that was left
            """, ""))
        self.assertEqual(run.code, 0, run)
        told = run.out.split("told: ")[1:]
        self.assertEqual(len(told), len(texts), run)
        return told

    LOOP = """
        job.prepare(model, optimizer, data)
        for x, y in job:
            job.backward(F.cross_entropy(model(x), y))
        """

    def test_an_exception_is_the_root_cause_with_its_traceback(self):
        script = self.written("""
            import os
            def mistaken():
                raise ValueError("my own mistake")
            job.prepare(model, optimizer, data)
            for x, y in job:
                if os.environ.get("RANK") == "1":
                    mistaken()
                job.backward(F.cross_entropy(model(x), y))
            """)
        run = self.job(3, *script, options=("--max-restarts=0",))
        self.assertEqual(run.code, 1, run)
        cause = run.err[run.err.index("Root Cause"):]
        for words in ("rank      : 1", "in mistaken", "ValueError: my own mistake"):
            self.assertIn(words, cause)
        self.assertIn("<NO_OTHER_FAILURES>", run.err)

    BAD = """
        class Bad(torch.autograd.Function):
            @staticmethod
            def forward(context, x):
                return x.clone()
            @staticmethod
            def backward(context, gradient):
                raise ValueError("out of chalk")
        """

    def test_an_exception_in_a_backward_keeps_its_traceback(self):
        err = self.told(self.BAD + """
        job.prepare(model, optimizer, data)
        for x, y in job:
            job.backward(Bad.apply(F.cross_entropy(model(x), y)))
        """)
        self.assertRegex(err, r"(?s)Traceback.*in backward\n.*ValueError: out of chalk")

    def test_what_callbacks_and_datasets_raise_ends_the_job(self):
        err = self.told("""
            def on_step(report):
                raise ValueError("no more ink")
            job.prepare(model, optimizer, data, on_step=on_step)
            for x, y in job:
                job.backward(F.cross_entropy(model(x), y))
            """)
        self.assertIn("ValueError: no more ink", err)
        for workers in (0, 2):
            with self.subTest(workers=workers):
                err = self.told(f"""
                    class Torn(torch.utils.data.TensorDataset):
                        def __getitem__(self, index):
                            raise KeyError("page torn out")
                    job.prepare(model, optimizer, Torn(torch.zeros(16, 3)), num_workers={workers})
                    for x, y in job:
                        job.backward(F.cross_entropy(model(x), y))
                    """)
                self.assertIn("page torn out", err)
                self.assertIn("in __getitem__", err)

    def test_a_forgotten_backward_and_one_too_many(self):
        self.assertIn("job.backward(loss) was not called for the last batch", self.told("""
            job.prepare(model, optimizer, data)
            for x, y in job:
                F.cross_entropy(model(x), y)
            """))
        self.assertIn("job.backward() is called once for each batch", self.told("""
            job.prepare(model, optimizer, data)
            for x, y in job:
                loss = F.cross_entropy(model(x), y)
                job.backward(loss)
                job.backward(loss)
            """))

    def test_calls_that_a_loop_of_ddp_has(self):
        calls = (("optimizer.step()", "the job calls optimizer.step() itself"),
                 ("optimizer.zero_grad()", "leave zero_grad() out of the loop"),
                 ("optimizer.zero_grad(set_to_none=False)", "leave zero_grad() out of the loop"),
                 ("model.zero_grad()", "leave zero_grad() out of the loop"),
                 ("torch.nn.Linear(1, 1).zero_grad()", "nothing"),
                 ("model.bias.grad = None", "leave zero_grad() out of the loop"),
                 ("model.bias.grad = torch.ones(2)", "removed or replaced behind"),
                 ("schedule.step()", "give the job the scheduler"),
                 ("model.bias = torch.nn.Parameter(torch.ones(2))", "with copy_()"),
                 ("clip_grad_norm_(model.parameters(), 1.0)", "do that in before_apply"),
                 ("clip_grad_norm_(model.bias, 1.0)", "do that in before_apply"),
                 ("torch.nn.utils.clip_grad_value_(model.parameters(), 1.0)", "before_apply"),
                 ("clip_grad_value_(parameters=model.bias, clip_value=1.0)", "before_apply"),
                 ("torch.nn.utils.clip_grads_with_norm_([model.bias], 1.0, torch.ones(()))",
                  "before_apply"),
                 ("clip_grad_norm_(torch.nn.Linear(1, 1).parameters(), 1.0)", "nothing"),
                 ("model.bias.requires_grad_(False)", "requires_grad of 'bias' was changed"))
        told = self.told_in_a_session((f"""
            schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
            job.prepare(model, optimizer, data,
                        before_apply=lambda: clip_grad_value_(parameters=model.parameters(),
                                                              clip_value=1.0))
            for x, y in job:
                job.backward(F.cross_entropy(model(x), y))
                {call}
            """ for call, _ in calls), "from torch.nn.utils import *\n" + scripts.SMALL)
        for (call, words), text in zip(calls, told):
            with self.subTest(call=call):
                self.assertIn(words, text)

    def test_gradients_may_be_cleared_before_the_backward(self):
        lines = {self.line_of(self.alone(*self.written(f"""
            job.prepare(model, optimizer, data)
            for x, y in job:
                optimizer.zero_grad(set_to_none={value})
                job.backward(F.cross_entropy(model(x), y))
            print(job.result)
            """ if value is not None else """
            job.prepare(model, optimizer, data)
            print(job.fit(lambda batch: F.cross_entropy(model(batch[0]), batch[1])))
            """))) for value in (None, True, False)}
        self.assertEqual(len(lines), 1, lines)

    # What is trained is settled once, for workers that join later as well.
    def test_parameters_are_frozen_before_the_job(self):
        told = self.told_in_a_session((f"""
            model.bias.requires_grad_({before})
            def on_step(report):
                if report["step"] == 2:
                    model.bias.requires_grad_({not before})
            job.prepare(model, optimizer, data, on_step=on_step)
            for x, y in job:
                job.backward(F.cross_entropy(model(x), y))
            """ for before in (True, False)))
        for text in told:
            self.assertIn("requires_grad of 'bias' was changed", text)
            self.assertIn("settled by job.prepare()", text)

    def test_a_session_makes_another_job_after_whatever_happened_to_the_first(self):
        kept = f"""
            first = ek.Job(steps=4, lanes=4, lane_batch=2, checkpoint_dir={self.folder + "/ck"!r},
                           precision="bf16")
        """
        told = self.told_in_a_session((
            kept + """
            first.prepare(model, torch.optim.LBFGS(model.parameters()), data)
            """,
            kept + """
            first.prepare(model, optimizer, data, num_workers=1)
            for x, y in first:   # an error of the user's own, in a lane
                model(torch.cat([x, x], 1))
            """,
            kept + """
            first.prepare(model, optimizer, data)
            x, y = next(iter(first))
            other = ek.Job(steps=1, lanes=1, lane_batch=1)
            try:
                first.backward(model(x).sum())
            except RuntimeError as error:
                assert "the script made another one" in str(error), error
            assert not torch.is_autocast_enabled("cpu")
            list(first)
            """,
            kept + """
            first.prepare(model, optimizer, data)
            for x, y in first:
                first.backward(F.cross_entropy(model(x), y))
            assert first.result.step == 4
            """))
        for text, words in zip(told, ("TypeError", "shapes cannot be multiplied",
                                      "a process trains one job at a time", "nothing")):
            self.assertIn(words, text)

    def test_an_iterator_that_a_callback_exhausts_ends_no_loop(self):
        err = self.told("""
            job.prepare(model, optimizer, data, on_step=lambda report: next(iter([])))
            for x, y in job:
                job.backward(F.cross_entropy(model(x), y))
            """)
        self.assertRegex(err, r"(?s)in <lambda>.*StopIteration.*it has no more to give")

    def test_a_batch_of_any_form_is_moved_to_the_device(self):
        run = self.alone(*self.written("""
            import collections
            import dataclasses
            import types
            from evenkeel._batches import moved as move
            meta = torch.device("meta")
            ragged = torch.nn.utils.rnn.pack_sequence([torch.ones(3), torch.ones(2)])
            moved = move({"ragged": ragged}, meta)["ragged"]
            assert moved.data.device == meta and moved.batch_sizes.device.type == "cpu"
            by_name = collections.defaultdict(list, {"x": torch.ones(2)})
            moved = move(by_name, meta)
            assert moved["x"].device == meta and moved["y"] == [] and by_name["x"].sum() == 2
            class Shown(dict):
                __getattr__ = dict.get
            class Strict(dict):
                __getattr__ = dict.__getitem__
            for kind in (Shown, Strict):
                assert move(kind(x=torch.ones(1)), meta)["x"].device == meta
            edge = collections.namedtuple("Edge", "frm to")(torch.ones(1), torch.ones(2))
            assert move(edge, meta).to.device == meta
            pair = collections.namedtuple("Pair", "x y")(torch.ones(1), [torch.ones(1), 3])
            moved = move(pair, meta)
            assert moved.x.device == moved.y[0].device == meta and moved.y[1] == 3
            wrapped = collections.UserDict(x=torch.ones(1), y="y")
            moved = move(wrapped, meta)
            assert moved["x"].device == meta and moved["y"] == "y" and wrapped["x"].sum() == 1
            fixed = types.MappingProxyType({"x": torch.ones(1)})
            assert move(fixed, meta) is fixed
            @dataclasses.dataclass(frozen=True, slots=True)
            class Sample:
                x: torch.Tensor
                more: dict
            @dataclasses.dataclass
            class Late:
                x: torch.Tensor = dataclasses.field(init=False)
            sample = Sample(torch.ones(1), {"y": torch.ones(2)})
            moved = move([sample, Sample], meta)
            assert moved[0].x.device == moved[0].more["y"].device == meta and moved[1] is Sample
            assert sample.x.sum() == 1 and sample.more["y"].sum() == 2
            assert not hasattr(move(Late(), meta), "x")
            """))
        self.assertEqual(run.code, 0, run)

    CLAMP = "torch.no_grad()(lambda: model.weight.clamp_(-1, 1))()"

    # Of which PyTorch keeps no count.
    BY_DATA = "model.weight.data.clamp_(-0.1, 0.1)"

    def test_gradients_and_parameters_are_left_alone_in_the_loop(self):
        for before, after, words in (
                ("F.mse_loss(model(x), torch.zeros(2, 2)).backward()", "", "other than"),
                ("", "model(x).sum().backward()", "other than job.backward()"),
                ("", "(2 * model.bias.sum()).backward()", "other than job.backward()"),
                (self.CLAMP, "", "a parameter was changed in the loop"),
                ("", self.CLAMP, "a parameter was changed in the loop"),
                (self.BY_DATA, "", "a parameter was changed in the loop"),
                ("", self.BY_DATA, "a parameter was changed in the loop"),
                ("torch.autograd.grad(model(x).sum(), model.weight)", "", None)):
            script = self.written(f"""
                job.prepare(model, optimizer, data)
                for x, y in job:
                    {before or "pass"}
                    job.backward(F.cross_entropy(model(x), y))
                    {after or "pass"}
                print(job.result)
                """)
            run = self.alone(*script)
            with self.subTest(before=before, after=after):
                self.assertEqual(run.code, 1 if words else 0, run)
                self.assertIn(words or "", run.err)
                if words and words.startswith("other"):
                    self.assertIn(before or after, run.err)

    def test_a_parameter_that_is_not_trained_or_that_the_engine_trains_is_left_alone_too(self):
        for beginning, text in (
                (scripts.SMALL_OWN, self.BY_DATA),
                (scripts.SMALL, "model.bias.data.add_(1)"),
                (scripts.SMALL, "model.bias.add_(1)")):
            with self.subTest(text=text):
                self.assertIn("a parameter was changed in the loop", self.told(f"""
                    model.bias.requires_grad_(False)
                    job.prepare(model, optimizer, data)
                    for x, y in job:
                        {text}
                        job.backward(F.cross_entropy(model(x), y))
                    """, beginning))

    def test_a_change_that_pytorch_does_not_count_is_noticed_in_later_steps_too(self):
        self.assertIn("a parameter was changed in the loop", self.told("""
            job.prepare(model, optimizer, data)
            for number, (x, y) in enumerate(job):
                if number > 100:
                    model.bias.data.add_(1)
                job.backward(F.cross_entropy(model(x), y))
            """, scripts.SMALL.replace("steps=4", "steps=1000000")))

    def test_what_every_worker_changes_once_a_step_is_no_change_of_the_loop(self):
        script = self.written("""
            def change(*_):
                model.weight.data.clamp_(-0.1, 0.1)
                torch.no_grad()(lambda: model.bias.clamp_(-0.1, 0.1))()
            job.prepare(model, optimizer, data, before_apply=change, on_step=change,
                        evaluate=(data, lambda batch: model(batch[0]).mean(), 2))
            for x, y in job:
                job.backward(F.cross_entropy(model(x), y))
            print(job.result)
            """, scripts.SMALL.replace("steps=4", "steps=12"))
        self.assertEqual(self.line_of(self.job(2, *script)), self.line_of(self.alone(*script)))

    def test_who_catches_that_a_loss_is_none_is_in_the_lane_still(self):
        lines = [self.line_of(self.alone(*self.written(f"""
            job.prepare(model, optimizer, data)
            for x, y in job:
                try:
                    job.backward({first})
                except ValueError:
                    job.backward(F.cross_entropy(model(x), y))
            print(job.result)
            """, scripts.SMALL_OWN.replace("log_every=0", "log_every=0, precision='bf16'"))))
            for first in ("F.cross_entropy(model(x), y)",
                          "F.cross_entropy(model(x), y, reduction='none')")]
        self.assertEqual(*lines)

    def test_settings_that_cannot_be_options(self):
        for settings, words in (("{'lr': 0.1}", "has the name of an option"),
                                ("{'Hidden Size': 1}", "needs a name of small letters"),
                                ("{'x': None}", "must be a number, a text or a truth")):
            with self.subTest(settings=settings):
                self.assertIn(words, self.told("", scripts.SMALL.replace(
                    "log_every=0", f"log_every=0, settings={settings}")))

    def test_what_is_drawn_before_the_step_is_the_same_on_every_worker(self):
        script = self.written("""
            def noise():
                for one in model.parameters():
                    one.grad.add_(torch.randn_like(one) * 0.01)
            job.prepare(model, optimizer, data, before_apply=noise)
            for x, y in job:
                job.backward(F.cross_entropy(model(x), y))
            print(job.result)
            """)
        self.assertEqual(self.line_of(self.job(2, *script)), self.line_of(self.alone(*script)))

    def test_a_child_that_is_forked_in_the_loop_may_end(self):
        run = self.alone(*self.written("""
            import os, sys
            job.prepare(model, optimizer, data)
            for x, y in job:
                if os.fork() == 0:
                    sys.exit(0)
                os.wait()
                job.backward(F.cross_entropy(model(x), y))
            print(job.result)
            """))
        self.line_of(run)

    def test_a_loss_that_cannot_be_one(self):
        for loss, words in (("F.cross_entropy(model(x), y).item()", "as a tensor, not a float"),
                            ("F.cross_entropy(model(x), y, reduction='none')", "the shape (2,)"),
                            ("F.cross_entropy(model(x), y).detach()", "was it detached")):
            with self.subTest(loss=loss):
                self.assertIn(words, self.told(f"""
                    job.prepare(model, optimizer, data)
                    for x, y in job:
                        job.backward({loss})
                    """))

    def test_a_loop_that_is_left_has_failed(self):
        self.assertIn("was left before the training had ended", self.told("""
            job.prepare(model, optimizer, data)
            for x, y in job:
                job.backward(F.cross_entropy(model(x), y))
                break
            """))

    def test_a_loop_that_is_left_has_failed_also_without_streams(self):
        for streams in ("sys.stdout.close(); sys.stderr.close()", "sys.stdout = sys.stderr = None",
                        "sys.stderr.close()"):
            run = self.alone(*self.written(f"""
                import sys
                job.prepare(model, optimizer, data)
                for x, y in job:
                    {streams}
                    break
                """))
            self.assertEqual(run.code, 1, (streams, run))

    def test_a_loop_that_is_left_ends_with_what_the_script_does_at_exit(self):
        run = self.alone(*self.written("""
            atexit.register(print, "after the job")
            job.prepare(model, optimizer, data)
            for x, y in job:
                break
            """, scripts.SMALL.replace("import torch\n", "import torch, atexit\n"
                                       "atexit.register(print, 'before the job')\n", 1)))
        self.assertEqual(run.code, 1, run)
        self.assertEqual(run.out, "after the job\nbefore the job\n", run)

    def test_whatever_is_compiled_is_refused_by_name(self):
        run = self.alone(*self.written("""
            def compiled(how):
                model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Sequential())
                return how(model) or model
            def by_forward(model):
                model[0].forward = torch.compile(model[0].forward)
            def of_a_part(model):
                model[1].append(torch.compile(torch.nn.Linear(2, 2)))
            for how in (torch.compile, lambda model: model.compile(), by_forward, of_a_part,
                        lambda model: model[0].compile()):
                try:
                    job.prepare(compiled(how), optimizer, data)
                except TypeError as error:
                    print(str(error).split(" is compiled")[0])
            model.forward = torch.compiler.disable(model.forward)
            job.prepare(model, optimizer, data)
            """))
        self.assertEqual(run.code, 0, run)
        self.assertEqual(run.out.splitlines(), ["the model", "the model", "the model's '0'",
                                                "the model's '1.0'", "the model's '0'"], run)

    def test_what_cannot_be_exact_is_refused_by_name(self):
        for text, words in (
                ("job.prepare(model, torch.optim.LBFGS(model.parameters()), data)", "LBFGS"),
                ("""
                 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
                 job.prepare(model, optimizer, data, schedulers=[
                     torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)])
                 """, "ReduceLROnPlateau.step() wants `metrics`: a schedule that follows a metric"),
                ("""
                 class Stream(torch.utils.data.IterableDataset):
                     def __iter__(self):
                         return iter(data)
                 job.prepare(model, optimizer, Stream())
                 """, "is not a map-style dataset"),
                ("""
                 torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(),
                                                      rank=0, world_size=1)
                 wrapped = torch.nn.parallel.DistributedDataParallel(model)
                 job.prepare(torch.nn.Sequential(wrapped), optimizer, data)
                 """, "the model's '0' is wrapped in DistributedDataParallel; give the module"),
                ("job.prepare(torch.nn.DataParallel(model), optimizer, data)",
                 "the model is wrapped in DataParallel; give the module"),
                ("""
                 from torch.distributed.tensor import Replicate, distribute_tensor
                 torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(),
                                                      rank=0, world_size=1)
                 mesh = torch.distributed.init_device_mesh("cpu", (1,))
                 model.bias = torch.nn.Parameter(distribute_tensor(model.bias, mesh, [Replicate()]))
                 job.prepare(model, optimizer, data)
                 """, "the model's 'bias' is a DTensor"),
                ("job.register('scaler', torch.amp.GradScaler('cpu'))",
                 "'scaler' is a GradScaler: it multiplies the loss")):
            with self.subTest(words=words):
                self.assertIn(words, self.told(text))

    def test_a_scaled_loss_is_refused_in_the_loop_of_a_job_only(self):
        run = self.alone(*self.written("""
            scaler, off = (torch.amp.GradScaler("cpu", enabled=one) for one in (True, False))
            job.prepare(model, optimizer, data)
            for x, y in job:
                try:
                    loss = scaler.scale(F.cross_entropy(model(x), y))
                except RuntimeError as error:
                    told = str(error)
                    loss = off.scale(F.cross_entropy(model(x), y))
                job.backward(loss)
            print(told.split(":")[0], scaler.scale(torch.ones(())).item())
            """))
        self.assertEqual(run.code, 0, run)
        self.assertIn("a GradScaler in the loop of a job 65536.0", run.out)

    def test_an_evaluation_that_would_never_come_is_refused(self):
        told = self.told_in_a_session([
            f"job.prepare(model, optimizer, data, evaluate=({others}, lambda batch: 0, {every}))"
            for others, every in (("data", 0), ("data", -1), ("[]", 2), ("iter([])", 2))])
        for text, words in zip(told, ("ValueError: `evaluate` shall come every 0 steps",
                                      "ValueError: `evaluate` shall come every -1 steps",
                                      "ValueError: the dataset of `evaluate` has no samples",
                                      "TypeError: list_iterator is not a map-style dataset")):
            self.assertIn(words, text)

    def test_a_training_that_an_error_ended_does_not_go_on_when_it_is_caught(self):
        gone_on = "does not go on when a script catches it: ValueError: out of chalk"
        told = self.told_in_a_session((self.BAD + """
        job.prepare(model, optimizer, data)
        for x, y in job:
            try:
                job.backward(Bad.apply(F.cross_entropy(model(x), y)))
            except ValueError:
                pass
        """, self.BAD + """
        job.prepare(model, optimizer, data)
        x, y = next(iter(job))
        try:
            job.backward(Bad.apply(F.cross_entropy(model(x), y)))
        except ValueError:
            job.backward(F.cross_entropy(model(x), y))
        """, """
        def on_step(report):
            raise ValueError("out of chalk")
        job.prepare(model, optimizer, data, on_step=on_step)
        for _ in range(2):
            try:
                job.fit(lambda batch: F.cross_entropy(model(batch[0]), batch[1]))
            except ValueError:
                pass
        """))
        for text in told:
            self.assertIn(gone_on, text)

    def test_a_script_that_catches_what_ended_its_training_has_failed(self):
        err = self.told(self.BAD + """
        job.prepare(model, optimizer, data)
        try:
            for x, y in job:
                job.backward(Bad.apply(F.cross_entropy(model(x), y)))
        except ValueError:
            print("caught")
        """)
        self.assertIn("an error ended the job before the training had ended", err)

    def test_a_scheduler_of_the_job_is_not_stepped_in_the_loop_also_where_no_rate_changes(self):
        kinds = ("rates.StepLR(optimizer, 100)",
                 "rates.SequentialLR(optimizer, [rates.StepLR(optimizer, 50), "
                 "rates.StepLR(optimizer, 50)], milestones=[100])",
                 "rates.ChainedScheduler([rates.StepLR(optimizer, 100)])",
                 "rates.LambdaLR(optimizer, lambda step: 1.0)")
        texts = [f"""
            from torch.optim import lr_scheduler as rates
            schedule = {kind}
            job.prepare(model, optimizer, data, schedulers=[schedule],
                        on_step=lambda report: {step})
            for x, y in job:
                job.backward(F.cross_entropy(model(x), y))
                schedule.{call}
            """ for kind in kinds for step, call in (("None", "step()"),
                                                     ("schedule.step()", "get_last_lr()"))]
        for number, text in enumerate(self.told_in_a_session(texts)):
            with self.subTest(kind=kinds[number // 2], in_the_loop=number % 2 == 0):
                self.assertIn("nothing" if number % 2 else "leave scheduler.step() out of it", text)

    def test_tensors_that_a_model_gets_later_are_refused_by_name(self):
        cases = (("register_buffer('late', None)", "late = x.mean(0)", "the model's '0.late' is"),
                 ("register_parameter('late', None)",
                  "late = torch.nn.Parameter(torch.ones(3))", "the model's '0.late' is a tensor"),
                 ("float()", "register_buffer('late', x.mean(0))", "the model's '0.late' is"),
                 ("float()", "register_parameter('late', torch.nn.Parameter(x.mean(0)))",
                  "the model's '0.late' is a tensor"),
                 ("register_buffer('late', None, persistent=False)", "late = x.mean(0)", "nothing"),
                 ("float()", "register_buffer('late', x.mean(0), persistent=False)", "nothing"),
                 ("float()", "register_buffer('late', None)", "nothing"),
                 ("register_buffer('late', None)", "late = None", "nothing"))
        told = self.told_in_a_session(f"""
            model = torch.nn.Sequential(model)
            model[0].{before}
            job.prepare(model, optimizer, data)
            for x, y in job:
                if not isinstance(getattr(model[0], "late", None), torch.Tensor):
                    model[0].{then}
                job.backward(F.cross_entropy(model(x), y))
            """ for before, then, _ in cases)
        for (before, then, words), text in zip(cases, told):
            with self.subTest(before=before, then=then):
                self.assertIn(words, text)

    def test_a_rate_that_nobody_would_follow_is_refused(self):
        halved = "'step:every=2,factor=0.5'"
        cases = (("Job(lr=0.5, ", "optimizer", "the job's lr=0.5 would do nothing"),
                 ("Job(lr=0.001, ", "optimizer", "the job's lr=0.001 would do nothing"),
                 (f"Job(schedule={halved}, ", "optimizer", f"the job's schedule={halved} would"),
                 ("Job.from_args(['--schedule', 'constant'], ", "optimizer",
                  "the job's schedule='constant' would do nothing"),
                 ("Job(lr=0.1, ", "optimizer", "nothing"),   # it has that
                 (f"Job(lr=0.5, schedule={halved}, ", "ek.SGD()", "nothing"))
        told = self.told_in_a_session((
            scripts.SMALL.replace("Job(", made) + f"job.prepare(model, {optimizer}, data)\n"
            for made, optimizer, _ in cases), "")
        for (made, _, words), text in zip(cases, told):
            with self.subTest(made=made):
                self.assertRegex(text, "^nothing\n" if words == "nothing" else re.escape(words))

    def test_what_is_refused_says_what_to_do_instead(self):
        told = self.told_in_a_session(("""
            job.register("second", torch.optim.Adam(model.parameters()))
            """, """
            words = torch.nn.Embedding(3, 2, sparse=True)
            job.prepare(torch.nn.Sequential(words), optimizer, data)
            """, """
            words = torch.nn.Embedding(3, 2, sparse=True).requires_grad_(False)
            job.prepare(torch.nn.Sequential(model, words), optimizer, data)
            """, """
            model.register_buffer("turned", torch.ones(2, dtype=torch.complex64).conj())
            job.prepare(model, optimizer, data)
            """))
        for text, words in zip(told, ("'second' is an optimizer: give the one that trains the",
                                      "the model's '0' makes sparse gradients, which are not",
                                      "nothing", "'turned' is a view that PyTorch conjugates")):
            self.assertIn(words, text)

    def test_modules_that_a_model_gets_or_loses_later_are_refused_by_name(self):
        nn = "torch.nn"
        cases = ((f"model.extra = {nn}.Linear(3, 2)", "the model's 'extra' is a module that was"),
                 (f"model[1] = {nn}.Linear(2, 2)", "so that its '1.weight' would neither be"),
                 (f"model[1] = {nn}.Sequential({nn}.ReLU(), {nn}.Linear(2, 2))",
                  "the model's '1' is a module that was not there when the job was prepared, so "
                  "that its '1.1.weight' would"),
                 (f"model[1] = {nn}.BatchNorm1d(2, affine=False)", "its '1.running_mean' would"),
                 (f"model.append({nn}.Linear(2, 2).requires_grad_(False))", "'4' is a module that"),
                 (f"model[1] = {nn}.Identity()", "had the model's '1.weight' was removed or"),
                 ("del model[1]", "the module that had the model's '1.weight' was removed"),
                 ("model.twin = None", "nothing"),
                 ("del model.twin", "nothing"),
                 (f"model.act = {nn}.ReLU()", "nothing"),
                 (f"model[2] = {nn}.Identity()", "nothing"),
                 (f"model[1] = {nn}.Sequential(model[1])", "nothing"),
                 ("model.cache = made(3)", "nothing"))
        told = self.told_in_a_session(f"""
            def made(size):
                module = torch.nn.Identity()
                module.register_buffer("table", torch.ones(size), persistent=False)
                return module
            model = torch.nn.Sequential(model, torch.nn.Linear(2, 2), torch.nn.Dropout())
            model.twin = model[0]
            model[0].forward = lambda x: torch.nn.functional.linear(x, model[0].weight)
            job.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1), data)
            for number, (x, y) in enumerate(job):
                if number == 0:
                    {change}
                job.backward(F.cross_entropy(model[1](model[0](x)), y))
            """ for change, _ in cases)
        for (change, words), text in zip(cases, told):
            with self.subTest(change=change):
                self.assertIn(words, text)

    def test_modules_that_came_later_are_watched_from_then_on(self):
        told = self.told_in_a_session(f"""
            model = torch.nn.Sequential(model)
            job.prepare(model, optimizer, data)
            for number, (x, y) in enumerate(job):
                if number == 0:
                    model.box = torch.nn.Sequential()
                    model[0] = torch.nn.Sequential(model[0])
                if number == 1:
                    {change}
                job.backward(F.cross_entropy(model[0](x), y))
            """ for change in ("model.box.append(torch.nn.Linear(1, 1))",
                               "model.box.late = torch.nn.Parameter(torch.ones(1))",
                               "model[0][0] = torch.nn.Linear(3, 2)",
                               "model[0][0].bias = torch.nn.Parameter(torch.ones(2))"))
        for text, words in zip(told, ("'box.0' is a module that was not there",
                                      "the model's 'box.late' is a tensor that was not there",
                                      "'0.0' is a module that was not there",
                                      "'0.0.bias' is another tensor than the one that the job")):
            self.assertIn(words, text)

    def test_a_training_that_an_interrupt_ended_says_so_when_it_is_asked_to_go_on(self):
        over = "does not go on when a script catches it: KeyboardInterrupt"
        cases = (("on_step", over), ("dataset", over), ("backward", over),
                 ("body", "an interrupt or an error has left within a batch does not go on"))
        told = self.told_in_a_session(f"""
            def interrupt(where):
                if where == {where!r}:
                    raise KeyboardInterrupt
            class Data(torch.utils.data.TensorDataset):
                def __getitem__(self, index):
                    interrupt("dataset")
                    return super().__getitem__(index)
            class Passed(torch.autograd.Function):
                @staticmethod
                def forward(context, x):
                    return x.clone()
                @staticmethod
                def backward(context, gradient):
                    interrupt("backward")
                    return gradient
            def loss_of(batch):
                interrupt("body")
                return Passed.apply(F.cross_entropy(model(batch[0]), batch[1]))
            job.prepare(model, optimizer, Data(*data.tensors),
                        on_step=lambda report: interrupt("on_step"))
            try:
                job.fit(loss_of)
            except KeyboardInterrupt:
                job.fit(loss_of)
            """ for where, _ in cases)
        for (where, words), text in zip(cases, told):
            with self.subTest(where=where):
                self.assertIn(words, text)

    def test_what_is_no_number_or_keeps_nothing_is_refused_by_name(self):
        told = self.told_in_a_session(("""
            optimizer.param_groups[0]["lr"] = None
            job.prepare(model, optimizer, data)
            """, """
            job.prepare(model, optimizer, data, evaluate=(data, lambda batch: 0, 2.5))
            """, """
            job.register("average", torch.nn.BatchNorm1d(2, affine=False).requires_grad_(False))
            job.register("center", torch.nn.Identity())
            job._registered["center"].register_buffer("mean", torch.ones(1), persistent=False)
            job.prepare(model, optimizer, data)
            """))
        for text, words in zip(told, ("group 0 of torch.optim.SGD has lr=None, and a job takes",
                                      "evaluate=(dataset, metric, every) has 2.5 for `every`",
                                      "center is of the type torch.nn")):
            self.assertIn(words, text)


if __name__ == "__main__":
    scripts.main(__doc__, launchers.find_python)
