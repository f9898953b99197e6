"""evenkeel_spare.py that imports further modules before it makes processes.

    imported.py [MODULE...]
"""
import importlib
import sys

import evenkeel_spare

if __name__ == "__main__":
    del sys.path[0]   # the folder of the tests, of which a script imports nothing
    evenkeel_spare.bring_in()
    for name in sys.argv[1:]:
        importlib.import_module(name)
    assert evenkeel_spare.can_make()
    evenkeel_spare.make()
    evenkeel_spare.become(*evenkeel_spare.wait())
