// @ts-check
// The filters of the list. A choice goes into the address at once, and is shown as a chip that removes it.

import { compact, exactTime, spaced } from "../../lib/format.js";
import { onChecked, onValue } from "../../lib/inputs.js";
import { fetchLanes, NO_LANES } from "../../lib/lanes.js";
import { isoTime, localTime } from "../../lib/local-times.js";
import { html, useId, useState } from "../../lib/preact.js";
import { useResource } from "../../lib/resource.js";
import { boundTo } from "../../lib/session.js";
import { PRIORITIES, STATES } from "../../lib/states.js";
import { Icon } from "../../ui/icons.js";
import { filterOf, isUnfiltered, NAMES, withoutValue, withValue } from "./query.js";

/**
 * @import { EventType, QueueView, TypeView } from "../../../types/api.js"
 * @import { Filter, FilterName } from "./query.js"
 * @typedef {{ filter: Filter, set: (filter: Filter) => void }} Props
 * @typedef {{ label: string, add: (value: string) => void }} InputProps
 */

/** Filters that are not shown at first. @type {FilterName[]} */
const MORE = ["worker", "schedule_id", "since", "until"];

/** @type {{ on: EventType[], every: number }} */
const REFETCH = { on: ["system.metrics"], every: 10_000 };

/** @param {Props} props */
export function FilterBar({ filter, set }) {
  const { types, queues } = useResource(fetchLanes, [], REFETCH).data ?? NO_LANES;
  const [more, setMore] = useState(false);
  const add = (/** @type {FilterName} */ name) => (/** @type {string} */ value) =>
    set(withValue(filter, name, value));
  const open = more || MORE.some((name) => filter[name].length > 0);
  return html`<section class="filter-bar" aria-label="Filters">
    <${StateFilter} filter=${filter} set=${set}
      counts=${boundTo.value === null ? countsOf(filter, types, queues) : null} />
    <div class="row">
      ${
        boundTo.value === null
          ? html`<${Choice} label="Type" values=${types.map((each) => each.type)} add=${add("type")} />
          <${Choice} label="Queue" values=${queues.map((each) => each.queue)} add=${add("queue")} />`
          : html`<${TextInput} label="Type" placeholder="type" add=${add("type")} />
          <${TextInput} label="Queue" placeholder="queue" add=${add("queue")} />`
      }
      <${Choice} label="Priority" values=${PRIORITIES} add=${add("priority")} />
      <${TextInput} label="Tag" placeholder="tag, as name:value" pattern="[^:]+:.*" add=${add("tag")} />
      ${
        open
          ? html`<${TextInput} label="Worker" placeholder="worker" add=${add("worker")} />
          <${TextInput} label="Schedule" placeholder="schedule" add=${add("schedule_id")} />
          <${TimeInput} label="Since" value=${filter.since[0]} add=${add("since")} />
          <${TimeInput} label="Until" value=${filter.until[0]} add=${add("until")} />`
          : html`<button type="button" class="button link" onClick=${() => setMore(true)}>
            More filters
          </button>`
      }
    </div>
    <${ActiveFilters} filter=${filter} set=${set} />
  </section>`;
}

/** @param {Props & { counts: Record<string, number> | null }} props */
function StateFilter({ filter, set, counts }) {
  const toggle = (/** @type {string} */ state) => (/** @type {boolean} */ on) =>
    set((on ? withValue : withoutValue)(filter, "status", state));
  return html`<fieldset class="state-filter"><legend class="visually-hidden">Status</legend>
    ${STATES.map(
      (state) => html`<label key=${state} class="chip" data-state=${state}>
        <input type="checkbox" checked=${filter.status.includes(state)}
          onChange=${onChecked(toggle(state))} />
        <span class="badge" data-state=${state}>${spaced(state)}</span>
        ${counts && html` <span class="muted">${compact(counts[state] ?? 0)}</span>`}
      </label>`,
    )}
  </fieldset>`;
}

/**
 * The server counts by type and by queue; with any other filter the counts are unknown.
 *
 * @param {Filter} filter
 * @param {TypeView[]} types
 * @param {QueueView[]} queues
 */
function countsOf(filter, types, queues) {
  const [name = "type", ...others] = NAMES.filter((each) => filter[each].length && each !== "status");
  if (others.length || (name !== "type" && name !== "queue")) return null;
  const counted =
    name === "queue"
      ? queues.filter(({ queue }) => filter.queue.includes(queue))
      : types.filter(({ type }) => !filter.type.length || filter.type.includes(type));
  return Object.fromEntries(
    STATES.map((state) => [state, counted.reduce((sum, each) => sum + each.by_status[state], 0)]),
  );
}

/** @param {InputProps & { values: string[] }} props */
function Choice({ label, values, add }) {
  const choose = (/** @type {Event} */ event) => {
    const field = /** @type {HTMLSelectElement} */ (event.currentTarget);
    add(field.value);
    field.value = "";
  };
  return html`<select aria-label=${label} value="" onChange=${choose}>
    <option value="" disabled>${label}</option>
    ${values.map((value) => html`<option key=${value} value=${value}>${value}</option>`)}
  </select>`;
}

/** @param {InputProps & { placeholder: string, pattern?: string }} props */
function TextInput({ label, placeholder, pattern, add }) {
  const submit = (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const form = /** @type {HTMLFormElement} */ (event.currentTarget);
    add(String(new FormData(form).get("text")).trim());
    form.reset();
  };
  return html`<form onSubmit=${submit}>
    <input name="text" aria-label=${label} placeholder=${placeholder} pattern=${pattern} required size="16"
      autocomplete="off" />
  </form>`;
}

/** @param {InputProps & { value?: string }} props */
function TimeInput({ label, value, add }) {
  const id = useId();
  const change = onValue((text) => {
    const time = isoTime(text);
    if (time) add(time);
  });
  return html`<span class="inline"><label for=${id}>${label}</label>
    <input id=${id} type="datetime-local" value=${localTime(value)} onChange=${change} />
  </span>`;
}

/** @param {Props} props */
function ActiveFilters({ filter, set }) {
  if (isUnfiltered(filter)) return null;
  const all = NAMES.flatMap((name) =>
    filter[name].map((value) => ({ name, value, title: name.replace("_id", ""), text: textOf(name, value) })),
  );
  return html`<ul class="row active-filters" aria-label="Active filters">
    ${all.map(
      ({ name, value, title, text }) => html`<li key=${`${name} ${value}`} class="chip">
        <span class="ellipsis"><span class="muted">${title}</span> ${text}</span>
        <button type="button" aria-label=${`Remove ${title} ${text}`}
          onClick=${() => set(withoutValue(filter, name, value))}><${Icon} name="close" /></button>
      </li>`,
    )}
    <li>
      <button type="button" class="button link" onClick=${() => set(filterOf(() => []))}>
        Clear all filters
      </button>
    </li>
  </ul>`;
}

/** @param {FilterName} name @param {string} value */
function textOf(name, value) {
  if (name === "status") return spaced(value);
  const time = name === "since" || name === "until" ? Date.parse(value) : NaN;
  return Number.isNaN(time) ? value : exactTime(time);
}
