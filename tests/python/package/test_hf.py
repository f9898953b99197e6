#!/usr/bin/env python3
"""A Trainer of Hugging Face's transformers, the real one: the same last line on one worker and on
three, of which one is killed.

Skips, and says why, without a Python that has PyTorch, or without transformers.
"""
import os
import re
import sys

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)),
                os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "dropin")]
import launchers
import scripts

EXAMPLE = os.path.join(scripts.HERE, "..", "..", "..", "examples", "python", "fine_tune.py")
STEPS = "200"
BEGINNING = """
import warnings
import evenkeel.hf
import torch
import transformers
transformers.set_seed(0)
model = transformers.BertForSequenceClassification(transformers.BertConfig(
    vocab_size=70, hidden_size=8, num_hidden_layers=1, num_attention_heads=1,
    intermediate_size=8, max_position_embeddings=32))
samples = [{"input_ids": torch.tensor([1, 2 + n]), "labels": n % 2} for n in range(40)]
def trainer(kind=transformers.Trainer, eval_dataset=samples, callbacks=None, compute_metrics=None,
            **more):
    arguments = transformers.TrainingArguments(**({
        "output_dir": "run", "num_train_epochs": 3, "per_device_train_batch_size": 4,
        "save_strategy": "no", "report_to": [], "use_cpu": True} | more))
    return kind(model, arguments, train_dataset=samples, eval_dataset=eval_dataset,
                callbacks=callbacks, compute_metrics=compute_metrics)
class Own(transformers.Trainer):
    def training_step(self, *given):
        pass
class Telling(transformers.Trainer):
    def log(self, *given):
        pass
"""
REFUSED = {
    "trainer(train_sampling_strategy='group_by_length')": "train_sampling_strategy",
    "trainer(neftune_noise_alpha=5.0)": "neftune_noise_alpha=5.0",
    "trainer(load_best_model_at_end=True, eval_strategy='epoch', save_strategy='epoch')":
        "load_best_model_at_end",
    "trainer(save_strategy='best', eval_strategy='epoch', metric_for_best_model='loss')":
        "save_strategy",
    "trainer(eval_strategy='epoch', eval_dataset={'a': samples, 'b': samples})": "2 datasets",
    "trainer(lr_scheduler_type='reduce_lr_on_plateau', eval_strategy='epoch')":
        "lr_scheduler_type='reduce_lr_on_plateau' would not be done here",
    "trainer(kind=Own)": "Own.training_step() would not be called",
    "trainer(eval_strategy='epoch', metric_for_best_model='loss', "
    "callbacks=[transformers.EarlyStoppingCallback()])": "EarlyStoppingCallback",
}
WARNED = {
    "trainer(callbacks=[transformers.TrainerCallback()])": "TrainerCallback, which is not called",
    "trainer(eval_strategy='epoch', compute_metrics=lambda found: {})": "compute_metrics",
    "trainer(kind=Telling)": "Telling.log() is not called",
    "trainer(eval_on_start=True, eval_strategy='epoch')": "eval_on_start=True",
    "trainer(debug='underflow_overflow')": "debug=",
    "trainer(label_smoothing_factor=0.1)": "",
}


