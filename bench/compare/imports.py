#!/usr/bin/env python3
"""How long this Python takes to start with `import torch`, a line of JSON each: imports.py TIMES"""
import json
import subprocess
import sys
import time

for turn in range(int(sys.argv[1])):
    start = time.monotonic()
    subprocess.run([sys.executable, "-c", "import torch"], check=True)
    print(json.dumps({"what": "import torch", "round": turn,
                      "seconds": time.monotonic() - start}), flush=True)
