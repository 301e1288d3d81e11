// What can be done with one task, and what is asked before.

import { part, post, remove } from "./api.js";
import { words } from "./format.js";

const path = (id) => `api/v1/tasks/${part(id)}`;

/** Make a task ready to run again. */
export const retry = ({ task_id: id }, terms = {}) => post(`${path(id)}/retry`, terms);

/** Make a task ready to run that waits for its time. What it has done counts as before. */
export const runNow = (task) => retry(task, { reset_retry_count: false });

export const cancel = ({ task_id: id }) => remove(path(id));

/** Delete a task, but only as it is seen here: it may have been made ready again in the meantime. */
export async function erase({ task_id: id, status }) {
  const {
    applied,
    results: [found],
  } = await post("api/v1/tasks/delete", { task_ids: [id], status });
  if (!applied)
    throw new Error(
      found.previous_status ? `It is ${words(found.previous_status)} now.` : "It is gone already.",
    );
}

export const hastening = ({ status, depends_on: parents }) =>
  parents && status === "scheduled" && "Run it now? It no longer waits for the tasks it depends on.";

export const cancelling = ({ task_type: type, status }) =>
  status === "executing"
    ? `Cancel this ${type}? Its worker is told to stop, and what it may still report is refused.`
    : `Cancel this ${type}? It will not run.`;

export const deleting = ({ task_type: type, status }) =>
  status === "retrying"
    ? `Delete this ${type}? It will not be tried again, and nothing is left of it.`
    : `Delete this ${type}? Nothing is left of it, and it cannot be brought back.`;
