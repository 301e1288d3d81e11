// Written by `make api-types` from the OpenAPI document; do not edit.

export interface Aging {
  low_to_medium?: number | null;
  medium_to_high?: number | null;
  high_to_critical?: number | null;
}

export interface AnalysisView {
  groups: Array<GroupView>;
  analysed: number;
  complete: boolean;
}

export interface AttemptView {
  number: number;
  worker_id: string | null;
  started_at: string | null;
  ended_at: string;
  outcome: string;
  error: ErrorView | null;
}

export interface AuditEntry {
  entry_id: string;
  timestamp: string;
  actor: string;
  action: string;
  subject: string;
  detail: Record<string, unknown>;
  address: string;
}

export interface AuditList {
  entries: Array<AuditEntry>;
  next_cursor: string | null;
}

export interface BackfillReply {
  count: number;
  task_ids: Array<string>;
}

export interface BackfillRequest {
  since: string;
  until: string;
  overlap?: Overlap | null;
  dry_run?: boolean;
  task_id?: string | null;
}

export interface Backlog {
  queue: string;
  backlog: number;
  queued: number;
  executing: number;
  paused: boolean;
}

export interface BandStats {
  depth: number;
  oldest_age_seconds: number;
}

export interface BatchAccepted {
  tasks: Array<BatchItem>;
}

export interface BatchItem {
  task_id: string;
  status: State;
  created_at: string;
  known: boolean;
}

export interface BatchRequest {
  tasks: Array<TaskRequest>;
}

export interface CancelledView {
  task_id: string;
  status: State;
  previous_status: State | null;
  was_executing: boolean;
  worker_notified: boolean;
  worker_id: string | null;
}

export interface CapabilityBacklog {
  capability: string;
  backlog: number;
  queued: number;
  executing: number;
}

export interface ChangeView {
  task_id: string;
  applied: boolean;
  previous_status: State | null;
  worker_id?: string;
}

export interface CircuitBreaker {
  failures: number;
  within_seconds: number;
  cooldown_seconds: number;
}

export interface ControlPatch {
  paused?: boolean;
  rate_limit?: number | null;
}

export interface ControlsView {
  paused: boolean;
  rate_limit: number;
  paused_queues: Array<string>;
  types: Record<string, RulesView>;
}

export interface DeadReplay {
  type?: string | Array<string>;
  queue?: string | Array<string>;
  priority?: "critical" | "high" | "medium" | "low" | "normal" | number | Array<"critical" | "high" | "medium" | "low" | "normal" | number>;
  tags?: Record<string, string>;
  worker?: string;
  owner?: string;
  schedule_id?: string;
  since?: string;
  until?: string;
  ended_before?: string;
  all?: boolean;
  cursor?: string | null;
  failure?: string;
  reset_retry_count?: boolean;
  new_priority?: "critical" | "high" | "medium" | "low" | "normal" | number | null;
}

export interface DefinitionList {
  definitions: Array<DefinitionView>;
  next_cursor?: string | null;
}

export interface DefinitionView {
  type: string;
  queue?: string;
  priority?: "critical" | "high" | "medium" | "low" | "normal" | number;
  required_capabilities?: Array<string>;
  max_retries?: number;
  timeout_seconds?: number | null;
  retry_policy?: RetryView;
  delay_seconds?: number;
  unique?: boolean | UniqueRequest;
  tags?: Record<string, string>;
  parameters?: Record<string, unknown> | null;
  description?: string;
  source?: string;
  version: number;
  published_at: string;
}

export interface DurabilityView {
  engine: string;
  settings: Record<string, string>;
  warnings: Array<string>;
}

export interface ErrorBody {
  error: ErrorDetail;
}

export interface ErrorDetail {
  code: string;
  message: string;
  details: Record<string, unknown>;
}

export interface ErrorView {
  message: string;
  code: string | null;
  retriable: boolean;
  reason: string | null;
  traceback: string | null;
}

export interface EventPage {
  events: Array<LiveEvent>;
  cursor: string;
  reset: boolean;
}

export type EventType = "queue.depth" | "schedule.skipped" | "system.metrics" | "task.cancelled" | "task.completed" | "task.dead_letter" | "task.deleted" | "task.failed" | "task.progress" | "task.queued" | "task.retrying" | "task.snoozed" | "task.started" | "task.submitted" | "task.waiting" | "worker.dead" | "worker.draining" | "worker.joined" | "worker.left" | "worker.paused" | "workflow.cancelled" | "workflow.completed" | "workflow.failed" | "workflow.submitted";

