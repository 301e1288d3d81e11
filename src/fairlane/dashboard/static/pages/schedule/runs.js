// @ts-check
// What became of the last ticks, one by one.

import { counted, exactTime } from "../../lib/format.js";
import { html, useState } from "../../lib/preact.js";
import { TaskLink } from "../../ui/links.js";
import { Panel } from "../../ui/panel.js";
import { Ago } from "../../ui/time.js";
import { OutcomeBadge } from "../schedules/badges.js";
import { OUTCOMES } from "../schedules/words.js";

/** @import { RunView } from "../../../types/api.js" */

const AT_ONCE = 10;

/** @param {{ runs: RunView[] }} props `runs`: the newest first. */
export function Runs({ runs }) {
  const [all, setAll] = useState(false);
  const shown = all ? runs : runs.slice(0, AT_ONCE);
  const hidden = runs.length - shown.length;
  return html`<${Panel} title="Runs" flush>
    <div class="scroll-sideways" tabindex="0" role="group" aria-label="Runs">
      <table class="table schedule-runs">
        <thead><tr><th scope="col">Tick</th><th scope="col">Outcome</th><th scope="col">Task</th></tr></thead>
        <tbody>${shown.map((run, index) => html`<${Run} key=${`${run.tick} ${index}`} run=${run} />`)}</tbody>
      </table>
    </div>
    ${
      hidden > 0 &&
      html`<p class="table-footer">
        <button type="button" class="button small" onClick=${() => setAll(true)}>
          Show ${counted(hidden, "earlier run")}
        </button>
      </p>`
    }
    ${runs.length === 0 && html`<p class="table-footer muted">None yet.</p>`}
  </${Panel}>`;
}

/** @param {{ run: RunView }} props */
function Run({ run: { tick, outcome, task_id: task, count, reason } }) {
  const about = reason || (outcome !== "fired" && OUTCOMES[outcome].means);
  return html`<tr>
  <td>${exactTime(tick)}<div class="muted"><${Ago} at=${tick} /></div></td>
  <td>
    <${OutcomeBadge} outcome=${outcome} />
    ${count > 1 && html` <span class="muted">${counted(count, "tick")}</span>`}
    ${about && html`<div class="muted reason">${about}</div>`}
  </td>
  <td>${task ? html`<${TaskLink} id=${task} />` : html`<span class="muted">–</span>`}</td>
</tr>`;
}
