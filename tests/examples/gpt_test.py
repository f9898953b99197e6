#!/usr/bin/env python3
"""gpt_train writes the same text for the same checkpoint, prompt and seed, another one for another
seed, and nothing from weights that are not of its model."""
import argparse
import os
import subprocess
import sys
import tempfile
import unittest

ARGS = None
LIMIT_S = 300


def call(folder, *command):
    """(exit code, stdout, stderr)."""
    done = subprocess.run([f"{ARGS.build}/bin/{command[0]}", *command[1:]], cwd=folder,
                          capture_output=True, timeout=LIMIT_S, check=False)
    return done.returncode, done.stdout, done.stderr.decode(errors="replace")


class Writing(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory(prefix="keel-gpt-")
        cls.folder = os.path.realpath(cls.temporary.name)
        cls.must("keel", "tokens", "text.tokens", f"{ARGS.source}/examples/data/tempest.txt")
        # A job's last step is saved whatever happens; before it, a slow disk leaves some out.
        for steps in (20, 40):
            cls.must("gpt_train", "--data", "text.tokens", "--validate", "text.tokens",
                     f"--steps={steps}", "--evaluate-every=20", "--width=32",
                     "--checkpoint-dir=ckpts")

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    @classmethod
    def must(cls, *command):
        code, out, err = call(cls.folder, *command)
        if code != 0:
            raise AssertionError(f"{command}: exit code {code}\n{out}\n{err}")
        return out

    def write(self, *more, source="ckpts"):
        return self.must("gpt_train", "--generate=60", "--width=32", "--from", source,
                         "--prompt=ARIEL:", *more)

    def refused(self, *options):
        code, out, err = call(self.folder, "gpt_train", *options)
        self.assertEqual((code, out), (1, b""), err)
        return err

    def test_the_same_seed_writes_the_same_text_and_another_one_another(self):
        text = self.write("--seed=7")
        self.assertTrue(text.startswith(b"ARIEL:") and text.endswith(b"\n"), text)
        self.assertEqual(len(text), len(b"ARIEL:") + 60 + 1)
        self.assertEqual(self.write("--seed=7"), text)
        self.assertNotEqual(self.write("--seed=8"), text)

    def test_without_temperature_the_seed_does_not_matter(self):
        text = self.write("--temperature=0", "--seed=7")
        self.assertEqual(self.write("--temperature=0", "--seed=8"), text)

    def test_steps_differ_and_the_newest_one_is_taken_by_itself(self):
        self.assertEqual(self.write(source="ckpts@40"), self.write())
        self.assertNotEqual(self.write(source="ckpts@20"), self.write())

    def test_exported_weights_write_the_same(self):
        self.must("keel", "export", "ckpts", "all.safetensors")
        self.assertEqual(self.write(source="all.safetensors"), self.write())

    def test_a_long_prompt_is_read_from_its_end(self):
        prompt = "--prompt=" + "x" * 100 + "ARIEL:"
        self.assertIn(b"ARIEL:", self.write(prompt, "--temperature=0"))

    def test_another_model_is_refused_by_its_options_even_if_its_tensors_fit(self):
        self.must("keel", "export", "ckpts", "heads.safetensors")
        for source in ("ckpts", "heads.safetensors"):
            why = self.refused("--generate=9", "--from", source, "--width=32", "--heads=8")
            self.assertIn("--model.heads is 8 (command line), but the weights were made with 4",
                          why)

    def test_what_the_model_was_like_need_not_be_said(self):
        unsaid = self.must("gpt_train", "--generate=60", "--from=ckpts", "--seed=7")
        self.assertEqual(unsaid, self.must("gpt_train", "--generate=60", "--from=ckpts", "--seed=7",
                                           "--width=32"))

    def test_weights_of_another_model_are_refused_by_the_tensors_that_differ(self):
        code, _, why = call(self.folder, "gpt_train", "--data=text.tokens", "--init-from=ckpts",
                            "--width=64")
        self.assertEqual(code, 78, why)
        self.assertIn("model.tokens.weight", why)
        self.assertIn("28 problems", why)

    def test_training_does_not_go_on_with_other_heads(self):
        code, _, err = call(self.folder, "gpt_train", "--data=text.tokens", "--steps=60",
                            "--width=32", "--heads=8", "--checkpoint-dir=ckpts")
        self.assertEqual(code, 78, err)
        self.assertIn("--model.heads is 8 in this job and 4 in the checkpoint", err)

    def test_a_damaged_checkpoint_is_named_and_nothing_written(self):
        self.must("gpt_train", "--data", "text.tokens", "--steps=2", "--width=32",
                  "--checkpoint-dir=hurt")
        step = f"{self.folder}/hurt/step-000000002"
        shard = next(name for name in os.listdir(step) if "-shard-" in name)
        with open(f"{step}/{shard}", "r+b") as file:
            file.seek(os.path.getsize(file.name) // 2)
            byte = file.read(1)
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes([byte[0] ^ 1]))
        self.assertIn(shard, self.refused("--generate=9", "--from=hurt", "--width=32"))

    def test_what_makes_no_sense_is_refused(self):
        self.assertIn("--from", self.refused("--generate=9"))
        self.assertIn("--data", self.refused("--steps=1"))
        self.assertIn("multiple", self.refused("--data=text.tokens", "--width=33"))
        self.must("keel", "tokens", "letters.tokens", "--as=alphabet", "text.tokens")
        self.assertIn("bytes", self.refused("--data=letters.tokens"))


def main():
    global ARGS
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", required=True, type=os.path.abspath)
    parser.add_argument("--build", required=True, type=os.path.abspath)
    ARGS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
