"""A worker whose tasks never end by themselves; run as a process of its own with a store's URL."""

import asyncio
import sys

from fairlane import Fairlane
from fairlane.worker.config import Config
from fairlane.worker.worker import Worker

app = Fairlane(sys.argv[1])


@app.task(name="work", timeout=None)
async def work() -> None:
    await asyncio.sleep(3_600)


if __name__ == "__main__":
    config = Config(concurrency=3, lease=2.0, poll_interval=0.1, grace=0.0, maintenance=False)
    asyncio.run(Worker(app, config).run())
