// @ts-check
// The filters of the list: states, and the whole name.

import { onChecked, onSubmit } from "../../lib/inputs.js";
import { html, useRef } from "../../lib/preact.js";
import { COLOURS } from "./badge.js";
import { STATES } from "./query.js";

/**
 * @import { WorkflowState } from "../../../types/api.js"
 * @import { Filter } from "./query.js"
 */

/** @param {{ filter: Filter, set: (filter: Filter) => void }} props */
export function FilterBar({ filter, set }) {
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  const toggle = (/** @type {WorkflowState} */ state) => (/** @type {boolean} */ on) =>
    set({ ...filter, state: STATES.filter((each) => (each === state ? on : filter.state.includes(each))) });
  const search = onSubmit(() => set({ ...filter, name: field.current?.value.trim() ?? "" }));
  return html`<section class="filter-bar" aria-label="Filters">
    <div class="row">
      <fieldset class="state-filter"><legend class="visually-hidden">State</legend>
        ${STATES.map(
          (state) => html`<label key=${state} class="chip" data-state=${COLOURS[state]}>
            <input type="checkbox" checked=${filter.state.includes(state)}
              onChange=${onChecked(toggle(state))} />
            <span class="badge" data-state=${COLOURS[state]}>${state}</span>
          </label>`,
        )}
      </fieldset>
      <form role="search" onSubmit=${search}>
        <input key=${filter.name} ref=${field} type="search" aria-label="Name" placeholder="whole name"
          value=${filter.name} autocomplete="off" onSearch=${search} />
      </form>
    </div>
  </section>`;
}
