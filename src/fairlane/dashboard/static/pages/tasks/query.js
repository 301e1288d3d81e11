// Which tasks are shown: what the address says of that, and the same in the words of the API.

import { count } from "../../lib/format.js";
import { splitTag } from "../../lib/task-list.js";
import { link } from "../../lib/router.js";

/** What can be filtered by; of the last ones there is but one value. */
const MANY = ["status", "type", "queue", "priority", "tag"];
const ONE = ["worker", "since", "until"];
export const NAMES = [...MANY, ...ONE];

export const SIZES = [50, 100, 500];

/**
 * {filter, limit, cursor, from, address}: `filter` has a list for every name, `from` is how many tasks come
 * before, `address` tells views apart.
 */
export function viewOf(query) {
  const limit = Number(query.get("limit"));
  const view = {
    filter: Object.fromEntries(NAMES.map((name) => [name, query.getAll(name)])),
    limit: SIZES.includes(limit) ? limit : SIZES[0],
    cursor: query.get("cursor") ?? undefined,
    from: Number(query.get("from")) || 0,
  };
  return { ...view, address: linkTo(view) };
}

/** The address of a view. */
export function linkTo({ filter, limit, cursor, from }) {
  return link("tasks", { ...filter, limit: limit === SIZES[0] ? null : limit, cursor, from: from || null });
}

export const isUnfiltered = (filter) => NAMES.every((name) => filter[name].length === 0);

/** With another value; of what there is but one, in place of the one before. */
export function withValue(filter, name, value) {
  const before = ONE.includes(name) ? [] : filter[name];
  return { ...filter, [name]: before.includes(value) ? before : [...before, value] };
}

export const withoutValue = (filter, name, value) => ({
  ...filter,
  [name]: filter[name].filter((each) => each !== value),
});

/** As a request to change tasks has it. */
export function bodyOf(filter) {
  const body = {};
  for (const name of MANY) if (filter[name].length) body[name] = filter[name];
  for (const name of ONE) if (filter[name].length) body[name] = filter[name][0];
  if (body.priority) body.priority = body.priority.map((each) => (/^\d+$/.test(each) ? Number(each) : each));
  if (body.tag) {
    body.tags = Object.fromEntries(body.tag.map(splitTag));
    delete body.tag;
  }
  return isUnfiltered(filter) ? { all: true } : body;
}

/** How many there are; a store that has too many to look at them all says so. */
export const amount = (total) => `${total.exact ? "" : "more than "}${count(total.count)}`;

/** Whether an event may be about a task that is shown, or will be. */
export const concerns =
  (filter) =>
  ({ data }) =>
    admits(filter.type, data.type) && admits(filter.queue, data.queue);

const admits = (wanted, value) => wanted.length === 0 || wanted.includes(value);