export interface GroupView {
  failure: string;
  type: string;
  code: string | null;
  shape: string;
  count: number;
  first_seen: string;
  last_seen: string;
  retriable_share: number;
  example: string;
}

export interface InputRequest {
  parents: Array<string>;
  many?: boolean;
  path?: Array<string | number>;
  nesting?: Array<number>;
  outcomes?: boolean;
}

export interface LiveEvent {
  type: string;
  timestamp: string;
  data: unknown;
  cursor?: string;
}

export interface Membership {
  node: string;
  nodes: number;
  name?: string | null;
  answers?: boolean;
  on_failure?: OnFailure;
  on_exit?: boolean;
}

export interface MembershipRequest {
  node: string;
  nodes: number;
  name?: string | null;
  answers?: boolean;
  on_failure?: OnFailure;
  on_exit?: boolean;
}

export type Missed = "all" | "once" | "skip";

export type Mode = "existing" | "reject" | "replace";

export interface NodeAccepted {
  node: string;
  task_id: string;
  status: State;
}

export interface NodeView {
  task_id: string;
  name: string;
  task_type: string;
  status: State;
  parents: Array<string>;
  on_parent_failure: OnParentFailure;
  error: string | null;
  doomed: boolean;
  answers: boolean;
  on_exit: boolean;
  started_at: string | null;
  ended_at: string | null;
}

export type OnFailure = "cancel" | "continue";

export type OnParentFailure = "cancel" | "continue";

export type Outcome = "fired" | "manual" | "missed" | "overlap" | "paused" | "refused";

export type Overlap = "allow" | "queue" | "replace" | "skip";

export interface PauseRequest {
  note?: string;
  until?: string | null;
}

export interface PauseView {
  since: string;
  until: string | null;
  note: string;
}

export interface PreviewRequest {
  cron?: string | null;
  tz?: string | null;
  every_seconds?: number | null;
  offset_seconds?: number | null;
  count?: number;
  after?: string | null;
}

export interface PreviewView {
  in_words: string;
  ticks: Array<TickView>;
}

export interface ProgressView {
  percent: number | null;
  message: string | null;
  updated_at: string;
}

export interface QueueList {
  queues: Array<QueueView>;
}

export interface QueueState {
  queue: string;
  paused: boolean;
}

export interface QueueView {
  queue: string;
  paused: boolean;
  depth: number;
  oldest_age_seconds: number;
  by_status: Record<string, number>;
}

export interface Ready {
  status: "ready";
  version?: string;
  durability?: DurabilityView;
}

export interface ReasonView {
  code: string;
  message: string;
}

export interface Recovery {
  timeouts_last_hour: number;
  lost_workers_last_hour: number;
  stale_results_last_hour: number;
}

export interface ReplayTerms {
  reset_retry_count?: boolean;
  new_priority?: "critical" | "high" | "medium" | "low" | "normal" | number | null;
}

export interface ReplayedView {
  task_id: string;
  status: State;
  previous_status: State;
}

export interface ResumeRequest {
  missed?: Missed;
}

export interface ResumeTerms {
  from?: string | null;
}

export interface Retention {
  completed?: number;
  failed?: number;
  cancelled?: number;
  dead_letter?: number;
  workers?: number;
  journal?: number;
}

export interface RetryView {
  base_seconds?: number;
  factor?: number;
  cap_seconds?: number;
  jitter?: number;
}

export interface RulesView {
  paused: boolean;
  rate_limit: number;
  concurrency: number;
  timeout_seconds: number;
  circuit_breaker: CircuitBreaker | null;
  open_until: string | null;
}

export interface RunReply {
  task_id: string;
}

export interface RunRequest {
  at?: string | null;
  task_id?: string | null;
}

export interface RunView {
  tick: string;
  outcome: Outcome;
  task_id: string | null;
  count: number;
  reason: string;
}

export interface SampleList {
  samples: Array<SampleView>;
  current: SampleView;
}

export interface SampleView {
  timestamp: string;
  submitted: number;
  started: number;
  completed: number;
  failed: number;
  timeouts: number;
  lost_workers: number;
  stale_results: number;
  execution_seconds: number;
  depths: Record<string, number>;
}

