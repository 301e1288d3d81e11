// @ts-check
// Which tasks are shown: read from the address, and written as the API takes it.

import { count } from "../../lib/format.js";
import { link } from "../../lib/router.js";
import { splitTag } from "../../lib/task-list.js";

/**
 * @import { State, TaskReplay, TaskSweep, Total } from "../../../types/api.js"
 * @import { TaskEvent } from "../../lib/live-events.js"
 * @typedef {typeof MANY[number] | typeof ONE[number]} FilterName
 * @typedef {Record<FilterName, string[]>} Filter
 */

/**
 * @typedef {object} View
 * @property {Filter} filter
 * @property {number} limit
 * @property {string} [cursor]
 * @property {number} from How many tasks come before the first one.
 * @property {string} address Tells views apart.
 */

const MANY = /** @type {const} */ (["status", "type", "queue", "priority", "tag"]);
/** Of these filters there is only one value. */
const ONE = /** @type {const} */ (["worker", "schedule_id", "since", "until"]);
export const NAMES = [...MANY, ...ONE];

export const SIZES = [50, 100, 500];

/** @param {(name: FilterName) => string[]} valuesOf */
export const filterOf = (valuesOf) =>
  /** @type {Filter} */ (Object.fromEntries(NAMES.map((name) => [name, valuesOf(name)])));

/** @param {URLSearchParams} query @returns {View} */
export function viewOf(query) {
  const limit = Number(query.get("limit"));
  const view = {
    filter: filterOf((name) => query.getAll(name)),
    limit: SIZES.includes(limit) ? limit : SIZES[0],
    cursor: query.get("cursor") ?? undefined,
    from: Number(query.get("from")) || 0,
  };
  return { ...view, address: linkTo(view) };
}

/** Return the address of a view. @param {Partial<View> & Pick<View, "filter">} view */
export function linkTo({ filter, limit, cursor, from }) {
  return link("tasks", { ...filter, limit: limit === SIZES[0] ? null : limit, cursor, from: from || null });
}

/** @param {Filter} filter */
export const isUnfiltered = (filter) => NAMES.every((name) => filter[name].length === 0);

/**
 * Add a value; where there is only one, replace it.
 *
 * @param {Filter} filter
 * @param {FilterName} name
 * @param {string} value
 */
export function withValue(filter, name, value) {
  const before = ONE.some((each) => each === name) ? [] : filter[name];
  return { ...filter, [name]: before.includes(value) ? before : [...before, value] };
}

/** @param {Filter} filter @param {FilterName} name @param {string} value */
export const withoutValue = (filter, name, value) => ({
  ...filter,
  [name]: filter[name].filter((each) => each !== value),
});

/**
 * Return a filter as requests that change tasks take it.
 *
 * @param {Filter} filter
 * @returns {TaskSweep & TaskReplay}
 */
export function bodyOf(filter) {
  if (isUnfiltered(filter)) return { all: true };
  const { status, type, queue, priority, tag, worker, schedule_id: schedule, since, until } = filter;
  return {
    ...(status.length && { status: /** @type {State[]} */ (status) }),
    ...(type.length && { type }),
    ...(queue.length && { queue }),
    ...(priority.length && { priority: priority.map(priorityOf) }),
    ...(tag.length && { tags: Object.fromEntries(tag.map(splitTag)) }),
    ...(worker.length && { worker: worker[0] }),
    ...(schedule.length && { schedule_id: schedule[0] }),
    ...(since.length && { since: since[0] }),
    ...(until.length && { until: until[0] }),
  };
}

/** @param {string} text */
const priorityOf = (text) =>
  /^\d+$/.test(text) ? Number(text) : /** @type {"critical" | "high" | "medium" | "low"} */ (text);

/** Say how many there are: a store with too many tasks does not count them all. @param {Total} total */
export const amount = (total) => `${total.exact ? "" : "more than "}${count(total.count)}`;

/** Return whether an event may be about a task that is shown, or should be. @param {Filter} filter */
export const concerns =
  (filter) =>
  (/** @type {TaskEvent} */ { data }) =>
    admits(filter.type, data.type) && admits(filter.queue, data.queue);

/** @param {string[]} wanted @param {string | undefined} value */
const admits = (wanted, value) => wanted.length === 0 || (value !== undefined && wanted.includes(value));
