// @ts-check
// The parameters of the new task: a field for each that the definition names, or one JSON text.

import { onValue } from "../../lib/inputs.js";
import { html } from "../../lib/preact.js";
import { Field } from "../../ui/field.js";
import { Panel } from "../../ui/panel.js";
import { entryOf, keyOf, OTHERS, WHOLE } from "./draft.js";

/**
 * @import { Children } from "../../lib/preact.js"
 * @import { Control } from "../../ui/field.js"
 * @import { Draft, Entry, Errors } from "./draft.js"
 * @import { Field as Parameter } from "./schema.js"
 */

/**
 * @typedef {object} FieldsProps
 * @property {Draft} draft
 * @property {(draft: Draft, key: string) => void} set Is called with the key of the field that changed.
 * @property {Errors} errors
 */

/** @param {FieldsProps & { toggle: () => void }} props `toggle` switches between fields and JSON. */
export function ParameterFields({ draft, set, toggle, errors }) {
  const { shape, json } = draft;
  const tools =
    shape &&
    html`<button type="button" class="button small" aria-pressed=${json !== null} onClick=${toggle}>
      Edit as JSON
    </button>`;
  return html`<${Panel} title="Parameters" tools=${tools}>
    ${
      json === null
        ? html`<${EachField} draft=${draft} set=${set} errors=${errors} />`
        : html`<${JsonField} label="All parameters" value=${json} rows=${8} error=${errors[WHOLE]}
          set=${(/** @type {string} */ text) => set({ ...draft, json: text }, WHOLE)} />`
    }
  </${Panel}>`;
}

/** @param {FieldsProps} props */
function EachField({ draft, set, errors }) {
  const { shape, others } = draft;
  const fields = shape?.fields ?? [];
  const open = shape?.open || others !== "" || OTHERS in errors;
  if (fields.length === 0 && !open) return html`<p class="muted">It takes none.</p>`;
  return html`
    ${fields.map(
      (field) => html`<${ParameterField} key=${field.name} field=${field} draft=${draft} set=${set}
        error=${errors[keyOf(field.name)]} />`,
    )}
    ${
      open &&
      html`<${JsonField} label="Other parameters" value=${others} rows=${3} error=${errors[OTHERS]}
        set=${(/** @type {string} */ text) => set({ ...draft, others: text }, OTHERS)} />`
    }`;
}

/**
 * @typedef {object} JsonProps
 * @property {string} label
 * @property {string} value
 * @property {number} rows
 * @property {string} [error]
 * @property {(text: string) => void} set
 */

/** @param {JsonProps} props */
const JsonField = ({ label, value, rows, error, set }) =>
  html`<${Field} label=${label} note="a JSON object" error=${error}
    input=${(/** @type {Control} */ control) => html`<${JsonText} control=${control} value=${value}
      rows=${rows} placeholder='{"name": "value"}' set=${set} />`} />`;

/**
 * @param {object} props
 * @param {Control} props.control
 * @param {string} props.value
 * @param {number} props.rows
 * @param {string} [props.placeholder]
 * @param {(text: string) => void} props.set
 */
const JsonText = ({ control, value, rows, placeholder, set }) =>
  html`<textarea ...${control} class="mono" rows=${rows} spellcheck=${false} placeholder=${placeholder}
    value=${value} onInput=${onValue(set)}></textarea>`;

/**
 * @param {object} props
 * @param {Parameter} props.field
 * @param {Draft} props.draft
 * @param {(draft: Draft, key: string) => void} props.set
 * @param {string} [props.error]
 */
function ParameterField({ field, draft, set, error }) {
  const { name, type, required, description } = field;
  const entry = entryOf(draft, field);
  const change = (/** @type {string} */ text) =>
    set({ ...draft, entries: { ...draft.entries, [name]: { ...entry, text } } }, keyOf(name));
  const takes = entry.json ? "JSON" : type;
  const input = (/** @type {Control} */ control) =>
    inputOf(field, entry, { ...control, "aria-required": required }, change);
  return html`<${Field} label=${name} note=${required ? `${takes}, required` : takes} hint=${description}
    error=${error} input=${input} />`;
}

/**
 * @param {Parameter} field
 * @param {Entry} entry
 * @param {Control & { "aria-required": boolean }} control
 * @param {(text: string) => void} set
 * @returns {Children}
 */
function inputOf({ kind, choices, fallback }, { text, json }, control, set) {
  const placeholder = shown(fallback);
  if (json || kind === "json") {
    return html`<${JsonText} control=${control} value=${text} rows=${3} placeholder=${placeholder}
      set=${set} />`;
  }
  const change = onValue(set);
  if (kind === "choice") {
    return html`<select ...${control} value=${text} onChange=${change}>
      <option value="">${placeholder === "" ? "–" : `default: ${placeholder}`}</option>
      ${choices.map((value) => {
        const option = JSON.stringify(value);
        return html`<option key=${option} value=${option}>${shown(value)}</option>`;
      })}
    </select>`;
  }
  if (text.includes("\n")) return html`<textarea ...${control} rows="4" value=${text} onInput=${change} />`;
  return html`<input ...${control} type="text" autocomplete="off" placeholder=${placeholder} value=${text}
    inputmode=${kind === "text" ? "text" : kind === "integer" ? "numeric" : "decimal"} onInput=${change} />`;
}

/** @param {unknown} value */
const shown = (value) =>
  value === undefined ? "" : typeof value === "string" && value !== "" ? value : JSON.stringify(value);
