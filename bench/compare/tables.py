"""Tables of systems side by side: as Markdown, as a plot, and where we lose in them.

Promises   pure: from values to text. Where we lose is computed from the same values that the table
           shows, of the medians: our contender (the first row of ours) against each peer, in each
           column in which less or more is better. Who failed, and what was not measured of us, is
           named too.
Does not   weigh: a loss by a hair is told like one by far, with its factor.
"""
import collections
import html
import os
import statistics
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples"))
import plot_losses  # noqa: E402  examples/plot_losses.py: axes and words of an SVG

# `better`: "less", "more", or None where neither is.
Metric = collections.namedtuple("Metric", "key head better digits", defaults=("less", 2))
# `ours`: True, False for a peer's, None for a yardstick, which nobody can win or lose against.
# `values`: {key of a metric: [numbers] or a word}.
Row = collections.namedtuple("Row", "system ours values note", defaults=("",))
# `repeat`: the command. `plot`: key of the metric that is drawn, or None.
Table = collections.namedtuple("Table", "name title about repeat metrics rows plot",
                               defaults=(None,))

WIDTH, BAR, LEFT, RIGHT, TOP = 900, 26, 280, 130, 44
NOTE_MAX = 80
OURS_COLOUR, PEER_COLOUR = "#1f6feb", "#9aa7b5"


def number(value, digits):
    return f"{value:.{digits}f}"


def cell(values, digits):
    """min / median / max of several."""
    if isinstance(values, str):
        return values
    if not values:
        return "-"
    if len(values) == 1 or min(values) == max(values):
        return number(values[0], digits)
    return " / ".join(number(one, digits)
                      for one in (min(values), statistics.median(values), max(values)))


def escape(text):
    """Words of other programs, so that they stay within their cell."""
    return " ".join(text.replace("|", "\\|").replace("<", "&lt;").split())


def numbers(row, metric):
    values = row.values.get(metric.key)
    return values if values and not isinstance(values, str) else None


def contender(table):
    return next((row for row in table.rows if row.ours), None)


def better_than(theirs, ours, metric):
    return theirs < ours if metric.better == "less" else theirs > ours


def factor(theirs, ours):
    low, high = sorted((theirs, ours))
    if low <= 0:
        return ""
    times = high / low
    return f", {times:.{2 if times < 2 else 1 if times < 10 else 0}f} times"


def overlapping(some, others):
    return max(some) >= min(others) and max(others) >= min(some)


def losses_in(metric, us, peers):
    """Sentences, at most one."""
    ours = numbers(us, metric)
    rivals = [(row, numbers(row, metric)) for row in peers]
    rivals = [(row, values) for row, values in rivals if values]
    if not rivals:
        return []
    if not ours:
        return [f"{metric.head}: no figure of {us.system}"]
    mine = statistics.median(ours)
    ahead = []
    for row, values in rivals:
        theirs = statistics.median(values)
        if better_than(theirs, mine, metric):
            overlap = "; their ranges overlap" if overlapping(values, ours) else ""
            ahead.append(f"{row.system} {number(theirs, metric.digits)}"
                         f"{factor(theirs, mine)}{overlap}")
    if not ahead:
        return []
    return [f"{metric.head}: {us.system} {number(mine, metric.digits)}, "
            f"but {', and '.join(ahead)}"]


def where_we_lose(table):
    """Sentences; none: we lose to nobody in this table."""
    us = contender(table)
    peers = [row for row in table.rows if row.ours is False]
    if us is None and peers:
        return ["nothing of ours was measured here"]
    if us is None:
        return []
    found = [f"{us.system}: {escape(us.note)}"] if us.note else []
    for metric in table.metrics:
        if metric.better:
            found += losses_in(metric, us, peers)
    return found


def compared(table):
    """How many figures of peers stand beside one of ours."""
    us = contender(table)
    metrics = [metric for metric in table.metrics if metric.better and us and numbers(us, metric)]
    return sum(bool(numbers(row, metric))
               for row in table.rows if row.ours is False for metric in metrics)


