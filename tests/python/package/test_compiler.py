"""PyTorch's compiler is left out until something uses it, and is then as if it had been there.

Does not   need the engine; that a job leaves it out is a test of test_job.py.
"""
import os
import sys
import textwrap
import traceback
import unittest
import warnings

import torch

import without_engine  # noqa: F401, before the module below
from evenkeel import _compiler

BEFORE = """
    _compiler.leave_out()
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.AdamW(model.parameters())
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    schedule.step()
    optimizer.zero_grad()
    assert not _compiler.is_imported()
"""
AFTER = """
    real = sys.modules["torch._dynamo"]
    assert _compiler.is_imported() and torch._dynamo is real
    assert type(real) is type(sys) and real.eval_frame.OptimizedModule is real.OptimizedModule
    for name, module in list(sys.modules.items()):
        if name.startswith("torch._dynamo."):
            assert isinstance(module.__spec__.loader, type(real.__spec__.loader)), module.__spec__
    import torch._dynamo.config
    assert torch._dynamo.config is real.config
    # What was made before is marked as if the real one had been there.
    marked = torch.optim.Optimizer.add_param_group.__wrapped__
    assert marked.__dynamo_disable._torchdynamo_disable, vars(marked)
    optimizer.step()
"""


def ends_well(code):
    """In a child, since a module is imported once; PyTorch is there already."""
    child = os.fork()
    if child == 0:
        code_of_end = 1
        try:
            exec(code, {"os": os, "sys": sys, "torch": torch, "_compiler": _compiler})
            code_of_end = 0
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
        os._exit(code_of_end)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


class LeftOut(unittest.TestCase):
    def brought_in_by(self, code):
        parts = (BEFORE, code, AFTER)
        self.assertTrue(ends_well("\n".join(textwrap.dedent(part) for part in parts)))

    def test_by_what_is_compiled(self):
        self.brought_in_by("""
            compiled = torch.compile(model, backend="eager")
            assert torch.equal(compiled(torch.ones(1, 2)), model(torch.ones(1, 2)))
        """)

    def test_by_an_attribute(self):
        self.brought_in_by("assert torch._dynamo.config.recompile_limit > 0")

    def test_by_a_module_below_it(self):
        self.brought_in_by("import torch._dynamo.utils as utils; utils.counters")
        self.brought_in_by("from torch._dynamo.eval_frame import OptimizedModule")

    def test_by_a_module_that_it_does_not_import_itself(self):
        self.brought_in_by("import torch._dynamo.profiler")

    def test_by_a_module_that_there_is_not(self):
        self.brought_in_by("""
            try:
                import torch._dynamo.no_such_module
            except ModuleNotFoundError as error:
                assert error.name == "torch._dynamo.no_such_module"
        """)

    def test_by_name(self):
        self.brought_in_by("from torch._dynamo import OptimizedModule")
        self.brought_in_by("_compiler.bring_in()")

    def test_by_a_mark_of_the_scripts_own(self):
        self.brought_in_by("""
            alone = torch.compiler.disable(lambda: 1)
            assert alone() == 1
        """)

    def test_by_many_threads_at_once(self):
        self.brought_in_by("""
            import threading
            seen = []
            def look():
                seen.append(torch._dynamo.OptimizedModule)
            threads = [threading.Thread(target=look, daemon=True) for _ in range(12)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(60)
            assert len(seen) == 12 and len(set(seen)) == 1
        """)

    def test_a_module_below_it_may_be_loaded_anew(self):
        self.brought_in_by("""
            import importlib
            import torch._dynamo.profiler as module
            before = module.ProfileMetrics
            assert importlib.reload(module) is module and module.ProfileMetrics is not before
        """)

    def test_by_an_assignment(self):
        self.brought_in_by("""
            import torch._dynamo as early
            early.config.recompile_limit = 5
            early.something = 1
            assert sys.modules["torch._dynamo"].something == 1
        """)

    def test_what_was_taken_from_it_before_does_what_the_real_one_does(self):
        self.brought_in_by("""
            from torch._dynamo import graph_break
            breaks = []
            _compiler.bring_in()
            torch._dynamo.graph_break = lambda *args: breaks.append(args)
            graph_break("here")
            assert breaks == [("here",)]
        """)

    def test_by_a_pickle(self):
        self.brought_in_by("""
            import pickle
            there = pickle.loads(pickle.dumps(sys.modules["torch._dynamo"]))
            assert there.OptimizedModule
        """)

    def test_after_an_import_that_failed(self):
        self.brought_in_by("""
            import importlib
            whole, importlib.import_module = importlib.import_module, lambda name: 1 / 0
            try:
                torch._dynamo.config
            except ZeroDivisionError:
                pass
            importlib.import_module = whole
            assert not _compiler.is_imported()
            torch._dynamo.config
        """)

    def test_what_only_looks_leaves_it_out(self):
        code = textwrap.dedent(BEFORE) + textwrap.dedent("""
            import importlib.util, inspect
            assert importlib.util.find_spec("torch._dynamo").origin.endswith("__init__.py")
            for module in list(sys.modules.values()):
                getattr(module, "__warningregistry__", None)
                getattr(module, "__file__", None)
            torch._dynamo.graph_break()
            assert not torch.compiler.is_compiling()
            assert not _compiler.is_imported()
        """)
        self.assertTrue(ends_well(code))

    def test_where_it_is_there_already_nothing_happens(self):
        code = textwrap.dedent("""
            import torch._dynamo
            before, finders = sys.modules["torch._dynamo"], list(sys.meta_path)
            _compiler.leave_out()
            assert sys.modules["torch._dynamo"] is before and sys.meta_path == finders
        """)
        self.assertTrue(ends_well(code))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    unittest.main()
