"""Every bound in the system, in one place.

A queue without bounds fails at a time and in a way that nobody chose. Each number below says where
a request is refused or a batch is cut.
"""

from __future__ import annotations

# What one task may carry.
NAME_LENGTH = 255  # type, queue, idempotency key, worker id, one capability
PAYLOAD_BYTES = 256 * 1024
RESULT_BYTES = 1024 * 1024
BLOB_BYTES = 16 * 1024 * 1024  # a payload by reference
STORED_BLOB_BYTES = 24 * 1024 * 1024  # the same, encrypted
BLOB_CHUNK_BYTES = 256 * 1024
ERROR_MESSAGE_CHARACTERS = 10_000
TRACEBACK_CHARACTERS = 50_000
PROGRESS_CHARACTERS = 1_000
JSON_DEPTH = 100
LARGE_NUMBERS = 20_000  # from 1e100 on, or with 200 digits, in one payload or result
CAPABILITIES = 64
TAGS = 64
TAG_LENGTH = 255
TRACE_LENGTH = 512
DEPENDENCIES = 999
WORKFLOW_NODES = 999  # tasks of a workflow, which are stored in one batch
WORKFLOW_PAGE = 100  # records of workflows that are read at once
WORKFLOW_TASKS_READ = 2_000  # tasks that a page of workflows looks at, about
WORKFLOW_TASKS_WATCHED = 1_000  # tasks that one round of the maintenance looks at, about
WORKFLOW_WATCH_SECONDS = 1.0  # between two looks at a workflow that has just been submitted
WORKFLOW_WATCH_SECONDS_MOST = 15.0  # between two looks at one that runs for long
WORKFLOW_STRICT_SECONDS_MOST = 3.0  # the same if a failure cancels the rest
INPUTS = 100  # parameters that are results of other tasks
INPUT_PARENTS = 10_000  # results of all of them, repeats counted
OUTCOME_BYTES = 64 * 1024  # of a result that a task gets among the outcomes of others
INPUT_ELEMENTS = 20_000  # of lists in lists of results, lists counted
INPUT_PATH = 16  # keys and indexes that lead to a part of a result
INPUT_BYTES = 64 * 1024 * 1024  # results that one task takes, together
FAILED_CHARACTERS = 1_000  # of the message of a parent that failed

# What a worker may say of itself. Every look at the store reads that of all workers.
WORKER_NAMES = 1_000  # of each kind: capabilities, queues, types
WORKER_NAME_BYTES = 32 * 1024  # of all kinds together
WORKERS = 1_000  # living ones of one token, over HTTP
WORKERS_NAME_BYTES = 4 * 1024 * 1024  # of all workers of one token, dead ones included
WORKERS_DEAD = 4_000  # further ones that have not been pruned yet
HEALTH_BYTES = 4_096
HELD_BACK_BYTES = 2_048  # of that, for the names of types that it holds back
ASK_KINDS = 1_000  # different claims that a process remembers the lanes of

# Numbers a task may be given.
RETRIES = 1_000
FAST_RETRIES = 10  # without a pause, for those who do not operate the queue
RETRY_PAUSE_SECONDS = 1.0  # before every further one
TIMEOUT_SECONDS = 30 * 86_400.0
DELAY_SECONDS = 10 * 366 * 86_400.0
RATE_PER_SECOND = 1_000_000.0
CONCURRENCY = 1_000_000

# Batches: what one statement or script handles at the most.
SUBMIT_BATCH = 1_000
BATCH_PARENTS = 100_000  # of all tasks of a submission
BATCH = 500

# Lanes. Those without tasks are dropped when nothing has used them for a while.
LANES = 10_000
LANE_SECONDS = 3600.0
CROWDED = 0.8  # the part of LANES above which they are dropped sooner
LANE_SECONDS_CROWDED = 60.0
NEW_LANES = 1_000  # of one client in an hour, without the scope `admin`
LANES_OF_ONE = 5_000  # that one subject has made over HTTP, without the scope `admin`
UNMADE_LANE_SECONDS = 300.0  # for which a lane counts that its submission has not made yet

# What workers publish about the types of tasks that they run.
DEFINITIONS = 10_000
DEFINITIONS_OF_ONE = 1_000  # subject, over HTTP
DEFINITION_PAGE = 100  # of up to about 40 KiB each
DEFINITION_SECONDS = 30 * 86_400.0  # after its last worker has published it
SCHEMA_BYTES = 32 * 1024
DESCRIPTION_CHARACTERS = 4_000
SOURCE_CHARACTERS = 500
CHECKED_BYTES = 16 * 1024  # larger payloads are not compared with the schema of their type

