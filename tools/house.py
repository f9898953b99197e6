#!/usr/bin/env python3
"""The house check: the rules of CONTRIBUTING.md that a machine can see, run as the ctest `house`.

Promises   prints `path:line: rule: what to do instead` for each violation; exit status 1 if any.
Does not   parse C++: it blanks comments and strings, then matches words and counts braces.
Tested by  tests/house/house_test.py, with one planted violation for each rule in tests/house/bad/.
"""
import argparse
import ast
import collections
import os
import re
import sys

Violation = collections.namedtuple("Violation", "path line rule advice")
File = collections.namedtuple("File", "path text code comments")
Ban = collections.namedtuple("Ban", "rule pattern home advice")

LINE_MAX = 100
FUNCTION_MAX = 70
FILE_MAX = 500
FILE_MAX_HOME = re.compile(r"(elastic|trainer)/.*\.(h|cc)$")
# Where a longer file says why: in a sentence with these words, near its top.
WHY_LONG, WHY_LONG_LINES = f"longer than {FILE_MAX} lines because", 12
KNOWN_LONG = "tests/house/known_long_functions.txt"
READ = re.compile(r"\.(h|cc|pyi?|typed|sh|cmake)$|"
                  r"(^|/)(CMakeLists\.txt|meson\.build|sources\.txt)$|^%s$" % KNOWN_LONG)
CODE = (".h", ".cc", ".py", ".pyi", ".sh")
FIXTURES = ("tests/house/bad", "tests/house/good")
LIBRARIES = ("base", "store", "elastic", "ckpt", "trainer")
FOLDERS = LIBRARIES + ("tools", "python", "examples", "bench", "tests")
MAY_INCLUDE = {"cmake": (), "base": ("base",), "store": ("base", "store"),
               "elastic": ("base", "store", "elastic"), "ckpt": ("base", "store", "ckpt"),
               "trainer": LIBRARIES, "tools": LIBRARIES + ("tools",),
               "python": LIBRARIES + ("python",),
               "examples": LIBRARIES + ("examples",), "bench": FOLDERS, "tests": FOLDERS}
# The wings of a folder, from the lowest up: a wing may include itself and those before it.
WINGS = {"elastic": ("protocol", "process", "decisions", "board", "report", "status", "notice",
                     "workers", "launch", "doctor"),
         "trainer": ("numerics", "log", "data", "group", "exchange", "state", "save", "loop")}
# What of elastic/ a training program links: neither a doctor, nor a status page, nor a cloud.
OF_WORKERS = ("protocol", "process", "workers")
TORCH_HEADER = re.compile(r"(torch|ATen|c10|gloo)/")
TORCH_HOME = re.compile(r"(trainer|python|bench|examples|tests/(gpu|trainer|store|install))/|"
                        r"store/(torch_|catch_torch|tcp_store)|cmake/torch_(api_)?pch\.h$")
NCCL_HEADER = re.compile(r"nccl\.h|cuda_runtime|.*ProcessGroupNCCL")
NCCL_HOME = re.compile(r"trainer/group/nccl/|tests/(standin|trainer/group)/")
NOT_A_MEMBER = r"(?<![\w.>:~])(?:std::|::)?"

