import { words } from "../../lib/format.js";
import { LIVE } from "../../lib/names.js";
import { html } from "../../lib/view.js";
import { Note } from "../../ui/badges.js";
import { Copy } from "../../ui/copy.js";
import { Panel } from "../../ui/parts.js";

const TITLES = {
  retrying: "The last run failed",
  executing: "The run before failed",
  queued: "The last run failed",
};

/** Why it failed, in full. */
export function Failure({ task: { error, status } }) {
  if (!error) return null;
  const text = () => [error.message, error.traceback].filter(Boolean).join("\n\n");
  const tools = html`<${Copy} text=${text} what="the error" />`;
  return html`<${Panel} title=${TITLES[status] ?? "Error"} tools=${tools}>
    <div class="row">
      ${error.code && html`<${Note} tone="danger">${error.code}</${Note}>`}
      ${error.reason && html`<${Note}>${words(error.reason)}</${Note}>`}
      ${!error.retriable && html`<${Note}>not retriable</${Note}>`}
    </div>
    <p class="message">${error.message}</p>
    ${error.traceback && html`<${Traceback} text=${error.traceback} open=${!LIVE.has(status)} />`}
  </${Panel}>`;
}

/** Where in the code it failed. */
export const Traceback = ({ text, open = false }) => html`<details class="reveal" open=${open}>
  <summary>Traceback</summary><pre tabindex="0" role="group" aria-label="Traceback">${text}</pre>
</details>`;
