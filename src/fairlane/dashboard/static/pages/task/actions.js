import {
  cancel,
  cancelQuestion,
  deleteQuestion,
  deleteTask,
  runNowQuestion,
  replay,
  runNow,
} from "../../lib/task-actions.js";
import { LIVE, may } from "../../lib/states.js";
import { navigate, link } from "../../lib/router.js";
import { html, useMemo } from "../../lib/preact.js";
import { ActionButton } from "../../ui/action-button.js";
import { ReplayTerms } from "../../ui/replay-terms.js";

/** What can be done with the task as it stands. */
export function Actions({ task, refresh }) {
  const { task_id: id, status } = task;
  const terms = useMemo(() => ({}), [id]);

  const then = (text, change) => async () => {
    await change(task, terms);
    await refresh();
    return text;
  };
  async function gone() {
    await deleteTask(task);
    navigate(link("tasks"), { replace: true });
    return "Deleted.";
  }

  return html`
    ${
      may.replay(status) &&
      (LIVE.has(status)
        ? html`<${ActionButton} key="now" run=${then("It is ready to run.", runNow)}
          confirm=${runNowQuestion(task)}>Run now</${ActionButton}>`
        : html`<${ActionButton} key="replay" primary run=${then("It is ready to run again.", replay)}
          confirm=${() => html`<${ReplayTerms} terms=${terms} task=${task} />`}>Replay</${ActionButton}>`)
    }
    ${
      may.cancel(status) &&
      html`<${ActionButton} key="cancel" danger scope="submit" run=${then("Cancelled.", cancel)}
        confirm=${cancelQuestion(task)}>Cancel task</${ActionButton}>`
    }
    ${
      may.delete(status) &&
      html`<${ActionButton} key="delete" danger run=${gone}
        confirm=${deleteQuestion(task)}>Delete</${ActionButton}>`
    }`;
}
