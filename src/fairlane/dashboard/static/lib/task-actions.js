// @ts-check
// What an operator can do with one task, and the questions before.

import { post, remove, segment } from "./api.js";
import { ROUTES } from "./bulk.js";
import { spaced } from "./format.js";

/** @import { ReplayTerms, TaskSummary } from "../../types/api.js" */

/** Make a task ready to run again. @param {TaskSummary} task @param {ReplayTerms} [terms] */
export const replay = ({ task_id: id }, terms = {}) => post(`api/v1/tasks/${segment(id)}/replay`, terms);

/** Make a waiting task ready to run. Its failures still count. @param {TaskSummary} task */
export const runNow = (task) => replay(task, { reset_retry_count: false });

/** @param {TaskSummary} task */
export const cancel = ({ task_id: id }) => remove(`api/v1/tasks/${segment(id)}`);

/** Delete a task, unless its state has changed meanwhile. @param {TaskSummary} task */
export async function deleteTask({ task_id: id, status }) {
  const { applied, results } = await post(ROUTES.delete, { task_ids: [id], status });
  if (applied) return;
  const state = results?.[0].previous_status;
  throw new Error(state ? `It is ${spaced(state)} now.` : "It is gone already.");
}

/** @param {TaskSummary} task */
export const runNowQuestion = ({ status, depends_on: parents }) =>
  parents && status === "scheduled" ? "Run it now? It no longer waits for the tasks it depends on." : null;

/** @param {TaskSummary} task */
export const cancelQuestion = ({ task_type: type, status }) =>
  status === "executing"
    ? `Cancel this ${type}? Its worker is asked to stop, and a result that still arrives is refused.`
    : `Cancel this ${type}? It will not run.`;

/** @param {TaskSummary} task */
export const deleteQuestion = ({ task_type: type, status }) =>
  status === "retrying"
    ? `Delete this ${type}? It will not be retried, and cannot be restored.`
    : `Delete this ${type}? It cannot be restored.`;
