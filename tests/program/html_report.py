#!/usr/bin/env python3
"""report.html in a real browser.

usage: html_report.py REPORT_SAMPLE [--keep FOLDER] [--results FILE]

REPORT_SAMPLE writes pages of made-up runs. Each is opened in headless Chromium, light and dark, 1400 pixels wide: no errors in the
console, no request to anywhere, nothing wider than the window, no text of the drawing or of a card cut off, a picture with
something in it. The drawing is measured: more than 10,000 actions, every redraw (all, zoomed, far in) below 100 ms; the wheel
zooms, dragging moves, the tooltip names what is below the pointer. Talks to the browser over its debugging pipe, so nothing
but Chromium is needed. Without Chromium: exit status 77 (skipped). --results: one case in the form of GoogleTest, so that
scripts/run_tests.py counts it.
"""
import argparse
import base64
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib
from xml.etree import ElementTree

LIMIT_MS = 100.0


class Browser:
    """Chromium with --remote-debugging-pipe: messages end with a zero byte, it reads them from 3 and writes them to 4."""

    def __init__(self, program, profile):
        to_read, self.to = os.pipe()
        self.back, from_write = os.pipe()

        def place():
            # Away from 3 and 4 first, so that neither is overwritten before it was copied.
            source, target = os.dup(to_read), os.dup(from_write)
            high_source, high_target = 60, 61
            os.dup2(source, high_source)
            os.dup2(target, high_target)
            os.dup2(high_source, 3)
            os.dup2(high_target, 4)

        self.process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe",
             "--no-first-run", "--disable-background-networking", "--disable-dev-shm-usage", f"--user-data-dir={profile}",
             "about:blank"],
            preexec_fn=place, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(from_write)
        self.buffer, self.next, self.events = b"", 0, []
        target = next(t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.page(domain + ".enable")

    def _read(self):
        while b"\0" not in self.buffer:
            piece = os.read(self.back, 1 << 20)
            if not piece:
                raise RuntimeError("Chromium ended")
            self.buffer += piece
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, session=None, **params):
        self.next += 1
        message = {"id": self.next, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.to, data):]
        while True:
            answer = self._read()
            if answer.get("id") == self.next:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def page(self, method, **params):
        return self.call(method, self.session, **params)

    def js(self, text):
        result = self.page("Runtime.evaluate", expression=text, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{text}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def open(self, path, dark, width=1400, height=1000):
        self.events.clear()
        self.page("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.page("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.page("Page.navigate", url=path.as_uri())
        while not any(e.get("method") == "Page.loadEventFired" for e in self.events):
            self.events.append(self._read())

    def faults(self, own):
        for event in self.events:
            method, params = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                yield params["exceptionDetails"].get("exception", {}).get("description", "exception")
            elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
                yield f"console: {params['args']}"
            elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
                yield params["entry"]["text"]
            elif method == "Network.requestWillBeSent" and params["request"]["url"] != own:
                yield f"request of {params['request']['url'][:80]}"

    def screenshot(self, path):
        size = self.js("[document.documentElement.scrollWidth, document.documentElement.scrollHeight]")
        clip = {"x": 0, "y": 0, "width": size[0], "height": size[1], "scale": 1}
        data = base64.b64decode(self.page("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)["data"])
        path.write_bytes(data)
        return data

    def mouse(self, kind, x, y, **more):
        self.page("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def close(self):
        try:
            self.call("Browser.close")
        except (RuntimeError, OSError):
            pass
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def colours(png):
    """-> number of different pixels (sampled) of an 8-bit RGB or RGBA png."""
    at, body, width, channels = 8, b"", 0, 3
    while at < len(png):
        length, kind = struct.unpack(">I4s", png[at:at + 8])
        if kind == b"IHDR":
            width, _, _, colour = struct.unpack(">IIBB", png[at + 8:at + 18])
            channels = 4 if colour == 6 else 3
        elif kind == b"IDAT":
            body += png[at + 8:at + 8 + length]
        at += 12 + length
    raw, row = zlib.decompress(body), width * channels + 1
    # Filtered rows: differences between neighbours, which are many exactly where something is drawn.
    return len({raw[i:i + channels] for i in range(1, len(raw), channels * 7)}), len(raw) // row


# What a reader would call broken: wider than the window, text that does not fit into its box.
LAYOUT = """(() => {
  const faults = [];
  if (document.documentElement.scrollWidth > window.innerWidth) faults.push("the page is wider than the window");
  for (const e of document.querySelectorAll(".card, .card *, h1, h2, h3, td, th, .legend span, .facts dd, button"))
    if (e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).display !== "inline") faults.push("cut off: " + e.textContent.slice(0, 60));
  for (const svg of document.querySelectorAll("svg")) {
    const texts = [...svg.querySelectorAll("text")].map((t) => [t.textContent, t.getBoundingClientRect()]);
    for (let i = 0; i < texts.length; ++i) for (let k = 0; k < i; ++k) {
      const [a, b] = [texts[i][1], texts[k][1]];
      if (a.left < b.right && b.left < a.right && a.top + 3 < b.bottom && b.top + 3 < a.bottom)
        faults.push("texts overlap: " + texts[i][0] + " / " + texts[k][0]);
    }
  }
  return faults;
})()"""


def write_results(path, fault="", skipped=""):
    """One case; at most one of `fault` and `skipped`."""
    if not path:
        return
    case = ElementTree.Element("testcase", name="Browser", classname="HtmlReport", status="run",
                               result="skipped" if skipped else "completed")
    if skipped:
        ElementTree.SubElement(case, "skipped", message="html_report.py\n" + skipped)
    if fault:
        ElementTree.SubElement(case, "failure", message=fault)
    suites = ElementTree.Element("testsuites")
    ElementTree.SubElement(suites, "testsuite", name="HtmlReport").append(case)
    pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
    ElementTree.ElementTree(suites).write(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("report_sample")
    parser.add_argument("--keep", help="leave pages and pictures here")
    parser.add_argument("--results")
    options = parser.parse_args()
    program = next((p for p in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if p), None)
    if program is None:
        print("skipped: there is no Chromium here")
        write_results(options.results, skipped="there is no Chromium here")
        return 77
    scratch = tempfile.mkdtemp(prefix="penstock_html_")
    folder = pathlib.Path(options.keep or scratch).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run([options.report_sample, str(folder)], check=True, stdout=subprocess.DEVNULL)
    faults, checks = [], 0

    def expect(condition, what):
        nonlocal checks
        checks += 1
        if not condition:
            faults.append(what)

    browser = Browser(program, scratch + "/profile")
    try:
        for name in ("both", "predicted", "large"):
            for dark in (False, True):
                where = f"{name}, {'dark' if dark else 'light'}"
                page = folder / f"{name}.html"
                browser.open(page, dark)
                picture = browser.screenshot(folder / f"{name}_{'dark' if dark else 'light'}.png")
                different, rows = colours(picture)
                expect(different > 200 and rows > 1000, f"{where}: an empty picture ({different} colours, {rows} rows)")
                for fault in browser.js(LAYOUT):
                    faults.append(f"{where}: {fault}")
                for fault in browser.faults(page.as_uri()):
                    faults.append(f"{where}: {fault}")
                background = browser.js("getComputedStyle(document.body).backgroundColor")
                expect((int(background[4:].split(",")[0]) < 60) == dark, f"{where}: background {background}")
        browser.open(folder / "both.html", False, width=420)
        expect(not browser.js("document.documentElement.scrollWidth > window.innerWidth"), "both: too wide for a telephone")
        browser.open(folder / "both.html", False)
        box = browser.js("(() => { const r = document.getElementById('plot').getBoundingClientRect(); return [r.left, r.top, r.width]; })()")
        x, y = box[0] + 90, box[1] + 22 + 20 + 12  # the first box of the first row
        browser.mouse("mouseMoved", x, y)
        tip = browser.js("document.getElementById('tip').innerText")
        for part in ("forward", "predicted, rank 0", "micro-batch 0", "start 0", "duration 12.0 ms", "mark predicted"):
            expect(part in tip, f"tooltip without '{part}': {tip!r}")
        span = "penstock.view().to - penstock.view().from"
        before = browser.js(span)
        browser.mouse("mouseWheel", x + 300, y, deltaX=0, deltaY=-100)
        browser.js("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        after = browser.js(span)
        expect(after < before, f"the wheel does not zoom: {before} -> {after}")
        start = browser.js("penstock.view().from")
        browser.mouse("mousePressed", x + 300, y, button="left", clickCount=1)
        browser.mouse("mouseMoved", x + 200, y, button="left", buttons=1)
        browser.mouse("mouseReleased", x + 200, y, button="left", clickCount=1)
        expect(browser.js("penstock.view().from") > start, "dragging does not move")
        expect(abs(browser.js(span) - after) < 1, "dragging zooms")

        browser.open(folder / "large.html", False)
        actions = browser.js("penstock.showAll(), penstock.actions")
        expect(actions > 10000, f"large: {actions} actions drawn")
        times = browser.js("""(() => {
          const {high} = penstock.bounds(), times = {all: [], zoomed: [], deep: []};
          for (let i = 0; i < 15; ++i) {
            times.all.push(penstock.showAll());
            times.zoomed.push(penstock.setView(high * (0.2 + 0.01 * i), high * (0.7 + 0.01 * i)));
            times.deep.push(penstock.setView(high * (0.4 + 0.001 * i), high * (0.41 + 0.001 * i)));
          }
          const median = (list) => list.sort((a, b) => a - b)[list.length >> 1];
          return Object.fromEntries(Object.entries(times).map(([name, list]) => [name, median(list)]));
        })()""")
        for name, milliseconds in times.items():
            expect(0 < milliseconds < LIMIT_MS, f"large: a redraw ({name}) takes {milliseconds:.1f} ms")
        print(f"{actions} actions; redraw of all {times['all']:.1f} ms, zoomed {times['zoomed']:.1f} ms, far in {times['deep']:.1f} ms")
    finally:
        browser.close()
        shutil.rmtree(scratch, ignore_errors=True)
    for fault in faults:
        print(fault)
    print(f"html_report: {checks} checks, {len(faults)} faults")
    write_results(options.results, fault="; ".join(faults[:5]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