# Schedules.
SCHEDULES = 10_000
SCHEDULES_OF_ONE = 1_000  # subject that acts as a worker over HTTP
QUOTA_SECONDS = 30 * 86_400.0  # for which it counts that a subject has made something
SCHEDULE_ID_LENGTH = 200
SCHEDULE_NOTE_CHARACTERS = 1_000
SCHEDULE_PAGE = 100  # schedules that are read at once: each may have a payload
SCHEDULE_RUNS = 100  # of each schedule
SCHEDULE_REASON_CHARACTERS = 300
SCHEDULE_SECONDS = 86_400.0  # after an application has stopped declaring one of its schedules
SCHEDULE_SEEN_SECONDS = 3_600.0  # between two notes that it still does
SCHEDULE_DECLARING_SECONDS = 60.0  # until an application that starts has declared all of them
SCHEDULE_UNJUDGED = 100  # tasks of which nobody has counted yet whether they failed
SCHEDULE_LOOK_SECONDS = 120.0  # between two looks at them: sooner than tasks that ended are deleted
TICKS_COUNTED = 1_000  # that were not fired: more are a lower bound
TICKS_DECIDED = 3_000  # about, that are computed for one step of firing
TICKS_BYTES = 32 * 1024 * 1024  # of the payloads of one schedule that are submitted at once
BACKFILL_SECONDS = 100 * 366 * 86_400.0  # a rule that fires seldom is searched day by day
CRON_LENGTH = 200
SCHEDULE_COUNT = 1_000_000_000  # of ticks until a schedule ends, or of failures until it is paused

# Access: tokens and the sessions made from them together, and where no further session is made.
TOKENS = 10_000
SESSIONS = 9_000
CLIENTS = 10_000  # that are counted at once, where submissions per client are limited
TOKEN_SECONDS = 10 * 366 * 86_400.0

# Names that get a label of their own in metrics: types, queues and capabilities each.
METRIC_NAMES = 1_000

# Reading: how many tasks are answered, and how many are looked at to find them.
PAGE = 1_000
PAGE_BYTES = 8 * 1024 * 1024  # about: a page ends after it
PAGE_READ = 25  # whole tasks that are read at once: one may have megabytes
SCAN = 5_000
ANALYSED = 10_000
ANALYSED_READ = 200  # errors that are read at once: one may have 60 kB

# Time.
IDEMPOTENCY_SECONDS = 86_400
LEASE_SECONDS = 30.0
LEASE_SECONDS_LONGEST = 86_400.0
START_SECONDS = 30.0  # from claim to start, for workers that report starts

UNIQUE_SECONDS = 366 * 86_400.0
RETENTION_SECONDS = 100 * 366 * 86_400.0
RETENTION_SECONDS_LEAST = 1.0
REQUEUE_SPREAD_SECONDS = 3_600.0
BLOB_GRACE_SECONDS = 86_400.0  # from writing a blob to the end of its task's transaction
SAMPLE_SECONDS = 10.0
SAMPLES_SECONDS = 86_400.0

# How many failures a circuit breaker remembers at the most.
BREAKER_FAILURES = 1_000
BREAKER_SECONDS = 86_400.0

# What a worker had not started goes back free, but not for ever.
FREE_RETURNS = 3

# A timed-out attempt gets half as much time again on its next run, up to here.
TIMEOUT_GROWTH = 1.5
TIMEOUT_GROWTH_CAP = 3600.0

# Which runs of a task that did not complete are kept: the first and the last ones.
FIRST_RUNS = 10
LAST_RUNS = 100

# How many earlier runs and replays of a task keep all their times.
TRAIL_ENTRIES = 100

# How long history is kept for readers who come back with a cursor.
JOURNAL_ENTRIES = 10_000
AUDIT_SECONDS = 90 * 86_400.0
AUDIT_ENTRIES = 100_000
AUDIT_ACTOR_ENTRIES = 10_000  # of one actor, whose oldest go first
AUDIT_ACTORS = 10_000  # whose entries are counted
AUDIT_SUBJECT_CHARACTERS = 1_000
AUDIT_DETAIL_CHARACTERS = 4_000
