# SPDX-License-Identifier: Apache-2.0
"""Opens pages in headless Chromium and uses them: sorts, filters, switches the metric, hovers,
saves, turns dark; compares what is seen with the values the page was made of; finds no console
message and no request. Usage: browse.py PAGE_MAKER MX
Exit codes: 0 fine, 1 a difference, 77 (after a line that says why) no browser to drive.
"""
import base64
import csv
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time

SKIPPED = 77
PAGE = 100  # rows shown at a time
LIMIT_BYTES = 8_000_000
LIMIT_SHEETS = 11  # of paper, of a review of some hundred tensors
LIMIT_SECONDS = 300  # of a machine that does other things too; the time itself is printed


def skip(reason):
    print("skipped: " + reason)
    sys.exit(SKIPPED)


try:
    from selenium import webdriver
    from selenium.common.exceptions import WebDriverException
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import Select
except ImportError as missing:
    skip(f"no Selenium for {sys.executable} ({missing})")


class Truth:
    """The values a page was made of, and the order its rows must have."""

    def __init__(self, path):
        data = json.loads(path.read_text(encoding="utf-8"))
        self.rows, self.classes, self.columns = data["rows"], data["classes"], data["columns"]
        self.metrics = {m["name"]: m for m in data["metrics"]}

    def worst(self, metric, row):
        m = self.metrics[metric]
        known = [c[row] for c in m["values"] if c[row] is not None]
        return (max if m["larger_is_worse"] else min)(known, default=None)

    def order(self, metric, column=None, turned=False, keep=lambda name, kind: True):
        """Rows by the worst value of any column or by one; undefined last, equal as they come."""
        m = self.metrics[metric]
        down = m["larger_is_worse"] != turned

        def key(row):
            value = self.worst(metric, row) if column is None else m["values"][column][row]
            return (value is None, 0 if value is None else -value if down else value)
        kept = [i for i, name in enumerate(self.rows) if keep(name, self.classes[i])]
        return sorted(kept, key=key)


class Session:
    def __init__(self, folder):
        chromium = next(filter(None, map(shutil.which, ["chromium", "chromium-browser",
                                                         "google-chrome"])), None)
        driver = shutil.which("chromedriver")
        if chromium is None or driver is None:
            skip(f"no {'Chromium' if chromium is None else 'chromedriver'} on the path")
        options = webdriver.ChromeOptions()
        options.binary_location = chromium
        for flag in ["--headless=new", "--disable-dev-shm-usage", "--disable-background-networking",
                     "--disable-gpu", "--no-first-run", "--window-size=1300,900",
                     f"--user-data-dir={folder / 'profile'}"]:
            options.add_argument(flag)
        if os.geteuid() == 0:
            options.add_argument("--no-sandbox")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        try:
            self.driver = webdriver.Chrome(service=Service(driver), options=options)
        except WebDriverException as problem:
            skip(f"Chromium does not start ({problem.msg.splitlines()[0]})")
        self.downloads = folder / "downloads"
        self.cdp("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(self.downloads))
        self.problems = []
        # The browser's start page requests its own files.
        self.driver.get("about:blank")
        for log in ["browser", "performance"]:
            self.driver.get_log(log)

    def cdp(self, command, **arguments):
        return self.driver.execute_cdp_cmd(command, arguments)

    def js(self, code, *arguments):
        return self.driver.execute_script(code, *arguments)

    def check(self, what, seen, wanted):
        if seen != wanted:
            self.problems.append(f"{what}: {str(seen)[:600]} instead of {str(wanted)[:600]}")

    def require(self, what, holds):
        if not holds:
            self.problems.append(what)

    def one(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def click(self, selector):
        self.one(selector).click()

    def open(self, path):
        self.driver.get(path.as_uri())

    def close_page(self, name):
        """What the page did while it was open: nothing that shows in a log."""
        for entry in self.driver.get_log("browser"):
            self.problems.append(f"{name}: console: {entry['message']}")
        asked = 0
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                url = message["params"]["request"]["url"]
                asked += 1
                if not url.startswith(("file:", "data:", "blob:")):
                    self.problems.append(f"{name}: asked for {url}")
        self.require(f"{name}: no request at all was logged", asked > 0)

    def hover(self, target):
        """Moves the pointer once the page has scrolled and said so: scrolling takes a tip away."""
        self.js("arguments[0].scrollIntoView({block: 'center', inline: 'center'})", target)
        self.driver.execute_async_script(
            "const done = arguments[0];"
            "requestAnimationFrame(() => requestAnimationFrame(() => done()));")
        ActionChains(self.driver).move_to_element(target).perform()

    def type(self, text):
        box = self.one(".filter")
        box.send_keys(Keys.CONTROL, "a")
        box.send_keys(Keys.BACKSPACE)
        box.send_keys(text)

    def table(self):
        """The rows of the table of all rows: texts of the cells."""
        return self.js("return [...document.querySelectorAll('.explorer tbody tr')]"
                       ".map(r => [...r.cells].map(c => c.textContent))")

    def names(self):
        return [row[0] for row in self.table()]

    def saved(self, name):
        path = self.downloads / name
        for _ in range(3000):
            if path.exists() and path.stat().st_size > 0:
                break
            time.sleep(0.1)
        content = path.read_bytes().decode("utf-8")
        path.unlink()
        return list(csv.reader(content.splitlines(keepends=True)))


def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def plain_look(s, name):
    """Of any page: nothing hangs out at the side, narrow or wide, and texts can be told apart."""
    for width in [1300, 400]:
        s.cdp("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1,
              mobile=False)
        wide = s.js("return document.documentElement.scrollWidth")
        s.require(f"{name}: {wide} wide in a window of {width}", wide <= width)
    s.cdp("Emulation.clearDeviceMetricsOverride")
    shown = "return getComputedStyle(document.body).backgroundColor"
    for scheme in ["dark", "light"]:
        s.cdp("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme",
                                                      "value": scheme}])
        first = s.js(shown)
        s.click("#theme")
        second = s.js(shown)
        s.require(f"{name}: {scheme}: the button turns {first} into {second}",
                  (brightness(first) < 0.3) == (scheme == "dark") and
                  (brightness(second) < 0.3) != (scheme == "dark"))
        s.click("#theme")
        s.check(f"{name}: {scheme}: turned twice", s.js(shown), first)
    s.cdp("Emulation.setEmulatedMedia", features=[])


