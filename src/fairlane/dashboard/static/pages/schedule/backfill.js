// @ts-check
// Submit the tasks of ticks between two times, once more or for the first time.

import { post, segment } from "../../lib/api.js";
import { counted, exactTime } from "../../lib/format.js";
import { onValue } from "../../lib/inputs.js";
import { isoTime, OWN_ZONE } from "../../lib/local-times.js";
import { html, useState } from "../../lib/preact.js";
import { ActionButton } from "../../ui/action-button.js";
import { Field } from "../../ui/field.js";
import { Panel } from "../../ui/panel.js";
import { OVERLAP } from "../schedules/words.js";

/**
 * @import { BackfillRequest, Overlap, ScheduleView } from "../../../types/api.js"
 * @import { Control } from "../../ui/field.js"
 */

const BLANK = { since: "", until: "", overlap: "" };

/** @param {{ schedule: ScheduleView, refresh: () => Promise<void> }} props */
export function Backfill({ schedule: { schedule_id: id }, refresh }) {
  const [terms, setTerms] = useState(BLANK);
  const { since, until, overlap } = terms;
  const complete = since !== "" && until !== "";
  const path = /** @type {const} */ (`api/v1/schedules/${segment(id)}/backfill`);
  const set = (/** @type {keyof typeof BLANK} */ name) =>
    onValue((value) => setTerms({ ...terms, [name]: value }));

  /** @param {boolean} dry_run @returns {BackfillRequest} */
  const request = (dry_run) => ({
    since: /** @type {string} */ (isoTime(since)),
    until: /** @type {string} */ (isoTime(until)),
    overlap: overlap === "" ? null : /** @type {Overlap} */ (overlap),
    dry_run,
  });

  async function question() {
    const { count } = await post(path, request(true));
    if (count === 0) throw new Error("The schedule has no tick in this time.");
    return `Submit ${counted(count, "task")}, for the ticks from ${exactTime(since)} to ${exactTime(until)}?`;
  }

  async function run() {
    const { count } = await post(path, request(false));
    setTerms(BLANK);
    await refresh();
    return `${counted(count, "task")} submitted.`;
  }

  const time = (/** @type {"since" | "until"} */ name) => (/** @type {Control} */ control) =>
    html`<input ...${control} type="datetime-local" value=${terms[name]} onInput=${set(name)} />`;
  const choice = (/** @type {Control} */ control) => html`<select ...${control} value=${overlap}
    onChange=${set("overlap")}>
    <option value="">as the schedule says</option>
    ${Object.entries(OVERLAP).map(([name, text]) => html`<option key=${name} value=${name}>${text}</option>`)}
  </select>`;
  return html`<${Panel} title="Backfill" hint="Submit the tasks of ticks between two times">
    <div class="field-grid">
      <${Field} label="Since" note=${OWN_ZONE} input=${time("since")} />
      <${Field} label="Before" note=${OWN_ZONE} input=${time("until")} />
      <${Field} label="If the last task runs" input=${choice} />
    </div>
    <div class="row">
      <${ActionButton} disabled=${!complete} confirm=${question} run=${run}>Backfill</${ActionButton}>
    </div>
  </${Panel}>`;
}
