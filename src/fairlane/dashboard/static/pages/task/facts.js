import { counted, duration, percent } from "../../lib/format.js";
import { link } from "../../lib/router.js";
import { html } from "../../lib/preact.js";
import { Priority, StateBadge } from "../../ui/badges.js";
import { CopyButton } from "../../ui/copy-button.js";
import { WorkerLink } from "../../ui/links.js";
import { Ago } from "../../ui/time.js";

/** What there is to know about a task; what does not apply to it is left out. */
export const Facts = ({ task }) => html`<dl class="facts">
  <${Fact} name="Id"><span class="mono">${task.task_id}</span></${Fact}>
  <${Fact} name="Type"><a href=${link("tasks", { type: task.task_type })}>${task.task_type}</a></${Fact}>
  <${Fact} name="Status"><${StateBadge} state=${task.status} /></${Fact}>
  <${Fact} name="Attempts">${task.attempt}
    <span class="muted">, ${task.retry_count} of at most ${counted(task.max_retries + 1, "failure")}</span>
  </${Fact}>
  <${Fact} name="Queue"><a href=${link("tasks", { queue: task.queue })}>${task.queue}</a></${Fact}>
  <${Fact} name="Priority"><${Priority} priority=${task.priority} effective=${task.effective_priority} />
  </${Fact}>
  <${Fact} name="Tags" of=${Object.keys(task.tags).length}><span class="row">${Object.entries(task.tags).map(
    ([name, value]) =>
      html`<a key=${name} class="tag" href=${link("tasks", { tag: `${name}:${value}` })}>${name}: ${value}
      </a>`,
  )}</span></${Fact}>
  <${Fact} name="Worker" of=${task.assigned_worker_id}><${WorkerLink} id=${task.assigned_worker_id} />
  </${Fact}>
  ${moments(task).map(
    ([name, at]) => html`<${Fact} key=${name} name=${name} of=${at}><${Ago} at=${at} /></${Fact}>`,
  )}
  <${Fact} name="A run may take">${
    task.timeout_seconds === null ? "as long as it likes" : duration(task.timeout_seconds)
  }</${Fact}>
  <${Fact} name="Retries">${policy(task)}</${Fact}>
  <${Fact} name="Capabilities" of=${task.required_capabilities.length}>
    ${task.required_capabilities.join(", ")}</${Fact}>
  <${Fact} name="Given back" of=${task.returns}>
    ${counted(task.returns, "time")}: its worker died before it began</${Fact}>
  <${Fact} name="Idempotency key" of=${task.idempotency_key}><span class="mono">${task.idempotency_key}</span>
  </${Fact}>
  <${Fact} name="Trace id"><span class="mono">${task.trace_id}
    </span> <${CopyButton} text=${task.trace_id} what="the trace id" /></${Fact}>
  <${Fact} name="Workflow" of=${task.workflow_id}><span class="mono">${task.workflow_id}</span></${Fact}>
  <${Fact} name="Schedule" of=${task.schedule_id}><span class="mono">${task.schedule_id}</span></${Fact}>
</dl>`;

const Fact = ({ name, of = true, children }) => (of ? html`<dt>${name}</dt><dd>${children}</dd>` : null);

const moments = (task) => [
  ["Created", task.created_at],
  ["Due", task.run_at !== task.created_at && task.run_at],
  ["Ready", task.ready_at !== task.created_at && task.ready_at !== task.run_at && task.ready_at],
  ["Claimed", task.claimed_at],
  ["Started", task.started_at],
  ["Ended", task.completed_at],
  ["Next try", task.next_retry_at],
  ["Expires", task.expires_at],
  ["Updated", task.updated_at],
];

/** A retry policy in words: "up to 3, after 1 s, 2 s, 4 s … at most 5 min, give or take 10 %". */
export function policy({
  max_retries: most,
  retry_policy: { base_seconds: base, factor, cap_seconds: cap, jitter },
}) {
  if (most === 0) return "none";
  const pause = (number) => duration(Math.min(cap, base * factor ** number));
  const give = jitter ? `, give or take ${percent(jitter)}` : "";
  if (most === 1) return `up to 1, after ${pause(0)}${give}`;
  if (factor === 1) return `up to ${most}, after ${pause(0)} each${give}`;
  const pauses = Array.from({ length: Math.min(3, most) }, (_, number) => pause(number)).join(", ");
  return `up to ${most}, after ${pauses}${most > 3 ? ` … at most ${duration(cap)}` : ""}${give}`;
}
