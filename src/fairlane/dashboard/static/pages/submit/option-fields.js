// @ts-check
// The options of the new task. A placeholder shows what is used if nothing is entered.

import { onToggled, onValue } from "../../lib/inputs.js";
import { html } from "../../lib/preact.js";
import { PRIORITIES } from "../../lib/states.js";
import { Field } from "../../ui/field.js";
import { defaultsOf, OPTIONS } from "./options.js";

/**
 * @import { DefinitionView } from "../../../types/api.js"
 * @import { Control } from "../../ui/field.js"
 * @import { Errors } from "./draft.js"
 * @import { OptionName, Options } from "./options.js"
 */

/**
 * @param {object} props
 * @param {Options} props.options
 * @param {(options: Options, name: OptionName) => void} props.set
 * @param {DefinitionView | null} props.definition
 * @param {OptionName[]} props.without
 * @param {Errors} props.errors
 * @param {boolean} props.open
 * @param {(open: boolean) => void} props.setOpen
 */
export function OptionFields({ options, set, definition, without, errors, open, setOpen }) {
  const defaults = defaultsOf(definition);
  return html`<section class="panel body">
    <details class="disclosure" open=${open} onToggle=${onToggled(setOpen)}>
      <summary>More options</summary>
      <div class="field-grid">
        ${OPTIONS.filter(({ name }) => !without.includes(name)).map(({ name, label, ...about }) => {
          const change = (/** @type {string} */ text) => set({ ...options, [name]: text }, name);
          const note = "unit" in about ? about.unit : undefined;
          return html`<${Field} key=${name} label=${label} note=${note} error=${errors[name]}
            input=${(/** @type {Control} */ control) =>
              inputOf(name, control, options[name], defaults[name], change)} />`;
        })}
      </div>
    </details>
  </section>`;
}

/**
 * @param {OptionName} name
 * @param {Control} control
 * @param {string} value
 * @param {string} fallback
 * @param {(text: string) => void} set
 */
function inputOf(name, control, value, fallback, set) {
  if (name === "priority") {
    // A task may have a level from 0 to 10 that has no name.
    const levels = new Set([...PRIORITIES, ...(value ? [value] : [])]);
    return html`<select ...${control} value=${value} onChange=${onValue(set)}>
      <option value="">default: ${fallback}</option>
      ${[...levels].map((level) => html`<option key=${level} value=${level}>${level}</option>`)}
    </select>`;
  }
  if (name === "tags") {
    return html`<textarea ...${control} rows="3" spellcheck=${false} placeholder=${fallback} value=${value}
      onInput=${onValue(set)}></textarea>`;
  }
  const numeric = ["delay_seconds", "max_retries", "timeout_seconds"].includes(name);
  return html`<input ...${control} type="text" inputmode=${numeric ? "decimal" : "text"} autocomplete="off"
    spellcheck=${false} placeholder=${fallback} value=${value} onInput=${onValue(set)} />`;
}
