"""Opens the report of the committed results in headless Chromium, on a screen and on a phone, light and dark.

    python python/checks/check_report.py [--screenshots FOLDER] [REPORT.html]

Nothing may be loaded from elsewhere or go wrong on the way; the page may not scroll sideways; text must have the contrast
that WCAG asks for (AA); everything that can be used must be reached by the Tab key; sorting, filters and charts must do what
they say. Needs `./setup --browser` and a built `report`.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from common import ROOT

PYTHON = ROOT / ".browser/bin/python"
try:
    from playwright.sync_api import Page, sync_playwright
except ImportError:
    if not PYTHON.exists() or sys.prefix == str(ROOT / ".browser"):
        sys.exit("check_report.py: playwright is missing: run ./setup --browser")
    os.execv(PYTHON, [str(PYTHON), *sys.argv])

SIZES = {"screen": (1280, 900), "phone": (390, 844)}

# Visible text whose contrast with what is behind it is below AA: 4.5, or 3 for large text.
CONTRAST = """() => {
  const channel = (c) => (c /= 255, c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const parse = (text) => { const n = text.match(/[\\d.]+/g).map(Number); return [n.slice(0, 3), n[3] ?? 1]; };
  const over = ([top, a], below) => top.map((v, i) => v * a + below[i] * (1 - a));
  const behind = (e) => {
    const layers = [];
    for (; e; e = e.parentElement) layers.push(parse(getComputedStyle(e).backgroundColor));
    return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255]);
  };
  const found = [];
  let count = 0;
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const e = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || e.closest("script, style, noscript, option") || !e.checkVisibility()) continue;
    const style = getComputedStyle(e);
    const svg = e.closest("svg");
    const color = parse(svg ? style.fill : style.color);
    const back = behind(svg ? svg.parentElement : e);
    const [a, b] = [light(over(color, back)), light(back)].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
    count += 1;
    if (ratio < (large ? 3 : 4.5)) found.push(`${e.tagName}.${e.getAttribute("class")} "${walker.currentNode.data.trim().slice(0, 30)}" ${ratio.toFixed(2)}`);
  }
  return [count, found.slice(0, 8)];
}"""

# What a reader with a screen reader needs.
STRUCTURE = """() => {
  const all = (s) => Array.from(document.querySelectorAll(s));
  const wrong = [];
  const expect = (ok, what) => { if (!ok) wrong.push(what); };
  expect(document.documentElement.lang === "en", "no language");
  expect(all("h1").length === 1 && all("main").length === 1 && all("nav").length === 1, "landmarks");
  let level = 1;
  for (const h of all("h1, h2, h3, h4")) {
    expect(+h.tagName[1] <= level + 1, `heading ${h.textContent} skips a level`);
    level = +h.tagName[1];
  }
  for (const t of all("table")) {
    expect(t.caption?.textContent.trim(), `table ${t.id} has no caption`);
    expect(Array.from(t.querySelectorAll("th")).every((th) => th.scope), `table ${t.id} has a th without scope`);
    expect(Array.from(t.rows).every((r) => r.cells.length === t.rows[0].cells.length), `table ${t.id} has ragged rows`);
  }
  for (const i of all("img")) expect(i.alt.length > 10 && i.naturalWidth > 0, `picture without text or pixels: ${i.alt}`);
  for (const i of all("input, select")) expect(i.labels?.length, `control without label: ${i.id}`);
  const ids = all("[id]").map((e) => e.id).filter(Boolean);
  const own = ids.filter((id, n) => ids.indexOf(id) !== n && !document.getElementById(id).closest("svg"));
  expect(!own.length, `ids that occur twice: ${own}`);
  for (const a of all("a[href^='#']")) expect(document.getElementById(a.hash.slice(1)), `link to nowhere: ${a.hash}`);
  return wrong;
}"""

FOCUSED = """() => {
  const e = document.activeElement;
  const kind = e.matches(".skip") ? "skip" : e.matches(".sort") ? "sort" : e.matches(".plot") ? "plot" : e.matches(".scroll") ? "table"
    : e.id === "find" ? "find" : e.tagName.toLowerCase() + (e.type ? ":" + e.type : "");
  const style = getComputedStyle(e);
  return [kind, style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2];
}"""

failures: list[str] = []


def check(name: str, ok: bool, detail: object = "") -> None:
    if not ok:
        failures.append(name)
    print(f"{'ok     ' if ok else 'FAILED '} {name}{'' if ok else f': {detail}'}")


def build() -> Path:
    path = Path(tempfile.mkdtemp(prefix="report-")) / "report.html"
    program = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug/report"
    done = subprocess.run([program, "figures", "--out", path], cwd=ROOT, capture_output=True, text=True)
    if done.returncode or done.stderr:
        sys.exit(f"report: {done.stderr}")
    return path


def draw_all(page: Page) -> None:
    """Scrolls through the page until each chart is drawn."""
    for chart in page.locator(".chart").all():
        chart.scroll_into_view_if_needed()
        chart.locator(".main-svg").first.wait_for(timeout=20_000)
    page.evaluate("scrollTo(0, 0)")


def tab_through(page: Page, where: str) -> None:
    """From the address bar forward to the end of the page."""
    page.evaluate("document.activeElement.blur()")
    kinds: dict[str, int] = {}
    unseen = 0
    first = ""
    ended = False
    for _ in range(4000):
        page.keyboard.press("Tab")
        kind, outlined = page.evaluate(FOCUSED)
        first = first or kind
        if kind == "body" or (kind == "skip" and kinds):
            ended = True
            break
        kinds[kind] = kinds.get(kind, 0) + 1
        unseen += not outlined
    check(f"{where}: Tab begins at the skip link and comes out at the end", first == "skip" and ended, (first, kinds))
    counts = {"sort": ".sort", "plot": ".plot", "table": ".scroll"}
    visible = {k: page.evaluate("s => [...document.querySelectorAll(s)].filter(e => e.checkVisibility()).length", s) for k, s in counts.items()}
    reached = {kind: kinds.get(kind, 0) for kind in counts}
    check(f"{where}: Tab reaches every sort button, table and chart", reached == visible and visible["plot"] > 0, (reached, visible))
    controls = all(kinds.get(k, 0) > 0 for k in ["find", "input:search", "select:select-one", "input:checkbox", "summary", "a"])
    check(f"{where}: Tab reaches filters, panel lists, boxes, links, what is folded", controls, kinds)
    check(f"{where}: what has the focus shows it", unseen == 0, f"{unseen} without an outline")


def column(page: Page, table: str, index: int) -> list[float]:
    cells = f"#{table} tbody tr:not([hidden]) > :nth-child({index + 1})"
    return [float(v) for v in page.eval_on_selector_all(cells, "c => c.map(e => e.dataset.v ?? NaN)")]


def tables(page: Page, where: str) -> None:
    table = page.evaluate("""() => {
      const good = (t) => t.id !== "overview-t" && t.tBodies[0].rows.length >= 6 && t.checkVisibility();
      return Array.from(document.querySelectorAll("table")).find(good).id;
    }""")
    numeric = page.evaluate("id => [...document.getElementById(id).tHead.rows[0].cells].findIndex(c => c.matches('.n'))", table)
    before = column(page, table, numeric)
    head = page.locator(f"#{table} thead th").nth(numeric)
    head.locator("button").focus()
    page.keyboard.press("Enter")
    up = column(page, table, numeric)
    check(f"{where}: a column sorts up", up == sorted(before) and head.get_attribute("aria-sort") == "ascending", up)
    page.keyboard.press("Space")
    down = column(page, table, numeric)
    check(f"{where}: and down", down == sorted(before, reverse=True) and head.get_attribute("aria-sort") == "descending", down)
    page.keyboard.press("Enter")
    check(f"{where}: and back", column(page, table, numeric) == before and head.get_attribute("aria-sort") is None)
    rows = page.locator(f"#{table} tbody tr")
    word = rows.last.locator("th").inner_text()
    page.locator(f"#{table}-q").fill(word)
    shown = page.eval_on_selector_all(f"#{table} tbody tr:not([hidden])", "r => r.map(e => e.textContent)")
    status = page.locator(f"p:has(#{table}-q) [role=status]").inner_text()
    ok = 0 < len(shown) < rows.count() and all(word in text for text in shown) and f"{len(shown)} of" in status
    check(f"{where}: a table's filter leaves the rows with the word", ok, (word, shown, status))
    page.locator(f"#{table}-q").fill("")
    page.locator("#find").fill("audio bach")
    runs = page.eval_on_selector_all("section.run:not([hidden])", "s => s.map(e => e.id)")
    links = page.eval_on_selector_all("nav a", "a => a.filter(e => !e.closest('li[hidden]')).map(e => e.hash.slice(1))")
    ok = runs and all("audio" in run for run in runs) and [a for a in links if a.startswith("run")] == runs
    check(f"{where}: the page's filter leaves sections and links with the words", bool(ok), (runs, links))
    page.locator("#find").fill("")
    everything = page.locator("section.run").count() == page.locator("section.run:not([hidden])").count()
    check(f"{where}: and gives them back", everything)


def charts(page: Page, where: str) -> None:
    box = page.locator(".chart:has(select)").first
    box.scroll_into_view_if_needed()
    plot, select = box.locator(".plot"), box.locator("select")
    title = "e => e._fullLayout.title.text"
    before = plot.evaluate(title)
    select.select_option(index=select.locator("option").count() - 1)
    check(f"{where}: another panel is drawn", plot.evaluate(title) != before)
    log = box.locator("input[type=checkbox]").last
    kind = plot.evaluate("e => e._fullLayout.yaxis.type")
    log.click()
    changed = plot.evaluate("e => e._fullLayout.yaxis.type")
    check(f"{where}: the box changes the axis", {kind, changed} == {"log", "linear"}, (kind, changed))
    log.click()
    plot.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    hint = box.locator(".hint").inner_text()
    check(f"{where}: arrow keys read values", plot.evaluate("e => e._hoverdata?.length > 0") and ":" in hint, hint)
    span = "e => e._fullLayout.xaxis.range.map(v => v.toFixed(3)).join()"
    whole = plot.evaluate(span)
    page.keyboard.press("+")
    near = plot.evaluate(span)
    box.locator("button").click()
    check(f"{where}: + zooms and the button shows all again", near != whole and plot.evaluate(span) == whole, (whole, near))
    if where.startswith("screen"):
        area = plot.locator(".nsewdrag").first.bounding_box()
        page.mouse.move(area["x"] + area["width"] * 0.4, area["y"] + area["height"] * 0.5)
        plot.locator(".hoverlayer text").first.wait_for(timeout=5000)
        check(f"{where}: the mouse shows values", True)


def one(browser, path: Path, size: str, scheme: str, folder: Path | None) -> None:
    where = f"{size}, {scheme}"
    width, height = SIZES[size]
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme, reduced_motion="reduce")
    outside: list[str] = []
    wrong: list[str] = []

    def only_this(route) -> None:
        if route.request.url == path.as_uri():
            route.continue_()
        else:
            outside.append(route.request.url)
            route.abort()

    context.route("**/*", only_this)
    page = context.new_page()
    page.on("console", lambda m: wrong.append(m.text) if m.type in ("error", "warning") else None)
    page.on("pageerror", lambda e: wrong.append(str(e)))
    page.goto(path.as_uri())
    draw_all(page)
    if folder:
        page.screenshot(path=folder / f"{size}-{scheme}.png", full_page=True)
    sideways = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    check(f"{where}: no scrolling sideways", sideways[0] <= sideways[1], sideways)
    count, low = page.evaluate(CONTRAST)
    check(f"{where}: contrast AA of {count} texts", count > 500 and not low, low)
    if scheme == "light":
        structure = page.evaluate(STRUCTURE)
        check(f"{where}: headings, captions, scopes, labels, pictures' texts", not structure, structure)
        tab_through(page, where)
        tables(page, where)
        charts(page, where)
    if size == "screen" and scheme == "light":
        pdf = page.pdf(path=str(folder / "print.pdf") if folder else None, format="A4")
        check(f"{where}: prints", len(pdf) > 100_000, len(pdf))
    check(f"{where}: nothing loaded from elsewhere", not outside, outside)
    check(f"{where}: no error or warning in the console", not wrong, wrong[:5])
    context.close()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--screenshots", type=Path)
    parser.add_argument("report", nargs="?", type=Path)
    arguments = parser.parse_args()
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not chromium:
        sys.exit("check_report.py: Chromium is missing: run ./setup --browser")
    if arguments.screenshots:
        arguments.screenshots.mkdir(parents=True, exist_ok=True)
    path = (arguments.report or build()).resolve()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for size in SIZES:
            for scheme in ("light", "dark"):
                one(browser, path, size, scheme, arguments.screenshots)
        browser.close()
    if not arguments.report:
        shutil.rmtree(path.parent)
    if failures:
        sys.exit(f"{len(failures)} checks failed")


if __name__ == "__main__":
    main()
