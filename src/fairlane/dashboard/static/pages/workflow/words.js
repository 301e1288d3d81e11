// @ts-check
// What the page of a workflow says of tasks and of times.

import { count, duration, spaced } from "../../lib/format.js";
import { LIVE, STATES } from "../../lib/states.js";

/**
 * @import { NodeView } from "../../../types/api.js"
 * @import { Counts } from "../../ui/state-counts.js"
 * @import { Timing } from "./times.js"
 */

/**
 * Count tasks by their states, in the order of states.
 *
 * @param {string[]} ids
 * @param {Map<string, NodeView>} byId
 * @returns {Counts}
 */
export function countStates(ids, byId) {
  /** @type {Counts} */
  const counts = {};
  for (const state of STATES) counts[state] = 0;
  for (const id of ids) {
    const task = byId.get(id);
    if (task) counts[task.status] += 1;
  }
  return Object.fromEntries(Object.entries(counts).filter(([, number]) => number > 0));
}

/** "41 queued, 32 completed". @param {Counts} counts */
export const countsText = (counts) =>
  Object.entries(counts)
    .map(([state, number]) => `${count(number)} ${spaced(state)}`)
    .join(", ");

/** @param {number} from @param {number} to Milliseconds since 1970. */
const between = (from, to) => duration(Math.max(0, to - from) / 1000);

/**
 * How long a task that has ended ran, if it did.
 *
 * @param {NodeView} task
 * @param {Timing | undefined} timing
 */
export function tookText({ doomed }, timing) {
  if (doomed) return "never ran";
  if (!timing || timing.started === null || timing.ended === null) return "";
  return between(timing.started, timing.ended);
}

/**
 * "Waited 3.2 s for charge, started 40 ms later, ran for 1.3 s."
 *
 * @param {NodeView} task
 * @param {Timing} timing
 * @param {{ created: number, now: number, nameOf: (id: string) => string }} about
 */
export function aboutTimes({ status, doomed }, { ready, started, ended, after }, about) {
  const { created, now, nameOf } = about;
  const live = LIVE.has(status);
  const parts = [];
  if (ready === null && live && after) parts.push(`waits for ${nameOf(after)}`);
  else if (ready !== null && after) parts.push(`waited ${between(created, ready)} for ${nameOf(after)}`);
  if (ready !== null && started !== null) parts.push(`started ${between(ready, started)} later`);
  else if (ready !== null && live) parts.push(`has been ready for ${between(ready, now)}`);
  if (started !== null && status === "executing") parts.push(`has run for ${between(started, now)}`);
  if (started !== null && ended !== null) parts.push(`ran for ${between(started, ended)}`);
  if (doomed) parts.push("never ran, because of a task before it");
  else if (started === null && !live) parts.push("never ran");
  const text = parts.join(", ");
  return text && `${text[0].toUpperCase()}${text.slice(1)}.`;
}
