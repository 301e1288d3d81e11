// What to filter by. A choice is added to the address at once, and shown as a chip that takes it out again.

import { get } from "../../lib/api.js";
import { compact, exactTime, spaced } from "../../lib/format.js";
import { PRIORITIES, STATES } from "../../lib/states.js";
import { useResource } from "../../lib/resource.js";
import { html, useId, useState } from "../../lib/preact.js";
import { Icon } from "../../ui/icons.js";
import { withValue, isUnfiltered, NAMES, withoutValue } from "./query.js";

/** `set(filter)` shows other tasks. */
export function FilterBar({ filter, set }) {
  const types =
    useResource((abort) => get("api/v1/types", {}, abort), [], { on: ["system.metrics"], every: 10_000 }).data
      ?.types ?? [];
  const queues =
    useResource((abort) => get("api/v1/queues", {}, abort), [], { on: ["system.metrics"], every: 10_000 })
      .data?.queues ?? [];
  const [more, setMore] = useState(false);
  const add = (name) => (value) => set(withValue(filter, name, value));
  const open = more || filter.worker.length || filter.since.length || filter.until.length;
  return html`<section class="filter-bar" aria-label="Filters">
    <${States} filter=${filter} set=${set} counts=${countsOf(filter, types, queues)} />
    <div class="row">
      <${Choice} label="Type" values=${types.map((each) => each.type)} add=${add("type")} />
      <${Choice} label="Queue" values=${queues.map((each) => each.queue)} add=${add("queue")} />
      <${Choice} label="Priority" values=${PRIORITIES} add=${add("priority")} />
      <${Typed} label="Tag" placeholder="tag, as name:value" pattern="[^:]+:.*" add=${add("tag")} />
      ${
        open
          ? html`<${Typed} label="Worker" placeholder="worker" add=${add("worker")} />
          <${Since} label="Since" value=${filter.since[0]} add=${add("since")} />
          <${Since} label="Until" value=${filter.until[0]} add=${add("until")} />`
          : html`<button type="button" class="button link"
            onClick=${() => setMore(true)}>More filters</button>`
      }
    </div>
    <${Chips} filter=${filter} set=${set} />
  </section>`;
}

function States({ filter, set, counts }) {
  const toggle =
    (state) =>
    ({ target }) =>
      set((target.checked ? withValue : withoutValue)(filter, "status", state));
  return html`<fieldset class="state-filter"><legend class="visually-hidden">Status</legend>
    ${STATES.map(
      (state) => html`<label key=${state} class="chip" data-state=${state}>
        <input type="checkbox" checked=${filter.status.includes(state)} onChange=${toggle(state)} />
        <span class="badge" data-state=${state}>${spaced(state)}</span> ${
          counts && html`<span class="muted">${compact(counts[state] ?? 0)}</span>`
        }
      </label>`,
    )}
  </fieldset>`;
}

// The counters go by type or by queue: of what is filtered by anything else they know nothing.
function countsOf(filter, types, queues) {
  const others = NAMES.filter((name) => filter[name].length && name !== "status");
  if (others.length > 1 || !["type", "queue", undefined].includes(others[0])) return null;
  const found =
    others[0] === "queue"
      ? queues.filter(({ queue }) => filter.queue.includes(queue))
      : types.filter(({ type }) => !filter.type.length || filter.type.includes(type));
  return Object.fromEntries(
    STATES.map((state) => [state, found.reduce((sum, each) => sum + each.by_status[state], 0)]),
  );
}

const Choice = ({ label, values, add }) => html`<select aria-label=${label} value="" onChange=${(event) => {
  add(event.target.value);
  event.target.value = "";
}}>
  <option value="" disabled>${label}</option>
  ${values.map((value) => html`<option key=${value} value=${value}>${value}</option>`)}
</select>`;

function Typed({ label, placeholder, pattern, add }) {
  function submit(event) {
    event.preventDefault();
    const field = event.target.elements[0];
    add(field.value.trim());
    field.value = "";
  }
  return html`<form onSubmit=${submit}>
    <input aria-label=${label} placeholder=${placeholder} pattern=${pattern} required size="16"
      autocomplete="off" /></form>`;
}

function Since({ label, value, add }) {
  const id = useId();
  return html`<span class="inline"><label for=${id}>${label}</label>
    <input id=${id} type="datetime-local" value=${local(value)} onChange=${({ target }) =>
      target.value && add(new Date(target.value).toISOString())} /></span>`;
}

/** A time as the field takes it: in the viewer's zone, to the minute. */
function local(iso) {
  const time = new Date(iso ?? "");
  if (Number.isNaN(time.valueOf())) return "";
  return new Date(time - 60_000 * time.getTimezoneOffset()).toISOString().slice(0, 16);
}

function Chips({ filter, set }) {
  if (isUnfiltered(filter)) return null;
  const all = NAMES.flatMap((name) => filter[name].map((value) => [name, value]));
  const none = Object.fromEntries(NAMES.map((name) => [name, []]));
  return html`<ul class="row active-filters" aria-label="Filters in force">
    ${all.map(
      ([name, value]) => html`<li key=${`${name} ${value}`} class="chip">
        <span class="ellipsis"><span class="muted">${name}</span> ${told(name, value)}</span>
        <button type="button" aria-label=${`Without ${name} ${told(name, value)}`}
          onClick=${() => set(withoutValue(filter, name, value))}><${Icon} name="close" /></button>
      </li>`,
    )}
    <li><button type="button" class="button link" onClick=${() => set(none)}>Clear all filters</button></li>
  </ul>`;
}

function told(name, value) {
  if (name === "status") return spaced(value);
  const time = name === "since" || name === "until" ? Date.parse(value) : NaN;
  return Number.isNaN(time) ? value : exactTime(time);
}
