#!/usr/bin/env python3
"""What readme_test.py makes of READMEs: it runs what it should, and fails where it must."""
import argparse
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ARGS = None


def judge(text, shorten=1):
    """(exit code, all output) for a README of this text."""
    with tempfile.TemporaryDirectory(prefix="keel-rules-") as folder:
        with open(f"{folder}/README.md", "w", encoding="utf-8") as file:
            file.write(text)
        done = subprocess.run(
            [sys.executable, "-B", f"{HERE}/readme_test.py", f"{folder}/README.md", "--source",
             ARGS.source, "--build", ARGS.build, "--shorten", str(shorten)],
            capture_output=True, text=True, timeout=300, check=False)
        return done.returncode, done.stdout + done.stderr


def block(info, *lines):
    return "\n".join([f"```{info}", *lines, "```", ""])


class Rules(unittest.TestCase):
    def fails(self, text, why):
        code, output = judge(text)
        self.assertEqual(code, 1, output)
        self.assertIn(why, output)

    def test_commands_run_in_order_in_one_folder_with_our_programs(self):
        code, output = judge(block("sh", "echo one >a", "test -x build/bin/keel")
                             + block("sh", "cat a examples/data/README.md")
                             + block("text", "false"))
        self.assertEqual(code, 0, output)
        self.assertIn("Data that ships", output)

    def test_jobs_are_shortened(self):
        code, output = judge(block("sh", "echo --steps 600 total=200 a@40 --seed 7 --save-every=1"),
                             shorten=20)
        self.assertEqual(code, 0, output)
        self.assertIn("\n--steps 30 total=10 a@2 --seed 7 --save-every=1\n", output)

    def test_config_files_of_examples_are_shortened_as_commands_are(self):
        code, output = judge(block("sh", "cat examples/gpt/train.toml"), shorten=20)
        self.assertEqual(code, 0, output)
        for line in ("steps = 50", 'schedule = "cosine:warmup=2,total=50"', "save_every = 10",
                     "layers = 2"):
            self.assertIn(f"\n{line}", output)
        self.assertIn("\nsteps = 1000\n", judge(block("sh", "cat examples/gpt/train.toml"))[1])

    def test_a_command_that_fails_is_told_with_its_line(self):
        self.fails("words\n\n" + block("sh", "echo told; (exit 7); true"), "line 3: exit code 7")

    def test_a_command_that_fails_in_a_pipe_is_noticed(self):
        self.fails(block("sh", "(exit 7) | cat"), "exit code 7")

    def test_ends_that_should_be_the_same_are_compared(self):
        same = block("sh same-end", "echo first; echo end", "echo second; \\", "    echo end")
        self.assertEqual(judge(same)[0], 0)
        self.fails(block("sh same-end", "echo one", "echo two"), "these should be the same")
        self.fails(block("sh same-end", "echo one"), "two commands")

    def test_what_runs_elsewhere_is_left_alone(self):
        code, output = judge(block("sh", "true") + block("sh elsewhere", "exit 3"))
        self.assertEqual(code, 0, output)

    def test_an_exit_code_can_be_asked_for(self):
        self.assertEqual(judge(block("sh exits 7", "echo told; exit 7"))[0], 0)
        self.fails(block("sh exits 7", "true"), "exit code 0")
        self.fails(block("sh exits 7", "exit 8"), "exit code 8")
        self.fails(block("sh exits seven", "true"), "nobody knows")

    def test_what_is_said_to_be_seen_must_be_seen(self):
        script = block("sh", "echo one two three; echo four >&2")
        self.assertEqual(judge(script + block("text seen", "one ... three", "", "our"))[0], 0)
        self.fails(script + block("text seen", "one ... four"), "nothing was written like this")
        self.fails(block("text seen", "one"), "no script above")

    def test_commands_find_our_programs(self):
        code, output = judge(block("sh", "command -v keel keelrun"))
        self.assertEqual(code, 0, output)

    def test_commands_cannot_slip_through(self):
        self.fails(block("sh", "true") + "    build/bin/keel ls\n", "not in a fenced block")
        self.fails(block("sh later", "true"), "nobody knows")
        self.fails("nothing to run\n", "no block")
        self.fails("```sh\ntrue\n", "no end")


def main():
    global ARGS
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", required=True)
    parser.add_argument("--build", required=True)
    ARGS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
