import { html } from "../lib/view.js";
import { Empty } from "./parts.js";

const FIRST = `from fairlane import Fairlane

app = Fairlane("sqlite:///fairlane.db")

@app.task
async def greet(name: str) -> str:
    return f"Hello {name}"

greet.submit_sync("you")`;

/** What to do with a store that has seen no task yet. */
export const Start = () => html`<${Empty} title="No tasks yet">
  <p>Submit the first one from a terminal:</p>
  <pre><code>fairlane submit echo '{"say": "hello"}'</code></pre>
  <p>or from Python:</p>
  <pre><code>${FIRST}</code></pre>
  <p>It appears here at once. To run it: <code>fairlane worker</code></p>
</${Empty}>`;
