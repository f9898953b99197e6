#!/usr/bin/env python3
"""Holds the documents against the sources and the programs.

Promises   fails where a relative link of a *.md file leads nowhere; where README.md, docs/,
           packaging/ or an example's README name an option that the program's --help does not
           have; where a block ```text message shows a message that no program has; where a page
           has commands that no test runs, or is not linked from README.md; where a bold figure of
           docs/performance.md is in no README of bench/, or an option of torchrun not in the page
           on migrating.
Does not   run the commands (tests/examples/readme_test.py does); read what bench/ says of options.
"""
import argparse
import os
import re
import shlex
import subprocess
import sys
import unittest

ARGS = None
HELP_LIMIT_S = 60
LEFT_OUT = (".git", ".deps", "__pycache__")
SOURCES = ("base", "store", "elastic", "ckpt", "trainer", "tools")
SCRIPTS = ("tools/setup.sh", "examples/quickstart.sh", "tests/run.sh", "tests/gpu.sh",
           "tests/torch_versions.sh",
           "packaging/wheel.sh", "tools/gpu_bundle.sh", "tests/gpu/bundle/run.sh",
           "examples/plot_losses.py", "examples/data/make_digits.py",
           "examples/python_ddp/train.py")   # known by their names alone, which differ
# Options of programs that are not ours, which documents may name outside of commands.
FOREIGN = {"--signal", "--requeue", "--no-kill", "--nodes", "--exclusive", "--gpus", "--time",
           "--cpus-per-task",                     # sbatch
           "--build", "--install", "--preset", "--prefix",    # cmake
           "--shm-size", "--ipc"}                 # docker
OPTION = re.compile(r"(?<![\w/-])--([a-z][a-z0-9_.-]*)")
PLACEHOLDER = re.compile(r"<[^<>]*>")
LOG_LINE = re.compile(r"(info|warn|error) ([a-z-]+)((?: \w+=(?:\"[^\"]*\"|<[^<>]*>|[^ \"<]+))*)")


# --- Markdown ---

def split_markdown(text):
    """(prose without code, inline code, fenced blocks as (info, content))."""
    prose, blocks, fence = [], [], None
    for line in text.splitlines():
        if line.startswith("```") and fence is None:
            fence = (line[3:].strip(), [])
        elif line.startswith("```"):
            blocks.append((fence[0], "\n".join(fence[1])))
            fence = None
        elif fence is not None:
            fence[1].append(line)
        else:
            prose.append(line)
    whole = "\n".join(prose)
    inline = re.findall(r"`([^`]+)`", whole)
    return re.sub(r"`[^`]+`", "", whole), inline, blocks


def slug(heading):
    kept = re.sub(r"[^\w\- ]", "", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower())
    return kept.strip().replace(" ", "-")


def anchors(text):
    fenced = re.sub(r"(?ms)^```.*?^```", "", text)
    return {slug(found) for found in re.findall(r"(?m)^#+ +(.*)$", fenced)}


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def broken_links(root, path):
    """Of the file `path`, relative to `root`: what is wrong with its links."""
    prose, _, _ = split_markdown(read(os.path.join(root, path)))
    for target in re.findall(r"\]\(([^)\s]+)\)", prose):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        there = os.path.normpath(os.path.join(root, os.path.dirname(path), name)) if name else \
            os.path.join(root, path)
        if not os.path.exists(there):
            yield f"{path}: ({target}) is not there"
        elif anchor and there.endswith(".md") and anchor not in anchors(read(there)):
            yield f"{path}: ({target}): no heading is called so"


def markdown_files(root):
    for folder, names, files in os.walk(root):
        names[:] = [name for name in names
                    if name not in LEFT_OUT and not name.startswith("build")]
        for name in files:
            if name.endswith(".md"):
                yield os.path.relpath(os.path.join(folder, name), root)


UNFILLED = re.compile(r"@[A-Z]+@")   # what stands for a figure that is still to be measured


# --- Options ---

def options_in_help(text):
    found = set()
    for no, name in re.findall(r"(?m)^ +(?:-\w, )?--(\[no-\])?([a-z0-9.-]+)", text):
        found |= {name, "no-" + name} if no else {name}
    return found


class Programs:
    """Which options they have; `keel`'s commands count as programs: "keel ls"."""

    def __init__(self, source, build):
        self.options = {}
        for name in sorted(os.listdir(f"{build}/bin")):
            if name in ("keel", "keelrun") or name.endswith("_train"):
                self.options[name] = options_in_help(self.help(build, name))
        commands = re.findall(r"(?m)^  ([a-z]+) ", self.help(build, "keel").split("Commands")[1])
        for command in commands:
            self.options["keel " + command] = options_in_help(self.help(build, "keel", command))
        for script in SCRIPTS:
            words = OPTION.findall(read(f"{source}/{script}"))
            self.options[os.path.basename(script)] = set(words)
        self.all = set().union(*self.options.values())

    @staticmethod
    def help(build, name, *command):
        done = subprocess.run([f"{build}/bin/{name}", *command, "--help"], capture_output=True,
                              text=True, timeout=HELP_LIMIT_S, check=True)
        return done.stdout


