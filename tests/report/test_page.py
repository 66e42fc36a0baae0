# needs: torch
"""The page of HTML: complete, self-contained, well-formed, readable by all, and quick for large graphs."""

from __future__ import annotations

import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest
import torch

import stator
from stator.report import page as pages
from tests.report import explained

VOID = {"meta", "link", "br", "img", "input"}
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Page(HTMLParser):
    """Its elements, properly nested, with their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)

    def all(self, name):
        return [attributes[name] for _, attributes in self.elements if name in attributes]


@pytest.fixture(scope="module")
def told():
    return stator.explain(explained.twice)(torch.ones(2, 3), [])


@pytest.fixture(scope="module")
def text(told):
    return pages.page(told)


@pytest.fixture(scope="module")
def page(text):
    return Page(text)


def repeated(x, n):
    for _ in range(n):
        x = torch.relu(x) * 2
        x = x + 1
    return x


def test_it_is_written_where_asked(told, tmp_path, text):
    told.to_html(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == text


def test_it_asks_for_nothing(page, text):
    for name in ("src", "href"):
        assert [link for link in page.all(name) if not link.startswith(("#", "data:,"))] == []
    assert "default-src 'none'" in text
    assert re.findall(r"url\(|@import|https?:|fetch\(|XMLHttpRequest", text) == []


def test_links_lead_somewhere(page):
    ids = page.all("id")
    assert len(ids) == len(set(ids))
    assert [link for link in page.all("href") if link.startswith("#") and link[1:] not in ids] == []
    assert set(page.all("aria-labelledby")) <= set(ids)


def test_all_is_told(page, told):
    words = "".join(page.text)
    for site in told.breaks:
        assert site.code in words and site.reason in words and site.hint in words
    assert told.patches and all(offer.diff.strip() in words for offer in told.patches)
    for frame in told.frames:
        assert frame.generated.strip() in words
        assert frame.graph is None or frame.graph.code.strip() in words
        assert all(guard.text in words for guard in frame.guards)


def test_lines_are_marked(text):
    lines = {found[2].strip(): found for found in re.findall(r'<li id="([^"]*)"(.*?)<code>(.*?)</code></li>', text)}
    assert "✕ SB0201" in lines["if h.sum() &gt; 0:  # the break"][1]
    assert "▐ 1" in lines["h = torch.relu(x) * k"][1] and "⚷" in lines["h = torch.relu(x) * k"][1]
    assert "│" in lines["h = block(h, history)"][1]
    assert 'class="marks"></span>' in lines["import torch"][1]


def test_what_the_program_says_is_escaped():
    class Odd:
        tag = "<script>alert(1)</script>"

    odd = Odd()

    def program(x):
        return x + len(odd.tag) if odd.tag != "&" else x

    text = pages.page(stator.explain(program)(torch.ones(2)))
    assert "<script>alert" not in text and "&lt;script&gt;alert" in text
    Page(text)


def test_an_empty_explanation_is_a_page():
    explanation = stator.explain(lambda: None)()
    assert "None: each frame is one graph." in pages.page(explanation)
    Page(pages.page(explanation))


def test_what_scrolls_can_be_reached_by_keyboard(page):
    scrolling = [attributes for tag, attributes in page.elements if tag == "pre" or attributes.get("class") == "scroll"]
    assert scrolling and all(a.get("tabindex") == "0" and a.get("aria-label") for a in scrolling)
    assert not any("onclick" in attributes for _, attributes in page.elements)


def luminance(color):
    channels = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read(scheme):
    css = (Path(pages.__file__).parent / "static" / "page.css").read_text()
    blocks = re.findall(r":root \{(.*?)\}", css, re.S)
    colors = {}
    for block in blocks[: 1 if scheme == "light" else 2]:
        colors |= dict(re.findall(r"--([\w-]+): (#\w{6})", block))
    pairs = [
        (ink, paper) for ink in ("ink", "quiet", "link", "graph", "break", "guard") for paper in ("paper", "panel")
    ]
    pairs += [(kind, f"{kind}-paper") for kind in ("graph", "break", "guard")]
    pairs += [(ink, f"{kind}-paper") for ink in ("ink", "quiet", "link") for kind in ("graph", "break")]
    assert {pair: contrast(*(colors[name] for name in pair)) for pair in pairs if
            contrast(*(colors[name] for name in pair)) < 4.5} == {}  # fmt: skip


def test_a_large_graph_is_folded_and_small():
    explanation = stator.explain(repeated)(torch.ones(4, 8), 670)
    assert explanation.op_count == 2010
    page = pages.page(explanation)
    assert len(page) < 1_000_000
    assert len(re.findall("<details(?! open| class=.file. open)", page)) >= 5
    assert page.count("<script") == 1


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
def test_a_browser_unfolds_what_a_link_leads_to(told, tmp_path):
    told.to_html(tmp_path / "page.html")
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom"]
    done = subprocess.run(
        [CHROMIUM, *options, f"file://{tmp_path}/page.html#guards-2"], capture_output=True, text=True, timeout=240
    )
    assert re.search(r'<details class="frame" id="frame-2" open', done.stdout), done.stderr[-500:]
    assert re.search(r'<details id="guards-2" open', done.stdout)
    assert not re.search(r'<details class="frame" id="frame-1" open', done.stdout)
