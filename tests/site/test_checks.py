"""The checkers themselves: each planted fault is caught, and a sound page passes."""

import checks
import pytest

SOUND = """<!doctype html><html lang="en"><head><title>t</title></head><body><main><article><h1>Sound</h1>
<p id="a">Text.</p><img alt="A line that rises from left to right." src="data:," width="10">
</article></main></body></html>"""


def faulty(inner):
    return SOUND.replace("<p id", inner + "<p id")


def test_a_sound_page_passes(blank):
    blank.set_content(SOUND)
    assert checks.script_checks(blank) + checks.overflow(blank) + checks.accessibility(blank) == []


@pytest.mark.parametrize(
    "inner, word",
    [
        ('<p id="a">twice</p>', "duplicate id a"),
        ('<span class="math">x^2</span>', "not rendered"),
        ('<span class="math"><mjx-container><mjx-merror>bad</mjx-merror></mjx-container></span>', "error"),
        ("<p>so $$ it says</p>", "raw TeX"),
        (r"<p>then \frac12</p>", "raw TeX"),
        ('<img src="data:,">', "no alternative text"),
        ('<img src="data:," alt="0123456789abcdef0123456789abcdef">', "no alternative text"),
    ],
)
def test_script_checks_catch(blank, inner, word):
    blank.set_content(faulty(inner))
    assert any(word in fault for fault in checks.script_checks(blank))


def test_overflow_is_caught_unless_it_scrolls(blank):
    blank.set_viewport_size({"width": 375, "height": 600})
    wide = '<div style="width:900px">wide</div>'
    blank.set_content(faulty(wide))
    assert checks.overflow(blank)
    blank.set_content(faulty(f'<div style="overflow-x:auto">{wide}</div>'))
    assert checks.overflow(blank) == []


def test_accessibility_catches(blank):
    blank.set_content(faulty("<button></button>"))
    assert any(fault.startswith("button-name") for fault in checks.accessibility(blank))


def test_watch_catches_requests_failures_and_errors(blank, site):
    faults = checks.watch(blank, site)
    blank.goto(site + "/book/index.html")
    faults.clear()
    blank.set_content('<script src="http://127.0.0.1:9/x.js"></script><img src="/none.png"><script>boom()</script>')
    blank.wait_for_timeout(300)
    text = " ".join(faults)
    assert "asks http://127.0.0.1:9" in text and "404" in text and "boom" in text


def test_sliders_that_differ_from_python_are_caught(blank, browser):
    from nwmha.interactive import Quantity, Shape, slider_figure

    def figure(script, corner="[t, 1]", keys=True):
        text = slider_figure(
            "demo", label="t", unit="m", values=[0.0, 0.5, 1.0], start=0.5, drawing="A corner.", caption="It grows.",
            quantities=[Quantity("square", script, lambda t: t * t, "bias")],
            shapes=[Shape(f"[[0, 0], {corner}]", lambda t: [[0, 0], [t, 1]], "head")],
        ).data  # fmt: skip
        return text if keys else text.replace("<input ", "<input disabled ")

    still = browser.new_context(java_script_enabled=False).new_page()
    for content, word in (
        (figure("t * t"), None),
        (figure("t"), "numbers"),
        (figure("t * t * (t < 0.8)"), "dot"),
        (figure("t * t", corner="[t, 0.9]"), "polygon"),
        (figure("t * t", keys=False), "keyboard"),
    ):
        for page in (blank, still):
            page.set_content(faulty(content))
        faults = checks.sliders(blank, still)
        assert faults == [] if word is None else any(word in fault for fault in faults)
    still.context.close()


def test_colours_are_judged_at_rest(blank):
    """A link on its slow way from an unreadable to a readable colour: what counts is where it arrives."""
    style = "<style>#slow { color: #eee; transition: color 30s } #slow.on { color: #111 }</style>"
    blank.set_content(faulty(style + '<span id="slow">Text that fades.</span>'))
    assert any("color-contrast" in fault for fault in checks.accessibility(blank))
    blank.set_content(faulty(style + '<span id="slow">Text that fades.</span>'))
    blank.evaluate("() => { slow.getBoundingClientRect(); getComputedStyle(slow).color; slow.className = 'on'; }")
    assert checks.accessibility(blank) == []