def words_of(script):
    """The words of each command, comments left out."""
    for line in script.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;()<>")
        lexer.whitespace_split = True
        yield list(lexer)


def unknown_in_commands(script, programs):
    """Options that the program before them does not have."""
    for words in words_of(script):
        program = None
        for index, word in enumerate(words):
            name = os.path.basename(word)
            if name == "keel" and " ".join(["keel", *words[index + 1:index + 2]]) in programs:
                program = " ".join(["keel", words[index + 1]])
            elif name in programs:
                program = name
            elif set(word) <= set("|&;()") or "/" in word or name.endswith(".py"):
                program = None   # others' options follow
            elif program and (found := re.match(r"--([a-z][\w.-]*)", word)):
                if found[1].replace("_", "-") not in programs[program]:
                    yield f"{program} has no --{found[1]}"


def unknown_in_text(inline, known):
    for code in inline:
        for name in OPTION.findall(code):
            if name.replace("_", "-") not in known and f"--{name}" not in FOREIGN:
                yield f"no program has --{name}"


# --- Messages ---

def literals(text):
    """The string literals of C++ code, neighbours joined as the compiler does."""
    one = r'"((?:[^"\\\n]|\\.)*)"'
    for run in re.finditer(rf"{one}(?:\s*{one})*", text):
        joined = "".join(re.findall(one, run[0]))
        yield joined.replace('\\"', '"').replace("\\n", "\n")


def log_calls(text):
    """(level, event, keys) of each event that is logged."""
    for call in re.finditer(r'Log(Info|Warn|Error)\(\s*"([a-z-]+)"', text):
        depth, end = 1, call.end()
        while depth > 0 and end < len(text):
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        keys = set(re.findall(r'\{"(\w+)",', text[call.end():end]))
        yield call[1].lower(), call[2], keys


class Messages:
    """What our programs can say."""

    def __init__(self, code):
        self.literals = {each for text in code for each in literals(text)}
        self.events = [each for text in code for each in log_calls(text)]

    @classmethod
    def of(cls, root):
        code = []
        for folder in SOURCES:
            for place, _, files in os.walk(f"{root}/{folder}"):
                code += [read(f"{place}/{name}") for name in files if name.endswith((".cc", ".h"))]
        return cls(code)

    def why_not(self, line):
        """What of the line nobody says; empty: somebody says it."""
        log = LOG_LINE.fullmatch(line)
        if log:
            level, event, pairs = log.groups()
            keys = set(re.findall(r" (\w+)=", re.sub(r'"[^"]*"', "", pairs)))
            if not any(level == a and event == b and keys <= c for a, b, c in self.events):
                return f"nobody logs {event} at level {level} with {sorted(keys)}"
            texts = re.findall(r'="([^"]*)"', pairs)
        else:
            texts = [line]
        for text in texts:
            for part in PLACEHOLDER.split(text):
                if len(part.strip()) >= 4 and not any(part in one for one in self.literals):
                    return f"nobody says {part!r}"
        if not log and max(len(part) for part in PLACEHOLDER.split(line)) < 10:
            return "too little of it is fixed to tell"
        return ""


# --- The tests ---

def described(root):
    """The documents that tell users of commands and options."""
    yield "README.md"
    for path in markdown_files(root):
        if re.match(r"(docs/|packaging/|examples/.*/)", path):
            yield path


