// JSON for people: a tree whose branches are made when they are opened, so that a document of a megabyte
// costs no more than what is seen of it.

import { count, counted } from "../lib/format.js";
import { html, useMemo, useState } from "../lib/preact.js";
import { CopyButton } from "./copy-button.js";
import { Panel } from "./panel.js";

const AT_ONCE = 100;
const LONGEST = 300;
const FEW = 8;
const LEVELS = 3;
const PREVIEW = 3;

/** A document with ways to look at it as text, and to copy it. */
export function JsonPanel({ title, value }) {
  const [raw, setRaw] = useState(false);
  const text = () => JSON.stringify(value, null, 2);
  const tools = html`
    <button type="button" class="button small" aria-pressed=${raw} onClick=${() => setRaw(!raw)}>Raw</button>
    <${CopyButton} text=${text} what=${`the ${title.toLowerCase()}`} />`;
  return html`<${Panel} title=${title} tools=${tools}>
    ${raw ? html`<${Raw} text=${text()} label=${title} />` : html`<${Json} value=${value} label=${title} />`}
  </${Panel}>`;
}

/** A document as a tree. */
export const Json = ({ value, label }) =>
  html`<div class="json mono" role="group" aria-label=${label} tabindex="0">
    <${Value} value=${value} room=${LEVELS} /></div>`;

// In pieces, of which a browser lays out only those in sight.
const Raw = ({ text, label }) => html`<pre class="raw-json" role="group" aria-label=${label} tabindex="0">
  ${pieces(text.split("\n")).map((piece, index) => html`<div key=${index}>${piece}</div>`)}
</pre>`;

const pieces = (lines) =>
  Array.from({ length: Math.ceil(lines.length / AT_ONCE) }, (_, index) =>
    lines.slice(AT_ONCE * index, AT_ONCE * (index + 1)).join("\n"),
  );

// `room`: how many levels below may open by themselves.
function Value({ name, value, room }) {
  if (!isBranch(value))
    return html`<div class="json-leaf"><${Name} name=${name} /><${Leaf} value=${value} /></div>`;
  const size = Array.isArray(value) ? value.length : Object.keys(value).length;
  if (size === 0)
    return html`<div class="json-leaf"><${Name} name=${name} /><span>${Array.isArray(value) ? "[]" : "{}"}
      </span>
    </div>`;
  return html`<${Branch} name=${name} value=${value} size=${size} room=${room} />`;
}

function Branch({ name, value, size, room }) {
  const [open, setOpen] = useState(name === undefined || (room > 0 && size <= FEW));
  const list = Array.isArray(value);
  return html`<details open=${open} onToggle=${(event) => setOpen(event.currentTarget.open)}>
    <summary><${Name} name=${name} /><span class="muted">${
      list ? `[ ${counted(size, "item")} ]` : `{ ${counted(size, "field")} }`
    }${!open && ` ${preview(value)}`}</span></summary>
    ${
      open &&
      html`<${Children} value=${value} list=${list} size=${size}
        room=${size <= AT_ONCE / 5 ? room - 1 : 0} />`
    }
  </details>`;
}

function Children({ value, list, size, room }) {
  const [shown, setShown] = useState(AT_ONCE);
  const names = useMemo(() => (list ? null : Object.keys(value)), [value]);
  return html`<div class="json-children">
    ${Array.from({ length: Math.min(shown, size) }, (_, index) => {
      const name = list ? index : names[index];
      return html`<${Value} key=${name} name=${name} value=${value[name]} room=${room} />`;
    })}
    ${
      shown < size &&
      html`<button type="button" class="button small" onClick=${() => setShown(shown + 5 * AT_ONCE)}>
        Show more: ${count(size - shown)} left
      </button>`
    }
  </div>`;
}

const Name = ({ name }) => name !== undefined && html`<span class="json-name">${name}</span>: `;

function Leaf({ value }) {
  const [whole, setWhole] = useState(false);
  const text = JSON.stringify(value);
  const kind = value === null ? "null" : typeof value === "object" ? "number" : typeof value;
  if (whole || text.length <= LONGEST) return html`<span data-kind=${kind}>${text}</span>`;
  return html`<span data-kind=${kind}>
    ${text.slice(0, LONGEST)}…</span> <button type="button" class="button small"
    onClick=${() => setWhole(true)}>
    Show all ${count(value.length)} characters
  </button>`;
}

// What tells one item of a list from the others.
const preview = (value) =>
  Object.keys(value)
    .slice(0, PREVIEW)
    .filter((name) => !isBranch(value[name]))
    .map((name) => {
      const found = JSON.stringify(value[name]).slice(0, LONGEST / 10);
      return Array.isArray(value) ? found : `${name}: ${found}`;
    })
    .join(", ");

// Numbers that do not fit into one of JavaScript's come as raw JSON.
const isBranch = (value) => typeof value === "object" && value !== null && !JSON.isRawJSON?.(value);
