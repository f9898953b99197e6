#!/usr/bin/env python3
"""The stubs name what the package has: the same functions, with the same parameters of the same
kinds, and the same options of a job. Run by run.py."""
import ast
import contextlib
import dataclasses
import inspect
import io
import os
import re
import unittest

import evenkeel
import evenkeel.hf
import evenkeel.lightning

FOLDER = os.path.dirname(os.path.abspath(evenkeel.__file__))


def tree_of(name):
    with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
        return ast.parse(file.read())


def functions_of(tree):
    """{name or Class.name: its definition} of a stub, and the names of its classes."""
    classes = [one for one in tree.body if isinstance(one, ast.ClassDef)]
    found = {one.name: one for one in tree.body if isinstance(one, ast.FunctionDef)}
    for owner in classes:
        found |= {f"{owner.name}.{one.name}": one for one in owner.body
                  if isinstance(one, ast.FunctionDef)}
    return found, classes


def told(function):
    """A definition's parameters as (name, kind, whether there is a default)."""
    args = function.args
    places = [*args.posonlyargs, *args.args]
    without = len(places) - len(args.defaults)
    kinds = inspect.Parameter
    found = [(one.arg, kinds.POSITIONAL_OR_KEYWORD, number >= without)
             for number, one in enumerate(places)]
    if args.vararg:
        found.append((args.vararg.arg, kinds.VAR_POSITIONAL, False))
    found += [(one.arg, kinds.KEYWORD_ONLY, default is not None)
              for one, default in zip(args.kwonlyargs, args.kw_defaults)]
    if args.kwarg:
        found.append((args.kwarg.arg, kinds.VAR_KEYWORD, False))
    return found


def real(function):
    function = getattr(function, "__func__", function)
    return [(one.name, one.kind, one.default is not one.empty)
            for one in inspect.signature(function).parameters.values()]


def options_of_jobs():
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
        evenkeel.Job.from_args(["--help"])
    names = re.findall(r"^  --(?:\[no-\])?([a-z-]+)", out.getvalue(), re.M)
    return {name.replace("-", "_") for name in names} - {"help", "print_config"}


class Stubs(unittest.TestCase):
    def test_functions_have_the_same_parameters(self):
        for stub, module in (("__init__.pyi", evenkeel), ("hf.pyi", evenkeel.hf),
                             ("lightning.pyi", evenkeel.lightning)):
            for name, function in functions_of(tree_of(stub))[0].items():
                if name in ("Job.__init__", "_Own.settings"):
                    continue
                thing = module
                for part in name.split("."):
                    thing = getattr(thing, part)
                self.assertEqual(told(function), real(thing), f"{stub}: {name}")

    def test_a_job_has_the_same_options(self):
        parameters = told(functions_of(tree_of("__init__.pyi"))[0]["Job.__init__"])
        options = options_of_jobs()
        self.assertIn("checkpoint_dir", options)
        self.assertEqual({name for name, *_ in parameters} - {"self", "settings"}, options)

    def test_all_public_names_are_there(self):
        tree = tree_of("__init__.pyi")
        functions, classes = functions_of(tree)
        names = {*(name for name in functions if "." not in name),
                 *(one.target.id for one in tree.body if isinstance(one, ast.AnnAssign)),
                 *(one.name for one in classes if not one.name.startswith("_"))}
        self.assertEqual(names, set(evenkeel.__all__))
        methods = {name for name in vars(evenkeel.Job)
                   if not name.startswith("_") and callable(getattr(evenkeel.Job, name))}
        self.assertLessEqual({f"Job.{name}" for name in methods}, set(functions))
        for owner in classes:
            if owner.name in ("AdamW", "SGD"):
                fields = [one.name for one in dataclasses.fields(getattr(evenkeel, owner.name))]
                self.assertEqual([one.target.id for one in owner.body], fields)

    def test_checkers_are_told_that_there_are_types(self):
        self.assertTrue(os.path.exists(os.path.join(FOLDER, "py.typed")))


if __name__ == "__main__":
    unittest.main()
