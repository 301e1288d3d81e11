// @ts-check
// What is shown in place of a list that is empty.

import { urlOf } from "../lib/api.js";
import { html } from "../lib/preact.js";

/** @import { Children } from "../lib/preact.js" */

/**
 * What a list would show, and the first step towards it.
 *
 * @param {{ title: string, children?: Children }} props
 */
export const Empty = ({ title, children }) =>
  html`<div class="empty-state"><h3>${title}</h3>${children}</div>`;

/**
 * Return a program that submits to this server.
 *
 * @param {string} server
 */
const first = (server) => `# shop.py
from fairlane import Fairlane

app = Fairlane("${server}")

@app.task
async def greet(name: str) -> str:
    return f"Hello {name}"

if __name__ == "__main__":
    greet.submit_sync("you")`;

/** How to submit the first task. */
export function NoTasks() {
  const server = urlOf("").href;
  return html`<${Empty} title="No tasks yet">
    <p>Submit the first one from a terminal:</p>
    <pre><code>fairlane submit echo '{"say": "hello"}' --store ${server}</code></pre>
    <p>or from Python:</p>
    <pre><code>${first(server)}</code></pre>
    <p>It appears here at once. To run it: <code>fairlane worker --app shop:app</code>, or, for echo alone,
      <code>fairlane worker --server ${server}</code></p>
  </${Empty}>`;
}