export interface ScheduleList {
  schedules: Array<ScheduleView>;
  next_cursor: string | null;
}

export interface SchedulePatch {
  cron?: string | null;
  tz?: string | null;
  every_seconds?: number | null;
  offset_seconds?: number | null;
  task?: ScheduledTask;
  missed?: Missed;
  most?: number;
  within_seconds?: number;
  overlap?: Overlap;
  jitter_seconds?: number;
  starts_at?: string | null;
  ends_at?: string | null;
  count?: number | null;
  pause_after_failures?: number | null;
  note?: string;
  allow_unknown_type?: boolean;
}

export interface ScheduleRequest {
  cron?: string | null;
  tz?: string | null;
  every_seconds?: number | null;
  offset_seconds?: number | null;
  task: ScheduledTask;
  missed?: Missed;
  most?: number;
  within_seconds?: number;
  overlap?: Overlap;
  jitter_seconds?: number;
  starts_at?: string | null;
  ends_at?: string | null;
  count?: number | null;
  pause_after_failures?: number | null;
  note?: string;
  allow_unknown_type?: boolean;
  schedule_id: string;
}

export type ScheduleState = "active" | "ended" | "paused";

export interface ScheduleView {
  schedule_id: string;
  cron: string | null;
  tz: string | null;
  every_seconds: number | null;
  offset_seconds: number | null;
  in_words: string;
  task: ScheduledTaskView;
  missed: Missed;
  most: number;
  within_seconds: number;
  overlap: Overlap;
  jitter_seconds: number;
  starts_at: string | null;
  ends_at: string | null;
  count: number | null;
  pause_after_failures: number | null;
  note: string;
  version: number;
  fingerprint: string;
  source: Source;
  owner: string | null;
  declared_at: string;
  state: ScheduleState;
  pause: PauseView | null;
  next_at: string | null;
  upcoming: Array<TickView>;
  problem: string | null;
  handled_until: string;
  last_at: string | null;
  last_task_id: string | null;
  failures: number;
  remaining: number | null;
  totals: Totals;
  created_at: string;
  updated_at: string;
  runs: Array<RunView>;
}

export interface ScheduledTask {
  task_type: string;
  parameters?: Record<string, unknown>;
  queue?: string;
  priority?: "critical" | "high" | "medium" | "low" | "normal" | number;
  required_capabilities?: Array<string>;
  max_retries?: number;
  timeout_seconds?: number | null;
  delay_seconds?: number;
  tags?: Record<string, string>;
  trace_id?: string;
  traceparent?: string;
  retry_policy?: RetryView;
  use_definition?: boolean;
}

export interface ScheduledTaskView {
  task_type: string;
  parameters: Record<string, unknown>;
  queue: string;
  priority: string | number;
  required_capabilities: Array<string>;
  max_retries: number;
  timeout_seconds?: number | null;
  delay_seconds: number;
  tags: Record<string, string>;
  trace_id?: string;
  traceparent?: string;
  retry_policy: RetryView;
}

export type Scope = "admin" | "read" | "submit" | "worker";

export interface Session {
  required: boolean;
  name: string | null;
  scopes: Array<Scope>;
  bound_to?: string | null;
}

export interface SettingsPatch {
  version?: number;
  aging?: _AgingPatch;
  retention?: _RetentionPatch;
  requeue_spread?: number;
}

export interface SignIn {
  token: string;
}

export type Source = "api" | "code";

export type State = "cancelled" | "completed" | "dead_letter" | "executing" | "failed" | "queued" | "retrying" | "scheduled";

export interface Stats {
  queues: Record<string, BandStats>;
  workers: WorkerStats;
  throughput: Throughput;
  by_status: Record<string, number>;
  by_type: Record<string, Record<string, number>>;
  dlq_size: number;
  p50_age_seconds: number;
  p95_age_seconds: number;
  recovery: Recovery;
  unserved?: Array<UnservedLane>;
}

export interface StepView {
  state: State;
  timestamp: string;
  worker_id?: string | null;
  attempt?: number | null;
  reason?: string | null;
}

export interface StoreSettings {
  aging?: Aging;
  retention?: Retention;
  requeue_spread?: number;
  version?: number;
}

export interface SummaryPage {
  tasks: Array<TaskSummary>;
  next_cursor: string | null;
}

