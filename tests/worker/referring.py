"""An application whose payloads are kept apart by its worker's settings, as children import it."""

from __future__ import annotations

from fairlane import Fairlane

TARGET = "tests.worker.referring:app"

app = Fairlane("sqlite://")


@app.task
async def measure(text: str) -> int:
    return len(text)


@app.task(isolation="process")
def measure_apart(text: str) -> int:
    """Runs in a child, and submits from there."""
    measure.submit_sync(text + "!")
    return len(text)
