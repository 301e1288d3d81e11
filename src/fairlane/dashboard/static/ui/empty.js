// @ts-check
// What is shown in place of a list that is empty.

import { html } from "../lib/preact.js";

/** @import { Children } from "../lib/preact.js" */

/**
 * What a list would show, and the first step towards it.
 *
 * @param {{ title: string, children?: Children }} props
 */
export const Empty = ({ title, children }) =>
  html`<div class="empty-state"><h3>${title}</h3>${children}</div>`;

const FIRST = `from fairlane import Fairlane

app = Fairlane("sqlite:///fairlane.db")

@app.task
async def greet(name: str) -> str:
    return f"Hello {name}"

greet.submit_sync("you")`;

/** How to submit the first task. */
export const NoTasks = () => html`<${Empty} title="No tasks yet">
  <p>Submit the first one from a terminal:</p>
  <pre><code>fairlane submit echo '{"say": "hello"}'</code></pre>
  <p>or from Python:</p>
  <pre><code>${FIRST}</code></pre>
  <p>It appears here at once. To run it: <code>fairlane worker</code></p>
</${Empty}>`;
