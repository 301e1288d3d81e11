import { html } from "../lib/preact.js";

/** What is said where there is nothing yet: what it would be, and the first step towards it. */
export const Empty = ({ title, children }) =>
  html`<div class="empty-state"><h3>${title}</h3>${children}</div>`;

const FIRST = `from fairlane import Fairlane

app = Fairlane("sqlite:///fairlane.db")

@app.task
async def greet(name: str) -> str:
    return f"Hello {name}"

greet.submit_sync("you")`;

/** What to do with a store that has seen no task yet. */
export const NoTasks = () => html`<${Empty} title="No tasks yet">
  <p>Submit the first one from a terminal:</p>
  <pre><code>fairlane submit echo '{"say": "hello"}'</code></pre>
  <p>or from Python:</p>
  <pre><code>${FIRST}</code></pre>
  <p>It appears here at once. To run it: <code>fairlane worker</code></p>
</${Empty}>`;
