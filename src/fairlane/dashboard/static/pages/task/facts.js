// @ts-check
// The fields of a task. Those that do not apply are left out.

import { counted, duration, percent } from "../../lib/format.js";
import { html } from "../../lib/preact.js";
import { link } from "../../lib/router.js";
import { Priority, StateBadge } from "../../ui/badges.js";
import { CopyButton } from "../../ui/copy-button.js";
import { Fact, Tags } from "../../ui/facts.js";
import { ScheduleLink, WorkerLink, WorkflowLink } from "../../ui/links.js";
import { Ago } from "../../ui/time.js";

/** @import { RetryView, TaskDetail } from "../../../types/api.js" */

/** @param {{ task: TaskDetail }} props */
export const Facts = ({ task }) => html`<dl class="facts">
  <${Fact} name="Id"><span class="mono">${task.task_id}</span></${Fact}>
  <${Fact} name="Type"><a href=${link("tasks", { type: task.task_type })}>${task.task_type}</a></${Fact}>
  <${Fact} name="Status"><${StateBadge} state=${task.status} /></${Fact}>
  <${Fact} name="Attempts">
    ${task.attempt}<span class="muted">, ${failures(task)}</span>
  </${Fact}>
  <${Fact} name="Queue"><a href=${link("tasks", { queue: task.queue })}>${task.queue}</a></${Fact}>
  <${Fact} name="Priority">
    <${Priority} priority=${task.priority} effective=${task.effective_priority} />
  </${Fact}>
  <${Fact} name="Tags" if=${Object.keys(task.tags).length}><${Tags} tags=${task.tags} /></${Fact}>
  <${Fact} name="Worker" if=${task.assigned_worker_id}><${WorkerLink} id=${task.assigned_worker_id} />
  </${Fact}>
  ${times(task).map(
    ([name, at]) => html`<${Fact} key=${name} name=${name} if=${at}><${Ago} at=${at} /></${Fact}>`,
  )}
  <${Fact} name="Timeout">
    ${task.timeout_seconds === null ? "no limit" : duration(task.timeout_seconds)}
  </${Fact}>
  <${Fact} name="Retries">${policy(task)}</${Fact}>
  <${Fact} name="Capabilities" if=${task.required_capabilities.length}>
    ${task.required_capabilities.join(", ")}
  </${Fact}>
  <${Fact} name="Returned" if=${task.returns}>
    ${counted(task.returns, "time")}: its worker died before the run began
  </${Fact}>
  <${Fact} name="Owner" if=${task.owner}><bdi>${task.owner}</bdi></${Fact}>
  <${Fact} name="Idempotency key" if=${task.idempotency_key}>
    <span class="mono">${task.idempotency_key}</span>
  </${Fact}>
  <${Fact} name="Trace id">
    <span class="mono">${task.trace_id}</span> <${CopyButton} text=${task.trace_id} what="the trace id" />
  </${Fact}>
  <${Fact} name="Workflow" if=${task.workflow_id}>
    <${WorkflowLink} id=${task.workflow_id} name=${task.workflow?.name} />
  </${Fact}>
  <${Fact} name="There called" if=${task.workflow}><bdi>${task.workflow?.node}</bdi></${Fact}>
  <${Fact} name="Schedule" if=${task.schedule_id}><${ScheduleLink} id=${task.schedule_id} /></${Fact}>
  <${Fact} name="Scheduled for" if=${task.scheduled_for}><${Ago} at=${task.scheduled_for} /></${Fact}>
</dl>`;

/** @param {TaskDetail} task */
const failures = ({ retry_count: failed, max_retries: most }) =>
  `${failed} of at most ${counted(most + 1, "failure")}`;

/** @param {TaskDetail} task @returns {[name: string, at: string | null | false][]} */
const times = (task) => [
  ["Created", task.created_at],
  ["Due", task.run_at !== task.created_at && task.run_at],
  ["Ready", task.ready_at !== task.created_at && task.ready_at !== task.run_at && task.ready_at],
  ["Claimed", task.claimed_at],
  ["Started", task.started_at],
  ["Ended", task.completed_at],
  ["Next retry", task.next_retry_at],
  ["Expires", task.expires_at],
  ["Updated", task.updated_at],
];

/**
 * Describe a retry policy: "up to 3, after 1 s, 2 s, 4 s … at most 5 min, give or take 10 %".
 *
 * @param {Pick<TaskDetail, "max_retries" | "retry_policy">} task
 */
export function policy({ max_retries: most, retry_policy: terms }) {
  if (most === 0) return "none";
  // Answers have them all; only in requests they may be left out.
  const { base_seconds: base, factor, cap_seconds: cap, jitter } = /** @type {Required<RetryView>} */ (terms);
  const pause = (/** @type {number} */ number) => duration(Math.min(cap, base * factor ** number));
  const spread = jitter ? `, give or take ${percent(jitter)}` : "";
  if (most === 1) return `up to 1, after ${pause(0)}${spread}`;
  if (factor === 1) return `up to ${most}, after ${pause(0)} each${spread}`;
  const pauses = Array.from({ length: Math.min(3, most) }, (_, number) => pause(number)).join(", ");
  return `up to ${most}, after ${pauses}${most > 3 ? ` … at most ${duration(cap)}` : ""}${spread}`;
}
