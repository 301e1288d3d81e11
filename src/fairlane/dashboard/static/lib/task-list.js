// @ts-check
// Lists of tasks, and the tags they are filtered by.

import { get } from "./api.js";

/**
 * @import { Get, TaskSummary, TaskView } from "../../types/api.js"
 * @import { Query } from "./api.js"
 */

// The server looks through a limited number of tasks per request, so a page may come in pieces.
const MOST_REQUESTS = 10;

/**
 * Fetch a page of a list, and the cursor of the next one.
 *
 * @template {"api/v1/tasks/summaries" | "api/v1/dlq"} R
 * @param {R} route
 * @param {Query} filter
 * @param {{ limit: number, cursor?: string | null }} page
 * @param {AbortSignal} abort
 * @returns {Promise<{ tasks: Get[R]["answer"]["tasks"], next: string | null }>}
 */
export async function fetchPage(route, filter, { limit, cursor }, abort) {
  /** @type {(TaskSummary | TaskView)[]} */
  let tasks = [];
  let next = cursor ?? null;
  let requests = 0;
  do {
    const query = /** @type {Partial<Record<Get[R]["query"], Query[string]>>} */ ({
      ...filter,
      limit: limit - tasks.length,
      cursor: next,
    });
    /** @type {Get[R]["answer"]} */
    const answer = await get(route, query, abort);
    tasks = [...tasks, ...answer.tasks];
    next = answer.next_cursor;
    requests += 1;
  } while (next && tasks.length < limit && requests < MOST_REQUESTS);
  return { tasks: /** @type {Get[R]["answer"]["tasks"]} */ (tasks), next };
}

/** "name:value" → ["name", "value"]; a value may have colons. @param {string} tag */
export function splitTag(tag) {
  const colon = tag.indexOf(":");
  return [tag.slice(0, colon), tag.slice(colon + 1)];
}