def first_screen(s, name):
    """Of a review: the first screen has the verdict with its chart, and the table of what to ship
    begins in it."""
    s.cdp("Emulation.setDeviceMetricsOverride", width=1100, height=800, deviceScaleFactor=1,
          mobile=False)
    s.js("scrollTo(0, 0)")
    chart, words, table = s.js(
        "const at = (what) => document.querySelector(what).getBoundingClientRect();"
        "const chart = at('.answer figure'), words = at('.answer > div');"
        "return [[chart.left, chart.bottom], [words.right, words.bottom],"
        " at('main section:nth-of-type(2) tbody').top]")
    print(f"{name}: the chart ends at {chart[1]:.0f} pixels, the table begins at {table:.0f}")
    s.require(f"{name}: the chart is at {chart}, the words at {words}, the table at {table}",
              chart[0] >= words[0] and max(chart[1], words[1]) <= table <= 800)
    words = s.js("return [...document.querySelectorAll('main section')].slice(0, 3)"
                 ".map(x => x.innerText).join(' ')")
    for said in ["mxfp8:scale=rceil for", "Cost: ", "Confidence: ", "mx analyze", "Largest risks"]:
        s.require(f"{name}: '{said}' among the first three parts", said in words)
    s.cdp("Emulation.clearDeviceMetricsOverride")


def blocks_folded(s, name):
    """The blocks of the worst tensors: folded, with maps, rows, rules and elements."""
    worst = s.driver.find_elements(By.XPATH, "//section[details[summary/h2[starts-with(., "
                                   "'Blocks of ')]]]")
    s.check(f"{name}: tensors with blocks", len(worst), 3)
    for part in worst:
        s.check(f"{name}: folded", part.find_element(By.TAG_NAME, "details").get_attribute("open"),
                None)
        part.find_element(By.TAG_NAME, "summary").click()
        figures = [f.text for f in part.find_elements(By.CSS_SELECTOR, "figcaption strong")]
        s.require(f"{name}: maps and rows: {figures}",
                  figures and figures[0].startswith("Map of blocks") and "Row by row" in figures)
        heads = [h.text for h in part.find_elements(By.TAG_NAME, "th")]
        for head in ["rule", "scale", "code", "decoded"]:
            s.require(f"{name}: {head} of a block: {heads}", head in heads)


