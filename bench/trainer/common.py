"""What the measuring programs of this folder share."""
import argparse
import json
import os

WIDTHS_AND_LAYERS = {"6M": (256, 7), "40M": (512, 12)}
SIZES = {name: ["--width", str(width), "--layers", str(layers)]
         for name, (width, layers) in WIDTHS_AND_LAYERS.items()}


def keep_byte_code():
    """For all that is started from here: where it is forbidden to write it, every start of a peer
    compiles PyTorch's sources anew, which takes it as long again."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def put(**row):
    print(json.dumps(row), flush=True)


def keelrun(folder, workers, *command):
    return [f"{folder}/keelrun", "--standalone", "--log-level=error",
            f"--nproc-per-node={workers}", *command]


def parser(doc, scenarios):
    made = argparse.ArgumentParser(description=doc,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("scenario", nargs="*", metavar="SCENARIO",
                      help=f"of {' '.join(scenarios)}; all of them by default")
    made.add_argument("--bin", required=True, type=os.path.abspath)
    made.add_argument("--python", required=True, type=os.path.abspath,
                      help="an interpreter with PyTorch")
    made.add_argument("--rounds", type=int, default=5)
    return made
