// What there is by the SPEC: states and priorities, in the order in which people think of them.

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

export const WAITING = new Set(["scheduled", "queued", "retrying"]);
export const LIVE = new Set([...WAITING, "executing"]);

export const PRIORITIES = ["critical", "high", "medium", "low"];

const REPLAYABLE = new Set(["failed", "dead_letter", "cancelled", "retrying", "scheduled"]);
const DELETABLE = new Set(["completed", "failed", "dead_letter", "cancelled", "retrying"]);

/** What an operator may do with a task in a state; the server has the last word. */
export const may = {
  replay: (state) => REPLAYABLE.has(state),
  cancel: (state) => LIVE.has(state),
  delete: (state) => DELETABLE.has(state),
};

/** The band of a priority, which may be a level from 0 to 10. */
export function band(priority) {
  if (typeof priority === "string") return priority;
  if (priority >= 10) return "critical";
  if (priority >= 8) return "high";
  return priority >= 5 ? "medium" : "low";
}
