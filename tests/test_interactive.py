"""The figure with a slider: what Python draws. That the page's script agrees is tested in a browser, tests/site."""

import re

import pytest

from nwmha.interactive import Quantity, Shape, slider_figure


def figure(**changes):
    settings = dict(
        label="t", unit="m", values=[0.0, 1.0, 2.0], start=1.0, drawing="A line.", caption="It <grows>.",
        quantities=[Quantity("square", "t*t", lambda t: t * t, "bias"), Quantity("half", "t/2", lambda t: t / 2)],
        shapes=[Shape("[[0,0],[t,1]]", lambda t: [[0, 0], [t, 1]], "head")],
    )  # fmt: skip
    return slider_figure("demo", **(settings | changes)).data


def test_the_first_state_needs_no_script():
    text = figure().split("<script>")[0]
    assert re.findall(r"<dd>([^<]*)</dd>", text) == ["1.000", "0.500"]
    assert 'points="0.0,0.0 100.0,-100.0"' in text and text.count("<polyline") == text.count("<circle") == 1
    assert "It &lt;grows&gt;." in text and 'aria-label="A line."' in text and 'aria-live="polite"' in text


def test_the_page_asks_for_nothing_outside():
    assert not re.search(r"https?:|src=|@import|url\(", figure())


def test_impossible_sliders_are_refused():
    for changes in ({"start": 0.5}, {"values": [0.0, 1.0]}, {"values": [2.0, 1.0, 0.0]}):
        with pytest.raises(ValueError, match="values must increase and contain start"):
            figure(**changes)
