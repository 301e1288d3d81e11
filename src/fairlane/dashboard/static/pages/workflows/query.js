// @ts-check
// Which workflows are shown: read from the address, and written to it.

import { link } from "../../lib/router.js";

/**
 * @import { WorkflowState } from "../../../types/api.js"
 * @typedef {{ state: WorkflowState[], name: string }} Filter
 * @typedef {{ filter: Filter, cursor?: string }} View
 */

/** @type {WorkflowState[]} */
export const STATES = ["running", "completed", "failed", "cancelled"];

/** @param {URLSearchParams} query @returns {View} */
export const viewOf = (query) => ({
  filter: {
    state: STATES.filter((state) => query.getAll("state").includes(state)),
    name: query.get("name") ?? "",
  },
  cursor: query.get("cursor") ?? undefined,
});

/** @param {View} view */
export const linkTo = ({ filter, cursor }) => link("workflows", { ...filter, cursor });

/** @param {Filter} filter */
export const isUnfiltered = ({ state, name }) => state.length === 0 && name === "";
