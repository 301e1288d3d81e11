// What can be done with one task, and what is asked before.

import { segment, post, remove } from "./api.js";
import { ROUTES } from "./bulk.js";
import { spaced } from "./format.js";

const path = (id) => `api/v1/tasks/${segment(id)}`;

/** Make a task ready to run again. */
export const replay = ({ task_id: id }, terms = {}) => post(`${path(id)}/retry`, terms);

/** Make a task ready to run that waits for its time. What it has done counts as before. */
export const runNow = (task) => replay(task, { reset_retry_count: false });

export const cancel = ({ task_id: id }) => remove(path(id));

/** Delete a task, but only as it is seen here: it may have been made ready again in the meantime. */
export async function deleteTask({ task_id: id, status }) {
  const {
    applied,
    results: [found],
  } = await post(ROUTES.delete, { task_ids: [id], status });
  if (!applied)
    throw new Error(
      found.previous_status ? `It is ${spaced(found.previous_status)} now.` : "It is gone already.",
    );
}

export const runNowQuestion = ({ status, depends_on: parents }) =>
  parents && status === "scheduled" && "Run it now? It no longer waits for the tasks it depends on.";

export const cancelQuestion = ({ task_type: type, status }) =>
  status === "executing"
    ? `Cancel this ${type}? Its worker is told to stop, and what it may still report is refused.`
    : `Cancel this ${type}? It will not run.`;

export const deleteQuestion = ({ task_type: type, status }) =>
  status === "retrying"
    ? `Delete this ${type}? It will not be tried again, and nothing is left of it.`
    : `Delete this ${type}? Nothing is left of it, and it cannot be brought back.`;
