// @ts-check
// The filters of the list. A group is chosen among the failures above, and excludes other filters.

import { onSubmit, onValue } from "../../lib/inputs.js";
import { html, useEffect, useState } from "../../lib/preact.js";
import { link, navigate } from "../../lib/router.js";
import { isUnfiltered, linkTo } from "./query.js";

/**
 * @import { GroupView } from "../../../types/api.js"
 * @import { FilterName, View } from "./query.js"
 * @typedef {[value: string, text: string]} Option
 */

/** @type {Option[]} */
const AGES = [
  ["3600", "last hour"],
  ["86400", "last day"],
  ["604800", "last week"],
];

/** @param {{ view: View, types: string[], queues: string[], group?: GroupView }} props */
export function FilterBar({ view, types, queues, group }) {
  const set = (/** @type {FilterName} */ name) => (/** @type {string} */ value) =>
    navigate(linkTo({ ...view, failure: null, [name]: value }));
  const same = (/** @type {string} */ name) => [name, name];
  return html`<div class="row filter-bar" role="search" aria-label="Dead letters">
    ${
      view.failure
        ? html`<span class="ellipsis">
          Only ${view.type}${group && html`: <span class="muted">${group.shape}</span>`}
        </span>`
        : html`
          <${Choice} label="Type" none="any type" value=${view.type} options=${types.map(same)}
            set=${set("type")} />
          <${Choice} label="Queue" none="any queue" value=${view.queue} options=${queues.map(same)}
            set=${set("queue")} />
          <${TagInput} value=${view.tag ?? ""} set=${set("tag")} />
          <${Choice} label="Submitted" none="any time" value=${view.within} options=${AGES}
            set=${set("within")} />`
    }
    ${
      !isUnfiltered(view) &&
      html`<a class="button small" href=${link("dead", { range: view.range })}>Show all</a>`
    }
  </div>`;
}

/**
 * It keeps the text, because the page is drawn again while the viewer types.
 *
 * @param {{ value: string, set: (value: string) => void }} props
 */
function TagInput({ value, set }) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  return html`<form onSubmit=${onSubmit(() => set(text.trim()))}>
    <input aria-label="Tag" placeholder="tag, as name:value" pattern="[^:]+:.*" autocomplete="off" size="16"
      value=${text} onInput=${onValue(setText)} />
  </form>`;
}

/**
 * @param {object} props
 * @param {string} props.label
 * @param {string} props.none The text of the empty choice.
 * @param {string | null} props.value It can be chosen even if it is not among the options any more.
 * @param {Option[]} props.options
 * @param {(value: string) => void} props.set
 */
function Choice({ label, none, value, options, set }) {
  const known = !value || options.some(([each]) => each === value) ? options : [[value, value], ...options];
  return html`<select aria-label=${label} value=${value ?? ""} onChange=${onValue(set)}>
    <option value="">${none}</option>
    ${known.map(([each, text]) => html`<option key=${each} value=${each}>${text}</option>`)}
  </select>`;
}