export interface SweptView {
  matched: number;
  applied: number;
  next_cursor?: string | null;
  results?: Array<ChangeView>;
}

export interface TaskAccepted {
  task_id: string;
  status: State;
  priority: string | number;
  effective_priority: string | number;
  queue_position: number | null;
  estimated_wait_seconds: number | null;
  created_at: string;
  trace_id: string;
}

export interface TaskDetail {
  task_id: string;
  task_type: string;
  queue: string;
  priority: string | number;
  effective_priority: string | number;
  status: State;
  attempt: number;
  retry_count: number;
  max_retries: number;
  timeout_seconds: number | null;
  required_capabilities: Array<string>;
  created_at: string;
  run_at: string;
  ready_at: string;
  claimed_at: string | null;
  started_at: string | null;
  completed_at: string | null;
  updated_at: string;
  next_retry_at: string | null;
  expires_at: string | null;
  assigned_worker_id: string | null;
  version: number;
  error: ErrorView | null;
  progress: ProgressView | null;
  tags: Record<string, string>;
  idempotency_key: string | null;
  trace_id: string;
  traceparent: string | null;
  retry_policy: RetryView;
  returns: number;
  depends_on: Array<string> | null;
  on_parent_failure: OnParentFailure;
  inputs: Record<string, TaskInput> | null;
  workflow_id: string | null;
  workflow?: Membership | null;
  schedule_id: string | null;
  scheduled_for?: string | null;
  owner: string | null;
  parameters: Record<string, unknown>;
  result: unknown;
  attempts: Array<AttemptView>;
  state_history?: Array<StepView>;
  current_state_duration_seconds?: number;
}

export interface TaskInput {
  parents: Array<string>;
  many?: boolean;
  path?: Array<string | number>;
  nesting?: Array<number>;
  outcomes?: boolean;
}

export interface TaskLookup {
  task_ids: Array<string>;
}

export interface TaskPage {
  tasks: Array<TaskView>;
  next_cursor: string | null;
}

export interface TaskReplay {
  type?: string | Array<string>;
  queue?: string | Array<string>;
  priority?: "critical" | "high" | "medium" | "low" | "normal" | number | Array<"critical" | "high" | "medium" | "low" | "normal" | number>;
  tags?: Record<string, string>;
  worker?: string;
  owner?: string;
  schedule_id?: string;
  since?: string;
  until?: string;
  ended_before?: string;
  all?: boolean;
  cursor?: string | null;
  status?: State | Array<State>;
  task_ids?: Array<string> | null;
  reset_retry_count?: boolean;
  new_priority?: "critical" | "high" | "medium" | "low" | "normal" | number | null;
}

export interface TaskRequest {
  task_type?: string | null;
  parameters?: Record<string, unknown>;
  type?: string | null;
  payload?: Record<string, unknown>;
  priority?: "critical" | "high" | "medium" | "low" | "normal" | number;
  queue?: string;
  required_capabilities?: Array<string>;
  timeout_seconds?: number | null;
  max_retries?: number | null;
  delay_seconds?: number;
  run_at?: string | null;
  expires_at?: string | null;
  idempotency_key?: string | null;
  unique?: boolean | UniqueRequest | null;
  tags?: Record<string, string> | null;
  depends_on?: Array<string>;
  on_parent_failure?: OnParentFailure;
  inputs?: Record<string, InputRequest> | null;
  trace_id?: string | null;
  traceparent?: string | null;
  retry_policy?: RetryView | null;
  task_id?: string | null;
  workflow_id?: string | null;
  workflow?: MembershipRequest | null;
  use_definition?: boolean;
}

export interface TaskResult {
  status: State;
  result: unknown;
  error: ErrorView | null;
}

export interface TaskSummary {
  task_id: string;
  task_type: string;
  queue: string;
  priority: string | number;
  effective_priority: string | number;
  status: State;
  attempt: number;
  retry_count: number;
  max_retries: number;
  timeout_seconds: number | null;
  required_capabilities: Array<string>;
  created_at: string;
  run_at: string;
  ready_at: string;
  claimed_at: string | null;
  started_at: string | null;
  completed_at: string | null;
  updated_at: string;
  next_retry_at: string | null;
  expires_at: string | null;
  assigned_worker_id: string | null;
  version: number;
  error: ErrorView | null;
  progress: ProgressView | null;
  tags: Record<string, string>;
  idempotency_key: string | null;
  trace_id: string;
  traceparent: string | null;
  retry_policy: RetryView;
  returns: number;
  depends_on: Array<string> | null;
  on_parent_failure: OnParentFailure;
  inputs: Record<string, TaskInput> | null;
  workflow_id: string | null;
  workflow?: Membership | null;
  schedule_id: string | null;
  scheduled_for?: string | null;
  owner: string | null;
}

