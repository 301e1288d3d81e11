"""Errors: classes with stable codes, whose docstring says what to do."""

import inspect

import pytest

from fairlane.core import errors
from fairlane.core.errors import FairlaneError

CLASSES = [
    found
    for _, found in inspect.getmembers(errors, inspect.isclass)
    if issubclass(found, FairlaneError)
]

FAMILIES = {
    "InvalidInput": {
        "InvalidTask",
        "InvalidType",
        "InvalidQueue",
        "InvalidPayload",
        "PayloadTooLarge",
        "PayloadTooDeep",
        "InvalidPriority",
        "InvalidTime",
        "InvalidRetries",
        "InvalidTimeout",
        "InvalidCapabilities",
        "InvalidTags",
        "InvalidIdempotencyKey",
        "InvalidTrace",
        "InvalidDependencies",
        "UnknownDependency",
        "InvalidInputs",
        "InvalidWorkflow",
        "UnknownNode",
        "ResultNotKnown",
        "InvalidUnique",
        "InvalidArguments",
        "InvalidHandler",
        "UnknownCodec",
        "InvalidTaskId",
        "BatchTooLarge",
        "InvalidWorker",
        "InvalidLimit",
        "InvalidFilter",
        "InvalidResult",
        "ResultTooLarge",
        "InvalidCursor",
        "InvalidRetention",
        "InvalidSetting",
        "InvalidSchedule",
        "UnknownType",
        "InvalidDefinition",
        "InvalidToken",
        "OutOfBounds",
        "InvalidConnection",
        "InvalidKey",
        "InvalidBlobStore",
        "InvalidStoreURL",
    },
    "InvalidTask": {
        "InvalidType",
        "InvalidQueue",
        "InvalidPayload",
        "PayloadTooLarge",
        "PayloadTooDeep",
        "InvalidPriority",
        "InvalidTime",
        "InvalidRetries",
        "InvalidTimeout",
        "InvalidCapabilities",
        "InvalidTags",
        "InvalidIdempotencyKey",
        "InvalidTrace",
        "InvalidDependencies",
        "UnknownDependency",
        "InvalidInputs",
        "InvalidWorkflow",
        "UnknownNode",
        "ResultNotKnown",
        "InvalidUnique",
        "InvalidArguments",
    },
    "IdempotencyConflict": {"TaskIdConflict"},
    "InvalidPayload": {"PayloadTooLarge", "PayloadTooDeep"},
    "InvalidDependencies": {"UnknownDependency"},
    "InputMissing": {"InputsTooLarge"},
    "Conflict": {
        "IdempotencyConflict",
        "TaskIdConflict",
        "DuplicateTask",
        "WorkflowRunning",
        "TaskIdTaken",
        "TooManyLanes",
        "WorkerGone",
        "WorkerStuck",
        "SettingsConflict",
        "UnknownSchedule",
        "ScheduleConflict",
        "EncryptionRequired",
        "UnknownToken",
        "LeaseLost",
        "TransactionTooLong",
        "EventLoopRunning",
        "TaskFailed",
        "ResultTimeout",
    },
    "StoreError": {
        "StoreUnavailable",
        "StoreBusy",
        "StoreFull",
        "StoreReadOnly",
        "StoreReplaced",
        "BlobsUnavailable",
        "StoreUnusable",
        "DriverMissing",
        "NotSupported",
        "AccessDenied",
        "KeyMissing",
        "ResultDamaged",
        "SealBroken",
        "BlobStoreMissing",
        "BlobMissing",
        "BlobDamaged",
        "InputMissing",
        "InputsTooLarge",
        "NotAFairlaneStore",
        "SchemaMissing",
        "SchemaTooOld",
        "SchemaTooNew",
    },
    "StoreUnavailable": {
        "StoreBusy",
        "StoreFull",
        "StoreReadOnly",
        "StoreReplaced",
        "BlobsUnavailable",
    },
    "StoreUnusable": {
        "DriverMissing",
        "NotSupported",
        "AccessDenied",
        "KeyMissing",
        "ResultDamaged",
        "SealBroken",
        "BlobStoreMissing",
        "BlobMissing",
        "BlobDamaged",
        "InputMissing",
        "InputsTooLarge",
        "NotAFairlaneStore",
        "SchemaMissing",
        "SchemaTooOld",
        "SchemaTooNew",
    },
}

