"""compare_builds.py sees each kind of difference between two builds, and none where none is."""
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import compare_builds as builds  # noqa: E402  (it lies in a folder that is no package)

CMAKE_TARGETS = """keel_base|STATIC_LIBRARY
keel_torch_pch|OBJECT_LIBRARY
base_test|EXECUTABLE
"""
CMAKE_OPTIONS = """KEEL_TESTS|BOOL|ON||Build the tests
KEEL_NCCL|STRING|auto|auto;enabled|Build the NCCL module, a | b
KEEL_TORCH|STRING|||Directory of LibTorch
"""


def meson_target(name, kind):
    return {"name": name, "type": kind}


def meson_option(name, kind, value, description, **more):
    return {"name": name, "type": kind, "value": value, "description": description,
            "section": "user", **more}


class CompareBuildsTest(unittest.TestCase):
    def setUp(self):
        self.targets = [
            meson_target("keel_base", "static library"),
            meson_target("keel_torch_pch", "static library"),
            meson_target("base_test", "executable"),
            meson_target("torch_pch_ready", "custom")]
        self.options = [
            meson_option("tests", "boolean", True, "Build the tests"),
            meson_option("nccl", "combo", "auto", "Build the NCCL module, a | b",
                         choices=["auto", "enabled"]),
            meson_option("torch", "string", "", "Directory of LibTorch"),
            {"name": "buildtype", "section": "core"}]

    def target_differences(self):
        return builds.differences("target", builds.cmake_targets(CMAKE_TARGETS),
                                  builds.meson_targets(self.targets))

    def option_differences(self):
        return builds.differences("option", builds.cmake_options(CMAKE_OPTIONS),
                                  builds.meson_options(self.options))

    def test_equal_builds_have_no_differences(self):
        self.assertEqual(self.target_differences() + self.option_differences(), [])

    def test_a_target_that_one_build_lacks_is_named(self):
        self.targets[2] = meson_target("bass_test", "executable")
        self.assertEqual(self.target_differences(), ["target base_test: in CMake only",
                                                     "target bass_test: in Meson only"])

    def test_a_target_of_another_kind_is_named(self):
        self.targets[0]["type"] = "shared library"
        self.assertEqual(self.target_differences(), [
            "target keel_base: kind: 'static library' in CMake, 'shared library' in Meson"])

    def test_each_property_of_an_option_is_compared(self):
        for key, other in (("type", "string"), ("value", "enabled"), ("choices", ["auto"]),
                           ("description", "Else")):
            self.setUp()
            self.options[1][key] = other
            with self.subTest(key):
                self.assertEqual(len(self.option_differences()), 1)

    def test_an_option_that_one_build_lacks_is_named(self):
        del self.options[0]
        self.assertEqual(self.option_differences(), ["option tests: in CMake only"])

    def test_installed_files_are_read_from_both(self):
        script = ('file(INSTALL DESTINATION "x" TYPE STATIC_LIBRARY FILES "/b/libkeel.a")\n'
                  'file(INSTALL DESTINATION "P/base" TYPE FILE FILES "/root/base/check.h")\n'
                  'file(INSTALL DESTINATION "x" TYPE EXECUTABLE FILES "/b/bin/keelrun")\n'
                  'file(INSTALL DESTINATION "P/share/zsh" TYPE FILE FILES "/s/_keelrun")\n'
                  'file(INSTALL DESTINATION "P/lib/evenkeel" TYPE FILE FILES "/s/started.py")\n')
        meson = {"/root/base/check.h": "/usr/h", "/m/libkeel.a": "/usr/lib/libkeel.a",
                 "/m/bin/keelrun": "/usr/bin/keelrun",
                 "/s/_keelrun": "/usr/share/zsh/_keelrun",
                 "/s/started.py": "/usr/lib/x86_64-linux-gnu/evenkeel/started.py"}
        in_cmake = builds.cmake_installed(script, "/root")
        self.assertEqual(in_cmake, {"libkeel.a", "keelrun", "base/check.h", "share/zsh/_keelrun",
                                    "started.py"})
        self.assertEqual(in_cmake, builds.meson_installed(meson, "/root"))

    def test_test_programs_are_read_from_ctest_files(self):
        self.assertEqual(builds.cmake_gtests('include("/b/tests/base_test_include.cmake")\n'
                                             'add_test([=[house]=] "python3")\n'), {"base_test"})

    def test_meson_gets_the_options_that_cmake_had(self):
        with tempfile.TemporaryDirectory() as build:
            with open(os.path.join(build, "CMakeCache.txt"), "w", encoding="utf-8") as cache:
                cache.write("KEEL_TESTS:BOOL=OFF\nKEEL_TORCH:STRING=/t\nKEEL_NCCL_LIBRARY:PATH=/n\n"
                            "CMAKE_CXX_COMPILER:FILEPATH=/usr/bin/clang++\n")
            self.assertEqual(builds.configured(build, {"tests", "torch", "nccl"}),
                             (["-Dtests=false", "-Dtorch=/t"], "/usr/bin/clang++"))

    def test_without_meson_it_fails_and_says_how_to_get_it(self):
        done = subprocess.run(
            [sys.executable, "-B", os.path.join(HERE, "compare_builds.py"), "--source", ".",
             "--build", "."], env={"PATH": "/nonexistent"}, capture_output=True, text=True,
            check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("apt-get install meson", done.stdout)


if __name__ == "__main__":
    unittest.main()
