// @ts-check
// Why a task failed.

import { spaced } from "../../lib/format.js";
import { html } from "../../lib/preact.js";
import { LIVE } from "../../lib/states.js";
import { Badge } from "../../ui/badges.js";
import { CopyButton } from "../../ui/copy-button.js";
import { Panel } from "../../ui/panel.js";

/** @import { State, TaskDetail } from "../../../types/api.js" */

/** @type {Partial<Record<State, string>>} */
const TITLES = {
  retrying: "The last run failed",
  executing: "The previous run failed",
  queued: "The last run failed",
};

/** @param {{ task: TaskDetail }} props */
export function Failure({ task: { error, status } }) {
  if (!error) return null;
  const text = () => [error.message, error.traceback].filter(Boolean).join("\n\n");
  const tools = html`<${CopyButton} text=${text} what="the error" />`;
  return html`<${Panel} title=${TITLES[status] ?? "Error"} tools=${tools}>
    <div class="row">
      ${error.code && html`<${Badge} tone="danger">${error.code}</${Badge}>`}
      ${error.reason && html`<${Badge}>${spaced(error.reason)}</${Badge}>`}
      ${!error.retriable && html`<${Badge}>not retriable</${Badge}>`}
    </div>
    <p class="error-message">${error.message}</p>
    ${error.traceback && html`<${Traceback} text=${error.traceback} open=${!LIVE.has(status)} />`}
  </${Panel}>`;
}

/** @param {{ text: string, open?: boolean }} props */
export const Traceback = ({ text, open = false }) => html`<details class="disclosure" open=${open}>
  <summary>Traceback</summary><pre tabindex="0" role="group" aria-label="Traceback">${text}</pre>
</details>`;
