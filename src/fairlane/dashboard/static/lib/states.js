// @ts-check
// The states and priorities of tasks, in the order in which people think of them.

/** @import { State } from "../../types/api.js" */

/** @type {State[]} */
export const STATES = [
  "scheduled",
  "queued",
  "executing",
  "retrying",
  "completed",
  "failed",
  "dead_letter",
  "cancelled",
];

/** @type {Set<State>} */
export const WAITING = new Set(["scheduled", "queued", "retrying"]);
/** @type {Set<State>} */
export const LIVE = new Set([...WAITING, "executing"]);

export const PRIORITIES = /** @type {const} */ (["critical", "high", "medium", "low"]);

/** @type {Set<State>} */
const REPLAYABLE = new Set(["failed", "dead_letter", "cancelled", "retrying", "scheduled"]);
/** @type {Set<State>} */
const DELETABLE = new Set(["completed", "failed", "dead_letter", "cancelled", "retrying"]);

/** What an operator may do with a task in a state. The server decides in the end. */
export const may = {
  replay: (/** @type {State} */ state) => REPLAYABLE.has(state),
  cancel: (/** @type {State} */ state) => LIVE.has(state),
  delete: (/** @type {State} */ state) => DELETABLE.has(state),
};

/** Return the band of a priority, which may be a level from 0 to 10. @param {string | number} priority */
export function band(priority) {
  if (typeof priority === "string") return priority;
  if (priority >= 10) return "critical";
  if (priority >= 8) return "high";
  return priority >= 5 ? "medium" : "low";
}