def sheets(s):
    """Of paper, that the page takes."""
    pdf = base64.b64decode(s.cdp("Page.printToPDF", printBackground=True)["data"])
    return len(re.findall(rb"/Type /Page\b(?!s)", pdf))


def verdict_first(s, name):
    first = s.one("main section")
    s.check(f"{name}: begins with", first.find_element(By.CSS_SELECTOR, "h2").text.split(" #")[0],
            "Verdict")
    s.require(f"{name}: a verdict in words", first.find_elements(By.CSS_SELECTOR, "li"))
    s.require(f"{name}: a figure", s.driver.find_elements(By.CSS_SELECTOR, "figure svg"))


def brightness(colour):
    return sum(map(int, re.findall(r"\d+", colour)[:3])) / (3 * 255)


def sorts(s, truth, name):
    def expect(what, order):
        s.check(f"{name}: {what}", s.names(), [truth.rows[i] for i in order[:PAGE]])

    expect("opened", truth.order("nrmse"))
    heads = ".explorer thead th:nth-child({}) button"
    for column in [0, len(truth.columns) - 1]:
        s.click(heads.format(column + 3))
        expect(f"by column {column}", truth.order("nrmse", column))
        head = s.one(f".explorer thead th:nth-child({column + 3})")
        s.check(f"{name}: aria-sort", head.get_attribute("aria-sort"), "descending")
        s.click(heads.format(column + 3))
        expect(f"by column {column}, turned", truth.order("nrmse", column, True))
        s.check(f"{name}: aria-sort", head.get_attribute("aria-sort"), "ascending")
    s.check(f"{name}: sorted heads",
            s.js("return document.querySelectorAll('[aria-sort]').length"), 1)
    s.one(heads.format(3)).send_keys(Keys.ENTER)
    expect("by the keyboard", truth.order("nrmse", 0))

    Select(s.one("#metric")).select_by_value("sqnr_db")
    expect("SQNR by column 0", truth.order("sqnr_db", 0))
    s.click(".reset")
    expect("SQNR, worst first", truth.order("sqnr_db"))
    Select(s.one("#metric")).select_by_value("clamp_rate")
    expect("clamp rate", truth.order("clamp_rate"))
    s.click(heads.format(2 + 2))
    expect("all equal: the order of the file", truth.order("clamp_rate", 1))
    Select(s.one("#metric")).select_by_value("nrmse")
    s.click(heads.format(2))
    shown = s.table()
    s.require(f"{name}: by class", [r[1] for r in shown] == sorted(r[1] for r in shown))
    s.click(heads.format(1))
    layers = [int(m[1]) for m in map(re.compile(r"layers\.(\d+)\.").search, s.names()) if m]
    s.require(f"{name}: layers by number", layers == sorted(layers) and len(layers) > 50)
    s.click(".reset")


def filters(s, truth, name):
    def expect(what, keep):
        order = truth.order("nrmse", keep=keep)
        s.check(f"{name}: {what}", s.names(), [truth.rows[i] for i in order[:PAGE]])
        words = s.one(".explorer .state").text
        s.require(f"{name}: {what}: {len(order)} rows in '{words}'",
                  words.startswith(f"{len(order):,} of {len(truth.rows):,} tensors"))
        return order

    s.type(r"layers\.1\d?\.")
    order = expect("filter", lambda n, k: re.search(r"layers\.1\d?\.", n))
    s.require(f"{name}: the filter finds some", 0 < len(order) < len(truth.rows))
    before = s.names()
    s.type("layers[")
    s.require(f"{name}: an invalid expression says so",
              "regular expression" in s.one(".problem").text)
    s.check(f"{name}: aria-invalid", s.one(".filter").get_attribute("aria-invalid"), "true")
    s.type(r"layers\.1\d?\.")
    s.check(f"{name}: valid again", (s.one(".problem").text, s.names()), ("", before))

    norms = [o for o in Select(s.one("select.class")).options if o.text.startswith("norm")][0]
    norms.click()
    order = expect("filter and class",
                   lambda n, k: k == "norm" and re.search(r"layers\.1\d?\.", n))
    s.click(".save")
    saved = s.saved("nrmse.csv")
    values = truth.metrics["nrmse"]["values"]
    s.check(f"{name}: saved", saved[0], ["tensor", "class", *truth.columns])
    s.check(f"{name}: saved names", [r[:2] for r in saved[1:]],
            [[truth.rows[i], truth.classes[i]] for i in order])
    s.check(f"{name}: saved values",
            [[None if x == "" else f32(float(x)) for x in r[2:]] for r in saved[1:]],
            [[None if c[i] is None else f32(c[i]) for c in values] for i in order])
    s.type("no such tensor")
    expect("nothing", lambda n, k: False)
    s.type("")
    Select(s.one("select.class")).select_by_index(0)
    s.check(f"{name}: all again", s.names(), [truth.rows[i] for i in truth.order("nrmse")[:PAGE]])