export interface TaskSweep {
  type?: string | Array<string>;
  queue?: string | Array<string>;
  priority?: "critical" | "high" | "medium" | "low" | "normal" | number | Array<"critical" | "high" | "medium" | "low" | "normal" | number>;
  tags?: Record<string, string>;
  worker?: string;
  owner?: string;
  schedule_id?: string;
  since?: string;
  until?: string;
  ended_before?: string;
  all?: boolean;
  cursor?: string | null;
  status?: State | Array<State>;
  task_ids?: Array<string> | null;
}

export interface TaskView {
  task_id: string;
  task_type: string;
  queue: string;
  priority: string | number;
  effective_priority: string | number;
  status: State;
  attempt: number;
  retry_count: number;
  max_retries: number;
  timeout_seconds: number | null;
  required_capabilities: Array<string>;
  created_at: string;
  run_at: string;
  ready_at: string;
  claimed_at: string | null;
  started_at: string | null;
  completed_at: string | null;
  updated_at: string;
  next_retry_at: string | null;
  expires_at: string | null;
  assigned_worker_id: string | null;
  version: number;
  error: ErrorView | null;
  progress: ProgressView | null;
  tags: Record<string, string>;
  idempotency_key: string | null;
  trace_id: string;
  traceparent: string | null;
  retry_policy: RetryView;
  returns: number;
  depends_on: Array<string> | null;
  on_parent_failure: OnParentFailure;
  inputs: Record<string, TaskInput> | null;
  workflow_id: string | null;
  workflow?: Membership | null;
  schedule_id: string | null;
  scheduled_for?: string | null;
  owner: string | null;
  parameters: Record<string, unknown>;
  result: unknown;
  attempts: Array<AttemptView>;
}

export interface TasksFound {
  tasks: Array<TaskView | null>;
}

export interface Throughput {
  submitted_last_minute: number;
  completed_last_minute: number;
  failed_last_minute: number;
  avg_task_duration_seconds: number | null;
  completed_last_hour: number;
}

export interface TickView {
  at: string;
  local: string;
  note: string | null;
}

export interface Total {
  count: number;
  exact: boolean;
}

export interface Totals {
  fired: number;
  skipped: number;
  missed: number;
}

export interface TypeDetails {
  paused: boolean;
  rate_limit: number;
  concurrency: number;
  timeout_seconds: number;
  circuit_breaker: CircuitBreaker | null;
  open_until: string | null;
  type: string;
  held: number;
  by_status: Record<string, number>;
  definition: DefinitionView | null;
}

export interface TypeList {
  types: Array<TypeView>;
}

export interface TypePatch {
  paused?: boolean;
  rate_limit?: number | null;
  concurrency?: number | null;
  timeout_seconds?: number | null;
  circuit_breaker?: CircuitBreaker | null;
}

export interface TypeRules {
  paused: boolean;
  rate_limit: number;
  concurrency: number;
  timeout_seconds: number;
  circuit_breaker: CircuitBreaker | null;
  open_until: string | null;
  type: string;
}

export interface TypeView {
  paused: boolean;
  rate_limit: number;
  concurrency: number;
  timeout_seconds: number;
  circuit_breaker: CircuitBreaker | null;
  open_until: string | null;
  type: string;
  held: number;
  by_status: Record<string, number>;
}

export interface UniqueRequest {
  arguments?: Array<string> | null;
  states?: Array<State> | null;
  period_seconds?: number | null;
  mode?: Mode;
}

export interface UnservedLane {
  queue: string;
  type: string;
  required_capabilities: Array<string>;
  count: number;
  oldest_age_seconds: number;
  held_back?: boolean;
}

export interface WhyView {
  reasons: Array<ReasonView>;
}

export interface WorkerList {
  workers: Array<WorkerView>;
}

export interface WorkerState {
  worker_id: string;
  status: WorkerStatus;
}

