// @ts-check
// What can be done with a task in its state.

import { html, useMemo } from "../../lib/preact.js";
import { link, navigate } from "../../lib/router.js";
import { LIVE, may } from "../../lib/states.js";
import {
  cancel,
  cancelQuestion,
  deleteQuestion,
  deleteTask,
  replay,
  runNow,
  runNowQuestion,
} from "../../lib/task-actions.js";
import { ActionButton } from "../../ui/action-button.js";
import { ReplayTerms } from "../../ui/replay-terms.js";

/** @import { ReplayTerms as Terms, TaskDetail } from "../../../types/api.js" */

/** @param {{ task: TaskDetail, refresh: () => Promise<void> }} props */
export function Actions({ task, refresh }) {
  const { task_id: id, task_type: type, status } = task;
  const terms = useMemo(() => /** @type {Terms} */ ({}), [id]);

  const then =
    (/** @type {string} */ message, /** @type {(task: TaskDetail, terms: Terms) => unknown} */ change) =>
    async () => {
      await change(task, terms);
      await refresh();
      return message;
    };
  async function remove() {
    await deleteTask(task);
    navigate(link("tasks"), { replace: true });
    return "Deleted.";
  }
  const replayQuestion = () =>
    html`<${ReplayTerms} terms=${terms} question=${`Replay this ${type}? It becomes ready to run again.`}
      priority=${`as it was: ${task.priority}`} />`;

  return html`
    ${
      may.replay(status) &&
      (LIVE.has(status)
        ? html`<${ActionButton} key="now" run=${then("It is ready to run.", runNow)}
          confirm=${runNowQuestion(task)}>Run now</${ActionButton}>`
        : html`<${ActionButton} key="replay" primary run=${then("It is ready to run again.", replay)}
          confirm=${replayQuestion}>Replay</${ActionButton}>`)
    }
    <${ActionButton} key="edit" scope="submit" run=${() => navigate(link("submit", { from: id }))}>
      Edit and resubmit
    </${ActionButton}>
    ${
      may.cancel(status) &&
      html`<${ActionButton} key="cancel" danger scope="submit" run=${then("Cancelled.", cancel)}
        confirm=${cancelQuestion(task)}>Cancel task</${ActionButton}>`
    }
    ${
      may.delete(status) &&
      html`<${ActionButton} key="delete" danger run=${remove}
        confirm=${deleteQuestion(task)}>Delete</${ActionButton}>`
    }`;
}