BANS = [
    Ban("std-filesystem", r"\bstd::filesystem\b|<filesystem>", r"$^",
        "take boost::filesystem: LibTorch exports a std::filesystem of its own, and crashes"),
    Ban("clock", r"\b(system_clock|steady_clock|high_resolution_clock|sleep_for|sleep_until|"
        r"usleep|nanosleep|clock_gettime|gettimeofday)\b", r"(tests/)?base/clock",
        "take a Clock& (base/clock.h): Monotonic(), WallNanos(), SleepFor()"),
    Ban("random", r"\b(random_device|mt19937(_64)?|minstd_rand0?|default_random_engine)\b|"
        r"\bstd::\w+_distribution\b|" + NOT_A_MEMBER + r"s?rand\s*\(", r"(tests/)?base/random",
        "take a Random& (base/random.h), whose numbers are the same everywhere"),
    Ban("environment", NOT_A_MEMBER + r"(secure_getenv|getenv|setenv|unsetenv|putenv)\s*\(",
        r"base/(options|process_setup)|tests/",
        "take an option (base/options.h), which says where it came from"),
    Ban("files", r"\b(ofstream|fstream)\b|(?<![\w.>])(\w*::)*rename\s*\(|"
        + NOT_A_MEMBER + r"f(data)?sync\s*\(|\bfopen\s*\((?=[^;]*,\s*\"[^\"]*[wa+])",
        r"(tests/)?base/\w*files", "take a Files& (base/files.h), so that tests can make it fail"),
    Ban("exit", r"(?<!void )" + NOT_A_MEMBER + r"(_?_?exit|_Exit|quick_exit|abort|terminate)\s*\(",
        r"base/check|elastic/process/(child|spawn)|trainer/early_stop|trainer/group/nccl_links|"
        r"tests/\S* (::)?_exit$",
        "return an Error (base/result.h); for our own bugs KEEL_CHECK (base/check.h)"),
    Ban("debug-print", r"\bstd::(cerr|cout|clog)\b|" + NOT_A_MEMBER + r"v?f?d?(printf|puts)\s*\(",
        r"(?!(base|store|elastic|ckpt|trainer)/)|base/(check|log)|store/torch_log|"
        r"trainer/train_main",
        "log it (base/log.h), or return the text"),
]
RULES = {ban.rule for ban in BANS} | {
    "line-length", "file-length", "function-length", "known-long-function", "include-direction",
    "include-torch", "include-nccl", "using-namespace", "pragma-once", "purpose", "todo", "fixme",
    "unbuilt", "missing-source", "disabled", "include-wing", "include-public"}

TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|'
                   r'(?<!\w)(?:u8|[uUL])?R"(?P<mark>[^()\\\s]*)\(.*?\)(?P=mark)"|'
                   r'"(?:\\.|[^"\\\n])*"|' r"(?<!\w)'(?:\\.|[^'\\\n])*'", re.S)
IN_MEMBER_VALUES = re.compile(r"\)\s*(noexcept)?\s*:[^:]")  # Foo() : a_{1}


def line_at(text, position):
    return text.count("\n", 0, position) + 1


def blank(text):
    """The same text with spaces in place of all but line ends."""
    return re.sub(r"[^\n]", " ", text)


def split_cpp(text):
    """(code, comments): each as long as text, with spaces where the other is. Strings are in
    neither, except those that rules read: of #include, and fopen's mode."""
    def is_comment(token):
        return token.group().startswith(("//", "/*"))

    def in_code(token):
        line = text[text.rfind("\n", 0, token.start()) + 1:token.start()]
        mode = re.fullmatch(r'"[rwabx+]+"', token.group())
        keep = not is_comment(token) and (re.match(r"\s*#\s*include\b", line) or mode)
        return token.group() if keep else blank(token.group())

    comments = list(blank(text))
    for token in filter(is_comment, TOKEN.finditer(text)):
        comments[token.start():token.end()] = token.group()
    return TOKEN.sub(in_code, text), "".join(comments)


