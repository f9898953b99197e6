#!/usr/bin/env python3
"""Draws the losses of training runs, from what --log-jsonl has written, as an SVG file.

    plot_losses.py losses.svg --run quiet.jsonl "1 worker" --run other.jsonl "3 workers" \\
        --mark 200 "kill -9"

Promises   needs nothing but Python. Of a step that stands in a file twice the later entry counts.
           The number of workers is drawn below the losses. Lines that are no JSON (whoever wrote
           may have been killed within one) are passed over.
"""
import argparse
import html
import json
import math
import sys

WIDTH, HEIGHT = 900, 520
LEFT, RIGHT, TOP, BOTTOM = 70, 24, 64, 130   # margins of the losses' field
LANE = 48                                    # height of the workers' field below it
COLOURS = ("#9aa7b5", "#1f6feb", "#d1242f", "#2da44e")


def read(path):
    """(step -> entry of the training loss, step -> validation loss)."""
    steps, validation = {}, {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            try:
                entry = json.loads(line)
                # A loss that is no number is null.
                if entry["event"] == "step" and entry["loss"] is not None:
                    steps[entry["step"]] = entry
                elif entry["event"] == "evaluation" and entry["value"] is not None:
                    validation[entry["step"]] = entry["value"]
            except (ValueError, KeyError, TypeError):
                continue
    return dict(sorted(steps.items())), dict(sorted(validation.items()))


def ticks(low, high, about):
    """Round numbers from low to high, about so many."""
    rough = max(high - low, 1e-9) / about
    unit = 10 ** math.floor(math.log10(rough))
    step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= rough)
    first = math.ceil(low / step)
    return [number * step for number in range(first, math.floor(high / step + 1e-9) + 1)]


class Field:
    """Where a step and a loss are on the paper."""

    def __init__(self, last_step, losses):
        self.last_step = max(last_step, 1)
        margin = 0.05 * (max(losses) - min(losses)) or 0.1
        self.low, self.high = min(losses) - margin, max(losses) + margin

    def x(self, step):
        return LEFT + (WIDTH - LEFT - RIGHT) * step / self.last_step

    def y(self, loss):
        return TOP + (HEIGHT - TOP - BOTTOM) * (self.high - loss) / (self.high - self.low)

    def bottom(self):
        return HEIGHT - BOTTOM


def text(x, y, words, anchor="start", more=""):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {more}>'
            f"{html.escape(words)}</text>")


def line(x1, y1, x2, y2, colour, more=""):
    return (f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
            f'stroke="{colour}" {more}/>')


def axes(field):
    for loss in ticks(field.low, field.high, 6):
        yield line(LEFT, field.y(loss), WIDTH - RIGHT, field.y(loss), "#e6e9ed")
        yield text(LEFT - 8, field.y(loss) + 4, f"{loss:.4g}", "end")
    for step in ticks(0, field.last_step, 8):
        yield text(field.x(step), field.bottom() + 18, f"{step:.0f}", "middle")
    yield line(LEFT, field.bottom(), WIDTH - RIGHT, field.bottom(), "#57606a")
    yield text(WIDTH - RIGHT, field.bottom() + 34, "step", "end")
    yield text(16, TOP - 10, "loss")


def curve(field, number, label, run):
    """The first one is broad, so that those that lie upon it can be told from it."""
    steps, validation = run
    colour = COLOURS[number % len(COLOURS)]
    points = " ".join(f"{field.x(step):.1f},{field.y(entry['loss']):.1f}"
                      for step, entry in steps.items())
    broad = number == 0
    yield (f'<polyline points="{points}" fill="none" stroke="{colour}" '
           f'stroke-width="{7 if broad else 2}" stroke-linejoin="round"/>')
    for step, loss in validation.items():
        yield (f'<circle cx="{field.x(step):.1f}" cy="{field.y(loss):.1f}" r="{6 if broad else 3}" '
               f'fill="{colour}"/>')
    x = LEFT + 290 * number
    yield line(x, 26, x + 26, 26, colour, f'stroke-width="{7 if broad else 2}"')
    yield text(x + 34, 30, label)


def workers(field, number, steps):
    """Bars as high as there were workers, each as long as the steps that its entry is of."""
    top, colour = HEIGHT - LANE - 26, COLOURS[number % len(COLOURS)]
    most = max(entry["workers"] for entry in steps.values())
    before = 0
    for step, entry in steps.items():
        height = LANE * entry["workers"] / most
        yield (f'<rect x="{field.x(before):.1f}" y="{top + LANE - height:.1f}" '
               f'width="{field.x(step) - field.x(before):.1f}" height="{height:.1f}" '
               f'fill="{colour}" fill-opacity="0.35"/>')
        before = step
    yield text(LEFT - 8, top + 12, str(most), "end")
    yield text(LEFT - 8, top + LANE, "0", "end")
    yield text(LEFT, HEIGHT - 8, "workers at the end of each stretch of steps")


def marks(field, wanted):
    for number, (step, words) in enumerate(wanted):
        x, y = field.x(step), TOP - 8 + 16 * (number % 2)
        yield line(x, y + 4, x, HEIGHT - 26, "#bf3989", 'stroke-dasharray="5 4"')
        yield text(x + 4, y + 14, f"{words} (step {step})", more='fill="#bf3989"')


def draw(runs, wanted):
    losses = [entry["loss"] for _, (steps, _) in runs for entry in steps.values()]
    losses += [loss for _, (_, validation) in runs for loss in validation.values()]
    losses = [loss for loss in losses if math.isfinite(loss)]
    field = Field(max(max(steps) for _, (steps, _) in runs), losses)
    yield (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
           f'width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="13" '
           'fill="#24292f">')
    yield f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>'
    yield from axes(field)
    for number, (label, run) in enumerate(runs):
        yield from curve(field, number, label, run)
    yield from workers(field, len(runs) - 1, runs[-1][1][0])
    yield text(WIDTH - RIGHT, 30, "dots: validation", "end")
    yield from marks(field, wanted)
    yield "</svg>\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("out", help="the SVG file to write")
    parser.add_argument("--run", nargs=2, action="append", required=True,
                        metavar=("JSONL", "LABEL"), help="may be given several times")
    parser.add_argument("--mark", nargs=2, action="append", default=[],
                        metavar=("STEP", "WORDS"), help="a vertical line")
    options = parser.parse_args()
    runs = [(label, read(path)) for path, label in options.run]
    for (path, _), (_, (steps, _)) in zip(options.run, runs):
        if not steps:
            sys.exit(f"{path} holds no entry of a step; was --log-every 0?")
    drawn = "\n".join(draw(runs, [(int(step), words) for step, words in options.mark]))
    with open(options.out, "w", encoding="utf-8") as file:
        file.write(drawn)
    print(f"made {options.out}")


if __name__ == "__main__":
    main()