def turns_pages(s, truth, name):
    order = truth.order("nrmse")
    s.click(".next")
    s.check(f"{name}: next page", s.names(), [truth.rows[i] for i in order[PAGE:2 * PAGE]])
    s.click(".next")
    s.check(f"{name}: third page", s.names(), [truth.rows[i] for i in order[2 * PAGE:3 * PAGE]])
    s.click(".back")
    s.click(".back")
    s.check(f"{name}: first page", s.names(), [truth.rows[i] for i in order[:PAGE]])


def hovers(s, truth, name):
    row = truth.order("nrmse")[4]
    column = next(c for c, v in enumerate(truth.metrics["nrmse"]["values"]) if v[row] is not None)
    cell = s.one(f".explorer tbody tr:nth-child(5) td:nth-child({column + 3})")
    s.hover(cell)
    tip = s.one("#tip").text
    value = float(tip.split(" ")[-1] or "nan")
    s.require(f"{name}: the exact value under the pointer: {tip}",
              tip.startswith(truth.rows[row]) and
              f32(value) == f32(truth.metrics["nrmse"]["values"][column][row]))
    mark = s.js("return [...document.querySelectorAll('figure:not([hidden]) svg *')]"
                ".find(e => e.querySelector(':scope > title'))")
    s.require(f"{name}: marks of a figure have titles", mark is not None)
    if mark is not None:
        title = s.js("return arguments[0].querySelector('title').textContent", mark)
        s.hover(mark)
        s.check(f"{name}: a mark under the pointer", s.one("#tip").text, title.strip())
    s.hover(s.one("h1"))
    s.check(f"{name}: nothing under the pointer", s.one("#tip").is_displayed(), False)


def colours_seen(s, name):
    """The worst cell of a heat map is further from the page than the best, light and dark."""
    for scheme in ["light", "dark"]:
        s.cdp("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme",
                                                      "value": scheme}])
        best, worst, paper = s.js(
            "const fill = c => getComputedStyle(document.querySelector('.plot .' + c)).fill;"
            "return [fill('h0'), fill('h9'), getComputedStyle(document.body).backgroundColor]")
        away = [abs(brightness(c) - brightness(paper)) for c in [best, worst]]
        s.require(f"{name}: {scheme}: best {best}, worst {worst} on {paper}",
                  away[1] > away[0] + 0.3)
    s.cdp("Emulation.setEmulatedMedia", features=[])


def in_the_address(s, path, truth, name):
    """What is chosen is in the address: opened again, the page shows the same."""
    Select(s.one("#metric")).select_by_value("sqnr_db")
    s.type(r"layers\.1")
    s.click(".explorer thead th:nth-child(3) button")
    chosen, rows = s.driver.current_url, s.names()
    s.require(f"{name}: the address: {chosen}", "#?" in chosen and "metric=sqnr_db" in chosen)
    s.driver.get("about:blank")
    s.driver.get(chosen)
    s.check(f"{name}: rows of the address", s.names(), rows)
    s.check(f"{name}: metric of the address", s.one("#metric").get_attribute("value"), "sqnr_db")
    s.check(f"{name}: filter of the address", s.one(".filter").get_attribute("value"),
            r"layers\.1")
    # A link to a row shows it, though it is neither on the first page nor in the filter.
    row = truth.order("sqnr_db")[-1]
    where = s.one(".explorer").get_attribute("data-rows") + f"-row-{row}"
    s.js("location.hash = arguments[0]", where)
    for _ in range(3000):
        if s.js("return document.querySelector('tr.target td') !== null"):
            break
        time.sleep(0.1)
    s.check(f"{name}: the row of a link", s.one("tr.target td").text, truth.rows[row])
    s.driver.get(path.as_uri())


def figures_shown(s):
    return s.js("return [...document.querySelectorAll('.alternatives figure')]"
                ".filter(f => f.checkVisibility()).map(f => f.dataset.metric)")


