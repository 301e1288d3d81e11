import { go, link } from "../../lib/router.js";
import { html } from "../../lib/view.js";
import { isOpen, linkTo } from "./view.js";

const AGES = [["3600", "last hour"], ["86400", "last day"], ["604800", "last week"]];

/** What the list is filtered by. A group is chosen among the failures above, and goes alone. */
export function Filters({ view, types, queues, group }) {
  const set = (name) => (event) => go(linkTo({ ...view, failure: null, [name]: event.target.value.trim() }));
  function tagged(event) {
    event.preventDefault();
    set("tag")({ target: event.target.elements.tag });
  }
  return html`<div class="row filters" role="search" aria-label="Dead letters">
    ${view.failure
      ? html`<span class="cut">Only ${view.type}${group && html`: <span class="dim">${group.shape}</span>`}</span>`
      : html`
        <${Choice} label="Type" none="any type" value=${view.type} options=${types.map(twice)} set=${set("type")} />
        <${Choice} label="Queue" none="any queue" value=${view.queue} options=${queues.map(twice)} set=${set("queue")} />
        <form onSubmit=${tagged}><input name="tag" aria-label="Tag" placeholder="tag, as name:value" pattern="[^:]+:.*" autocomplete="off" size="16" value=${view.tag ?? ""} /></form>
        <${Choice} label="Submitted" none="any time" value=${view.within} options=${AGES} set=${set("within")} />`}
    ${!isOpen(view) && html`<a class="button small" href=${link("dead", { range: view.range })}>Show all</a>`}
  </div>`;
}

const twice = (name) => [name, name];

// What the address asks for can be chosen even if there is none of it left.
function Choice({ label, none, value, options, set }) {
  const known = !value || options.some(([each]) => each === value) ? options : [[value, value], ...options];
  return html`<select aria-label=${label} value=${value ?? ""} onChange=${set}>
    <option value="">${none}</option>
    ${known.map(([each, text]) => html`<option key=${each} value=${each}>${text}</option>`)}
  </select>`;
}
