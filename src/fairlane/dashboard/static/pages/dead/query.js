// @ts-check
// Which dead letters are shown: read from the address, and written as the API takes it.

import { link } from "../../lib/router.js";
import { secondsAgo } from "../../lib/samples.js";
import { splitTag } from "../../lib/task-list.js";

/**
 * @import { DeadReplay } from "../../../types/api.js"
 * @typedef {typeof FILTERS[number]} FilterName
 */

/**
 * What is not in the address is null: filters (`within` is in seconds, `failure` a group), the cursor of the
 * page, and the range of the chart.
 *
 * @typedef {Record<FilterName | "cursor" | "range", string | null>} View
 */

const FILTERS = /** @type {const} */ (["type", "queue", "tag", "within", "failure"]);

/** @param {URLSearchParams} query */
export const viewOf = (query) =>
  /** @type {View} */ (
    Object.fromEntries([...FILTERS, "cursor", "range"].map((name) => [name, query.get(name)]))
  );

/** Return the address of the first page of a view. @param {Partial<View>} view */
export const linkTo = (view) => link("dead", { ...view, cursor: null });

/** @param {Partial<View>} view */
export const isUnfiltered = (view) => FILTERS.every((name) => !view[name]);

/** Return the filters as lists and counts take them. @param {Partial<View>} view */
export const queryOf = ({ type, queue, tag, within, failure }) => ({
  type,
  queue,
  tag,
  failure,
  since: within && secondsAgo(Number(within)),
});

/** Return the filters as a replay takes them. @param {Partial<View>} view @returns {DeadReplay} */
export function bodyOf(view) {
  if (isUnfiltered(view)) return { all: true };
  const { type, queue, tag, failure, since } = queryOf(view);
  return {
    ...(type && { type }),
    ...(queue && { queue }),
    ...(failure && { failure }),
    ...(since && { since }),
    ...(tag && { tags: Object.fromEntries([splitTag(tag)]) }),
  };
}
