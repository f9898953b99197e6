#!/usr/bin/env python3
"""Scripts that train by the package: one last line for any number of workers, for C++ and Python,
and for a plain loop of PyTorch; its options, and what goes on.

Skips, and says why, without a Python that has PyTorch.
"""
import os
import re
import signal
import socket
import subprocess
import sys

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)),
                os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "dropin")]
import launchers
import scripts
from scripts import python


class SameLine(scripts.Imported):
    """With one lane a batch is the loop's own; with eight they are shared among workers."""
    MANY = (3,)


    def compare(self, *options, workers):
        command = python("train_models.py", "--log-every=0", *options)
        alone = self.line_of(self.alone(*command))
        for count in workers:
            with self.subTest(workers=count):
                self.assertEqual(self.line_of(self.job(count, *command)), alone)
        return alone

    def test_a_perceptron_with_the_engines_own_optimizer(self):
        self.compare("--model=mlp", "--optimizer=engine", workers=self.MANY)

    def test_batchnorm_with_momentum(self):
        self.compare("--model=norms", "--optimizer=SGD", workers=(3,))

    def test_a_transformer_with_a_schedule_clipping_and_evaluation(self):
        self.compare("--model=gpt", "--optimizer=AdamW", "--schedule-of=cosine", "--clip=0.5",
                     "--evaluate-every=5", workers=self.MANY)

    def test_noise_that_is_drawn_in_the_script_or_in_processes_of_its_own(self):
        options = ("--model=mlp", "--optimizer=Adam", "--augment")
        with_processes = self.compare(*options, "--workers=2", workers=(3,))
        without = self.line_of(self.alone(*python("train_models.py", "--log-every=0", *options)))
        self.assertEqual(with_processes, without)
        plain = self.line_of(self.alone(*python("train_models.py", "--log-every=0", *options[:2])))
        self.assertNotEqual(plain, without)

    def test_bf16_has_bits_of_its_own(self):
        bf16 = self.compare("--model=gpt", "--precision=bf16", workers=(3,))
        fp32 = self.line_of(self.alone(*python("train_models.py", "--log-every=0",
                                               "--model=gpt")))
        self.assertNotEqual(bf16, fp32)

    def test_evaluations_are_the_same_on_any_number_of_workers(self):
        command = python("train_models.py", "--model=norms", "--evaluate-every=5")
        told = [sorted(line for line in run.out.splitlines() if line.startswith("evaluation "))
                for run in (self.alone(*command), self.job(3, *command))]
        self.assertEqual(len(told[0]), 4)
        self.assertEqual(told[0], told[1])

    def test_a_c_plus_plus_worker_and_python_workers_in_one_job(self):
        program = os.path.join(scripts.ARGS.programs, "minimal_train")
        options = ("--steps=30", "--log-every=0")
        cpp = self.line_of(self.alone(program, *options))
        script = python("minimal.py", *options)
        self.assertEqual(self.line_of(self.alone(*script)), cpp)
        mixed = self.job(3, "/bin/sh", "-c",
                         f'[ "$RANK" = 1 ] && exec {program} "$@"; '
                         f'exec {" ".join(script[:3])} "$@"', "sh", *options)
        self.assertEqual(self.line_of(mixed), cpp)

    def test_one_lane_is_a_plain_loop(self):
        run = self.fresh(*python("plain_loop.py"))
        self.assertEqual(run.code, 0, run)
        self.assertIn("the same bits after 40 steps", run.out)
        self.assertIn("PyTorch's compiler was left out", run.out)


class SameLineOfANight(SameLine):
    MANY = (2, 3, 5)


