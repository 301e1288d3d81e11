import { navigate, link } from "../../lib/router.js";
import { html, useEffect, useState } from "../../lib/preact.js";
import { isUnfiltered, linkTo } from "./query.js";

const AGES = [
  ["3600", "last hour"],
  ["86400", "last day"],
  ["604800", "last week"],
];

/** What the list is filtered by. A group is chosen among the failures above, and goes alone. */
export function FilterBar({ view, types, queues, group }) {
  const set = (name) => (value) => navigate(linkTo({ ...view, failure: null, [name]: value }));
  return html`<div class="row filter-bar" role="search" aria-label="Dead letters">
    ${
      view.failure
        ? html`<span class="ellipsis">Only ${view.type}${
            group && html`: <span class="muted">${group.shape}</span>`
          }
        </span>`
        : html`
          <${Choice} label="Type" none="any type" value=${view.type} options=${types.map(twice)}
            set=${set("type")} />
          <${Choice} label="Queue" none="any queue" value=${view.queue} options=${queues.map(twice)}
            set=${set("queue")} />
          <${Tag} value=${view.tag ?? ""} set=${set("tag")} />
          <${Choice} label="Submitted" none="any time" value=${view.within} options=${AGES}
            set=${set("within")} />`
    }
    ${
      !isUnfiltered(view) &&
      html`<a class="button small" href=${link("dead", { range: view.range })}>Show all</a>`
    }
  </div>`;
}

// What is typed is kept here: the page is drawn anew every second, from what is chosen.
function Tag({ value, set }) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  function submit(event) {
    event.preventDefault();
    set(text.trim());
  }
  return html`<form onSubmit=${submit}>
    <input aria-label="Tag" placeholder="tag, as name:value" pattern="[^:]+:.*" autocomplete="off" size="16"
      value=${text} onInput=${(event) => setText(event.target.value)} />
  </form>`;
}

const twice = (name) => [name, name];

// What the address asks for can be chosen even if there is none of it left.
function Choice({ label, none, value, options, set }) {
  const known = !value || options.some(([each]) => each === value) ? options : [[value, value], ...options];
  return html`<select aria-label=${label} value=${value ?? ""} onChange=${(event) => set(event.target.value)}>
    <option value="">${none}</option>
    ${known.map(([each, text]) => html`<option key=${each} value=${each}>${text}</option>`)}
  </select>`;
}