def markdown(table, ran, has_plot):
    """The table's section; `ran`: on what, and when."""
    yield f"### {table.title}\n"
    if table.about:
        yield f"{table.about}\n"
    heads = ["system", *(metric.head for metric in table.metrics)]
    has_notes = any(row.note for row in table.rows)
    heads += ["note"] if has_notes else []
    yield "| " + " | ".join(heads) + " |"
    yield "|" + "---|" * len(heads)
    for row in table.rows:
        cells = [f"**{row.system}**" if row.ours else row.system]
        cells += [cell(row.values.get(metric.key), metric.digits) for metric in table.metrics]
        cells += [escape(row.note)] if has_notes else []
        yield "| " + " | ".join(cells) + " |"
    yield ""
    if has_plot:
        yield f"![{table.title}]({table.name}.svg)\n"
    yield f"To repeat: `{table.repeat}`. {ran}\n"
    yield from losing(table)


def losing(table):
    found = where_we_lose(table)
    if found:
        yield "Where we lose:\n"
        yield from (f"- {one}" for one in found)
        yield ""
    elif compared(table):
        yield f"Where we lose: in none of the {compared(table)} figures compared here.\n"
    elif any(row.ours is not None for row in table.rows):
        yield "Where we lose: unknown, as no peer's figure stands beside ours here.\n"


# --- The plot: a bar a system, its median, with a line from the least to the most ---

def plot(table):
    """The SVG, or None where there is nothing to draw."""
    metric = next((one for one in table.metrics if one.key == table.plot), None)
    rows = [(row, numbers(row, metric)) for row in table.rows] if metric else []
    if not any(values for _, values in rows):
        return None
    return "\n".join(draw(table.title, metric, rows))


def draw(title, metric, rows):
    most = max(max(values) for _, values in rows if values) or 1
    height, bottom = TOP + BAR * len(rows) + 40, TOP + BAR * len(rows) + 4
    scale = (WIDTH - LEFT - RIGHT) / most
    yield (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
           f'width="{WIDTH}" height="{height}" font-family="sans-serif" font-size="13" '
           f'fill="#24292f"><title>{html.escape(title)}</title>')
    yield f'<rect width="{WIDTH}" height="{height}" fill="white"/>'
    yield plot_losses.text(16, 22, f"{title}: {metric.head}")
    for tick in plot_losses.ticks(0, most, 6):
        x = LEFT + scale * tick
        yield plot_losses.line(x, TOP - 6, x, bottom, "#e6e9ed")
        yield plot_losses.text(x, bottom + 18, f"{tick:.4g}", "middle")
    for place, (row, values) in enumerate(rows):
        yield from bar(row, values, TOP + BAR * place, scale, metric)
    yield "</svg>\n"


def shortened(text):
    return text if len(text) <= NOTE_MAX else text[:NOTE_MAX - 3] + "..."


def bar(row, values, y, scale, metric):
    if not values:   # who failed is not left out
        yield plot_losses.text(LEFT - 8, y + 15, row.system, "end")
        yield plot_losses.text(LEFT + 6, y + 15, shortened(row.note or "no figure"),
                               more='fill="#d1242f"')
        return
    middle = statistics.median(values)
    colour = OURS_COLOUR if row.ours else PEER_COLOUR
    yield plot_losses.text(LEFT - 8, y + 15, row.system, "end",
                           'font-weight="bold"' if row.ours else "")
    yield (f'<rect x="{LEFT}" y="{y + 2}" width="{max(scale * middle, 1):.1f}" '
           f'height="{BAR - 8}" fill="{colour}"/>')
    yield plot_losses.line(LEFT + scale * min(values), y + 11, LEFT + scale * max(values), y + 11,
                           "#24292f")
    yield plot_losses.text(LEFT + scale * max(values) + 6, y + 15, number(middle, metric.digits))
