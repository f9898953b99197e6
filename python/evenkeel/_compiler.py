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
        self._marked = []
        self._lock = threading.Lock()   # never held during an import, which has locks of its own

    @property
    def __path__(self):
        """Asked for when a module below this one is about to be imported, as its parent must be
        before it."""
        return self._real().__path__

    def disable(self, fn=None, recursive=True, **options):
        """Nothing is compiled as long as this is called. The caller keeps the answer in the
        function, where the real one is put when there is one."""
        with self._lock:
            if sys.modules.get(_NAME) is self and fn is not None and options == {"wrapping": False}:
                self._marked.append((fn, recursive, options))
                return fn
        return self._real().disable(fn, recursive, **options)

    def graph_break(self, *args, **options):
        """What is not being compiled goes on."""
        if sys.modules.get(_NAME) is not self:
            self._real().graph_break(*args, **options)

    def __getattr__(self, name):
        # Python asks these of every module, whether somebody uses it or not.
        if name.startswith("__") and name.endswith("__") and name != "__all__":
            raise AttributeError(name)
        return getattr(self._real(), name)

    def __setattr__(self, name, value):
        if name.startswith("_"):
            super().__setattr__(name, value)
        else:
            setattr(self._real(), name, value)

    def __reduce__(self):
        return importlib.import_module, (_NAME,)

    def _real(self):
        with self._lock:
            if sys.modules.get(_NAME) is self:
                del sys.modules[_NAME]
        try:
            real = importlib.import_module(_NAME)
        except BaseException:
            sys.modules.setdefault(_NAME, self)
            raise
        # Within its own import it has not what it is asked for yet.
        if not getattr(real.__spec__, "_initializing", False):
            with self._lock:
                marked, self._marked = self._marked, []
            for fn, recursive, options in marked:
                setattr(fn, "__dynamo_disable", real.disable(fn, recursive, **options))
        return real


class _Finder:
    """Knows the modules below that their parent has imported since Python asked for one of them. It
    would load that one again. It imports nothing: Python holds a lock for all imports here."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        imported = sys.modules.get(name)
        if not name.startswith(_NAME + ".") or imported is None or target is not None:
            return None
        return importlib.machinery.ModuleSpec(name, _Imported(imported))


class _Imported:
    def __init__(self, module):
        self.module, self.spec = module, module.__spec__

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
