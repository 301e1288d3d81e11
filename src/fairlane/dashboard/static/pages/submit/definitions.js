// @ts-check
// What workers have published about types.

import { get, segment } from "../../lib/api.js";
import { useResource } from "../../lib/resource.js";
import { boundTo } from "../../lib/session.js";

/** @import { DefinitionView } from "../../../types/api.js" */

/**
 * Fetch all definitions; null for viewers with a bound token, who may only ask for one by its name.
 *
 * @param {AbortSignal} abort
 */
export const fetchDefinitions = async (abort) =>
  boundTo.value === null ? (await get("api/v1/definitions", {}, abort)).definitions : null;

/**
 * Return the definition of a type; null if there is none, or it is not known yet.
 *
 * @param {DefinitionView[] | null} all
 * @param {string} type As it is typed.
 * @param {string} chosen The type when the field was left: it is looked up if `all` is null.
 * @returns {DefinitionView | null}
 */
export function useDefinition(all, type, chosen) {
  const wanted = all === null ? chosen : "";
  const { data } = useResource((abort) => fetchOne(wanted, abort), [wanted]);
  return [...(all ?? []), ...(data ? [data] : [])].find((each) => each.type === type) ?? null;
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
