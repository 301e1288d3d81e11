"""Blobs in a bucket of S3, or of anything that speaks its protocol."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec

from fairlane.core.errors import BlobsUnavailable, InvalidBlobStore
from fairlane.core.extras import import_extra

OWNER = "fairlane-owner"
_NOT_THERE = {"NoSuchKey", "404"}
_TAKEN = {"PreconditionFailed", "ConditionalRequestConflict"}


class Bucket(msgspec.Struct, frozen=True):
    """A bucket as a URL names it: s3://bucket/prefix?endpoint=https://host:9000&region=name."""

    name: str
    prefix: str
    endpoint: str | None = None
    region: str | None = None


def bucket_of(url: str) -> Bucket:
    """Return the bucket that a URL names. Raises InvalidBlobStore, which does not show the URL."""
    try:
        parts = urlsplit(url)
        options = dict(parse_qsl(parts.query, strict_parsing=True)) if parts.query else {}
    except ValueError:
        raise InvalidBlobStore(_RULE) from None
    prefix = unquote(parts.path).strip("/")
    if (
        not parts.netloc
        or "@" in parts.netloc
        or ":" in parts.netloc
        or parts.fragment
        or not options.keys() <= {"endpoint", "region"}
        or not options.get("endpoint", "http://").startswith(("http://", "https://"))
    ):
        raise InvalidBlobStore(_RULE)
    return Bucket(parts.netloc, f"{prefix}/" if prefix else "", **options)


_RULE = (
    "A bucket is s3://bucket/prefix, with ?endpoint=https://host:9000&region=name if need be. Give "
    "keys as boto3 reads them: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile."
)


class S3Blobs:
    """A `BlobStore` in a bucket, under a prefix."""

    kind = "s3"

    def __init__(self, bucket: Bucket) -> None:
        boto3, config, errors = (
            import_extra(name, "s3", "The library for s3://")
            for name in ("boto3", "botocore.config", "botocore.exceptions")
        )
        self._errors: Any = errors
        self._bucket = bucket
        patience = config.Config(connect_timeout=5, read_timeout=30, retries={"mode": "standard"})
        with self._explained():
            # A session of its own: the default one is not safe to use from several threads.
            self._client: Any = boto3.session.Session().client(
                "s3",
                endpoint_url=bucket.endpoint,
                region_name=bucket.region,
                config=patience,
            )

    def put(self, key: str, content: bytes) -> None:
        with self._explained():
            self._client.put_object(**self._named(key), Body=content)

    def get(self, key: str) -> bytes | None:
        with self._explained():
            try:
                content: bytes = self._client.get_object(**self._named(key))["Body"].read()
            except self._errors.ClientError as error:
                if _code(error) in _NOT_THERE:
                    return None
                raise
            return content

    def delete(self, key: str, older_than: float) -> None:
        with self._explained():
            try:
                written = self._client.head_object(**self._named(key))["LastModified"]
            except self._errors.ClientError as error:
                if _code(error) in _NOT_THERE:
                    return
                raise
            if _age(written) > older_than:
                self._client.delete_object(**self._named(key))

    def keys(self, older_than: float) -> Iterator[str]:
        prefix = self._bucket.prefix
        pages = self._client.get_paginator("list_objects_v2").paginate(
            Bucket=self._bucket.name, Prefix=prefix
        )
        with self._explained():
            for page in pages:
                for found in page.get("Contents", ()):
                    if _age(found["LastModified"]) > older_than:
                        yield found["Key"].removeprefix(prefix)

    def adopt(self, owner: str) -> str:
        with self._explained():
            try:
                self._client.put_object(**self._named(OWNER), Body=owner.encode(), IfNoneMatch="*")
            except self._errors.ClientError as error:
                if _code(error) not in _TAKEN:
                    raise
        found = self.get(OWNER)
        return owner if found is None else found.decode()

    def _named(self, key: str) -> dict[str, str]:
        return {"Bucket": self._bucket.name, "Key": self._bucket.prefix + key}

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (self._errors.BotoCoreError, self._errors.ClientError, ValueError) as error:
            raise BlobsUnavailable(
                f"The bucket {self._bucket.name} cannot be used: {error}"
            ) from error


def _code(error: Any) -> str:
    return str(error.response.get("Error", {}).get("Code"))


def _age(written: datetime) -> float:
    return (datetime.now(UTC) - written).total_seconds()
