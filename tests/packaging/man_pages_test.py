"""Man pages: there is one for each program and command, and man and groff take them as they are."""
import re
import unittest

import checks

GIVEN = checks.arguments()
PAGES = GIVEN.build / "tools/man"


def commands():
    """Those of keel, as it lists them."""
    overview = checks.run(GIVEN.build / "bin/keel", "--help")
    return re.findall(r"(?m)^  ([a-z]+) ", overview.split("Commands\n")[1].split("\n\n")[0])


class ManPagesTest(unittest.TestCase):
    def pages(self):
        return sorted(PAGES.glob("*.1"))

    def test_each_program_and_command_has_a_page(self):
        wanted = {"keelrun", "keel"} | {f"keel-{name}" for name in commands()}
        self.assertEqual({page.stem for page in self.pages()}, wanted)

    def test_a_page_has_every_option_of_help(self):
        help_texts = {"keelrun": ["keelrun", "--help"]}
        help_texts |= {f"keel-{name}": ["keel", name, "--help"] for name in commands()}
        for name, (program, *words) in help_texts.items():
            text = checks.run(GIVEN.build / "bin" / program, *words)
            options = re.findall(r"(?m)^  (?:-\w, |  )?(--[\w.\[\]-]+)", text)
            page = (PAGES / f"{name}.1").read_text().replace("\\", "")
            with self.subTest(name):
                self.assertGreaterEqual(len(options), 2, text)
                for option in options:
                    self.assertIn(option + "fR", page)

    def test_groff_has_nothing_to_warn_of(self):
        checks.need("groff", "groff-base")
        for page in self.pages():
            with self.subTest(page.name):
                said = checks.run("groff", "-man", "-ww", "-Tutf8", "-z", page)
                self.assertEqual(said, "")

    def test_man_shows_what_was_meant(self):
        checks.need("man", "man-db")
        environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "MANWIDTH": "200",
                       "MANROFFOPT": "", "MANPAGER": "cat"}
        for page in self.pages():
            with self.subTest(page.name):
                shown = checks.run("man", "--warnings", "-l", page, env=environment)
                shown = re.sub(r".\x08|\x1b\[[0-9;]*m", "", shown)
                self.assertNotIn("warning", shown)
                self.assertIn("EXIT STATUS" if page.stem != "keel" else "COMMANDS", shown)
        self.assertIn("--nnodes TEXT", checks.run("man", "-l", PAGES / "keelrun.1",
                                                     env=environment))


if __name__ == "__main__":
    checks.main()
