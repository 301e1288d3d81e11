// @ts-check
// The type of the new task, and what its worker has published about it.

import { onValue } from "../../lib/inputs.js";
import { html, useId } from "../../lib/preact.js";
import { Field } from "../../ui/field.js";
import { Panel } from "../../ui/panel.js";
import { defaultsText } from "./options.js";

/**
 * @import { DefinitionView } from "../../../types/api.js"
 * @import { Children } from "../../lib/preact.js"
 * @import { Control } from "../../ui/field.js"
 */

const CHOOSE = "A type that a worker has published, or any other.";
const UNKNOWN = "No worker has published this type: its parameters are not checked.";

/**
 * @param {object} props
 * @param {string} props.type
 * @param {(type: string) => void} props.set
 * @param {(type: string) => void} props.choose Is called when the field is left.
 * @param {boolean} props.settled Whether its definition would be known if there were one.
 * @param {DefinitionView[]} props.known
 * @param {DefinitionView | null} props.definition
 * @param {string} [props.error]
 * @param {Children} [props.more] Is shown below.
 */
export function TypeField({ type, set, choose, settled, known, definition, error, more }) {
  const list = useId();
  // There is always a line: when the field is left, nothing below moves away from under the pointer.
  const hint = type !== "" && settled ? UNKNOWN : CHOOSE;
  return html`<${Panel} title="Task">
    <${Field} label="Type" note="required" hint=${!definition && hint} error=${error}
      input=${(/** @type {Control} */ control) => html`<input ...${control} type="text" list=${list}
        aria-required="true" autocomplete="off" spellcheck=${false} value=${type}
        onInput=${onValue(set)} onChange=${onValue(choose)} />`} />
    <datalist id=${list}>
      ${known.map((each) => html`<option key=${each.type} value=${each.type} />`)}
    </datalist>
    ${more}
    ${definition && html`<${About} definition=${definition} />`}
  </${Panel}>`;
}

/** @param {{ definition: DefinitionView }} props */
const About = ({ definition }) => html`<div class="definition">
  ${definition.description && html`<p class="description">${definition.description}</p>`}
  ${definition.source && html`<p class="muted">Code: <code>${definition.source}</code></p>`}
  <p class="muted">${defaultsText(definition)}</p>
</div>`;