CODES = {
    "AccessDenied": "access_denied",
    "BatchTooLarge": "batch_too_large",
    "BlobDamaged": "blob_damaged",
    "BlobMissing": "blob_missing",
    "BlobStoreMissing": "blob_store_missing",
    "BlobsUnavailable": "blobs_unavailable",
    "Conflict": "conflict",
    "DriverMissing": "driver_missing",
    "DuplicateTask": "duplicate_task",
    "WorkflowRunning": "workflow_running",
    "TaskIdTaken": "task_id_taken",
    "FairlaneError": "fairlane_error",
    "IdempotencyConflict": "idempotency_conflict",
    "TaskIdConflict": "task_id_conflict",
    "InvalidArguments": "invalid_arguments",
    "InvalidBlobStore": "invalid_blob_store",
    "InvalidCapabilities": "invalid_capabilities",
    "InvalidConnection": "invalid_connection",
    "InvalidCursor": "invalid_cursor",
    "InvalidDependencies": "invalid_dependencies",
    "InvalidFilter": "invalid_filter",
    "InvalidResult": "invalid_result",
    "ResultTooLarge": "result_too_large",
    "InvalidHandler": "invalid_handler",
    "UnknownCodec": "unknown_codec",
    "InvalidIdempotencyKey": "invalid_idempotency_key",
    "InvalidInput": "invalid_input",
    "InvalidKey": "invalid_key",
    "InvalidLimit": "invalid_limit",
    "InvalidPayload": "invalid_payload",
    "InvalidPriority": "invalid_priority",
    "InvalidQueue": "invalid_queue",
    "InvalidRetention": "invalid_retention",
    "InvalidSetting": "invalid_setting",
    "InvalidRetries": "invalid_max_retries",
    "InvalidSchedule": "invalid_schedule",
    "UnknownType": "unknown_type",
    "InvalidDefinition": "invalid_definition",
    "InvalidStoreURL": "invalid_store_url",
    "InvalidTags": "invalid_tags",
    "InvalidTask": "invalid_task",
    "InvalidTaskId": "invalid_task_id",
    "InvalidTime": "invalid_time",
    "InvalidTimeout": "invalid_timeout",
    "InvalidTrace": "invalid_trace",
    "InvalidToken": "invalid_token",
    "OutOfBounds": "out_of_bounds",
    "InvalidType": "invalid_type",
    "InputMissing": "input_missing",
    "InputsTooLarge": "inputs_too_large",
    "InvalidInputs": "invalid_inputs",
    "InvalidWorkflow": "invalid_workflow",
    "UnknownNode": "unknown_node",
    "ResultNotKnown": "result_not_known",
    "InvalidUnique": "invalid_unique",
    "InvalidWorker": "invalid_worker",
    "KeyMissing": "key_missing",
    "LeaseLost": "lease_lost",
    "TransactionTooLong": "transaction_too_long",
    "NotAFairlaneStore": "not_a_fairlane_store",
    "NotSupported": "not_supported",
    "PayloadTooDeep": "payload_too_deep",
    "PayloadTooLarge": "payload_too_large",
    "EventLoopRunning": "event_loop_running",
    "ResultTimeout": "result_timeout",
    "ScheduleConflict": "schedule_conflict",
    "SchemaMissing": "schema_missing",
    "SchemaTooNew": "schema_too_new",
    "SchemaTooOld": "schema_too_old",
    "ResultDamaged": "result_damaged",
    "SealBroken": "seal_broken",
    "StoreBusy": "store_busy",
    "StoreError": "store_error",
    "StoreFull": "store_full",
    "StoreReadOnly": "store_read_only",
    "StoreReplaced": "store_replaced",
    "StoreUnavailable": "store_unavailable",
    "StoreUnusable": "store_unusable",
    "TaskFailed": "task_failed",
    "TooManyLanes": "too_many_lanes",
    "UnknownDependency": "unknown_dependency",
    "SettingsConflict": "settings_conflict",
    "EncryptionRequired": "encryption_required",
    "UnknownSchedule": "unknown_schedule",
    "UnknownToken": "unknown_token",
    "WorkerGone": "worker_gone",
    "WorkerStuck": "worker_stuck",
}
"""Programs compare these: a line may be added, and none may change."""


def test_the_codes_are_the_ones_that_were_promised() -> None:
    assert {found.__name__: found.code for found in CLASSES} == CODES


def test_no_two_classes_share_a_code() -> None:
    assert len(set(CODES.values())) == len(CODES)


@pytest.mark.parametrize("kind", CLASSES)
def test_a_class_has_a_docstring_that_is_its_default_message(kind: type[FairlaneError]) -> None:
    assert kind.__dict__["__doc__"], "a docstring of its own, not its parent's"
    message = " ".join(kind.__dict__["__doc__"].split())
    assert kind().message == str(kind()) == message
    assert message.endswith((".", "`."))
    assert "\n" not in message


@pytest.mark.parametrize("kind", CLASSES)
def test_words_of_ones_own_replace_the_default(kind: type[FairlaneError]) -> None:
    error = kind("The disk is on fire.")
    assert (error.message, str(error)) == ("The disk is on fire.", "The disk is on fire.")
    assert kind("").message == ""


def test_a_class_without_a_docstring_says_nothing() -> None:
    bare: type[FairlaneError] = type("Bare", (FairlaneError,), {})
    assert bare().message == ""


@pytest.mark.parametrize(("parent", "children"), FAMILIES.items(), ids=FAMILIES)
def test_who_belongs_to_whom(parent: str, children: set[str]) -> None:
    found = {kind.__name__ for kind in CLASSES if issubclass(kind, getattr(errors, parent))}
    assert found == children | {parent}


def test_bad_input_is_a_value_error_and_nothing_else_is() -> None:
    assert {kind.__name__ for kind in CLASSES if issubclass(kind, ValueError)} == {
        "InvalidInput",
        *FAMILIES["InvalidInput"],
    }


def test_who_catches_timeouts_catches_a_result_that_did_not_come_in_time_and_nothing_else() -> None:
    assert [kind.__name__ for kind in CLASSES if issubclass(kind, TimeoutError)] == [
        "ResultTimeout"
    ]
