// @ts-check
// When a schedule fires: a cron expression in a time zone, or an interval; and the ticks that follow.

import { post } from "../../lib/api.js";
import { onValue } from "../../lib/inputs.js";
import { html, useEffect, useId, useState } from "../../lib/preact.js";
import { useResource } from "../../lib/resource.js";
import { Field } from "../../ui/field.js";
import { Panel } from "../../ui/panel.js";
import { Upcoming } from "../schedule/upcoming.js";
import { parsedRule, UNITS } from "./rule.js";

/**
 * @import { Control } from "../../ui/field.js"
 * @import { Errors } from "../submit/draft.js"
 * @import { Rule } from "./rule.js"
 * @typedef {{ rule: Rule, set: (rule: Rule, key: keyof Rule) => void, errors: Errors }} Props
 */

const TICKS = 5;
const PAUSE_MS = 250;

/** @param {Props} props */
export function RuleFields(props) {
  const { rule, set } = props;
  const choose = onValue((kind) => set({ ...rule, kind: kind === "every" ? "every" : "cron" }, "kind"));
  return html`<${Panel} title="When">
    <${Field} label="Rule" input=${(/** @type {Control} */ control) => html`<select ...${control}
      value=${rule.kind} onChange=${choose}>
      <option value="cron">cron expression</option>
      <option value="every">interval</option>
    </select>`} />
    <div class="field-grid">
      ${rule.kind === "cron" ? html`<${CronFields} ...${props} />` : html`<${EveryFields} ...${props} />`}
    </div>
    <${Preview} rule=${rule} />
  </${Panel}>`;
}

/** @param {Props} props */
function CronFields({ rule, set, errors }) {
  const zones = useId();
  return html`
    <${Field} label="Cron expression" note="required" error=${errors.cron}
      hint="minute, hour, day of month, month, day of week"
      input=${(/** @type {Control} */ control) => html`<input ...${control} type="text" class="mono"
        aria-required="true" autocomplete="off" spellcheck=${false} placeholder="30 2 * * MON-FRI"
        value=${rule.cron} onInput=${onValue((cron) => set({ ...rule, cron }, "cron"))} />`} />
    <${Field} label="Time zone" error=${errors.tz} hint="Ticks follow its clock, also when it is set."
      input=${(/** @type {Control} */ control) => html`<input ...${control} type="text" list=${zones}
        autocomplete="off" spellcheck=${false} placeholder="UTC" value=${rule.tz}
        onInput=${onValue((tz) => set({ ...rule, tz }, "tz"))} />`} />
    <datalist id=${zones}>
      ${ZONES.map((zone) => html`<option key=${zone} value=${zone} />`)}
    </datalist>`;
}

const ZONES = ["UTC", ...Intl.supportedValuesOf("timeZone")];

const COUNTED = "Counted from the beginning of 1970: no deployment moves the ticks.";
const SHIFTED = "How much later than that each tick is.";

/** @param {Props} props */
const EveryFields = ({ rule, set, errors }) => html`
  <${Field} label="Every" note="required" error=${errors.every} hint=${COUNTED}
    input=${(/** @type {Control} */ control) => html`<span class="interval">
      <input ...${control} type="text" inputmode="decimal" aria-required="true" autocomplete="off"
        placeholder="5" value=${rule.every} onInput=${onValue((every) => set({ ...rule, every }, "every"))} />
      <select aria-label="Unit" value=${rule.unit}
        onChange=${onValue((unit) => set({ ...rule, unit }, "every"))}>
        ${Object.keys(UNITS).map((unit) => html`<option key=${unit} value=${unit}>${unit}</option>`)}
      </select>
    </span>`} />
  <${Field} label="Offset" note="seconds" error=${errors.offset} hint=${SHIFTED}
    input=${(/** @type {Control} */ control) => html`<input ...${control} type="text" inputmode="decimal"
      autocomplete="off" placeholder="0" value=${rule.offset}
      onInput=${onValue((offset) => set({ ...rule, offset }, "offset"))} />`} />`;

/**
 * What the server makes of a rule, soon after the viewer has stopped typing.
 *
 * @param {{ rule: Rule }} props
 */
function Preview({ rule }) {
  const typed = JSON.stringify(parsedRule(rule).request);
  const [settled, setSettled] = useState(typed);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(typed), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [typed]);
  const { data, error } = useResource(() => preview(settled), [settled], { keep: true });
  const shown = !error && data;
  return html`<div class="preview" role="group" aria-label="The next ticks">
    <div aria-live="polite">
      ${error && html`<p class="error-text">${error.message}</p>`}
      ${shown && html`<p class="in-words"><b>${shown.in_words}</b></p>`}
    </div>
    ${shown && html`<${Upcoming} ticks=${shown.ticks} />`}
  </div>`;
}

/** @param {string} rule */
const preview = async (rule) =>
  rule === "null" ? null : post("api/v1/schedules/preview", { ...JSON.parse(rule), count: TICKS });
