"""What a page must satisfy. Each checker returns a list of faults; test_checks.py shows that it finds them."""

from pathlib import Path

import axe_playwright_python

SITE = Path(__file__).parents[2] / "_build" / "html"
AXE = next(Path(axe_playwright_python.__file__).parent.rglob("axe.min.js")).read_text(encoding="utf-8")

DUPLICATE_IDS = """() => { const seen = {}; document.querySelectorAll('[id]').forEach(e => {
  if (!e.closest('svg, mjx-container')) seen[e.id] = (seen[e.id] || 0) + 1; });
  return Object.keys(seen).filter(id => seen[id] > 1).map(id => 'duplicate id ' + id); }"""

MATHS = """() => { const faults = [];
  document.querySelectorAll('.math').forEach(e => { if (!e.querySelector('mjx-container'))
    faults.push('not rendered: ' + e.textContent.slice(0, 60)); });
  document.querySelectorAll('mjx-merror, [data-mjx-error]').forEach(e => faults.push('error: ' + e.textContent));
  document.querySelectorAll('mjx-container [fill="red"], mjx-container [mathcolor="red"], mjx-mtext[style*="red"]')
    .forEach(e => faults.push('undefined macro: ' + e.textContent));
  const walker = document.createTreeWalker(document.querySelector('main, article, body'), NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) { const node = walker.currentNode;
    if (/\\$\\$|\\\\(frac|sum|alpha|mathbb)/.test(node.data) && !node.parentElement.closest('pre, code, script, .math'))
      faults.push('raw TeX: ' + node.data.trim().slice(0, 60)); }
  return faults; }"""

OVERFLOW = """() => { const width = document.documentElement.clientWidth, faults = [];
  if (document.documentElement.scrollWidth > width + 1) faults.push('page scrolls sideways');
  const scrolls = e => { for (; e && e !== document.body; e = e.parentElement) {
    const s = getComputedStyle(e);
    if (/(auto|scroll|hidden|clip)/.test(s.overflowX) || s.position === 'fixed') return true; }
    return false; };
  document.querySelectorAll('article *').forEach(e => { const box = e.getBoundingClientRect();
    if (box.width && box.right > width + 1 && !scrolls(e))
      faults.push(`past the right edge: ${e.tagName} ${e.className} ${e.textContent.trim().slice(0, 40)}`); });
  return faults.slice(0, 8); }"""

IMAGES = """() => [...document.querySelectorAll('article img, article svg[role=img]')]
  .filter(e => { const alt = e.getAttribute('alt') || e.getAttribute('aria-label') || '';
    return alt.trim().length < 20 || /[0-9a-f]{16}|\\.(png|svg)$/.test(alt); })
  .map(e => 'no alternative text: ' + (e.src || '').slice(-40))"""


def script_checks(page):
    """Faults that a script in the page can see, at any width."""
    return [fault for script in (DUPLICATE_IDS, MATHS, IMAGES) for fault in page.evaluate(script)]


def overflow(page):
    """Elements past the right edge that do not scroll in themselves."""
    return page.evaluate(OVERFLOW)


STILL = "*, *::before, *::after { transition: none !important; animation: none !important; }"


def accessibility(page):
    """Violations that axe finds. axe covers a part of the guidelines only."""
    page.add_style_tag(content=STILL)  # colours are judged at rest, not on their way to the other theme
    page.evaluate(AXE)
    found = page.evaluate("() => axe.run(document, {resultTypes: ['violations'], preload: false})")["violations"]
    return [f"{v['id']}: {v['nodes'][0]['html'][:160]} ({len(v['nodes'])} nodes)" for v in found]


def watch(page, origin):
    """Collect what a page asks for and complains of: requests elsewhere, failed requests, script errors."""
    faults = []
    page.on(
        "request", lambda r: None if r.url.startswith((origin, "data:", "blob:")) else faults.append(f"asks {r.url}")
    )
    page.on("response", lambda r: faults.append(f"{r.status} {r.url}") if r.status >= 400 else None)
    page.on("console", lambda m: faults.append(f"console: {m.text}") if m.type in ("error", "warning") else None)
    page.on("pageerror", lambda e: faults.append(f"script error: {e}"))
    return faults


def settle(page):
    """Wait until MathJax has typeset the page."""
    page.wait_for_load_state("networkidle")
    page.evaluate("() => window.MathJax && MathJax.startup ? MathJax.startup.promise.then(() => true) : true")


DOTS = """(figure, t) => { const input = figure.querySelector('input'); input.value = t;
  input.dispatchEvent(new Event('input'));
  return [...figure.querySelectorAll('circle')].map(e => [e.getAttribute('cx'), e.getAttribute('cy')].map(Number)); }"""
STATE = """figure => ({numbers: [...figure.querySelectorAll('dd, output')].map(e => e.textContent),
  points: [...figure.querySelectorAll('polygon')].map(e => e.getAttribute('points')),
  curves: [...figure.querySelectorAll('polyline')].map(e => e.getAttribute('points'))})"""


def numbers(points):
    return [float(number) for number in points.replace(",", " ").split()]


def sliders(page, still):
    """Faults of the figures with a slider: the page's script against what Python drew, and the keyboard.

    ``still`` is the same page without JavaScript: it shows what Python drew.
    """
    faults = []
    for figure in page.query_selector_all("figure.nwmha-slider"):
        name = figure.get_attribute("id")
        drawn, live = still.query_selector(f"#{name}").evaluate(STATE), figure.evaluate(STATE)
        if drawn["numbers"] != live["numbers"]:
            faults.append(f"{name}: first numbers {drawn['numbers']} in Python, {live['numbers']} in the page")
        for left, right in zip(drawn["points"], live["points"], strict=True):
            if max(abs(a - b) for a, b in zip(numbers(left), numbers(right), strict=True)) > 0.11:
                faults.append(f"{name}: a polygon differs from Python's")
        faults += _off_the_curves(figure, name, [numbers(curve) for curve in drawn["curves"]])
        before = figure.evaluate(STATE)["numbers"]
        figure.query_selector("input").press("ArrowLeft")
        if figure.evaluate(STATE)["numbers"] == before:
            faults.append(f"{name}: the keyboard does not move it")
    return faults


def _off_the_curves(figure, name, curves):
    low, high = (float(figure.query_selector("input").get_attribute(end)) for end in ("min", "max"))
    faults, places = [], len(curves[0]) // 2 - 1
    for step in range(0, places + 1, max(1, places // 7)):
        dots = figure.evaluate(DOTS, low + (high - low) * step / places)
        for curve, (x, y) in zip(curves, dots, strict=True):
            if abs(curve[2 * step] - x) > 0.11 or abs(curve[2 * step + 1] - y) > 0.11:
                faults.append(f"{name}: a dot leaves its curve at place {step}")
    return faults
