#!/usr/bin/env python3
"""Makes digits-train.records and digits-test.records from the UCI file `optdigits.tes`.

    make_digits.py optdigits.tes --keel ../../build/bin/keel --to .

Promises   the same bytes every time: the first 1500 lines are for training, the other 297 for
           tests. Images are of 8x8 pixels; their values 0..16 become 0..240.
Does not   download: README.md beside this says where the file is.
"""
import argparse
import os
import subprocess
import tempfile

TRAINING = 1500
SIDE = 8


def read(path):
    """(pixels, label) of each image."""
    with open(path, encoding="ascii") as file:
        rows = [line.split(",") for line in file if line.strip() and not line.startswith("#")]
    for row in rows:
        values = [int(value) for value in row]
        if len(values) != SIDE * SIDE + 1 or not 0 <= values[-1] <= 9 or max(values) > 16:
            raise SystemExit(f"{path}: this is no line of 64 pixels and a digit: {row}")
        yield bytes(15 * value for value in values[:-1]), values[-1]


def write(keel, out, images):
    """A picture for each, in a folder that is named after its digit, as `keel records` wants it."""
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for number, (pixels, label) in enumerate(images):
            os.makedirs(f"{folder}/{label}", exist_ok=True)
            paths.append(f"{label}/{number:04}.pgm")
            with open(f"{folder}/{paths[-1]}", "wb") as file:
                file.write(b"P5\n%d %d\n255\n" % (SIDE, SIDE) + pixels)
        subprocess.run([keel, "records", out, *paths], cwd=folder, check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("source", help="optdigits.tes")
    parser.add_argument("--keel", required=True, type=os.path.abspath)
    parser.add_argument("--to", default=".", type=os.path.abspath, help="the folder to write to")
    options = parser.parse_args()
    images = list(read(options.source))
    write(options.keel, f"{options.to}/digits-train.records", images[:TRAINING])
    write(options.keel, f"{options.to}/digits-test.records", images[TRAINING:])


if __name__ == "__main__":
    main()
