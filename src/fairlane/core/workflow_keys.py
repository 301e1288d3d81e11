"""Keys under which a request for a workflow is repeated: which id the workflow got."""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

from fairlane.core import limits
from fairlane.core.documents import Document, Documents, rewrites, write
from fairlane.core.flow import Flow
from fairlane.core.ids import checked as checked_id
from fairlane.core.priority import MICROSECONDS

_KIND: Final = "workflow_key"


@rewrites
def workflow_id_for(self: Documents, key: str, workflow_id: str) -> Flow[str]:
    checked_id(workflow_id)
    digest = blake2b(key.encode(), digest_size=16).hexdigest()
    now, (stored,) = yield from self.read_documents(_KIND, [digest])
    if stored is not None and stored.counts(now):
        return stored.value.decode()
    if stored is None:
        yield from self.expire_documents(_KIND, limits.BATCH)
    expires_at = now + limits.IDEMPOTENCY_SECONDS * MICROSECONDS
    version = 0 if stored is None else stored.version
    taken = Document(digest, workflow_id.encode(), now, expires_at, version=version)
    yield from write(self, _KIND, [taken])
    return workflow_id
