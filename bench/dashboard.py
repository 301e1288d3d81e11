"""What does an open dashboard cost the browser it is open in?

A page of the dashboard is open in Chromium while tasks arrive at a rate, and for some time after
that, while the shop of the demo goes on. Told: frames that took too long, tasks of the browser's
main thread of more than 50 ms (its own measure of what a user would notice), how busy that thread
was, and its heap after a collection, once a minute.

    python -m bench.dashboard [--page "#/tasks"] [--tasks 5000] [--rate 250] [--minutes 5]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import time
import urllib.request
from typing import Any, Final

from playwright.async_api import CDPSession, Page, async_playwright

from bench import machine
from tools.screenshots import demo

LONG_FRAME_MS: Final = 50
WATCH: Final = """
window.found = {frames: 0, long: [], tasks: []};
let last = performance.now();
(function frame(now) {
  window.found.frames += 1;
  if (now - last > %d) window.found.long.push(Math.round(now - last));
  last = now;
  requestAnimationFrame(frame);
})(last);
new PerformanceObserver((list) => {
  for (const each of list.getEntries()) window.found.tasks.push(Math.round(each.duration));
}).observe({entryTypes: ["longtask"]});
"""


async def main() -> None:
    """Open a page, let tasks arrive, watch."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--page", default="#/tasks")
    parser.add_argument("--tasks", type=int, default=5_000)
    parser.add_argument("--rate", type=int, default=250, help="tasks a second")
    parser.add_argument("--minutes", type=float, default=5.0)
    options = parser.parse_args()
    print(machine.describe())
    with demo() as address:
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=shutil.which("chromium"))
            print(f"Chromium {browser.version}, {options.page}, {options.tasks:,} tasks")
            page = await browser.new_page()
            await page.goto(f"{address}/{options.page}")
            await page.locator("main h1").wait_for()
            await page.evaluate(WATCH % LONG_FRAME_MS)
            devtools = await page.context.new_cdp_session(page)
            await devtools.send("Performance.enable")
            await _tell("open", page, devtools)
            await asyncio.to_thread(_submit, address, options.tasks, options.rate)
            await _tell(f"{options.tasks:,} tasks arrived", page, devtools)
            for minute in range(1, round(options.minutes) + 1):
                await asyncio.sleep(60)
                await _tell(f"{minute} min later", page, devtools)
            await browser.close()


def _submit(address: str, tasks: int, rate: int) -> None:
    """Tasks of the shop, tenths of a second apart."""
    each = max(1, rate // 10)
    due = time.monotonic()
    for first in range(0, tasks, each):
        task = {"task_type": "send_email", "parameters": {"to": "a@b.example", "template": "x"}}
        body = json.dumps({"tasks": [{**task, "queue": "mail"}] * min(each, tasks - first)})
        headers = {"content-type": "application/json"}
        url = f"{address}/api/v1/tasks/batch"
        urllib.request.urlopen(urllib.request.Request(url, body.encode(), headers)).close()
        due += 0.1
        time.sleep(max(0.0, due - time.monotonic()))


async def _tell(when: str, page: Page, devtools: CDPSession) -> None:
    """Since the last time."""
    await devtools.send("HeapProfiler.collectGarbage")
    answer = await devtools.send("Performance.getMetrics")
    metrics: dict[str, float] = {each["name"]: each["value"] for each in answer["metrics"]}
    found: dict[str, Any] = await page.evaluate(
        "() => { const found = window.found; window.found = {frames: 0, long: [], tasks: []};"
        " return found; }"
    )
    print(
        f"{when}: {found['frames']} frames, {len(found['long'])} of more than {LONG_FRAME_MS} ms "
        f"(longest {max(found['long'], default=0)}), {len(found['tasks'])} long tasks (longest "
        f"{max(found['tasks'], default=0)} ms), main thread busy {metrics['TaskDuration']:.1f} s "
        f"so far, heap {metrics['JSHeapUsedSize'] / 1e6:.1f} MB, {metrics['Nodes']:.0f} nodes",
        flush=True,
    )


if __name__ == "__main__":
    asyncio.run(main())
