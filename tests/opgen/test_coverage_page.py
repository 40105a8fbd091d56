"""`opgen coverage --html`: one file, safe whatever a reason says, and usable with a mouse, a keyboard and a phone."""

from __future__ import annotations

import base64
import hashlib
import html.parser
import json
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from coverage_cases import NASTY, sample
from hypothesis import given
from hypothesis import strategies as st

from opgen.coverage.page import embedded_json, render_page
from opgen.upstream import Upstream, load_upstream

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")


@pytest.fixture(scope="module")
def upstream() -> Upstream:
    return load_upstream()


@pytest.fixture(scope="module")
def page(upstream: Upstream) -> str:
    return render_page(*sample(upstream), "MUSA operator coverage", "abc1234")


class Elements(html.parser.HTMLParser):
    """The page as a browser's parser reads it: the elements, and the text inside each script."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.inside = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.inside = tag == "script"
        if self.inside:
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self.inside = False

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.scripts[-1] += data


# ---- the file


def test_the_page_needs_nothing_else(page: str) -> None:
    for tag, attributes in Elements(page).elements:
        assert tag not in ("iframe", "object", "embed", "img", "base")
        for name in ("src", "href", "srcset", "action", "poster"):
            assert (attributes.get(name) or "#").startswith(("#", "data:")), (tag, attributes)
    assert not re.search(r"@import|url\(|https?://", page.split('id="data"')[0])
    assert not re.search(
        r"\b(fetch|XMLHttpRequest|innerHTML|outerHTML|insertAdjacentHTML|eval|document\.write)\b", page
    )


def test_only_the_pages_own_script_may_run(page: str) -> None:
    found = Elements(page)
    policy = next(a["content"] or "" for tag, a in found.elements if a.get("http-equiv") == "Content-Security-Policy")
    assert "default-src 'none'" in policy
    (hash_,) = re.findall(r"script-src '([^']+)'", policy)
    _, script = found.scripts
    assert hash_ == f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}"


@given(st.text() | st.just(NASTY) | st.sampled_from(["</script>", "<!--<script>", "\u2028", "&lt;/script>"]))
def test_embedded_text_never_ends_its_element_and_comes_back_as_it_was(text: str) -> None:
    embedded = embedded_json({text: [text]})
    assert not set("<>&\u2028\u2029") & set(embedded)
    assert json.loads(embedded) == {text: [text]}


def test_what_a_reason_says_is_data(page: str) -> None:
    data = json.loads(Elements(page).scripts[0])
    rows = {row["op"]: row for row in data["rows"]}
    assert rows["lerp.Scalar_out"]["reasons"]["float32"] == NASTY
    assert page.count("</script>") == 2


def test_every_overload_has_a_row_and_vendor_only_ones_their_reason(upstream: Upstream, page: str) -> None:
    matrix, _ = sample(upstream)
    data = json.loads(Elements(page).scripts[0])
    assert data["dtypes"] == ["bool", "int64", "float16", "float32"]
    assert [row["op"] for row in data["rows"]] == [
        *(o.op for o in matrix.overloads),
        *(v.op for v in matrix.vendor_only),
    ]
    rows = {row["op"]: row for row in data["rows"]}
    assert (rows["tril.out"]["verdict"], rows["tril.out"]["v"], rows["tril.out"]["n"]) == ("S", "SS-S", [20, 20, 0, 20])
    assert rows["tril.out"]["source"] == "kernels/mudnn/K.cpp:7"
    assert (rows["cat"]["verdict"], rows["cat"]["reason"]) == ("P", "float32: float32 is off")
    assert rows["_fft_c2c"]["standing"] == "missing" and rows["_fft_c2c"]["next"] == "opgen new _fft_c2c"
    assert rows["cudnn_convolution"]["family"] == "vendor-only" and rows["cudnn_convolution"]["reason"]


def test_the_page_is_the_same_for_the_same_matrix(upstream: Upstream, page: str) -> None:
    assert render_page(*sample(upstream), "MUSA operator coverage", "abc1234") == page


def test_a_matrix_without_verdicts_is_a_page_too(upstream: Upstream) -> None:
    from coverage_cases import surveyed

    data = json.loads(Elements(render_page(*surveyed(upstream, [], []), "x")).scripts[0])
    assert data["dtypes"] == [] and all(row["v"] == "" for row in data["rows"])


# ---- in a browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Headless Chromium; skipped where there is none, unless OPGEN_REQUIRE_BROWSER says that there has to be one."""
    if CHROMIUM is None or DRIVER is None:
        missing = "Chromium is not installed: apt-get install chromium chromium-driver"
        if os.environ.get("OPGEN_REQUIRE_BROWSER"):
            pytest.fail(missing)
        pytest.skip(missing)
    webdriver = pytest.importorskip("selenium.webdriver")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def address(upstream: Upstream, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A page with the interesting rows and every eighth of the others: opening it is what these tests cost."""
    matrix, rows = sample(upstream)
    kept = [i for i, r in enumerate(rows) if i % 8 == 0 or r.results or re.match(r"tril|_fft|nonzero|linalg", r.op)]
    few = replace(matrix, overloads=tuple(matrix.overloads[i] for i in kept))
    path: Path = tmp_path_factory.mktemp("page") / "coverage.html"
    path.write_text(render_page(few, [rows[i] for i in kept], "MUSA operator coverage"), encoding="utf-8")
    return path.as_uri()


@pytest.fixture(scope="module")
def whole(page: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    path: Path = tmp_path_factory.mktemp("page") / "whole.html"
    path.write_text(page, encoding="utf-8")
    return path.as_uri()


def screen(browser: Any, width: int, height: int, *, phone: bool = False) -> None:
    metrics = {"width": width, "height": height, "deviceScaleFactor": 2 if phone else 1, "mobile": phone}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


@pytest.fixture
def opened(browser: Any, address: str) -> Any:
    """The page on a desktop, with nothing asked yet; afterwards nothing may have been said on the console."""
    screen(browser, 1280, 900)
    browser.get("about:blank")
    browser.get(address)
    yield browser
    assert browser.get_log("browser") == []


def shown(browser: Any) -> list[str]:
    script = "return [...document.querySelectorAll('tr.row:not([hidden]) td.op')].map(cell => cell.textContent)"
    names: list[str] = browser.execute_script(script)
    return names


def ask(browser: Any, name: str, value: str) -> None:
    """Choose as a user would: the field gets the value and says so."""
    browser.execute_script(
        "const field = document.forms.filters.elements[arguments[0]]; field.value = arguments[1];"
        "field.dispatchEvent(new Event('input', {bubbles: true}))",
        name,
        value,
    )


def count(browser: Any) -> str:
    return str(browser.execute_script("return document.getElementById('count').textContent"))


def hash_of(browser: Any) -> str:
    return str(browser.execute_script("return location.hash"))


def test_the_browser_shows_every_overload_and_runs_nothing_foreign(
    browser: Any, opened: Any, upstream: Upstream, whole: str
) -> None:
    browser.get(whole)
    matrix, _ = sample(upstream)
    total = matrix.denominator + len(matrix.vendor_only)
    assert len(shown(opened)) == total
    assert count(opened) == f"{total:,} of {total:,} overloads"
    opened.find_element("xpath", "//button[text()='lerp.Scalar_out']").click()
    assert NASTY.replace("\u2028", "") in opened.find_element("css selector", "tr.more").get_attribute(
        "textContent"
    ).replace("\u2028", "")
    assert opened.title.startswith("MUSA operator coverage")
    assert opened.execute_script("return document.scripts.length") == 2


def test_search_finds_names_reasons_and_sources(opened: Any) -> None:
    field = opened.find_element("name", "q")
    field.send_keys("TRIL mudnn")
    assert shown(opened) == ["tril.out"]
    assert hash_of(opened) == "#q=TRIL+mudnn"
    ask(opened, "q", "float32 off")
    assert shown(opened) == ["cat"]
    ask(opened, "q", "kernels/cpu_fallback")
    assert shown(opened) == ["bincount"]
    ask(opened, "q", "no such operator")
    assert shown(opened) == [] and opened.find_element("id", "none").is_displayed()


def test_filters_narrow_each_other_and_reset_undoes_them(opened: Any) -> None:
    everything = len(shown(opened))
    ask(opened, "family", "ported")
    assert shown(opened) == ["cat", "lerp.Scalar_out", "nonzero"]
    ask(opened, "verdict", "FAILED")
    assert shown(opened) == ["lerp.Scalar_out"]
    ask(opened, "dtype", "float16")  # there it is right
    assert shown(opened) == []
    ask(opened, "verdict", "STRICT")
    assert shown(opened) == ["lerp.Scalar_out"]
    ask(opened, "kind", "unstructured")
    assert shown(opened) == []
    opened.find_element("css selector", "button[type=reset]").click()
    opened.execute_async_script("setTimeout(arguments[0], 20)")
    assert len(shown(opened)) == everything and hash_of(opened) == ""
    ask(opened, "ns", "torch.linalg")
    assert shown(opened) and all("linalg" in name for name in shown(opened))
    ask(opened, "ns", "")
    ask(opened, "verdict", "UNTESTED")
    assert "nonzero" in shown(opened) and "_fft_c2c" not in shown(opened)
    ask(opened, "verdict", "MISSING")
    assert "_fft_c2c" in shown(opened) and "nonzero" not in shown(opened)
    ask(opened, "verdict", "")
    ask(opened, "family", "vendor-only")
    assert "cudnn_convolution" in shown(opened)


def test_worst_first_puts_failed_ones_at_the_top_and_back(opened: Any) -> None:
    by_name = shown(opened)
    ask(opened, "sort", "worst")
    assert shown(opened)[:2] == ["lerp.Scalar_out", "cat"]
    ask(opened, "sort", "")
    assert shown(opened) == by_name


def test_an_address_restores_filters_and_open_rows(browser: Any, opened: Any, address: str) -> None:
    ask(opened, "family", "ported")
    opened.find_element("xpath", "//button[text()='cat']").click()
    shared = opened.current_url
    assert hash_of(opened) == "#family=ported&op=cat"
    browser.get("about:blank")
    browser.get(shared)
    assert shown(browser) == ["cat", "lerp.Scalar_out", "nonzero"]
    assert "float32 is off" in browser.find_element("css selector", "tr.more").text
    browser.execute_script("location.hash = '#ns=torch.linalg'")
    browser.execute_async_script("setTimeout(arguments[0], 50)")
    assert all("linalg" in name for name in shown(browser))
    # What no field knows, or a stranger wrote, changes nothing.
    browser.get("about:blank")
    browser.get(f"{address}#family=<b>&verdict=WRONG&x=1&op=nothing")
    assert len(shown(browser)) > 100


def test_the_legend_is_a_filter(opened: Any) -> None:
    button = opened.find_element("css selector", ".legend button[value=FAILED]")
    button.click()
    assert shown(opened) == ["lerp.Scalar_out"] and button.get_attribute("aria-pressed") == "true"
    button.click()
    assert len(shown(opened)) > 100 and button.get_attribute("aria-pressed") == "false"


def test_the_keyboard_reaches_search_and_rows(opened: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    opened.find_element("tag name", "body").send_keys("/")
    assert opened.switch_to.active_element.get_attribute("name") == "q"
    opened.switch_to.active_element.send_keys("cat")
    assert "cat" in shown(opened)
    ask(opened, "q", "cat.cpp")
    ask(opened, "q", "float32 off")
    focused = ""
    for _ in range(12):
        opened.switch_to.active_element.send_keys(Keys.TAB)
        focused = opened.switch_to.active_element.text
        if focused == "cat":
            break
    assert focused == "cat"
    opened.switch_to.active_element.send_keys(Keys.ENTER)
    button = opened.switch_to.active_element
    assert button.get_attribute("aria-expanded") == "true"
    assert opened.find_element("id", button.get_attribute("aria-controls")).is_displayed()
    button.send_keys(Keys.ENTER)
    assert not opened.find_elements("css selector", "tr.more")


def test_colours_have_words(opened: Any) -> None:
    """What a screen reader says of a row: the accessibility tree, not the markup."""
    ask(opened, "q", "tril.out")
    nodes = opened.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    said = [node["name"]["value"] for node in nodes if not node.get("ignored") and node.get("name", {}).get("value")]
    roles = {node["role"]["value"] for node in nodes if not node.get("ignored")}
    assert {"bool: STRICT", "int64: STRICT", "float32: STRICT"} <= set(said)
    assert {"table", "row", "rowheader", "cell", "columnheader", "searchbox", "combobox", "status"} <= roles
    unnamed = [
        node
        for node in nodes
        if node["role"]["value"] in ("button", "combobox", "searchbox", "link") and not node["name"]["value"]
    ]
    assert not unnamed


@pytest.mark.parametrize("width", [320, 390, 768])
def test_a_phone_shows_cards_and_never_scrolls_sideways(browser: Any, address: str, width: int) -> None:
    screen(browser, width, 800, phone=True)
    browser.get("about:blank")
    browser.get(address)
    for hash_ in ("", "#op=lerp.Scalar_out&op=tril.out", "#verdict=MISSING"):
        browser.execute_script("location.hash = arguments[0]", hash_)
        browser.execute_async_script("setTimeout(arguments[0], 50)")
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        wide = browser.execute_script(
            "return [...document.querySelectorAll('main *')].filter(e => e.getClientRects().length && "
            "e.getBoundingClientRect().right > innerWidth + 1 && !e.closest('.vh, pre, details:not([open])')).length"
        )
        assert wide == 0
    nodes = browser.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    assert {"table", "row", "cell"} <= {node["role"]["value"] for node in nodes}  # whatever CSS makes of it


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_is_readable_in_both_schemes(browser: Any, address: str, scheme: str) -> None:
    """WCAG AA: 4.5 to 1 for what the cells and pills say."""
    feature = {"name": "prefers-color-scheme", "value": scheme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    screen(browser, 1280, 900)
    browser.get("about:blank")
    browser.get(address)
    ratios = browser.execute_script("""
        const light = (text) => {
          const [r, g, b] = text.match(/[\\d.]+/g).map((part) => part / 255)
            .map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
          return 0.2126 * r + 0.7152 * g + 0.0722 * b;
        };
        const ground = (e) => {
          const colour = getComputedStyle(e).backgroundColor;
          return colour.startsWith("rgba(0, 0, 0, 0") ? ground(e.parentElement) : colour;
        };
        return [".pill.S", ".pill.P", ".pill.F", ".pill.U", "td.d .S", "td.d .F", "td.why", "header p", "#count",
                "thead th", "td.fam small", ".panel a b"].map((selector) => {
          const e = document.querySelector(selector);
          const [a, b] = [light(getComputedStyle(e).color), light(ground(e))].sort((x, y) => y - x);
          return [selector, (a + 0.05) / (b + 0.05)];
        });""")
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert [(selector, ratio) for selector, ratio in ratios if ratio < 4.5] == []


def test_a_keystroke_is_answered_at_once(opened: Any, whole: str) -> None:
    """1,268 rows: filtering and laying out again takes a fraction of what people notice, also on a busy machine."""
    opened.get(whole)
    milliseconds = opened.execute_script("""
        const field = document.forms.filters.elements.q;
        const once = (text) => {
          const start = performance.now();
          field.value = text;
          field.dispatchEvent(new Event("input", {bubbles: true}));
          document.body.offsetHeight;
          return performance.now() - start;
        };
        return Math.min(...["s", "sc", "sca", "t", "tr", "tri"].map(once));""")
    assert milliseconds < 200
