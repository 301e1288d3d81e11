// How many tasks there are in which state.

import { count, spaced } from "../lib/format.js";
import { STATES } from "../lib/states.js";
import { link } from "../lib/router.js";
import { html } from "../lib/preact.js";

/** As a bar, of which `share` is filled. */
export const StateBar = ({
  states,
  share = 1,
}) => html`<span class="state-bar" aria-hidden="true" style=${{ width: `${100 * share}%` }}>
  ${found(states).map(
    (state) => html`<span key=${state} data-state=${state}
      style=${{ flexGrow: states[state] }} title=${`${count(states[state])} ${spaced(state)}`}></span>`,
  )}
</span>`;

/** As a bar and in numbers, each a link to these tasks among those of `filter`. */
export const StateCounts = ({ states, filter }) => html`<div class="state-counts">
  <${StateBar} states=${states} />
  ${found(states).map(
    (state) => html`<a key=${state} data-state=${state} href=${link("tasks", { ...filter, status: state })}>
      <b>${count(states[state])}</b> ${spaced(state)}
    </a>`,
  )}
  ${found(states).length === 0 && html`<span class="muted">no tasks</span>`}
</div>`;

const found = (states) => STATES.filter((state) => states[state]);