class Stops(scripts.Case):
    def stopped(self, command, signals=(signal.SIGTERM,), at="step 5 "):
        process = scripts.start(command)
        lines = []
        for line in process.stdout:
            lines.append(line)
            if line.startswith(at):
                break
        for one in signals:
            os.kill(process.pid, one)
        rest = scripts.end(process)
        return scripts.Run(rest.code, "".join(lines) + rest.out, rest.err)

    def command(self, steps, *options):
        return python("train_models.py", f"--steps={steps}", "--optimizer=AdamW",
                      "--schedule-of=cosine", "--log-every=0", *options)

    @staticmethod
    def steps_beyond(stopped):
        """On a busy machine the signal may come long after the line that it was to follow."""
        saved = re.findall(r"checkpoint step=([0-9]+)", stopped.err)
        return 40 + int(saved[-1] if saved else 0)

    def test_a_signal_saves_and_another_number_of_workers_goes_on(self):
        directory = f"--checkpoint-dir={self.folder}/ckpts"
        stopped = self.stopped(self.command(1000000, directory))
        self.assertEqual(stopped.code, 75, stopped)
        self.assertEqual(stopped.lines, [])   # what follows the loop is for a job that has finished
        steps = self.steps_beyond(stopped)
        resumed = self.job(3, *self.command(steps, directory))
        self.assertIn("resumed step=", resumed.out, resumed)
        self.assertEqual(self.line_of(resumed), self.line_of(self.alone(*self.command(steps))))

    def test_all_workers_are_stopped_by_their_launcher(self):
        directory = f"--checkpoint-dir={self.folder}/ckpts"
        command = scripts.under_keelrun(3, self.command(1000000, directory))
        stopped = self.stopped(command, at="")
        self.assertEqual(stopped.code, 75, stopped)
        steps = self.steps_beyond(stopped)
        self.assertEqual(self.line_of(self.alone(*self.command(steps, directory))),
                         self.line_of(self.alone(*self.command(steps))))

    def test_ctrl_c_saves(self):
        directory = f"--checkpoint-dir={self.folder}/ckpts"
        stopped = self.stopped(self.command(1000000, directory), (signal.SIGINT,))
        self.assertEqual(stopped.code, 75, stopped)
        self.assertNotIn("Traceback", stopped.err)

    # Python looks for it in its first thread only.
    def test_a_second_ctrl_c_ends_what_a_script_waits_for(self):
        process = scripts.start(self.written("""
            import signal, time
            signal.signal(signal.SIGINT, signal.default_int_handler)   # a shell may ignore it
            job = ek.Job(steps=4, lanes=2, lane_batch=2)
            def on_step(report):
                print("asleep", flush=True)
                time.sleep(10 * 60)
            job.prepare(model, optimizer, data, on_step=on_step)
            for x, y in job:
                job.backward(F.cross_entropy(model(x), y))
            """))
        for stream, awaited in ((process.stdout, "asleep"), (process.stderr, "stop-wanted")):
            self.assertTrue(any(awaited in line for line in stream))
            os.kill(process.pid, signal.SIGINT)
        run = scripts.end(process)
        self.assertIn(run.code, (130, -signal.SIGINT), run)
        self.assertIn("KeyboardInterrupt", run.err)

    # As Slurm does it: the batches of the last step are still wanted.
    def test_a_signal_to_all_processes_saves_while_some_of_them_load(self):
        stopped = scripts.end(scripts.start(self.written(f"""
            import os, signal, time
            job = ek.Job(steps=1000000, lanes=2, lane_batch=2,
                         checkpoint_dir={self.folder + "/ckpts"!r})
            class Slow(torch.utils.data.TensorDataset):
                def __getitem__(self, index):
                    time.sleep(0.05)
                    return super().__getitem__(index)
            job.prepare(model, optimizer, Slow(*data.tensors), num_workers=2,
                        on_step=lambda report: report["step"] == 3
                        and os.killpg(os.getpgid(0), signal.SIGTERM))
            for x, y in job:
                job.backward(F.cross_entropy(model(x), y))
            """)))
        self.assertEqual(stopped.code, 75, stopped)
        self.assertIn(" checkpoint step=", stopped.err)

    def test_what_a_dataset_starts_is_ended_by_a_signal(self):
        run = self.alone(*self.written("""
            import multiprocessing, os, subprocess, time
            script = os.getpid()
            class Reading(torch.utils.data.TensorDataset):
                def __getitem__(self, index):
                    if os.getpid() != script:
                        program = subprocess.Popen(["sleep", "60"])
                        forked = multiprocessing.Process(target=time.sleep, args=(60,))
                        forked.start()
                        program.terminate()
                        forked.terminate()
                        forked.join(20)
                        print("ended by", program.wait(20), forked.exitcode, flush=True)
                    return super().__getitem__(index)
            job.prepare(model, optimizer, Reading(*data.tensors), num_workers=2)
            for x, y in job:
                job.backward(F.cross_entropy(model(x), y))
            """))
        self.assertEqual(run.code, 0, run)
        self.assertEqual(set(re.findall("ended by.*", run.out)), {"ended by -15 -15"}, run)

    def test_without_a_place_to_save_it_says_that_by_its_code(self):
        self.assertEqual(self.stopped(self.command(1000000)).code, 77)

    def test_threads_that_were_there_before_do_not_swallow_the_signal(self):
        script = self.written("""
            job.prepare(model, optimizer, data, on_step=lambda report: print(
                "step", report["step"], " ", flush=True))
            for x, y in job:
                job.backward(F.cross_entropy(model(x), y))
            """, "import threading\nthreading.Thread(target=threading.Event().wait, "
                 "daemon=True).start()\n" + scripts.SMALL.replace("steps=4", "steps=1000000"))
        self.assertEqual(self.stopped(script).code, 77)


