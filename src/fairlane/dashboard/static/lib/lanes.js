// @ts-check
// Which types and queues there are.

import { get } from "./api.js";
import { boundTo } from "./session.js";

/**
 * @import { QueueView, TypeView } from "../../types/api.js"
 * @typedef {{ types: TypeView[], queues: QueueView[] }} Lanes
 */

/** @type {Lanes} */
export const NO_LANES = { types: [], queues: [] };

/**
 * Fetch them. Viewers with a bound token are not told.
 *
 * @param {AbortSignal} abort
 * @returns {Promise<Lanes>}
 */
export async function fetchLanes(abort) {
  if (boundTo.value !== null) return NO_LANES;
  const [{ types }, { queues }] = await Promise.all([
    get("api/v1/types", {}, abort),
    get("api/v1/queues", {}, abort),
  ]);
  return { types, queues };
}
