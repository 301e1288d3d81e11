// @ts-check
// The state of a workflow, in the colour that tasks in a like state have.

import { html } from "../../lib/preact.js";

/** @import { State, WorkflowState } from "../../../types/api.js" */

/** @type {Record<WorkflowState, State>} */
export const COLOURS = {
  running: "executing",
  completed: "completed",
  failed: "failed",
  cancelled: "cancelled",
};

/** @param {{ state: WorkflowState }} props */
export const WorkflowBadge = ({ state }) =>
  html`<span class="badge" data-state=${COLOURS[state]}>${state}</span>`;
