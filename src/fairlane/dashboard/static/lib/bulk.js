// @ts-check
// Changes to many tasks: to all that match a filter, however many they are.

import { post } from "./api.js";

/**
 * @import { SweptView, TaskReplay, TaskSweep } from "../../types/api.js"
 * @typedef {keyof typeof ROUTES} Verb
 */

/** The routes that change many tasks. */
export const ROUTES = /** @type {const} */ ({
  replay: "api/v1/tasks/replay",
  cancel: "api/v1/tasks/cancel",
  delete: "api/v1/tasks/delete",
});

/**
 * Change all tasks of a filter. The server changes some thousands per request.
 *
 * @param {Verb} verb
 * @param {TaskSweep & TaskReplay} filter
 * @param {(done: number) => void} [report] Is called with the number of tasks changed so far.
 * @returns How many tasks were changed.
 */
export const changeAll = (verb, filter, report) =>
  untilDone((cursor) => post(ROUTES[verb], { ...filter, cursor }), report);

/**
 * Send a request again, with the cursor it answered, until it answers none.
 *
 * @param {(cursor: string | null) => Promise<SweptView>} send
 * @param {(done: number) => void} [report]
 */
export async function untilDone(send, report = () => {}) {
  let done = 0;
  /** @type {string | null} */
  let cursor = null;
  do {
    /** @type {SweptView} */
    const answer = await send(cursor);
    done += answer.applied;
    cursor = answer.next_cursor ?? null;
    report(done);
  } while (cursor);
  return done;
}