def read_file(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as stream:
        text = stream.read()
    if path.endswith((".h", ".cc")):
        return File(path, text, *split_cpp(text))
    return File(path, text, "", re.sub(r"(?m)^[^#\n]*", "", text))


def read_tree(root):
    """Every file of ours that some rule reads, by path, without the fixtures of our test."""
    files = {}
    for folder, below, names in os.walk(root):
        here = os.path.relpath(folder, root).replace(os.sep, "/").removeprefix(".").lstrip("/")
        paths = {name: f"{here}/{name}".lstrip("/") for name in sorted(below + names)}
        below[:] = sorted(name for name in below if not name.startswith((".", "build", "__"))
                          and paths[name] not in FIXTURES)
        for name in names:
            if READ.search(paths[name]):
                files[paths[name]] = read_file(root, paths[name])
    return dict(sorted(files.items()))


def check_lines(file):
    for number, line in enumerate(file.text.split("\n"), 1):
        if len(line) > LINE_MAX and "://" not in line and file.path.endswith(CODE):
            yield number, "line-length", f"{len(line)} columns; break it at {LINE_MAX}"


def check_file_length(file):
    count = len(file.text.splitlines())
    if count <= FILE_MAX or not FILE_MAX_HOME.match(file.path):
        return
    top = "\n".join(file.comments.split("\n")[:WHY_LONG_LINES])
    if WHY_LONG not in " ".join(re.sub(r"//", " ", top).split()):
        yield (FILE_MAX + 1, "file-length", f"{count} lines, {FILE_MAX} are allowed: split it, or "
               f"say in its first {WHY_LONG_LINES} lines that it is {WHY_LONG} ...")


def check_purpose(file):
    if not file.path.endswith(CODE):
        return
    start = file.text.split("\n", 1)[-1] if file.text.startswith("#!") else file.text
    opening = "//" if file.path.endswith((".h", ".cc")) else r'("""|#)'
    if not re.match(r"\s*" + opening + r"\s*[^\w\n]*\w+([^\w\n]+\w+){2}", start):
        yield 1, "purpose", "begin with a comment that says in a sentence what the file is for"


def check_todo(file):
    for found in re.finditer(r"\bTODO\b(?!\(#\d+\))|\bFIXME\b", file.comments):
        yield (line_at(file.comments, found.start()), found.group().lower(),
               "mend it, or write TODO(#12) with an open issue")


def check_header(file):
    if not file.path.endswith(".h"):
        return
    if not re.search(r"(?m)^#pragma once\s*$", file.code):
        yield 1, "pragma-once", "put #pragma once after the first comment"
    for found in re.finditer(r"\busing\s+namespace\b", file.code):
        yield (line_at(file.code, found.start()), "using-namespace",
               "name what you use; a header's using reaches everyone who includes it")


def check_includes(file):
    folder = file.path.split("/")[0]
    for found in re.finditer(r'(?m)^\s*#\s*include\s*(["<])([^">]+)', file.code):
        line, quoted, name = line_at(file.code, found.start(2)), found[1] == '"', found[2]
        target = name.split("/")[0]
        if quoted and target not in FOLDERS:
            yield line, "include-direction", f'write "{name}" from the root, as "base/result.h"'
        elif quoted and target not in MAY_INCLUDE.get(folder, FOLDERS):
            yield (line, "include-direction", f"{folder}/ must not know {target}/: move what both "
                   "need down, or pass it in through an interface")
        if NCCL_HEADER.match(name) and not NCCL_HOME.match(file.path):
            yield line, "include-nccl", "only trainer/group/nccl/ may; use trainer/nccl_module.h"
        elif TORCH_HEADER.match(name) and not quoted and not TORCH_HOME.match(file.path):
            yield (line, "include-torch", "only trainer/, LibTorch's files of store/ and "
                   "their users may; ask for a torch-free interface")


def wing_of(path):
    """("elastic", "board") of elastic/board/client.h; the wing of a file above all wings is ""."""
    folder, *below = path.split("/")
    return folder, below[0] if len(below) > 1 else ""


def why_not_within(folder, own, target, wing, is_public):
    """Why a file of that folder's wing `own` must not include `target`; empty: it may."""
    order = WINGS[folder]
    if wing and wing not in order:
        return f"name the wing {wing} in WINGS of tools/house.py"
    if own in order and wing and order.index(wing) > order.index(own):
        return f"{own}/ lies below {wing}/: move what both need down, or pass it in"
    if own in order and not wing and not is_public:
        return f"{target} stands above all wings: pass it in through an interface"
    return ""


def check_wings(file, public):
    folder, own = wing_of(file.path)
    for found in re.finditer(r'(?m)^\s*#\s*include\s*"([^"]+)', file.code):
        target, line = found[1], line_at(file.code, found.start(1))
        target_folder, wing = wing_of(target)
        if file.path in public and folder in WINGS and target not in public:
            yield (line, "include-public", f"{file.path} is installed, and {target} is not: "
                   "include less, or name it under `headers` in its sources.txt")
        if target_folder not in WINGS:
            continue
        if folder == target_folder:
            why = why_not_within(folder, own, target, wing, target in public)
            if why:
                yield line, "include-wing", why
        elif folder == "trainer" and wing not in OF_WORKERS and target not in public:
            yield (line, "include-wing", f"a training program must not know {target}: it may have "
                   f"{', '.join(OF_WORKERS)} of elastic/, and what is public")


def check_bans(file):
    code = re.sub(r"(?m)^\s*#\s*include\b.*", lambda found: blank(found.group()), file.code)
    has_main = re.search(r"\bint\s+main\s*\(", code)
    for ban in BANS:
        for found in [] if ban.rule == "exit" and has_main else re.finditer(ban.pattern, code):
            word = found.group().strip(" (")
            if not re.match(ban.home, f"{file.path} {word}"):
                yield line_at(code, found.start()), ban.rule, f"{word}: {ban.advice}"


def check_disabled(file):
    for found in re.finditer(r"\bDISABLED_\w*|\bGTEST_SKIP\b[^;]*;?", file.code):
        first = file.text.rfind("\n", 0, found.start()) + 1
        if found.group().startswith("DISABLED_"):
            last = file.text.find("\n", found.end())
            reason = file.comments[file.text.rfind("\n", 0, max(first - 1, 0)) + 1:last]
        else:
            reason = " ".join(re.findall(r'"([^"]*)"', file.text[found.start():found.end()]))
        if not re.search(r"#\d+|\w+\W+\w+\W+\w+", reason):
            yield line_at(file.code, found.start()), "disabled", "name an issue (#12), or why"


def cpp_functions(file):
    """(name, first line, lines) of each function body that is in no other function."""
    directive = r"(?m)^[ \t]*#(?:[^\n]*\\\n)*[^\n]*"
    code = re.sub(directive, lambda found: blank(found.group()), file.code)
    start, body, depth = 0, None, 0
    for mark in re.finditer(r"[{};]", code):
        at, head = mark.start(), code[start:mark.start()]
        if body is None and head.count("(") > head.count(")"):
            continue  # inside a parameter list, as in `F(T x = {})`
        if body is None and mark.group() == "{" and not is_function(head):
            if not IN_MEMBER_VALUES.search(head):  # a namespace, class or table: look inside
                start = at + 1
        elif mark.group() == "{" and body is None:
            body, depth = start + len(head) - len(head.lstrip()), 1
        elif body is None:
            if mark.group() != "}" or not IN_MEMBER_VALUES.search(head):
                start = at + 1
        else:
            depth += {"{": 1, "}": -1, ";": 0}[mark.group()]
            if depth == 0:
                yield name_of(code[body:]), line_at(code, body), code.count("\n", body, at) + 1
                start, body = at + 1, None


def is_function(head):
    head = re.sub(r"operator\s*[^\w\s(]+", "operator", head)
    if "(" not in head or (IN_MEMBER_VALUES.search(head) and re.search(r"[\w>]\s*$", head)):
        return False
    while (shorter := re.sub(r"\([^()]*\)", "", head)) != head:
        head = shorter
    return "=" not in head or "[" in head


def name_of(text):
    """Foo::Bar of `void Foo::Bar(int a)`; of a test all of TEST(Foo, Bar)."""
    found = re.match(r"[^(]*?((?:[\w~]+::)*[\w~]+|operator\W{1,3}?)\s*(\([^)]*\))", text)
    name = found[1] + (found[2] if found[1].startswith("TEST") else "") if found else "?"
    return re.sub(r"\s+", "", name)


def python_functions(file):
    for node in ast.walk(ast.parse(file.text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name, node.lineno, node.end_lineno - node.lineno + 1


def long_functions(files):
    """(path, name) -> (first line, lines), of those that are longer than allowed."""
    longest = {}
    for file in files.values():
        functions_of = python_functions if file.path.endswith((".py", ".pyi")) else cpp_functions
        for name, line, count in functions_of(file):
            if count > max(FUNCTION_MAX, longest.get((file.path, name), (0, 0))[1]):
                longest[file.path, name] = (line, count)
    return longest


def check_function_lengths(files):
    known, longest = {}, long_functions(files)
    list_text = files[KNOWN_LONG].text if KNOWN_LONG in files else ""
    for number, line in enumerate(list_text.split("\n"), 1):
        if entry := line.split("#")[0].split():
            known[entry[0], entry[1]] = (number, int(entry[2]))
    for (path, name), (line, count) in longest.items():
        allowed = known.get((path, name), (0, FUNCTION_MAX))[1]
        if count > allowed:
            yield Violation(path, line, "function-length", f"{name} has {count} lines, {allowed} "
                            f"are allowed: split it ({KNOWN_LONG} may only shrink)")
    for key, (number, count) in known.items():
        now = longest.get(key, (0, 0))[1]
        if now < count:
            cure = f"write {now} here" if now else "take this line out"
            yield Violation(KNOWN_LONG, number, "known-long-function",
                            f"{key[1]} of {key[0]} no longer has {count} lines: {cure}")


def named_files(files):
    """(sources.txt, line, path, target) for each file that a sources.txt names."""
    for path, file in files.items():
        if os.path.basename(path) != "sources.txt":
            continue
        targets = []
        for number, line in enumerate(file.text.split("\n"), 1):
            line = line.strip()
            if line.endswith(":"):
                targets = line[:-1].split()
            elif line and not line.startswith("#"):
                for target in targets:
                    yield path, number, f"{os.path.dirname(path)}/{line}", target


def check_built(files):
    named = list(named_files(files))
    built = {path for _, _, path, _ in named}
    for path in files:
        if not path.endswith(".cc") or path.split("/")[0] not in FOLDERS or path in built:
            continue
        # A stranger's project, as one in tests/install/, has no such list.
        own = files.get(f"{os.path.dirname(path)}/CMakeLists.txt")
        if not own or not re.search(r"\b" + re.escape(os.path.basename(path)) + r"(?![\w.-])",
                                    re.sub("#.*", "", own.text)):
            yield Violation(path, 1, "unbuilt",
                            "name it in the sources.txt beside it, or delete it")
    for sources, number, path, _ in named:
        if path not in files:
            yield Violation(sources, number, "missing-source", f"there is no {path}")


def check_tree(root):
    files = read_tree(root)
    found = list(check_function_lengths(files)) + list(check_built(files))
    public = {path for _, _, path, target in named_files(files) if target == "headers"}
    for file in files.values():
        found += [Violation(file.path, *violation) for violation in check_wings(file, public)]
    for file in files.values():
        for check in (check_lines, check_file_length, check_purpose, check_todo, check_header,
                      check_includes, check_bans, check_disabled):
            found += [Violation(file.path, *violation) for violation in check(file)]
    return sorted(found), len(files)


def main():
    parser = argparse.ArgumentParser(description="Checks the house rules that a machine can see.")
    above = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    parser.add_argument("--root", default=above, help=f"the folder to check (default: {above})")
    violations, count = check_tree(parser.parse_args().root)
    print("".join("%s:%d: %s: %s\n" % violation for violation in violations), end="")
    print(f"{count} files, {len(violations)} violations")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
