// @ts-check
// JSON for people: a tree whose branches are made when they are opened, so that a document of a megabyte
// costs no more than the part of it that is visible.

import { count, counted } from "../lib/format.js";
import { onToggled } from "../lib/inputs.js";
import { isBranch } from "../lib/json-values.js";
import { html, useMemo, useState } from "../lib/preact.js";
import { CopyButton } from "./copy-button.js";
import { Panel } from "./panel.js";

/**
 * @typedef {unknown[] | Record<string, unknown>} Branch
 * @typedef {{ name?: string | number, room: number }} Place Its name in the branch above, and how many levels
 *   below it may open by themselves.
 */

const AT_ONCE = 100;
const LONGEST_TEXT = 300;
const FEW = 8;
const LEVELS = 3;
const PREVIEWED = 3;

// These turn the text after them around. They are shown as escapes, as JSON may have them.
const DIRECTION_MARKS = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/**
 * A document, as a tree or as text, with a button to copy it.
 *
 * @param {{ title: string, value: unknown }} props
 */
export function JsonPanel({ title, value }) {
  const [raw, setRaw] = useState(false);
  const text = () => encoded(value, 2);
  const tools = html`
    <button type="button" class="button small" aria-pressed=${raw} onClick=${() => setRaw(!raw)}>Raw</button>
    <${CopyButton} text=${text} what=${`the ${title.toLowerCase()}`} />`;
  return html`<${Panel} title=${title} tools=${tools}>
    ${
      raw
        ? html`<${RawJson} text=${text()} label=${title} />`
        : html`<${Tree} value=${value} label=${title} />`
    }
  </${Panel}>`;
}

/** @param {{ value: unknown, label: string }} props */
const Tree = ({ value, label }) =>
  html`<div class="json mono" role="group" aria-label=${label} tabindex="0">
    <${Value} value=${value} room=${LEVELS} />
  </div>`;

/**
 * The text in pieces: a browser lays out only those that are visible.
 *
 * @param {{ text: string, label: string }} props
 */
const RawJson = ({ text, label }) => html`<pre class="raw-json" role="group" aria-label=${label} tabindex="0">
  ${pieces(text.split("\n")).map((piece, index) => html`<div key=${index}>${piece}</div>`)}
</pre>`;

/** @param {string[]} lines */
const pieces = (lines) =>
  Array.from({ length: Math.ceil(lines.length / AT_ONCE) }, (_, index) =>
    lines.slice(AT_ONCE * index, AT_ONCE * (index + 1)).join("\n"),
  );

/** @param {Place & { value: unknown }} props */
function Value({ name, value, room }) {
  if (!isBranch(value)) {
    return html`<div class="json-leaf"><${Name} name=${name} /><${Leaf} value=${value} /></div>`;
  }
  const size = Array.isArray(value) ? value.length : Object.keys(value).length;
  if (size === 0) {
    const text = Array.isArray(value) ? "[]" : "{}";
    return html`<div class="json-leaf"><${Name} name=${name} /><span>${text}</span></div>`;
  }
  return html`<${OpenableBranch} name=${name} value=${value} size=${size} room=${room} />`;
}

/** @param {Place & { value: Branch, size: number }} props */
function OpenableBranch({ name, value, size, room }) {
  const [open, setOpen] = useState(name === undefined || (room > 0 && size <= FEW));
  const summary = Array.isArray(value) ? `[ ${counted(size, "item")} ]` : `{ ${counted(size, "field")} }`;
  const below = size <= AT_ONCE / 5 ? room - 1 : 0;
  return html`<details open=${open} onToggle=${onToggled(setOpen)}>
    <summary>
      <${Name} name=${name} /><span class="muted">${summary}${!open && ` ${preview(value)}`}</span>
    </summary>
    ${open && html`<${Members} value=${value} size=${size} room=${below} />`}
  </details>`;
}

/** @param {{ value: Branch, size: number, room: number }} props */
function Members({ value, size, room }) {
  const [shown, setShown] = useState(AT_ONCE);
  const names = useMemo(() => (Array.isArray(value) ? null : Object.keys(value)), [value]);
  const members = /** @type {Record<string | number, unknown>} */ (value);
  return html`<div class="json-children">
    ${Array.from({ length: Math.min(shown, size) }, (_, index) => {
      const name = names ? names[index] : index;
      return html`<${Value} key=${name} name=${name} value=${members[name]} room=${room} />`;
    })}
    ${
      shown < size &&
      html`<button type="button" class="button small" onClick=${() => setShown(shown + 5 * AT_ONCE)}>
        Show more: ${count(size - shown)} left
      </button>`
    }
  </div>`;
}

/** @param {{ name?: string | number }} props */
const Name = ({ name }) => name !== undefined && html`<span class="json-name">${name}</span>: `;

/** @param {{ value: unknown }} props */
function Leaf({ value }) {
  const [whole, setWhole] = useState(false);
  const text = encoded(value);
  const kind = value === null ? "null" : typeof value === "object" ? "number" : typeof value;
  if (whole || text.length <= LONGEST_TEXT) return html`<span data-kind=${kind}>${text}</span>`;
  return html`<span data-kind=${kind}>${text.slice(0, LONGEST_TEXT)}…</span>
  ${" "}
  <button type="button" class="button small" onClick=${() => setWhole(true)}>
    Show all ${count(typeof value === "string" ? value.length : text.length)} characters
  </button>`;
}

/** Write JSON for people to read. @param {unknown} value @param {number} [indent] */
export const encoded = (value, indent) => escaped(JSON.stringify(value, null, indent));

/** @param {string} text */
const escaped = (text) =>
  text.replace(DIRECTION_MARKS, (mark) => `\\u${mark.charCodeAt(0).toString(16).padStart(4, "0")}`);

/** Return the first fields, which tell one item of a list from the others. @param {Branch} value */
const preview = (value) =>
  Object.entries(value)
    .slice(0, PREVIEWED)
    .filter(([, member]) => !isBranch(member))
    .map(([name, member]) => {
      const text = encoded(member).slice(0, LONGEST_TEXT / 10);
      return Array.isArray(value) ? text : `${escaped(name)}: ${text}`;
    })
    .join(", ");
