"""Puts the package without its __init__, which needs the engine, where `import evenkeel` looks."""
import os
import sys
import types

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../.."))
PACKAGE = types.ModuleType("evenkeel")
PACKAGE.__path__ = [os.path.join(ROOT, "python", "evenkeel")]
sys.modules["evenkeel"] = PACKAGE