export interface WorkerStats {
  active: number;
  draining: number;
  unhealthy: number;
  dead: number;
  total_capacity: number;
  used_capacity: number;
}

export type WorkerStatus = "active" | "dead" | "draining" | "unhealthy";

export interface WorkerView {
  worker_id: string;
  status: WorkerStatus;
  current_tasks: Array<string>;
  last_heartbeat: string;
  registered_at: string;
  capacity: number;
  current_load: number;
  capabilities: Array<string>;
  queues: Array<string> | null;
  types: Array<string> | null;
  version: string;
  host: string;
  health: Record<string, unknown> | null;
  lease_seconds: number;
  start_within_seconds: number | null;
  held_back?: Array<string>;
}

export interface WorkflowAccepted {
  workflow_id: string;
  tasks: Array<NodeAccepted>;
}

export interface WorkflowList {
  workflows: Array<WorkflowSummaryView>;
  next_cursor: string | null;
}

export interface WorkflowRequest {
  tasks: Array<Record<string, unknown>>;
  name?: string | null;
  returns?: string | Array<string> | null;
  on_failure?: OnFailure;
  workflow_id?: string | null;
}

export type WorkflowState = "cancelled" | "completed" | "failed" | "running";

export interface WorkflowSummaryView {
  workflow_id: string;
  name: string | null;
  state: WorkflowState;
  tasks: number;
  counts: Record<string, number>;
  created_at: string;
  ended_at: string | null;
}

export interface WorkflowView {
  workflow_id: string;
  name: string | null;
  status: WorkflowState;
  on_failure: OnFailure;
  complete: boolean;
  created_at: string;
  ended_at: string | null;
  tasks: Array<NodeView>;
}

export interface _AgingPatch {
  low_to_medium?: number | null;
  medium_to_high?: number | null;
  high_to_critical?: number | null;
}

export interface _RetentionPatch {
  completed?: number;
  failed?: number;
  cancelled?: number;
  dead_letter?: number;
  workers?: number;
  journal?: number;
}

export interface Get {
  "api/v1/audit": { query: "limit" | "cursor"; body: {}; answer: AuditList };
  "api/v1/capabilities/{}/backlog": { query: "queue"; body: {}; answer: CapabilityBacklog };
  "api/v1/control": { query: never; body: {}; answer: ControlsView };
  "api/v1/definitions": { query: "limit" | "cursor"; body: {}; answer: DefinitionList };
  "api/v1/definitions/{}": { query: never; body: {}; answer: DefinitionView };
  "api/v1/dlq": { query: "type" | "queue" | "priority" | "tag" | "worker" | "owner" | "schedule_id" | "since" | "until" | "ended_before" | "failure" | "limit" | "cursor"; body: {}; answer: TaskPage };
  "api/v1/dlq/analysis": { query: never; body: {}; answer: AnalysisView };
  "api/v1/events": { query: "cursor" | "type" | "task_id" | "queue" | "limit"; body: {}; answer: EventPage };
  "api/v1/queue/stats": { query: never; body: {}; answer: Stats };
  "api/v1/queues": { query: never; body: {}; answer: QueueList };
  "api/v1/queues/{}/backlog": { query: never; body: {}; answer: Backlog };
  "api/v1/schedules": { query: "limit" | "cursor" | "runs"; body: {}; answer: ScheduleList };
  "api/v1/schedules/{}": { query: never; body: {}; answer: ScheduleView };
  "api/v1/settings": { query: never; body: {}; answer: StoreSettings };
  "api/v1/stats/history": { query: "since" | "limit"; body: {}; answer: SampleList };
  "api/v1/tasks": { query: "type" | "queue" | "priority" | "tag" | "worker" | "owner" | "schedule_id" | "since" | "until" | "ended_before" | "status" | "limit" | "cursor"; body: {}; answer: TaskPage };
  "api/v1/tasks/count": { query: "type" | "queue" | "priority" | "tag" | "worker" | "owner" | "schedule_id" | "since" | "until" | "ended_before" | "status"; body: {}; answer: Total };
  "api/v1/tasks/summaries": { query: "type" | "queue" | "priority" | "tag" | "worker" | "owner" | "schedule_id" | "since" | "until" | "ended_before" | "status" | "limit" | "cursor"; body: {}; answer: SummaryPage };
  "api/v1/tasks/{}": { query: "include_history"; body: {}; answer: TaskDetail };
  "api/v1/tasks/{}/result": { query: "wait"; body: {}; answer: TaskResult };
  "api/v1/tasks/{}/why": { query: never; body: {}; answer: WhyView };
  "api/v1/types": { query: never; body: {}; answer: TypeList };
  "api/v1/types/{}": { query: never; body: {}; answer: TypeDetails };
  "api/v1/workers": { query: never; body: {}; answer: WorkerList };
  "api/v1/workers/{}": { query: never; body: {}; answer: WorkerView };
  "api/v1/workflows": { query: "state" | "name" | "limit" | "cursor"; body: {}; answer: WorkflowList };
  "api/v1/workflows/{}": { query: never; body: {}; answer: WorkflowView };
  "auth/session": { query: never; body: {}; answer: Session };
  "readyz": { query: never; body: {}; answer: Ready };
}

