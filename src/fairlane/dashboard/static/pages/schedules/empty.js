// @ts-check
// How to make the first schedule.

import { urlOf } from "../../lib/api.js";
import { html } from "../../lib/preact.js";
import { Empty } from "../../ui/empty.js";

const CODE = `@app.cron("30 2 * * MON-FRI", tz="Europe/Berlin")
@app.task
async def settle_day() -> None: ...`;

export const NoSchedules = () => html`<${Empty} title="No schedules yet">
  <p>A schedule submits a task again and again. Declare it in code, above the task:</p>
  <pre><code>${CODE}</code></pre>
  <p>from a terminal:</p>
  <pre><code>fairlane schedule put nightly --cron "30 2 * * *" --tz Europe/Berlin \\
    --type settle_day --store ${urlOf("").href}</code></pre>
  <p>or with the button above. It appears here at once.</p>
</${Empty}>`;
