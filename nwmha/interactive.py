"""A figure with one slider that works in a static page: no kernel, no network, a few kilobytes.

Every number has two forms: a Python function draws the curves and the first state, a JavaScript expression of the
slider's value ``t`` moves them in the page. Without JavaScript the first state stays.
"""

import html
import json
from collections.abc import Callable
from dataclasses import dataclass

from nwmha import _check
from nwmha.plots import COLOURS

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 360, 236, 40, 40, 12  # of the panel with the curves, in SVG units


@dataclass(frozen=True)
class Quantity:
    """A number under the figure: its name, JavaScript expression of ``t``, and the same function in Python.

    ``colour``, a key of ``nwmha.plots.COLOURS``, draws it as a curve too; an empty one does not.
    """

    name: str
    script: str
    function: Callable
    colour: str = ""


@dataclass(frozen=True)
class Shape:
    """A polygon of the drawing: JavaScript expression and Python function, both t -> [[x, y], ...]."""

    script: str
    function: Callable
    colour: str
    opacity: float = 0.5


def slider_figure(name, *, label, unit, values, start, quantities, shapes, drawing, caption):
    """Display a drawing and curves that move with one slider.

    Parameters: ``name``, the id in the page; ``label`` and ``unit`` of the slider; ``values (k,)``, equally
    spaced, increasing; ``start``, one of them; lists of :class:`Quantity` and :class:`Shape` (coordinates in
    [-1, 1], y upwards); ``drawing``, the alternative text; ``caption``. Returns an IPython ``HTML`` object.

    >>> plane = Shape("[[0,0],[1,0],[Math.cos(t),Math.sin(t)]]", lambda t: [[0, 0], [1, 0], [0, t]], "bias")
    >>> square = Quantity("square", "t*t", lambda t: t * t, "bias")
    >>> figure = slider_figure("demo", label="side", unit="m", values=[0.0, 0.5, 1.0], start=0.5,
    ...     quantities=[square], shapes=[plane], drawing="A triangle.", caption="It grows.")
    >>> "0.250" in figure.data
    True
    """
    values = _check.array("values", values, ("k",)).tolist()
    if start not in values or len(values) < 3 or sorted(set(values)) != values:
        raise ValueError(f"values must increase and contain start = {start!r}")
    curves = [q for q in quantities if q.colour]
    top = 1.05 * max(float(q.function(t)) for q in curves for t in values)
    place = (values[0], (WIDTH - LEFT - 12) / (values[-1] - values[0]), (HEIGHT - BOTTOM - TOP) / top)
    parts = {
        "name": html.escape(name), "label": html.escape(label), "unit": html.escape(unit), "start": f"{start:g}",
        "low": f"{values[0]:g}", "high": f"{values[-1]:g}", "step": f"{values[1] - values[0]:g}",
        "drawing": html.escape(drawing), "caption": html.escape(caption),
        "polygons": "".join(_polygon(shape, start) for shape in shapes),
        "axes": _axes(place, values, top, f"{label}, {unit}"),
        "curves": "".join(_curve(q, values, start, place) for q in curves),
        "rows": "".join(_row(q, start) for q in quantities),
        "shape_scripts": ",".join(f"t=>{s.script}" for s in shapes),
        "scripts": ",".join(f"t=>{q.script}" for q in quantities),
        "drawn": json.dumps([bool(q.colour) for q in quantities]), "place": json.dumps(place),
        "left": LEFT, "base": HEIGHT - BOTTOM, "width": WIDTH, "height": HEIGHT,
    }  # fmt: skip
    from IPython.display import HTML

    return HTML(PAGE % parts)


PAGE = """<figure class="nwmha-slider" id="%(name)s"><div class="panels">
<svg class="drawing" viewBox="-110 -110 220 220" role="img" aria-label="%(drawing)s">%(polygons)s</svg>
<svg class="curves" viewBox="0 0 %(width)d %(height)d" role="img" aria-label="The quantities below, as curves.">
%(axes)s%(curves)s</svg></div>
<label for="%(name)s-input">%(label)s: <output for="%(name)s-input">%(start)s</output> %(unit)s</label>
<input id="%(name)s-input" type="range" min="%(low)s" max="%(high)s" step="%(step)s" value="%(start)s">
<dl aria-live="polite">%(rows)s</dl><figcaption>%(caption)s</figcaption>
<script>(() => {
const figure = document.getElementById("%(name)s"), find = s => [...figure.querySelectorAll(s)];
const shapes = [%(shape_scripts)s], quantities = [%(scripts)s], drawn = %(drawn)s;
const [low, across, up] = %(place)s, input = figure.querySelector("input");
figure.evaluate = t => quantities.map(f => f(t));
const show = () => { const t = Number(input.value), numbers = figure.evaluate(t);
  figure.querySelector("output").textContent = input.value;
  find("dd").forEach((e, k) => e.textContent = numbers[k].toFixed(3));
  const point = ([x, y]) => (100 * x).toFixed(1) + "," + (-100 * y).toFixed(1);
  find("polygon").forEach((e, k) => e.setAttribute("points", shapes[k](t).map(point).join(" ")));
  const dots = find("circle");
  numbers.filter((_, k) => drawn[k]).forEach((v, k) => { dots[k].setAttribute("cx", %(left)d + (t - low) * across);
    dots[k].setAttribute("cy", %(base)d - v * up); }); };
input.addEventListener("input", show); show(); })();</script></figure>"""


def _polygon(shape, t):
    points = " ".join(f"{100 * x:.1f},{-100 * y:.1f}" for x, y in shape.function(t))
    colour = COLOURS[shape.colour]
    return (
        f'<polygon points="{points}" fill="{colour}" fill-opacity="{shape.opacity:g}" '
        f'stroke="{colour}" stroke-width="2" stroke-linejoin="round"/>'
    )


def _at(place, t, value):
    low, across, up = place
    return LEFT + (t - low) * across, HEIGHT - BOTTOM - value * up


def _curve(quantity, values, start, place):
    points = " ".join("{:.1f},{:.1f}".format(*_at(place, t, float(quantity.function(t)))) for t in values)
    colour = COLOURS[quantity.colour]
    x, y = _at(place, start, float(quantity.function(start)))
    return (
        f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2.5"/>'
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5.5" fill="{colour}"/>'
    )


def _axes(place, values, top, title):
    across = [values[0], (values[0] + values[-1]) / 2, values[-1]]
    labels = [(*_at(place, t, 0), f"{t:g}", "middle", 16) for t in across]
    labels += [(*_at(place, values[0], v), f"{v:g}", "end", 4) for v in range(int(top) + 1)]
    texts = "".join(
        f'<text x="{x - 6 * (anchor == "end"):.1f}" y="{y + down:.1f}" text-anchor="{anchor}">{text}</text>'
        for x, y, text, anchor, down in labels
    )
    x, y = _at(place, across[1], 0)
    right, _ = _at(place, values[-1], 0)
    lines = "".join(
        f'<line x1="{LEFT}" x2="{right:.1f}" y1="{level:.1f}" y2="{level:.1f}"/>'
        for level in (_at(place, values[0], v)[1] for v in range(int(top) + 1))
    )
    return f'{lines}{texts}<text x="{x:.1f}" y="{y + 33:.1f}" text-anchor="middle">{html.escape(title)}</text>'


def _row(quantity, t):
    mark = f'<i style="background:{COLOURS[quantity.colour]}"></i>' if quantity.colour else ""
    return f"<div><dt>{mark}{html.escape(quantity.name)}</dt><dd>{float(quantity.function(t)):.3f}</dd></div>"
