// @ts-check
// The rule and the policies of a schedule, and what its tasks have in common.

import { count, counted, duration } from "../../lib/format.js";
import { html } from "../../lib/preact.js";
import { link } from "../../lib/router.js";
import { Priority } from "../../ui/badges.js";
import { Fact, Tags } from "../../ui/facts.js";
import { TaskLink } from "../../ui/links.js";
import { Ago } from "../../ui/time.js";
import { policy } from "../task/facts.js";
import { intervalText, MISSED, OVERLAP } from "../schedules/words.js";

/** @import { ScheduleView } from "../../../types/api.js" */

/** @param {{ schedule: ScheduleView }} props */
export const About = ({ schedule }) => html`<dl class="facts">
  <${Fact} name="Rule">${ruleOf(schedule)}</${Fact}>
  <${Fact} name="Time zone" if=${schedule.tz}>${schedule.tz}</${Fact}>
  <${Fact} name="If the last task runs">${OVERLAP[schedule.overlap]}</${Fact}>
  <${Fact} name="Missed ticks">
    ${MISSED[schedule.missed]}${schedule.missed === "all" && `, at most ${count(schedule.most)}`}
  </${Fact}>
  <${Fact} name="At the latest">${duration(schedule.within_seconds)} after the tick</${Fact}>
  <${Fact} name="Jitter" if=${schedule.jitter_seconds}>up to ${duration(schedule.jitter_seconds)}</${Fact}>
  <${Fact} name="Starts" if=${schedule.starts_at}><${Ago} at=${schedule.starts_at} /></${Fact}>
  <${Fact} name="Ends" if=${schedule.ends_at}><${Ago} at=${schedule.ends_at} /></${Fact}>
  <${Fact} name="Ticks left" if=${schedule.count}>
    ${count(schedule.remaining ?? 0)} of ${count(schedule.count ?? 0)}
  </${Fact}>
  <${Fact} name="After failures" if=${schedule.pause_after_failures}>
    Pauses after ${counted(schedule.pause_after_failures ?? 0, "failed task")} in a row
  </${Fact}>
  <${Fact} name="Failed in a row" if=${schedule.failures}>${count(schedule.failures)}</${Fact}>
  <${Fact} name="Last task" if=${schedule.last_task_id}>
    <${TaskLink} id=${schedule.last_task_id} /> <${Ago} at=${schedule.last_at} />
  </${Fact}>
  <${Fact} name="Note" if=${schedule.note}>${schedule.note}</${Fact}>
  <${Fact} name="Created"><${Ago} at=${schedule.created_at} /></${Fact}>
  <${Fact} name="Changed"><${Ago} at=${schedule.updated_at} />, version ${schedule.version}</${Fact}>
</dl>`;

/** @param {ScheduleView} schedule */
function ruleOf({ cron, every_seconds: seconds, offset_seconds: offset }) {
  return cron === null ? intervalText(seconds ?? 0, offset) : html`<code>${cron}</code>`;
}

/** @param {{ task: ScheduleView["task"] }} props */
export const TaskFacts = ({ task }) => html`<dl class="facts">
  <${Fact} name="Type"><a href=${link("tasks", { type: task.task_type })}>${task.task_type}</a></${Fact}>
  <${Fact} name="Queue"><a href=${link("tasks", { queue: task.queue })}>${task.queue}</a></${Fact}>
  <${Fact} name="Priority"><${Priority} priority=${task.priority} /></${Fact}>
  <${Fact} name="Retries">${policy(task)}</${Fact}>
  <${Fact} name="Timeout">${timeoutOf(task)}</${Fact}>
  <${Fact} name="Delay" if=${task.delay_seconds}>${duration(task.delay_seconds)}</${Fact}>
  <${Fact} name="Capabilities" if=${task.required_capabilities.length}>
    ${task.required_capabilities.join(", ")}
  </${Fact}>
  <${Fact} name="Tags" if=${Object.keys(task.tags).length}><${Tags} tags=${task.tags} /></${Fact}>
</dl>`;

/** @param {ScheduleView["task"]} task */
function timeoutOf({ timeout_seconds: seconds }) {
  if (seconds === undefined) return "that of its type or priority";
  return seconds === null ? "no limit" : duration(seconds);
}
