"""An application whose store is encrypted by its worker's settings, as children import it."""

from __future__ import annotations

from fairlane import Fairlane

TARGET = "tests.worker.sealed:app"

app = Fairlane("sqlite://")


@app.task
async def whisper(text: str) -> str:
    return text.lower()


@app.task(isolation="process")
def whisper_apart(text: str) -> str:
    """Runs in a child, and submits from there."""
    whisper.submit_sync(f"{text} AGAIN")
    return text.lower()