class Options(scripts.Imported):
    def test_a_config_file_beats_a_scripts_defaults_and_the_command_line_beats_it(self):
        config = os.path.join(self.folder, "c.toml")
        with open(config, "w", encoding="utf-8") as file:
            file.write("steps = 6\nwidth = 5\n")
        script = self.written("print(job.config['steps'], job.settings)\n", """
import evenkeel as ek
job = ek.Job.from_args(steps=300, lanes=3, settings={"width": 16})
""")
        for options, steps, width in (((), 300, 16), ((f"--config={config}",), 6, 5),
                                      ((f"--config={config}", "--steps=7"), 7, 5)):
            run = self.alone(*script, *options)
            self.assertEqual(run.out, f"{steps} {{'width': {width}}}\n", run)
        told = self.alone(*script, f"--config={config}", "--print-config").out
        for line in (f"steps = 6  # {config}:1", "lanes = 3  # default of script.py",
                     "lane-batch = 8  # default", "threads = 1  # default"):
            self.assertIn(line + "\n", told)
        self.assertIn("Optimizer steps (default: 300)", self.alone(*script, "--help").out)

    def test_a_scripts_defaults_that_make_no_sense(self):
        run = self.alone(*self.written("", "import evenkeel as ek\n"
                                           "ek.Job.from_args(stpes=3, lanes='many')\n"))
        self.assertEqual(run.code, 2, run)
        self.assertIn("unknown option '--stpes'; did you mean '--steps'?", run.err)
        self.assertIn("option '--lanes' (default of script.py): 'many' must be", run.err)

    def test_a_script_may_have_a_config_file_of_its_own(self):
        config = os.path.join(self.folder, "c.toml")
        with open(config, "w", encoding="utf-8") as file:
            file.write("steps = 6\n")
        run = self.alone(*self.written("print(job.config['steps'])", "import evenkeel as ek\n"
                                       f"job = ek.Job.from_args(config={config!r}, steps=300)\n"))
        self.assertEqual(run.out, "6\n", run)

    def test_options_that_make_no_sense(self):
        run = self.alone(*python("train_models.py", "--stps=3"))
        self.assertEqual(run.code, 2, run)
        self.assertIn("did you mean '--steps'?", run.err)
        run = self.alone(*python("train_models.py", "--help"))
        self.assertEqual(run.code, 0, run)
        self.assertIn("--checkpoint-dir", run.out)
        self.assertIn("--schedule-of", run.out)
        self.assertIn("unknown option '--stpes'", self.alone(*self.written(
            "", scripts.SMALL.replace("steps=4", "stpes=4"))).err)


