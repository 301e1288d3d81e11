// @ts-check
import { urlOf } from "../../lib/api.js";
import { html } from "../../lib/preact.js";
import { Empty } from "../../ui/empty.js";

/** How to start a worker. */
export const NoWorkers = () => html`<${Empty} title="No worker is running">
  <p>Tasks wait until one does. Start one with access to the store:</p>
  <pre><code>fairlane worker</code></pre>
  <p>or anywhere else, through this server:</p>
  <pre><code>fairlane worker --server ${urlOf("").href}</code></pre>
  <p class="muted">This runs the built-in handlers; with <code>--app MODULE:APP</code> it runs yours.</p>
</${Empty}>`;
