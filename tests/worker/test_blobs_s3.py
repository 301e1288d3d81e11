"""Payloads by reference in a bucket, on a server that speaks S3."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import boto3  # type: ignore[import-untyped]
import pytest
from moto.server import ThreadedMotoServer

from fairlane import Fairlane, State
from fairlane.client.blob_s3 import Bucket, S3Blobs, bucket_of
from fairlane.core import limits
from fairlane.core.errors import BlobsUnavailable, DriverMissing, InvalidBlobStore
from fairlane.core.sealing import Key
from fairlane.maintenance import BlobSweeper
from tests.fixtures.stores import World
from tests.worker.kit import seen, working
from tests.worker.test_blobs import TEXT, measuring, run, submitted


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def bucket(endpoint: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """The URL of an empty bucket."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    name = f"bucket-{abs(hash(request.node.name))}"
    client = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1")
    client.create_bucket(Bucket=name)
    return f"s3://{name}/some/prefix?endpoint={endpoint}&region=us-east-1"


def keys(url: str) -> list[str]:
    return [key for key in S3Blobs(bucket_of(url)).keys(-60) if "." in key]


async def test_from_submission_to_result_to_deletion(
    world: World, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = measuring(world, bucket)
    task_id = await submitted(app)
    assert (await run(app, task_id)).result == len(TEXT)
    assert [key.partition(".")[0] for key in keys(bucket)] == [task_id]
    sweeper = BlobSweeper(app, "me")
    await world.run(world.ops.delete([task_id]))
    await sweeper.round()
    assert len(keys(bucket)) == 1, "it is too young"
    monkeypatch.setattr(limits, "BLOB_GRACE_SECONDS", -60.0)
    await sweeper.round()
    assert keys(bucket) == []


async def test_a_blob_that_is_gone_or_altered(memory: World, bucket: str) -> None:
    app = measuring(memory, bucket)
    gone, altered = await submitted(app), await submitted(app)
    blobs = S3Blobs(bucket_of(bucket))
    for key in keys(bucket):
        if key.startswith(gone):
            blobs.delete(key, -60)
            blobs.delete(key, -60)
            assert blobs.get(key) is None
        else:
            blobs.put(key, b"{}")
    for task_id, code in ((gone, "BLOB_MISSING"), (altered, "BLOB_DAMAGED")):
        task = await run(app, task_id)
        assert (task.status, len(task.attempts)) == (State.FAILED, 1)
        assert task.error is not None
        assert task.error.code == code


async def test_a_bucket_that_is_away(memory: World, bucket: str) -> None:
    name, _, rest = bucket.removeprefix("s3://").partition("/")
    nowhere = measuring(memory, f"s3://{name}-not/{rest}")
    with pytest.raises(BlobsUnavailable, match="NoSuchBucket"):
        await submitted(nowhere)
    nobody = measuring(memory, f"s3://{name}?endpoint=http://127.0.0.1:1&region=us-east-1")
    with pytest.raises(BlobsUnavailable, match="Could not connect"):
        await submitted(nobody)
    assert await memory.depth() == 0
    task_id = await submitted(measuring(memory, bucket))
    async with working(nobody):
        task = await seen(nobody, task_id, State.RETRYING)
    assert task.attempts[0].error is not None
    assert task.attempts[0].error.code == "BLOBS_UNAVAILABLE"


async def test_it_belongs_to_one_store(memory: World, bucket: str) -> None:
    await submitted(measuring(memory, bucket))
    with Fairlane("sqlite://", blobs=bucket) as other:
        with pytest.raises(InvalidBlobStore, match="another store"):
            await BlobSweeper(other, "me").round()
        await other.aclose()


def test_with_keys_it_is_sealed(bucket: str) -> None:
    with Fairlane("sqlite://", blobs=bucket, encryption_keys=[Key("k", b"1" * 32)]) as app:

        @app.task
        def measure(text: str) -> int:
            return len(text)

        measure.submit_sync(TEXT)
    (key,) = keys(bucket)
    assert (S3Blobs(bucket_of(bucket)).get(key) or b"").startswith(b'{"$sealed":"k.')


def test_urls() -> None:
    assert bucket_of("s3://b") == Bucket("b", "")
    assert bucket_of("s3://b/a/b/?region=r&endpoint=http://h:1") == Bucket(
        "b", "a/b/", "http://h:1", "r"
    )


@pytest.mark.parametrize(
    "url",
    [
        *("s3:", "s3://", "s3:///prefix", "s3://key:secret@b", "s3://b:1", "s3://b#x", "s3://[b"),
        *("s3://b?key=secret", "s3://b?endpoint", "s3://b?endpoint=ftp://secret"),
    ],
)
def test_bad_urls_are_refused_and_not_shown(url: str) -> None:
    with pytest.raises(InvalidBlobStore, match="s3://bucket/prefix") as refused:
        Fairlane("sqlite://", blobs=url)
    assert "secret" not in refused.value.message


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
    app = Fairlane("sqlite://", blobs="s3://bucket")
    with app, pytest.raises(DriverMissing, match=r"fairlane\[s3\]"):
        app.payload_blobs()
