"""Every built page in a real browser: requests, errors, mathematics, widths, themes, links, numbers, solutions."""

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin

import checks
import pytest
from checks import SITE

PAGES = [*sorted(str(path.relative_to(SITE)) for path in SITE.glob("book/*.html")), "search.html", "prf-prf.html"]
# The first numbered statements of the chapters, as the source numbers them (4.1 is the definition).
THEOREMS = {"03": "Theorem 3.1", "04": "Theorem 4.2", "05": "Theorem 5.1", "06": "Theorem 6.1", "07": "Theorem 7.1"}


# Two workers share the pages; the tests of one page stay together, so that it is opened once.
@pytest.fixture(scope="module", params=[pytest.param(page, marks=pytest.mark.xdist_group(page)) for page in PAGES])
def opened(request, browser, site):
    """A page opened at desktop width in the light theme, with all that it asked for and complained of."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme="light")
    page = context.new_page()
    faults = checks.watch(page, site)
    page.goto(f"{site}/{request.param}")
    checks.settle(page)
    yield page, faults
    context.close()


def test_no_outside_request_no_failure_no_script_error(opened):
    assert opened[1] == []


def test_content(opened):
    assert checks.script_checks(opened[0]) == []


def test_accessible_in_both_themes(opened):
    page = opened[0]
    assert checks.accessibility(page) == []
    page.emulate_media(color_scheme="dark")
    page.wait_for_function("document.documentElement.dataset.theme === 'dark'")
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert sum(int(v) for v in re.findall(r"\d+", background)[:3]) < 200
    assert checks.accessibility(page) == []


def test_nothing_past_the_right_edge_on_a_phone(opened):
    page = opened[0]
    page.set_viewport_size({"width": 375, "height": 800})
    page.wait_for_timeout(150)
    assert checks.overflow(page) == []


def test_solutions_and_proofs_start_hidden_and_open(opened):
    page = opened[0]
    page.set_viewport_size({"width": 1280, "height": 900})
    folded = page.locator(".solution.dropdown, .admonition.dropdown")
    for k in range(folded.count()):
        assert "toggle-hidden" in folded.nth(k).get_attribute("class")
    if folded.count():
        first, body = folded.first, folded.first.locator("p, .math").last
        assert not body.is_visible()
        first.locator("button.toggle-button, .admonition-title").first.click()
        page.wait_for_timeout(100)
        assert body.is_visible() and "toggle-hidden" not in first.get_attribute("class")


def test_figures_with_a_slider_agree_with_python(opened, browser):
    page = opened[0]
    if page.locator("figure.nwmha-slider").count():
        still = browser.new_context(java_script_enabled=False).new_page()
        still.goto(page.url)
        assert checks.sliders(page, still) == []
        still.context.close()


def test_search_finds_a_word(browser, site):
    page = browser.new_page()
    page.goto(f"{site}/search.html?q=covariance")
    page.wait_for_selector("#search-results li a")
    assert page.locator("#search-results li a").count() >= 1
    page.close()


class Links(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.links, self.ids = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.ids.add(attributes.get("id"))
        if tag == "a" and attributes.get("href"):
            self.links.append(attributes["href"])


def broken_links(pages):
    """Internal links of ``{name: html}`` that lead to no file or no anchor."""
    parsed = {name: Links(text) for name, text in pages.items()}
    faults = []
    for name, page in parsed.items():
        for link in page.links:
            if re.match(r"[a-z]+:", link):
                continue
            target, anchor = urldefrag(urljoin("/" + name, link))
            target, anchor = unquote(target).lstrip("/") or name, unquote(anchor)
            known = target in parsed or (SITE / target).exists()
            if not known or (anchor and target in parsed and anchor not in parsed[target].ids):
                faults.append(f"{name} -> {link}")
    return faults


def test_internal_links_and_anchors_resolve(site):
    pages = {str(path.relative_to(SITE)): path.read_text(encoding="utf-8") for path in SITE.rglob("*.html")}
    assert broken_links(pages) == []


def test_broken_links_are_caught():
    pages = {"a.html": '<a href="b.html#x">1</a><a href="none.html">2</a><a href="#y">3</a>', "b.html": '<p id="z">'}
    assert len(broken_links(pages)) == 3
    assert broken_links({"a.html": '<a href="b.html#z">1</a>', "b.html": '<p id="z">'}) == []


@pytest.mark.parametrize("page", [name for name in PAGES if Path(name).name[:2] in THEOREMS])
def test_theorem_numbers_agree_with_the_source(page, site):
    text = (SITE / page).read_text(encoding="utf-8")
    captions = re.findall(r'<span class="caption-number">([^<]+?)\s*</span>', text)
    statements = [caption for caption in captions if not caption.startswith(("Fig.", "Table"))]
    wanted = THEOREMS[Path(page).name[:2]]
    assert statements[1 if wanted == "Theorem 4.2" else 0] == wanted


def test_scoreboard_has_a_row_for_every_claim_and_verdicts_for_written_chapters(site):
    text = (SITE / "book" / "index.html").read_text(encoding="utf-8")
    assert text.count('<th scope="row"') == 15
    assert "failed" not in text and text.count('class="verdict open"') == 0
    judged = len(re.findall(r'class="verdict (holds|refuted)"', text))
    assert judged >= 5
