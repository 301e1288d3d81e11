// Which dead letters are shown: what the address says of that, and the same in the words of the API.

import { splitTag } from "../../lib/task-list.js";
import { link } from "../../lib/router.js";

const NAMES = ["type", "queue", "tag", "within", "failure"];

/**
 * {type, queue, tag, within (seconds), failure (a group), cursor, range (of the chart)}; null for what is not
 * said.
 */
export const viewOf = (query) =>
  Object.fromEntries([...NAMES, "cursor", "range"].map((name) => [name, query.get(name)]));

/** The address of the first page of a view. */
export const linkTo = (view) => link("dead", { ...view, cursor: null });

export const isUnfiltered = (view) => NAMES.every((name) => !view[name]);

/** Which ones, as lists and counts take it. */
export const queryOf = ({ type, queue, tag, within, failure }) => ({
  type,
  queue,
  tag,
  failure,
  since: since(within),
});

/** Which ones, as a change takes it. */
export function bodyOf(view) {
  if (isUnfiltered(view)) return { all: true };
  const { tag, ...query } = queryOf(view);
  const body = Object.fromEntries(Object.entries(query).filter(([, value]) => value));
  return tag ? { ...body, tags: Object.fromEntries([splitTag(tag)]) } : body;
}

const since = (seconds) => seconds && new Date(Date.now() - 1000 * seconds).toISOString();
