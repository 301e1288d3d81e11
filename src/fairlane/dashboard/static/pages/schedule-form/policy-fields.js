// @ts-check
// What happens to ticks that nobody fired in time, or whose previous task has not ended; and other limits.

import { onValue } from "../../lib/inputs.js";
import { html } from "../../lib/preact.js";
import { Field } from "../../ui/field.js";
import { Panel } from "../../ui/panel.js";
import { MISSED, OVERLAP } from "../schedules/words.js";
import { POLICIES } from "./policy.js";

/**
 * @import { Control } from "../../ui/field.js"
 * @import { Errors } from "../submit/draft.js"
 * @import { Policies, PolicyName } from "./policy.js"
 */

/** @type {Partial<Record<PolicyName, Record<string, string>>>} */
const CHOICES = { overlap: OVERLAP, missed: MISSED };

/**
 * @param {object} props
 * @param {Policies} props.policies
 * @param {(policies: Policies, name: PolicyName) => void} props.set
 * @param {Errors} props.errors
 */
export const PolicyFields = ({ policies, set, errors }) => html`<${Panel} title="Policies">
  <div class="field-grid">
    ${POLICIES.filter(({ name }) => name !== "most" || policies.missed === "all").map(
      ({ name, label, kind, blank, ...about }) => {
        const change = onValue((text) => set({ ...policies, [name]: text }, name));
        return html`<${Field} key=${name} label=${label} note=${"unit" in about ? about.unit : undefined}
        error=${errors[name]} input=${(/** @type {Control} */ control) =>
          kind === "choice"
            ? html`<select ...${control} value=${policies[name]} onChange=${change}>
              ${Object.entries(CHOICES[name] ?? {}).map(
                ([value, text]) => html`<option key=${value} value=${value}>${text}</option>`,
              )}
            </select>`
            : html`<input ...${control} type=${kind === "time" ? "datetime-local" : "text"}
              inputmode=${kind === "number" ? "decimal" : undefined} autocomplete="off"
              placeholder=${blank ?? ""} value=${policies[name]} onInput=${change} />`} />`;
      },
    )}
  </div>
</${Panel}>`;
