import { cancel, cancelling, deleting, erase, hastening, retry, runNow } from "../../lib/changes.js";
import { LIVE, may } from "../../lib/names.js";
import { go, link } from "../../lib/router.js";
import { html, useMemo } from "../../lib/view.js";
import { Action } from "../../ui/action.js";
import { Terms } from "../../ui/replay.js";

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
    await erase(task);
    go(link("tasks"), { replace: true });
    return "Deleted.";
  }

  return html`
    ${
      may.retry(status) &&
      (LIVE.has(status)
        ? html`<${Action} key="now" run=${then("It is ready to run.", runNow)}
          confirm=${hastening(task)}>Run now</${Action}>`
        : html`<${Action} key="retry" primary run=${then("It is ready to run again.", retry)} confirm=${() =>
            html`<${Terms} terms=${terms} task=${task} />`}>Retry</${Action}>`)
    }
    ${
      may.cancel(status) &&
      html`<${Action} key="cancel" danger scope="submit" run=${then("Cancelled.", cancel)}
        confirm=${cancelling(task)}>Cancel task</${Action}>`
    }
    ${
      may.delete(status) &&
      html`<${Action} key="delete" danger run=${gone} confirm=${deleting(task)}>Delete</${Action}>`
    }`;
}
