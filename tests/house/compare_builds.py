"""Compares what Meson would build with what the CMake build folder builds: a ctest.

Promises   sets Meson up in a fresh folder with the options that CMake was configured with, and
           fails naming each target, installed file, test program or option that only one of them
           has.
Does not   compile anything, nor compare compiler flags or sources: both read the same lists of
           those (sources.txt).
Errors     a missing Meson is a failure that says how to get it, never a skipped test.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
# Meson has no libraries of objects only; the precompiled header's is an ordinary one there.
KINDS = {"EXECUTABLE": "executable", "STATIC_LIBRARY": "static library",
         "OBJECT_LIBRARY": "static library", "MODULE_LIBRARY": "shared module",
         "SHARED_LIBRARY": "shared library"}


class Failed(Exception):
    """The comparison could not be made; the text says why and what to do."""


def run(command, **more):
    done = subprocess.run(command, capture_output=True, text=True, check=False, **more)
    if done.returncode != 0:
        raise Failed(f"{' '.join(command)}\nfailed ({done.returncode}):\n"
                     + done.stdout + done.stderr)
    return done.stdout


def cmake_targets(text):
    """name -> {kind}, from keel_targets.txt (cmake/TargetList.cmake)."""
    targets = {}
    for line in text.splitlines():
        name, kind = line.split("|")
        targets[name] = {"kind": KINDS[kind]}
    return targets


def meson_targets(introspected):
    """The same from `meson introspect --targets`; generated files do not count."""
    return {target["name"]: {"kind": target["type"]} for target in introspected
            if target["type"] in KINDS.values()}


def cmake_options(text):
    """name -> {type, default, choices, description}, from what print_options.cmake prints."""
    options = {}
    for line in text.splitlines():
        name, kind, default, choices, description = line.split("|", 4)
        if kind == "BOOL":
            kind, default = "boolean", default == "ON"
        else:
            kind = "combo" if choices else "string"
        options[name.removeprefix("KEEL_").lower()] = {
            "type": kind, "default": default, "choices": choices.split(";") if choices else [],
            "description": description}
    return options


def meson_options(introspected):
    """The same from `meson introspect --buildoptions meson.build`."""
    return {option["name"]: {"type": option["type"], "default": option["value"],
                             "choices": option.get("choices", []),
                             "description": option["description"]}
            for option in introspected if option["section"] == "user"}


def cmake_scripts(folder, name):
    """The text of folder's generated script `name` and of those that it includes or descends to; a
    folder may lack one (CTest's, when it has no tests)."""
    if not os.path.exists(os.path.join(folder, name)):
        return ""
    with open(os.path.join(folder, name), encoding="utf-8") as stream:
        text = stream.read()
    below = re.findall(r'include\("([^"]+)/%s"\)' % name, text)
    below += [os.path.join(folder, path) for path in re.findall(r'subdirs\("([^"]+)"\)', text)]
    return text + "".join(cmake_scripts(path, name) for path in below)


def cmake_installed(script, source_root):
    """Names of installed libraries and programs, paths of headers, and where below share/ and
    lib/systemd/ other files go, from cmake_install.cmake."""
    kinds = "STATIC_LIBRARY|SHARED_LIBRARY|MODULE|EXECUTABLE"
    built = rf'TYPE (?:{kinds})(?: OPTIONAL)? FILES "([^"]+)"'
    installed = {os.path.basename(path) for path in re.findall(built, script)}
    shared = (r'DESTINATION "[^"]*/((?:share|lib/systemd)/[^"]+)" TYPE (?:FILE|PROGRAM) '
              r'FILES "([^"]+)"')
    installed |= {os.path.join(folder, os.path.basename(path))
                  for folder, path in re.findall(shared, script)}
    loaded = r'DESTINATION "[^"]*/evenkeel" TYPE FILE FILES "([^"]+\.py)"'
    installed |= {os.path.basename(path) for path in re.findall(loaded, script)}
    headers = re.findall(r'TYPE FILE FILES "([^"]+\.h)"', script)
    return installed | {os.path.relpath(path, source_root) for path in headers}


def meson_installed(introspected, source_root):
    """The same from `meson introspect --installed`."""
    def name(path, place):
        if path.endswith(".h"):
            return os.path.relpath(path, source_root)
        below = re.search(r"/((?:share|lib/systemd)/.*)", place)
        return below[1] if below else os.path.basename(path)

    return {name(path, place) for path, place in introspected.items()}


def cmake_gtests(script):
    """Names of the test programs, from CTestTestfile.cmake."""
    return set(re.findall(r'include\("[^"]*/([^"/]+)_include\.cmake"\)', script))


def set_differences(what, in_cmake, in_meson):
    return ([f"{what} {item}: in CMake only" for item in sorted(in_cmake - in_meson)]
            + [f"{what} {item}: in Meson only" for item in sorted(in_meson - in_cmake)])


def differences(what, in_cmake, in_meson):
    """One line for each name that one side lacks and for each property that differs."""
    lines = set_differences(what, set(in_cmake), set(in_meson))
    for name in sorted(set(in_cmake) & set(in_meson)):
        for key, here in in_cmake[name].items():
            there = in_meson[name][key]
            if here != there:
                lines.append(f"{what} {name}: {key}: {here!r} in CMake, {there!r} in Meson")
    return lines


def configured(build, names):
    """How CMake was configured, as Meson's arguments, and its compiler."""
    values, compiler = {}, None
    with open(os.path.join(build, "CMakeCache.txt"), encoding="utf-8") as stream:
        for line in stream:
            found = re.match(r"(\w+):(\w+)=(.*)", line)
            if found and found[1] == "CMAKE_CXX_COMPILER":
                compiler = found[3]
            name = found[1].removeprefix("KEEL_").lower() if found else ""
            if name in names and found[1].startswith("KEEL_"):
                truth = found[3].upper() in ("ON", "TRUE", "1", "YES")
                values[name] = str(truth).lower() if found[2] == "BOOL" else found[3]
    return [f"-D{name}={value}" for name, value in sorted(values.items())], compiler


def compare(source, build, meson, scratch):
    """All differences, after setting Meson up in the folder `scratch`."""
    def introspect(what, where):
        return json.loads(run([meson, "introspect", what, where]))

    def read(name):
        with open(os.path.join(build, name), encoding="utf-8") as stream:
            return stream.read()

    options = meson_options(introspect("--buildoptions", os.path.join(source, "meson.build")))
    lines = differences("option", cmake_options(
        run(["cmake", "-P", os.path.join(HERE, "print_options.cmake")])), options)
    arguments, compiler = configured(build, options)
    run([meson, "setup", scratch, source] + arguments, env=dict(os.environ, CXX=compiler))
    lines += differences("target", cmake_targets(read("keel_targets.txt")),
                         meson_targets(introspect("--targets", scratch)))
    lines += set_differences("installed file",
                             cmake_installed(cmake_scripts(build, "cmake_install.cmake"), source),
                             meson_installed(introspect("--installed", scratch), source))
    programs = {target["name"] for target in introspect("--targets", scratch)}
    tests = {test["name"] for test in introspect("--tests", scratch)}
    lines += set_differences("test", cmake_gtests(cmake_scripts(build, "CTestTestfile.cmake")),
                             tests & programs)
    return lines


def main():
    parser = argparse.ArgumentParser(description="Compares the Meson build with the CMake build.")
    parser.add_argument("--source", required=True, help="the root of the repository")
    parser.add_argument("--build", required=True, help="the CMake build folder")
    given = parser.parse_args()
    meson = shutil.which("meson")
    if not meson:
        print("meson was not found. On Debian: apt-get install meson (tools/setup.sh installs it).")
        return 1
    with tempfile.TemporaryDirectory(prefix="keel-meson-") as scratch:
        try:
            lines = compare(os.path.realpath(given.source), os.path.realpath(given.build), meson,
                            scratch)
        except Failed as failed:
            print(failed)
            return 1
    for line in lines:
        print(line)
    print(f"{len(lines)} differences between the CMake and the Meson build")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