export interface Post {
  "api/v1/control": { query: never; body: ControlPatch; answer: ControlsView };
  "api/v1/dlq/replay": { query: never; body: DeadReplay; answer: SweptView };
  "api/v1/dlq/{}/replay": { query: never; body: ReplayTerms; answer: ReplayedView };
  "api/v1/queues/{}/pause": { query: never; body: {}; answer: QueueState };
  "api/v1/queues/{}/resume": { query: never; body: {}; answer: QueueState };
  "api/v1/schedules": { query: never; body: ScheduleRequest; answer: ScheduleView };
  "api/v1/schedules/preview": { query: never; body: PreviewRequest; answer: PreviewView };
  "api/v1/schedules/{}/backfill": { query: never; body: BackfillRequest; answer: BackfillReply };
  "api/v1/schedules/{}/pause": { query: never; body: PauseRequest; answer: ScheduleView };
  "api/v1/schedules/{}/resume": { query: never; body: ResumeRequest; answer: ScheduleView };
  "api/v1/schedules/{}/run": { query: never; body: RunRequest; answer: RunReply };
  "api/v1/tasks": { query: never; body: TaskRequest; answer: TaskAccepted };
  "api/v1/tasks/batch": { query: never; body: BatchRequest; answer: BatchAccepted };
  "api/v1/tasks/cancel": { query: never; body: TaskSweep; answer: SweptView };
  "api/v1/tasks/delete": { query: never; body: TaskSweep; answer: SweptView };
  "api/v1/tasks/lookup": { query: never; body: TaskLookup; answer: TasksFound };
  "api/v1/tasks/replay": { query: never; body: TaskReplay; answer: SweptView };
  "api/v1/tasks/retry": { query: never; body: TaskReplay; answer: SweptView };
  "api/v1/tasks/{}/replay": { query: never; body: ReplayTerms; answer: ReplayedView };
  "api/v1/tasks/{}/retry": { query: never; body: ReplayTerms; answer: ReplayedView };
  "api/v1/workers/{}/drain": { query: never; body: {}; answer: WorkerState };
  "api/v1/workflows": { query: never; body: WorkflowRequest; answer: WorkflowAccepted };
  "api/v1/workflows/{}/cancel": { query: never; body: {}; answer: SweptView };
  "api/v1/workflows/{}/resume": { query: never; body: ResumeTerms; answer: SweptView };
  "auth/session": { query: never; body: SignIn; answer: Session };
}

export interface Patch {
  "api/v1/schedules/{}": { query: never; body: SchedulePatch; answer: ScheduleView };
  "api/v1/settings": { query: never; body: SettingsPatch; answer: StoreSettings };
  "api/v1/types/{}": { query: never; body: TypePatch; answer: TypeRules };
}

export interface Delete {
  "api/v1/definitions/{}": { query: never; body: {}; answer: null };
  "api/v1/dlq": { query: "type" | "queue" | "priority" | "tag" | "worker" | "owner" | "schedule_id" | "since" | "until" | "ended_before" | "failure" | "all" | "cursor"; body: {}; answer: SweptView };
  "api/v1/schedules/{}": { query: never; body: {}; answer: null };
  "api/v1/tasks/{}": { query: never; body: {}; answer: CancelledView };
  "api/v1/workflows/{}": { query: never; body: {}; answer: SweptView };
  "auth/session": { query: never; body: {}; answer: null };
}
