// @ts-check
// How many tasks are in which state.

import { count, spaced } from "../lib/format.js";
import { html } from "../lib/preact.js";
import { STATES } from "../lib/states.js";

/**
 * @import { State } from "../../types/api.js"
 * @typedef {Record<string, number>} Counts By the names of states.
 */

/** A bar that is filled up to `share`. @param {{ counts: Counts, share?: number }} props */
export const StateBar = ({ counts, share = 1 }) =>
  html`<span class="state-bar" aria-hidden="true" style=${{ width: `${100 * share}%` }}>
    ${present(counts).map(
      (state) => html`<span key=${state} data-state=${state}
        style=${{ flexGrow: counts[state] }} title=${`${count(counts[state])} ${spaced(state)}`}></span>`,
    )}
  </span>`;

/**
 * A bar and numbers, each a link to these tasks.
 *
 * @param {{ counts: Counts, to: (state: State) => string }} props
 */
export const StateCounts = ({ counts, to }) => html`<div class="state-counts">
  <${StateBar} counts=${counts} />
  ${present(counts).map(
    (state) => html`<a key=${state} data-state=${state} href=${to(state)}>
      <b>${count(counts[state])}</b> ${spaced(state)}
    </a>`,
  )}
  ${present(counts).length === 0 && html`<span class="muted">no tasks</span>`}
</div>`;

/** @param {Counts} counts */
const present = (counts) => STATES.filter((state) => counts[state]);