def switches(s, name):
    metrics = [o.get_attribute("value") for o in Select(s.one("#metric")).options]
    s.check(f"{name}: figures at first", figures_shown(s), ["nrmse"])
    for metric in ["clamp_rate", "sqnr_db", *metrics[3:4], "nrmse"]:
        Select(s.one("#metric")).select_by_value(metric)
        # A metric without a figure leaves the one that is there.
        wanted = "sqnr_db" if metric in metrics[3:] else metric
        s.check(f"{name}: figure of {metric}", figures_shown(s), [wanted])
    s.check(f"{name}: figures outside the group",
            s.js("return document.querySelectorAll('.figures > figure').length"), 1)
    for href in s.js("return [...document.querySelectorAll('a.data')].map(a => a.href)"):
        kind, data = href.split(",", 1)
        lines = list(csv.reader(base64.b64decode(data).decode("utf-8").splitlines()))
        s.require(f"{name}: data of a figure: {kind}, {lines[:2]}",
                  kind == "data:text/csv;base64" and len(lines) > 1 and len(lines[0]) > 1)


def without_script(s, path, truth):
    s.cdp("Emulation.setScriptExecutionDisabled", value=True)
    s.open(path)
    s.check("without script: rows", s.names(),
            [truth.rows[i] for i in truth.order("nrmse")[:PAGE]])
    s.check("without script: controls", s.one(".explorer .controls").is_displayed(), False)
    s.check("without script: the first figure", figures_shown(s), ["nrmse"])
    s.check("without script: the others are folded", len(s.driver.find_elements(
        By.CSS_SELECTOR, ".alternatives > details > figure")), 2)
    s.require("without script: contents", s.one("nav a").is_displayed())
    s.click(".alternatives summary")
    s.check("without script: unfolded", figures_shown(s), ["nrmse", "sqnr_db", "clamp_rate"])
    s.require("without script: the tables", s.one("main table").is_displayed())
    s.close_page("without script")
    s.cdp("Emulation.setScriptExecutionDisabled", value=False)


def nothing_hostile(s, truth, name):
    """Names are text, wherever they stand."""
    s.check(f"{name}: scripts of the page",
            s.js("return [...document.querySelectorAll('script')].map(x => x.type)"),
            ["application/json", ""])
    s.check(f"{name}: elements that names could make",
            s.js("return document.querySelectorAll('img, b, [onmouseover], [onerror]').length"), 0)
    s.check(f"{name}: names", sorted(s.names()), sorted(truth.rows[:PAGE]))
    s.require(f"{name}: hostile names are there",
              "<script>alert(1)</script>" in s.names() and len(truth.rows) < PAGE)
    s.require(f"{name}: the title is text", s.driver.title.startswith("</script><script>alert(2)"))


def large_page(s, path, truth):
    size = path.stat().st_size
    s.open(path)
    ready, loaded = s.js("const t = performance.timing;"
                         "return [t.domInteractive - t.navigationStart,"
                         " t.loadEventEnd - t.navigationStart]")
    click = s.js("const b = document.querySelectorAll('.explorer th button');"
                 "return [b[2], b[0]].map(x => { const t = performance.now(); x.click();"
                 " document.body.getBoundingClientRect(); return performance.now() - t; })")
    switch = s.js("const m = document.getElementById('metric'); const t = performance.now();"
                  "m.value = 'sqnr_db'; m.dispatchEvent(new Event('change'));"
                  "document.body.getBoundingClientRect(); return performance.now() - t;")
    print(f"{len(truth.rows):,} tensors x {len(truth.columns)} recipes x 9 metrics: "
          f"{size / 1e6:.2f} MB; usable after {ready / 1000:.2f} s, loaded after "
          f"{loaded / 1000:.2f} s; sorted in {click[0]:.0f} ms, by name in {click[1]:.0f} ms, "
          f"metric switched in {switch:.0f} ms")
    s.require(f"large: {size} bytes", size < LIMIT_BYTES)
    s.require(f"large: loaded after {loaded} ms", 0 < loaded < 1000 * LIMIT_SECONDS)
    s.open(path)
    sorts(s, truth, "large")
    filters(s, truth, "large")
    turns_pages(s, truth, "large")
    s.close_page("large")


