"""Leaves torch._dynamo, a part of PyTorch's compiler, out until something uses it.

An optimizer imports it as soon as it is made, to mark some functions as not to be compiled. The
import takes as long as that of PyTorch itself, in each worker, and again in each replacement. A
module that only knows these marks stands in its place. The first other use of it, such as
torch.compile(), imports the real one, which is then told of the marks, and is in every place.

Promises   leave_out() does nothing once the real one is there. Afterwards `import torch._dynamo`,
           modules below it, and attributes of it give what they give without us.
Threads    any: the first one that needs the real one imports it, and others wait.
"""
import importlib
import importlib.machinery
import importlib.util
import sys
import threading
import types

import torch

_NAME = "torch._dynamo"


class _StandIn(types.ModuleType):
    def __init__(self):
        super().__init__(_NAME, "Stands in for PyTorch's own until something uses that.")
        self.__spec__ = importlib.util.find_spec(_NAME)
        self.__file__ = self.__spec__.origin
        self.__path__ = self.__spec__.submodule_search_locations
        self._marked = []
        self._lock = threading.RLock()

    def disable(self, fn=None, recursive=True, **options):
        """Nothing is compiled as long as this is called. The caller keeps the answer in the
        function, where the real one is put when there is one."""
        if fn is None or options != {"wrapping": False}:
            return self._real().disable(fn, recursive, **options)
        with self._lock:
            if sys.modules.get(_NAME) is not self:
                return self._real().disable(fn, recursive, **options)
            self._marked.append((fn, recursive, options))
        return fn

    def graph_break(self, *args, **options):
        """What is not being compiled goes on."""

    def __getattr__(self, name):
        # Python asks these of every module, whether somebody uses it or not.
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return getattr(self._real(), name)

    def _real(self):
        with self._lock:
            if sys.modules.get(_NAME) is self:
                sys.meta_path[:] = [one for one in sys.meta_path if not isinstance(one, _Finder)]
                del sys.modules[_NAME]
                real = importlib.import_module(_NAME)
                for fn, recursive, options in self._marked:
                    setattr(fn, "__dynamo_disable", real.disable(fn, recursive, **options))
                self._marked.clear()
        return importlib.import_module(_NAME)


class _Finder:
    """Asked for a module below the one that is left out, it first has that imported."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        stand_in = sys.modules.get(_NAME)
        if not name.startswith(_NAME + ".") or not isinstance(stand_in, _StandIn):
            return None
        stand_in._real()
        if name not in sys.modules:
            return None   # whoever finds modules otherwise finds this one
        return importlib.machinery.ModuleSpec(name, _Imported(sys.modules[name]))


class _Imported:
    """The loader of a module that its parent has imported meanwhile. Python would load that by its
    own spec once more, if it had one."""

    def __init__(self, module):
        self.module, self.spec = module, module.__spec__
        module.__spec__ = None

    def create_module(self, spec):
        return self.module

    def exec_module(self, module):
        module.__spec__ = self.spec


def leave_out():
    if _NAME in sys.modules:
        return
    torch._dynamo = sys.modules[_NAME] = _StandIn()
    sys.meta_path.insert(0, _Finder())


def bring_in():
    """Imports the real one now."""
    stand_in = sys.modules.get(_NAME)
    if isinstance(stand_in, _StandIn):
        stand_in._real()
    else:
        importlib.import_module(_NAME)


def is_imported():
    """Whether the real one is."""
    return _NAME in sys.modules and not isinstance(sys.modules[_NAME], _StandIn)
