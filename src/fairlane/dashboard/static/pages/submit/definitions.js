// @ts-check
// What workers have published about types.

import { get, segment } from "../../lib/api.js";
import { useResource } from "../../lib/resource.js";
import { boundTo } from "../../lib/session.js";

/** @import { DefinitionView } from "../../../types/api.js" */

/**
 * Fetch some definitions, to suggest their types. Viewers with a bound token may only ask for one by its
 * name.
 *
 * @param {AbortSignal} abort
 */
export const fetchDefinitions = async (abort) =>
  boundTo.value === null ? (await get("api/v1/definitions", {}, abort)).definitions : [];

/**
 * Return the definition of a type; null if there is none, or it is not known yet.
 *
 * @param {DefinitionView[]} some
 * @param {string} type As it is typed.
 * @param {string} chosen The type when the field was left: it is looked up if it is not among `some`.
 * @returns {DefinitionView | null}
 */
export function useDefinition(some, type, chosen) {
  const wanted = some.some((each) => each.type === chosen) ? "" : chosen;
  const { data } = useResource((abort) => fetchOne(wanted, abort), [wanted]);
  return [...some, ...(data ? [data] : [])].find((each) => each.type === type) ?? null;
}

/** @param {string} type @param {AbortSignal} abort @returns {Promise<DefinitionView | null>} */
async function fetchOne(type, abort) {
  if (type === "") return null;
  try {
    return await get(`api/v1/definitions/${segment(type)}`, {}, abort);
  } catch (error) {
    if (/** @type {{ status?: number }} */ (error).status === 404) return null;
    throw error;
  }
}
