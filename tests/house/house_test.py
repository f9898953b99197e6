"""Each rule of tools/house.py fires where a violation is planted, and nowhere else.

tests/house/bad/ is a small repository in which every planted line says `expect: rule`;
tests/house/good/ is one full of what only looks like a violation. Files that are bad for their
length alone are made here.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
TOOL = os.path.join(HERE, "..", "..", "tools", "house.py")
sys.path.insert(0, os.path.dirname(TOOL))
import house  # noqa: E402  (it lies in a folder that is no package)


def planted(root):
    """(path, line, rule) of every `expect: rule` below root."""
    found = set()
    for folder, _, names in os.walk(root):
        for name in names:
            path = os.path.join(folder, name)
            with open(path, encoding="utf-8") as stream:
                for number, line in enumerate(stream, 1):
                    for rule in re.findall(r"expect: ([\w-]+)", line):
                        found.add((os.path.relpath(path, root), number, rule))
    return found


def with_long_file(place, name, head, last=""):
    """A copy of a small repository, with one file more, of one line more than is allowed."""
    root = os.path.join(place, name)
    shutil.copytree(os.path.join(HERE, name), root)
    count = house.FILE_MAX + 1 - head.count("\n")
    lines = [f"extern const int kPlace{number};\n" for number in range(1, count + 1)]
    lines[-1] = lines[-1].replace("\n", last + "\n")
    with open(os.path.join(root, "elastic/board/long_file.cc"), "w", encoding="utf-8") as stream:
        stream.write(head + "".join(lines))
    return root


class HouseTest(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        place = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, place)
        cls.bad = with_long_file(place, "bad", "// A file that holds too much: split it.\n",
                                 "   // expect: file-length")
        cls.good = with_long_file(place, "good", "// Places, one a line.\n"
                                  "// This file is longer than 500 lines\n"
                                  "// because a list has nowhere to be cut.\n")

    def test_each_planted_violation_is_found_and_no_other(self):
        violations, _ = house.check_tree(self.bad)
        expected = planted(self.bad) | {
            ("tools/nameless.sh", 1, "purpose"),   # its line 1 is #!
            ("base/sources.txt", 7, "missing-source")}   # a line of it has no room for a comment
        self.assertEqual(sorted({violation[:3] for violation in violations}), sorted(expected))

    def test_every_rule_has_a_planted_violation(self):
        found = {rule for _, _, rule in planted(self.bad)}
        self.assertEqual(found | {"missing-source"}, house.RULES)

    def test_what_only_looks_like_a_violation_passes(self):
        violations, count = house.check_tree(self.good)
        self.assertEqual(violations, [])
        self.assertGreater(count, 10)

    def test_advice_says_what_to_do_instead(self):
        violations, _ = house.check_tree(self.bad)
        advice = {(violation.path, violation.line): violation.advice for violation in violations}
        known_long = "tests/house/known_long_functions.txt"
        self.assertIn("72 are allowed: split it", advice["base/long.cc", 76])
        self.assertIn("write 72 here", advice[known_long, 3])
        self.assertIn("take this line out", advice[known_long, 4])
        self.assertIn("base/clock.h", advice["base/bans.cc", 7])

    def test_the_command_prints_violations_and_fails(self):
        run = subprocess.run([sys.executable, "-B", TOOL, "--root", self.bad],
                             capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 1)
        self.assertIn("base/bans.cc:7: clock: steady_clock: take a Clock&", run.stdout)

    def test_a_function_ends_where_its_brace_does(self):
        code = """namespace a {
        struct B {
          B(int x) noexcept : x_{x}, y_(x) {
            if (x) {
              F();
            }
          }
          bool operator==(const B& other) const { return x_ == other.x_; }
          std::vector<int> values{1, 2};
        };
        template <class T>
        auto Twice(T x = T{}) -> decltype(x + x) {
          return x + x;
        }
        }
        TEST(A, B) {
          auto f = [] { return 1; };
        }
        """
        file = house.File("a.cc", code, *house.split_cpp(code))
        self.assertEqual([(line, count) for _, line, count in house.cpp_functions(file)],
                         [(3, 5), (8, 1), (11, 4), (16, 3)])


if __name__ == "__main__":
    unittest.main()
