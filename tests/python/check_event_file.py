"""Reads the event files in a directory with TensorBoard's own reader and prints what it finds.

Promises   a line "tag step value" for each scalar, by tag, then by step; exit code 77 where there
           is no TensorBoard to ask.
Does not   judge the values: event_file_test.cc does.
"""
import sys

try:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
except ImportError as error:
    print(f"no TensorBoard: {error}")
    sys.exit(77)


def main():
    events = EventAccumulator(sys.argv[1])
    events.Reload()
    for tag in sorted(events.Tags()["scalars"]):
        for scalar in events.Scalars(tag):
            print(f"{tag} {scalar.step} {scalar.value:.6g}")


main()
