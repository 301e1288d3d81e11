// @ts-check
// How to submit the first workflow.

import { html } from "../../lib/preact.js";
import { Empty } from "../../ui/empty.js";

const CODE = `with app.graph("order") as g:
    order = g.add(load, 7)
    paid = g.add(charge, order)
    g.returns(g.add(ship.options(after=[paid]), order))

flow = await g.submit()`;

export const NoWorkflows = () => html`<${Empty} title="No workflows yet">
  <p>A workflow is several tasks that are submitted together and take results of each other:</p>
  <pre><code>${CODE}</code></pre>
  <p>or <code>load.prepare(7).then(charge)</code>, and <code>price.map(articles).then(total)</code>.</p>
</${Empty}>`;