def command_pages(mx, folder):
    """Pages of commands: what each of them shows, as HTML."""
    def run(*words):
        subprocess.run([mx, *words], check=True, cwd=folder, stdout=subprocess.DEVNULL)

    run("synth", "-o", "model.safetensors", "--preset", "tiny")
    run("synth", "-o", "next.safetensors", "--preset", "tiny", "--seed", "1")
    run("synth", "-o", "layer.safetensors", "--preset", "linear")
    run("synth", "-o", "small.safetensors", "--preset", "small")
    run("analyze", "model.safetensors", "--json", "results.json")
    x, w, dy = (f"layer.safetensors:{name}" for name in
                ["activations.linear.input", "model.linear.weight", "gradients.linear.output"])
    judged = {"plan": ["plan", "results.json", "--bits", "6"],
              "gate": ["gate", "results.json", "--rule", "sqnr_db>=0 or null"],
              "drift": ["diff", "model.safetensors", "next.safetensors", "model.safetensors"],
              "gemm": ["gemm", x, w, "--transpose-b", "--growth"],
              "stages": ["layer", "--x", x, "--w", w, "--dy", dy]}
    for name, words in judged.items():
        run(*words, "--html", f"{name}.html", "--json", f"{name}.json")
        run("report", f"{name}.json", "-o", f"{name}-again.html")
        if (folder / f"{name}.html").read_bytes() != (folder / f"{name}-again.html").read_bytes():
            raise AssertionError(f"{name}: mx report makes another page than --html")
        yield name, folder / f"{name}.html"
    excerpt = pathlib.Path(__file__).parents[2] / "datasets/vectors/excerpts"
    commands = {"excerpt": ["analyze", str(excerpt / "memory_gated_mlp.safetensors")],
                "formats": ["explain", "formats"], "rules": ["explain", "rules"], "explain": ["explain", "mxfp4"],
                "tensors": ["tensors", "model.safetensors"],
                "analyze": ["analyze", "model.safetensors"],
                "printed": ["analyze", "small.safetensors"],
                "compare": ["compare", "model.safetensors", "--element", "e2m1,e4m3"],
                "cluster": ["cluster", "model.safetensors"],
                "diff": ["diff", "model.safetensors", "model.safetensors"]}
    for name, words in commands.items():
        run(*words, "--html", f"{name}.html")
        yield name, folder / f"{name}.html"


def main():
    maker, mx = map(os.path.realpath, sys.argv[1:])
    folder = pathlib.Path(tempfile.mkdtemp(prefix="mx-browser."))
    s = None
    try:
        s = Session(folder)
        for part in ["pages", "again", "commands"]:
            (folder / part).mkdir()
        for part in ["pages", "again"]:
            subprocess.run([maker, str(folder / part)], check=True)
        for path in sorted((folder / "pages").iterdir()):
            s.require(f"{path.name} differs between two runs",
                      path.read_bytes() == (folder / "again" / path.name).read_bytes())

        pages = folder / "pages"
        small, hostile, large = (Truth(pages / f"{n}.json") for n in ["small", "hostile", "large"])
        s.open(pages / "small.html")
        switches(s, "small")
        sorts(s, small, "small")
        filters(s, small, "small")
        turns_pages(s, small, "small")
        hovers(s, small, "small")
        colours_seen(s, "small")
        in_the_address(s, pages / "small.html", small, "small")
        plain_look(s, "small")
        s.close_page("small")
        without_script(s, pages / "small.html", small)

        s.open(pages / "hostile.html")
        nothing_hostile(s, hostile, "hostile")
        for metric in ["sqnr_db", "clamp_rate", "nrmse"]:
            Select(s.one("#metric")).select_by_value(metric)
        hovers(s, hostile, "hostile")
        s.close_page("hostile")

        large_page(s, pages / "large.html", large)

        for name, path in command_pages(mx, folder / "commands"):
            s.open(path)
            s.require(f"{name}: a table", s.driver.find_elements(By.CSS_SELECTOR, "main table"))
            plain_look(s, name)
            if name in ["analyze", "excerpt"]:
                first_screen(s, name)
                blocks_folded(s, name)
            if name in ["plan", "gate", "drift", "gemm", "stages"]:
                verdict_first(s, name)
            if name == "printed":
                count = sheets(s)
                print(f"104 tensors on paper: {count} sheets")
                s.require(f"{name}: {count} sheets", count <= LIMIT_SHEETS)
            s.close_page(name)
    finally:
        if s is not None:
            s.driver.quit()
            print("\n".join(s.problems), flush=True)
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{len(s.problems)} problems")
    return 1 if s.problems else 0


if __name__ == "__main__":
    sys.exit(main())