class Documents(unittest.TestCase):
    def test_relative_links_lead_somewhere(self):
        broken = [why for path in markdown_files(ARGS.source)
                  for why in broken_links(ARGS.source, path)]
        self.assertEqual(broken, [])

    def test_options_exist(self):
        programs = Programs(ARGS.source, ARGS.build)
        wrong = []
        for path in described(ARGS.source):
            _, inline, blocks = split_markdown(read(f"{ARGS.source}/{path}"))
            wrong += [f"{path}: {why}" for why in unknown_in_text(inline, programs.all)]
            for info, content in blocks:
                if info.split()[:1] == ["sh"]:
                    wrong += [f"{path}: {why}"
                              for why in unknown_in_commands(content, programs.options)]
        self.assertEqual(wrong, [])

    def test_messages_are_those_of_the_programs(self):
        messages = Messages.of(ARGS.source)
        wrong, count = [], 0
        for path in described(ARGS.source):
            for info, content in split_markdown(read(f"{ARGS.source}/{path}"))[2]:
                if info != "text message":
                    continue
                for line in filter(None, content.splitlines()):
                    count += 1
                    why = messages.why_not(line)
                    wrong += [f"{path}: {line}\n  {why}"] if why else []
        self.assertEqual("\n".join(wrong), "")
        self.assertGreater(count, 20)

    def test_commands_are_run_by_a_test(self):
        run = read(f"{ARGS.source}/tests/examples/CMakeLists.txt")
        pages = re.search(r"foreach\(page ([^)]*)\)", run)[1].split()
        run += "".join(f" docs/{page}.md " for page in pages)
        for path in described(ARGS.source):
            blocks = split_markdown(read(f"{ARGS.source}/{path}"))[2]
            runs = [info for info, _ in blocks
                    if info.split()[:1] == ["sh"] and info != "sh elsewhere"]
            if runs:
                self.assertIn(f" {path} ", run, f"{path} has commands that no test runs")

    def test_all_that_torchrun_has_is_in_the_page_on_migrating(self):
        page = read(f"{ARGS.source}/docs/migrating-from-torchrun.md")
        text = subprocess.run([f"{ARGS.build}/bin/keelrun", "--help"], capture_output=True,
                              text=True, timeout=HELP_LIMIT_S, check=True).stdout
        theirs = text.split("Evenkeel's own")[0]
        theirs += text.split("without effect")[1].split("Help\n")[0]
        for name in sorted(options_in_help(theirs)):
            if not name.startswith("no-") or name == "no-python":
                self.assertIn(f"`--{name}`", page)
        contract = read(f"{ARGS.source}/tests/dropin/contract.py")
        names = re.findall(r'"((?:TORCHELASTIC|TORCH|ROLE|GROUP|LOCAL|MASTER|WORLD)_[A-Z_]+)"',
                           contract)
        self.assertGreater(len(names), 10)
        for name in sorted(set(names)):
            self.assertIn(f"`{name}`", page)

    def test_figures_were_measured(self):
        measured = ""
        for path in markdown_files(ARGS.source):
            if path.startswith("bench/"):
                measured += re.sub(r"\s+", " ", read(f"{ARGS.source}/{path}")).replace("*", "")
        figures = re.findall(r"\*\*([\d.][^*]*)\*\*",
                             read(f"{ARGS.source}/docs/performance.md"))
        self.assertGreater(len(figures), 5)
        self.assertEqual([one for one in figures if one not in measured], [])

    def test_no_figure_is_missing(self):
        left = [(path, UNFILLED.findall(read(f"{ARGS.source}/{path}")))
                for path in markdown_files(ARGS.source)]
        self.assertEqual([one for one in left if one[1]], [])

    def test_code_on_the_front_door_is_that_of_the_example(self):
        example = read(f"{ARGS.source}/examples/minimal/minimal_train.cc")
        shown = [content for info, content in split_markdown(read(f"{ARGS.source}/README.md"))[2]
                 if info == "cpp"]
        self.assertEqual(len(shown), 1)
        self.assertIn(shown[0], example)

    def test_each_page_is_linked_from_the_front_door(self):
        front = read(f"{ARGS.source}/README.md")
        for name in sorted(os.listdir(f"{ARGS.source}/docs")):
            if name.endswith(".md"):
                self.assertIn(f"](docs/{name})", front)


class Checks(unittest.TestCase):
    """That the checks above can fail."""

    def test_of_links(self):
        self.assertEqual(slug("What it is *not*: `keel` & more"), "what-it-is-not-keel--more")
        prose, inline, blocks = split_markdown("a `b [c](d)` [e](f)\n```sh x\n[g](h)\n```\n")
        self.assertEqual((prose, inline, blocks),
                         ("a  [e](f)", ["b [c](d)"], [("sh x", "[g](h)")]))

    def test_of_figures(self):
        self.assertEqual(UNFILLED.findall("after @DEATHS@ deaths, by name@host"), ["@DEATHS@"])

    def test_of_options(self):
        known = {"keelrun": {"tee"}, "keel ls": {"json"}, "keel": set()}
        unknown = unknown_in_commands("X=1 build/bin/keelrun --tee=3 a.py --own\n"
                                      "keel ls --jsn | jq --raw\nkeelrun \\\n  --te\n", known)
        self.assertEqual(list(unknown), ["keel ls has no --jsn", "keelrun has no --te"])
        self.assertEqual(list(unknown_in_text(["--tee", "x --no_such=3", "a--b"], {"tee"})),
                         ["no program has --no_such"])
        self.assertEqual(options_in_help("  -m, --[no-]module   It is\n      --log TEXT --x\n"),
                         {"module", "no-module", "log"})

    def test_of_messages(self):
        said = Messages(['LogWarn("it-broke", {{"step", f(s)}, {"why", "the disk is full"}});\n'
                         'Error{kIo, "no room for " + n +\n   " bytes on the "\n "disk of " + h}'])
        self.assertEqual(said.why_not('warn it-broke step=<N> why="the disk is full"'), "")
        self.assertEqual(said.why_not("no room for <N> bytes on the disk of <host>"), "")
        for wrong in ('info it-broke step=<N>', 'warn it-broke rank=<N>', 'warn it-brake step=<N>',
                      'warn it-broke why="the disk was full"', "no room for <N> bytes on my disk",
                      "<all> <of> it"):
            self.assertNotEqual(said.why_not(wrong), "", wrong)


def main():
    global ARGS
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", required=True, type=os.path.realpath)
    parser.add_argument("--build", required=True, type=os.path.realpath)
    ARGS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
