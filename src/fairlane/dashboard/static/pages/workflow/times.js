// @ts-check
// When the tasks of a workflow waited and ran, and which of them determined when it ended.

import { LIVE } from "../../lib/states.js";

/**
 * @import { NodeView, WorkflowView } from "../../../types/api.js"
 * @typedef {object} Timing In milliseconds since 1970; null: not yet, or never.
 * @property {number | null} ready When the last task that it depends on had ended.
 * @property {number | null} started When its last run started.
 * @property {number | null} ended
 * @property {string | null} after The task that it depends on and that ended last, or has not ended.
 */

/**
 * @param {WorkflowView} workflow
 * @returns {Map<string, Timing>} By the ids of the tasks.
 */
export function timingsOf({ created_at: created, tasks }) {
  const byId = new Map(tasks.map((task) => [task.task_id, task]));
  return new Map(tasks.map((task) => [task.task_id, timingOf(task, byId, Date.parse(created))]));
}

/**
 * @param {NodeView} task
 * @param {Map<string, NodeView>} byId
 * @param {number} created
 * @returns {Timing}
 */
function timingOf(task, byId, created) {
  const parents = task.parents.map((id) => byId.get(id)).filter((parent) => parent !== undefined);
  const started = timeOf(task.started_at);
  /** @type {{ ready: number | null, after: string | null }} */
  let { ready, after } = { ready: created, after: null };
  for (const parent of parents) {
    const ended = timeOf(parent.ended_at);
    if (ready !== null && ended !== null && ended > ready) [ready, after] = [ended, parent.task_id];
    if (ended === null) [ready, after] = [null, ready === null ? after : parent.task_id];
  }
  // A parent may have run again after its child had started.
  if (started !== null) ready = Math.min(ready ?? started, started);
  return { ready, started, ended: timeOf(task.ended_at), after };
}

/** @param {string | null} time */
const timeOf = (time) => (time === null ? null : Date.parse(time));

/**
 * Return the tasks that determined when the workflow ended, or what it waits for now: each is the one that
 * the next waited for.
 *
 * @param {NodeView[]} tasks
 * @param {Map<string, Timing>} timings
 */
export function criticalPath(tasks, timings) {
  /** @type {Set<string>} */
  const path = new Set();
  let id = lastOf(tasks, timings);
  while (id !== null && !path.has(id)) {
    path.add(id);
    id = timings.get(id)?.after ?? null;
  }
  return path;
}

/**
 * Of the tasks that can run, or do, the first; if all have ended, the last one that ran.
 *
 * @param {NodeView[]} tasks
 * @param {Map<string, Timing>} timings
 */
function lastOf(tasks, timings) {
  const known = tasks.map(({ task_id: id, status }) => {
    const timing = /** @type {Timing} */ (timings.get(id));
    return { id, live: LIVE.has(status), ...timing };
  });
  let [first, last] = [Infinity, -Infinity];
  /** @type {string | null} */
  let next = null;
  /** @type {string | null} */
  let ran = null;
  for (const { id, live, ready, started, ended } of known) {
    const since = started ?? ready;
    if (live && since !== null && since < first) [first, next] = [since, id];
    if (started !== null && ended !== null && ended > last) [last, ran] = [ended, id];
  }
  return next ?? ran;
}