class Tuned(scripts.WithPackages):
    IMPORTED = ("transformers",)
    MORE = {"HF_HUB_OFFLINE": "1"}

    def test_the_same_line_on_one_worker_and_on_three_of_which_one_dies(self):
        command = [scripts.ARGS.python, "-B", EXAMPLE, STEPS]
        alone = self.line_of(self.alone(*command))
        run = self.job_that_loses_a_worker(command)
        self.assertEqual(self.line_of(run), alone)

    def test_what_is_not_done_is_refused_or_told_by_name(self):
        run = self.alone(*self.written(f"""
            for text in {[*REFUSED, *WARNED]!r}:
                with warnings.catch_warnings(record=True) as told:
                    warnings.simplefilter("always")
                    made = eval(text)
                    told.clear()
                    try:
                        evenkeel.hf._refuse(made)
                        print(text, "->", *(one.message for one in told))
                    except TypeError as error:
                        print(text, "->", "refused:", error)
            """, BEGINNING))
        said = dict(line.split(" ->") for line in run.out.splitlines() if " ->" in line)
        for text, words in REFUSED.items():
            self.assertRegex(said.get(text, ""), f" refused: .*{re.escape(words)}", run)
        for text, words in WARNED.items():
            self.assertIn(words, said.get(text, "nothing"), run)
            self.assertNotIn("refused", said[text], run)
        self.assertEqual(said["trainer(label_smoothing_factor=0.1)"].strip(), "", run)

    def test_epochs_and_parts_become_steps(self):
        run = self.alone(*self.written("""
            found = trainer(eval_strategy="epoch", save_strategy="epoch", save_total_limit=2,
                            logging_steps=0.1)
            print(evenkeel.hf._options_of(found.args, 40, 3))
            print(evenkeel.hf.train(found, lanes=3, checkpoint_dir=None, save_every=None,
                                    keep=None))
            """, BEGINNING))
        self.line_of(run)
        for words in ("'steps': 10", "'save_every': 3", "'log_every': 1", "'keep': 2"):
            self.assertIn(words, run.out, run)
        self.assertEqual(re.findall(r"info evaluation step=(\d+)", run.err), ["3", "6", "9"], run)

    def test_what_a_job_is_told_wins_over_the_batch_of_the_arguments(self):
        run = self.alone(*self.written("""
            found = trainer(save_strategy="steps", save_steps=5)
            print(evenkeel.hf._options_of(found.args, 40, 2, 8))
            print(evenkeel.hf.train(found, lanes=2, lane_batch=8, checkpoint_dir=None,
                                    save_every=None, keep=None))
            """, BEGINNING))
        self.assertTrue(self.line_of(run).startswith("final step=8 "), run)
        # Hugging Face keeps all where no limit is given.
        self.assertRegex(run.out, r"'save_every': 5, 'keep': \d{9}")

    def test_a_loss_that_follows_the_steps_goes_on_with_them(self):
        steps = """
            class Warming(transformers.Trainer):
                def compute_loss(self, model, inputs, *given, **more):
                    print("at", self.state.global_step, "of", self.state.max_steps)
                    return (super().compute_loss(model, inputs, *given, **more)
                            * (1 + self.state.global_step))
            print(evenkeel.hf.train(trainer(kind=Warming, max_steps={steps}), lanes=2,
                                    checkpoint_dir="{folder}", save_every=100, keep=None))
            """
        def run(number, folder):
            return self.alone(*self.written(steps.format(steps=number, folder=folder), BEGINNING))
        whole = self.line_of(run(9, "whole"))
        self.line_of(run(4, "parts"))
        resumed = run(9, "parts")
        self.assertEqual(re.findall(r"at (\d+) of 9", resumed.out), list("4455667788"), resumed)
        # How long a job is shapes the schedule here, so only the numbers of steps are the same.
        self.assertEqual(self.line_of(resumed).split()[1], whole.split()[1])

    def test_a_stream_and_an_evaluation_that_would_never_come_are_refused(self):
        run = self.alone(*self.written("""
            class Endless(torch.utils.data.IterableDataset):
                def __iter__(self):
                    return iter(samples)
            stream = trainer(max_steps=4)
            stream.train_dataset = Endless()
            never = trainer(eval_strategy="steps", eval_steps=2)
            never.eval_dataset = []
            for one in stream, never:
                try:
                    evenkeel.hf.train(one, lanes=2)
                except (TypeError, ValueError) as error:
                    print("refused:", error)
            """, BEGINNING))
        self.assertRegex(run.out, "(?s)refused: Endless is not a map-style dataset.*"
                                  "refused: the dataset of `evaluate` has no samples", run)

    def test_a_model_takes_the_special_tokens_of_its_tokenizer(self):
        run = self.alone(*self.written("""
            from tokenizers import Tokenizer, models, pre_tokenizers
            words = Tokenizer(models.WordLevel({"a": 0, "b": 1, "c": 2, "[PAD]": 3, "[END]": 4},
                                               unk_token="a"))
            words.pre_tokenizer = pre_tokenizers.Whitespace()
            tokenizer = transformers.PreTrainedTokenizerFast(
                tokenizer_object=words, pad_token="[PAD]", eos_token="[END]")
            texts = [{"input_ids": tokenizer(text)["input_ids"], "labels": number % 2} for
                     number, text in enumerate(["a b c a", "a b", "c", "b c a"] * 3)]
            arguments = transformers.TrainingArguments(
                "run", max_steps=3, per_device_train_batch_size=4, save_strategy="no",
                report_to=[], use_cpu=True)
            library = vars(transformers.trainer)
            align = library["align_special_tokens"]
            class Earlier(transformers.Trainer):   # of versions where it is a method
                def _align_special_tokens(self):
                    align(self.model, self.processing_class)
            for kind, pad in ((transformers.Trainer, 3), (transformers.Trainer, None),
                              (transformers.Trainer, 0), (Earlier, 0), ("none", 3)):
                transformers.set_seed(0)
                model = transformers.GPT2ForSequenceClassification(transformers.GPT2Config(
                    vocab_size=8, n_embd=8, n_layer=1, n_head=1, n_positions=8, num_labels=2,
                    pad_token_id=pad, eos_token_id=4, bos_token_id=None))
                if kind is not transformers.Trainer:
                    library.pop("align_special_tokens", None)
                kind = transformers.Trainer if kind == "none" else kind
                made = kind(model, arguments, train_dataset=texts, processing_class=tokenizer)
                print(evenkeel.hf.train(made, lanes=1))
            """, BEGINNING))
        self.line_of(run)   # all five are the same
        self.assertEqual(len(run.lines), 5, run)

    def test_a_second_training_has_a_schedule_of_its_own(self):
        run = self.alone(*self.written("""
            class Telling(transformers.Trainer):
                def compute_loss(self, *given, **more):
                    print("rate", self.optimizer.param_groups[0]["lr"])
                    return super().compute_loss(*given, **more)
            made = trainer(kind=Telling, max_steps=4, learning_rate=0.01)
            for _ in range(2):
                evenkeel.hf.train(made, lanes=1)
            """, BEGINNING))
        self.assertEqual(re.findall(r"rate (\S+)", run.out),
                         ["0.01", "0.0075", "0.005", "0.0025"] * 2, run)

    # What the Trainer itself shows then, of 40 samples and steps of 16, but that it would fill the
    # last step of an epoch with fewer samples.
    def test_a_loss_sees_the_epoch_and_that_it_is_in_training(self):
        run = self.alone(*self.written("""
            class Telling(transformers.Trainer):
                def compute_loss(self, *given, **more):
                    print("at", self.state.global_step, self.state.epoch,
                          self.state.num_train_epochs, self.is_in_train)
                    if self.state.global_step == ends_at:
                        raise ValueError("this ends it")
                    return super().compute_loss(*given, **more)
            ends_at = None
            def trained(**more):
                made = trainer(kind=Telling, num_train_epochs=2)
                try:
                    evenkeel.hf.train(made, lanes=4, **more)
                finally:
                    print("end", made.state.global_step, made.state.epoch, made.is_in_train)
            trained()
            trained(steps=7, checkpoint_dir="parts", save_every=100, keep=None)
            trained(steps=8, checkpoint_dir="parts", save_every=100, keep=None)
            trained(steps=8, checkpoint_dir="parts", save_every=100, keep=None)
            ends_at = 2
            try:
                trained()
            except ValueError as error:
                print(error)
            """, BEGINNING))
        def at(step, epochs):
            return [f"at {step} {step * 16 / 40} {epochs} True"] * 4
        said = [line for line in run.out.splitlines() if line.startswith(("at", "end", "this"))]
        self.assertEqual(said, [
            *sum((at(step, 2) for step in range(5)), []), "end 5 2.0 False",
            *sum((at(step, 3) for step in range(7)), []), "end 7 2.8 False",
            *at(7, 4), "end 8 3.2 False", "end 8 3.2 False",
            *at(0, 2), *at(1, 2), at(2, 2)[0], "end 2 0.8 False", "this ends it"], run)

    def test_what_a_subclass_changes_of_a_step_is_refused_if_its_base_has_it(self):
        run = self.alone(*self.written("""
            for name in "_prepare_inputs", "_prepare_input", "_clip_grad_norm", "_of_its_own":
                kind = type("Changed", (transformers.Trainer,), {name: lambda self, given: given})
                try:
                    print(evenkeel.hf._refuse(trainer(kind=kind)))
                except TypeError as error:
                    print(error)
            del transformers.Trainer._clip_grad_norm   # as in versions that have none
            kind = type("Changed", (transformers.Trainer,), {"_clip_grad_norm": lambda self: None})
            print(evenkeel.hf._refuse(trainer(kind=kind)))
            """, BEGINNING))
        self.assertRegex(run.out, r"(?s)Changed._prepare_inputs\(\) would not be called.*"
                                  r"Changed._prepare_input\(\) would not be called.*"
                                  r"Changed._clip_grad_norm\(\) would not be called.*max_grad_norm"
                                  r"\nNone\nNone", run)

    def test_parts_are_those_of_the_jobs_own_steps(self):
        run = self.alone(*self.written("""
            found = trainer(num_train_epochs=30, save_strategy="steps", save_steps=0.25,
                            eval_strategy="steps", eval_steps=0.25, logging_steps=0.5)
            print(evenkeel.hf._options_of(found.args, 40, 1, steps=8))
            print(evenkeel.hf.train(found, lanes=1, steps=8))
            """, BEGINNING))
        self.line_of(run)
        for words in ("'steps': 8", "'save_every': 2", "'log_every': 4"):
            self.assertIn(words, run.out, run)
        self.assertIn('why="every 2 steps"', run.err, run)
        self.assertEqual(re.findall(r"info evaluation step=(\d+)", run.err), list("2468"), run)


if __name__ == "__main__":
    scripts.main(__doc__, launchers.find_python)