class Lines(scripts.Case):
    def test_of_several_workers_do_not_mix(self):
        """Each write to such a socket is a packet of its own."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        script = self.written("print('a line', 'of words')\n", scripts.SMALL_OWN)[-1]
        with ours, theirs:
            done = subprocess.run([scripts.ARGS.keelrun, "--standalone", script],
                                  stdout=theirs.fileno(), stderr=subprocess.PIPE, text=True,
                                  env=scripts.environment(PYTHON_EXEC=scripts.ARGS.python),
                                  timeout=scripts.HANG_LIMIT_S, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            ours.settimeout(0)
            self.assertEqual(ours.recv(100), b"a line of words\n")


class Kept(scripts.Imported):
    def test_what_is_saved_in_a_file_is_loaded_of_it(self):
        run = self.alone(*self.written(f"""
            path, state = "{self.folder}/w.safetensors", model.state_dict()
            state["model.scale"] = torch.tensor(2, dtype=torch.int64)
            ek.save(state, path)
            loaded = ek.load(path)
            assert loaded.keys() == state.keys(), (loaded.keys(), state.keys())
            assert all(torch.equal(loaded[name], state[name]) for name in state)
            print(list(ek.load(path, only=["w*", "*.scale"])))
            try:
                ek.load(path, only=["bias", "nothing*"])
            except RuntimeError as error:
                print(error)
            """, scripts.SMALL_OWN))
        self.assertEqual(run.code, 0, run)
        self.assertEqual(run.out, f"['model.scale', 'weight']\nno tensor of {self.folder}/"
                                  "w.safetensors is called nothing*\n")

    def test_what_is_registered_goes_on(self):
        script = self.written("""
            class Count:
                seen = 0
                def state_dict(self):
                    return {"seen": self.seen}
                def load_state_dict(self, state):
                    self.seen = state["seen"]
            count = Count()
            average = torch.optim.swa_utils.AveragedModel(
                model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.5))
            def on_step(report):
                count.seen += report["world"] * 0 + 1
                average.update_parameters(model)
            job.register("count", count)
            job.register("average", average)
            job.prepare(model, optimizer, data, on_step=on_step)
            for x, y in job:
                job.backward(F.cross_entropy(model(x), y))
            print("seen", count.seen, average.module.weight.sum().item())
            print(job.result)
            """, scripts.SMALL.replace("ek.Job(steps=4", "ek.Job.from_args(steps=12"))
        quiet = self.alone(*script)
        self.assertIn("seen 12 ", quiet.out, quiet)
        directory = f"--checkpoint-dir={self.folder}/ckpts"
        first = self.alone(*script, "--steps=5", directory)
        self.assertIn("seen 5 ", first.out, first)
        second = self.job(2, *script, directory)
        self.assertEqual(sorted(set(second.out.splitlines()) - set(quiet.out.splitlines()))[0][:13],
                         "resumed step=", second)
        self.assertEqual(self.line_of(second), self.line_of(quiet))

    def test_what_a_callback_changes_in_a_buffer_goes_on(self):
        script = self.written("""
            model.register_buffer("heat", torch.tensor(1.0))
            def before_apply():
                model.heat.add_(0.25)
            def on_step(report):
                model.heat.mul_(1.5)
            job.prepare(model, optimizer, data, on_step=on_step, before_apply=before_apply)
            for x, y in job:
                job.backward(F.cross_entropy(model(x) / model.heat, y))
            print("heat", model.heat.item())
            print(job.result)
            """, scripts.SMALL.replace("ek.Job(steps=4", "ek.Job.from_args(steps=6"))
        quiet = self.alone(*script)
        heat = 1.0
        for _ in range(6):
            heat = (heat + 0.25) * 1.5
        self.assertIn(f"heat {heat}", quiet.out, quiet)
        directory = f"--checkpoint-dir={self.folder}/ckpts"
        self.assertEqual(self.alone(*script, "--steps=3", directory).code, 0)
        resumed = self.job(2, *script, directory)
        self.assertIn("resumed step=3 ", resumed.out, resumed)
        self.assertEqual(self.line_of(resumed), self.line_of(quiet))

    def test_who_computed_a_lane_wrongly_is_told_by_whoever_computes_it_again(self):
        folder = f"{self.folder}/ckpts"
        script = self.written("""
            import os
            if os.environ.get("LOCAL_RANK") == "1":
                model.weight.register_hook(lambda grad: grad + 0.25)
            job.prepare(model, optimizer, data)
            for x, y in job:
                job.backward(F.cross_entropy(model(x), y))
            print("done")
            """, scripts.SMALL.replace("log_every=0", "log_every=0, recheck_every=1, "
                                       f"checkpoint_dir='{folder}'"))
        run = self.job(3, *script, options=("--max-restarts=2",))
        self.assertIn("evidence-saved", run.err)
        file, = [name for name in os.listdir(folder) if name.startswith("corruption-step-0-")]
        keel = os.path.join(os.path.dirname(scripts.ARGS.keelrun), "keel")
        again = self.alone(keel, "recompute", f"{folder}/{file}", *script)
        self.assertEqual(again.code, 0, again)
        self.assertRegex(again.out, r"This machine comes to the results of .*Wrong: rank 1 ")
        self.assertNotIn("done", again.out + again.err)

    def test_what_is_loaded_of_a_plain_model_is_what_state_dict_gives(self):
        self.line_of(self.alone(*self.written(f"""
            job.prepare(model, optimizer, data)
            for x, y in job:
                job.backward(F.cross_entropy(model(x), y))
            loaded, state = ek.load("{self.folder}/ckpts"), model.state_dict()
            assert loaded.keys() == state.keys(), (loaded.keys(), state.keys())
            assert all(torch.equal(loaded[name], state[name]) for name in state)
            print(job.result)
            """, scripts.SMALL.replace("log_every=0",
                                       f"log_every=0, checkpoint_dir='{self.folder}/ckpts'"))))

    def test_what_is_loaded_is_what_state_dict_gives_and_a_job_may_begin_with_it(self):
        weights = f"{self.folder}/w.safetensors"
        beginning = scripts.SMALL.replace("log_every=0",
                                          f"log_every=0, checkpoint_dir='{self.folder}/ckpts'")
        model = f"""
            import os
            weights = "{weights}"
            class Tied(torch.nn.Module):
                def __init__(self):
                    super().__init__()
                    self.first, self.last = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)
                    self.last.weight = self.first.weight
                    self.fixed = torch.nn.Linear(3, 2).requires_grad_(False)
                    self.register_buffer("mask", torch.ones(3), persistent=False)
                    self.register_buffer("scale", torch.ones(3))
                def forward(self, x):
                    return self.fixed(self.last(self.first(x) * self.mask) * self.scale)
            model = Tied()
            job.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1), data)
            for number, (x, y) in enumerate(job):
                if number == 0 and os.path.exists(weights):
                    given, state = ek.load(weights), model.state_dict()
                    assert all(torch.equal(given[name], state[name]) for name in state)
                    assert torch.equal(model.mask, torch.ones(3)), model.mask
                job.backward(F.cross_entropy(model(x), y))
            """
        self.line_of(self.alone(*self.written(model + f"""
            loaded, state = ek.load("{self.folder}/ckpts@latest"), model.state_dict()
            assert loaded.keys() == state.keys(), (loaded.keys(), state.keys())
            assert all(torch.equal(loaded[name], state[name]) for name in state)
            print(Tied().load_state_dict(loaded))
            ek.save(state, weights)
            print(job.result)
            """, beginning)))
        self.line_of(self.alone(*self.written(model + """
            print(job.result)
            """, scripts.SMALL.replace("log_every=0", f"log_every=0, init_from='{weights}'"))))

    # Buffers and generators are the engine's again when the loop asks for the next batch.
    def test_what_a_loop_does_behind_a_backward_changes_no_bit(self):
        beginning = scripts.SMALL.replace(
            "torch.nn.Linear(3, 2)", "torch.nn.Sequential(torch.nn.BatchNorm1d(3), "
            "torch.nn.Dropout(), torch.nn.Linear(3, 2))").replace("steps=4", "steps=40")
        for optimizer in ("torch.optim.SGD(model.parameters(), lr=0.1)", "ek.SGD()"):
            lines = set()
            for workers, behind in ((1, "pass"), (1, "model(x)"), (2, "model(x); model(x)"),
                                    (1, "torch.manual_seed(7); torch.rand(9)"), (2, "pass")):
                run = self.job(workers, *self.written(f"""
                    job.prepare(model, optimizer, data)
                    for x, y in job:
                        job.backward(F.cross_entropy(model(x), y))
                        {behind}
                    print(job.result)
                    """, beginning.replace("torch.optim.SGD(model.parameters(), lr=0.1)",
                                           optimizer)))
                lines.add(self.line_of(run))
            self.assertEqual(len(lines), 1, (optimizer, lines))

    def test_reports_tell_what_is_no_number(self):
        run = self.alone(*self.written("""
            def on_step(report):
                print(report["step"], report["applied"], repr(report["loss"]))
                assert isinstance(sum(report["lane_losses"]), float), report
            job.prepare(model, optimizer, data, on_step=on_step,
                        on_evaluation=lambda report: print("evaluated", repr(report["value"])),
                        evaluate=(data, lambda batch: torch.tensor(float("-inf")), 2))
            for number, (x, y) in enumerate(job):
                loss = F.cross_entropy(model(x), y)
                job.backward(loss * float("nan") if number == 2 else loss)
            """, scripts.SMALL.replace("log_every=0", "log_every=0, non_finite='skip'")))
        self.assertEqual(run.code, 0, run)
        self.assertIn("1 False nan", run.out, run)
        self.assertIn("evaluated -inf", run.out, run)

    def test_a_rate_may_be_a_tensor(self):
        for kind in ("AdamW", "SGD", "Adam", "RMSprop"):
            runs = [self.job(workers, *self.written("""
                schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
                job.prepare(model, optimizer, data, schedulers=[schedule],
                            on_step=lambda report: print("rate", report["learning_rate"]))
                print(job.fit(lambda batch: F.cross_entropy(model(batch[0]), batch[1])))
                """, scripts.SMALL.replace("torch.optim.SGD(model.parameters(), lr=0.1)",
                                           f"torch.optim.{kind}(model.parameters(), "
                                           "lr=torch.tensor(0.5))"))) for workers in (1, 2)]
            self.assertEqual(len({self.line_of(run) for run in runs}), 1, (kind, runs))
            self.assertEqual(re.findall(r"rate (\S+)", runs[0].out),
                             ["0.5", "0.25", "0.125", "0.0625"], runs[0])

    def test_a_lane_is_computed_again_with_what_is_registered(self):
        folder = f"{self.folder}/ckpts"
        script = self.written("""
            import os
            class Scale:
                value = 1.0
                def state_dict(self):
                    return {"value": self.value}
                def load_state_dict(self, state):
                    self.value = state["value"]
            scale = Scale()
            def on_step(report):
                scale.value *= 2
            if os.environ.get("LOCAL_RANK") == "1":
                model.weight.register_hook(lambda grad: grad + 0.25 * (scale.value == 4))
            job.register("scale", scale)
            job.prepare(model, optimizer, data, on_step=on_step)
            for x, y in job:
                job.backward(scale.value * F.cross_entropy(model(x), y))
            """, scripts.SMALL.replace("log_every=0", "log_every=0, recheck_every=1, "
                                       f"checkpoint_dir='{folder}'"))
        run = self.job(3, *script, options=("--max-restarts=2",))
        self.assertIn("evidence-saved", run.err)
        file, *_ = sorted(name for name in os.listdir(folder)
                          if name.startswith("corruption-step-2-"))
        keel = os.path.join(os.path.dirname(scripts.ARGS.keelrun), "keel")
        again = self.alone(keel, "recompute", f"{folder}/{file}", *script)
        self.assertEqual(again.code, 0, again)
        self.assertRegex(again.out, r"This machine comes to the results of .*Wrong: rank 1 ")

    def test_what_is_conjugated_or_negated_when_it_is_read_is_saved_as_it_reads(self):
        run = self.alone(*self.written(f"""
            given = torch.tensor([1 + 2j, 3 - 4j]).conj()
            state = {{"conjugated": given, "negated": given.imag, "dense": given.clone(),
                     "real": torch._neg_view(torch.ones(2))}}
            ek.save(state, "{self.folder}/w.safetensors")
            loaded = ek.load("{self.folder}/w.safetensors")
            assert all(torch.equal(loaded[name], state[name]) for name in state), loaded
            """, scripts.SMALL_OWN))
        self.assertEqual(run.code, 0, run)

    def test_nothing_is_loaded_of_another_step_than_the_one_named(self):
        folder = f"{self.folder}/ckpts"
        self.line_of(self.alone(*self.written(f"""
            import os
            job.prepare(model, optimizer, data)
            for x, y in job:
                job.backward(F.cross_entropy(model(x), y))
            os.rename("{folder}/step-000000004", "{folder}/step-000000007")
            try:
                ek.load("{folder}@7")
            except RuntimeError as error:
                assert "its manifest is of step 4" in str(error), error
            else:
                raise AssertionError("it was loaded")
            assert ek.load("{folder}/step-000000007").keys() == model.state_dict().keys()
            print(job.result)
            """, scripts.SMALL_OWN.replace("log_every=0",
                                           f"log_every=0, checkpoint_dir='{folder}'"))))

    def test_whole_numbers_of_all_kinds_are_saved_and_loaded(self):
        run = self.alone(*self.written(f"""
            given = {{str(kind): torch.arange(250, 260).to(kind)
                     for kind in (torch.uint16, torch.uint32, torch.uint64, torch.int16)}}
            ek.save(given, "{self.folder}/w.safetensors")
            loaded = ek.load("{self.folder}/w.safetensors")
            assert loaded.keys() == given.keys(), loaded
            assert all(loaded[name].dtype == given[name].dtype and
                       torch.equal(loaded[name].long(), given[name].long()) for name in given)
            """, scripts.SMALL_OWN))
        self.assertEqual(run.code, 0, run)


if __name__ == "__main__":
    scripts.main(__doc__, launchers.find_python)
