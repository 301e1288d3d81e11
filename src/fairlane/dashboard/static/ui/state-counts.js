// @ts-check
// How many tasks are in which state.

import { count, spaced } from "../lib/format.js";
import { html } from "../lib/preact.js";
import { link } from "../lib/router.js";
import { STATES } from "../lib/states.js";

/** @typedef {Record<string, number>} Counts By the names of states. */

/** A bar that is filled up to `share`. @param {{ counts: Counts, share?: number }} props */
export const StateBar = ({ counts, share = 1 }) =>
  html`<span class="state-bar" aria-hidden="true" style=${{ width: `${100 * share}%` }}>
    ${present(counts).map(
      (state) => html`<span key=${state} data-state=${state}
        style=${{ flexGrow: counts[state] }} title=${`${count(counts[state])} ${spaced(state)}`}></span>`,
    )}
  </span>`;

/**
 * A bar and numbers, each a link to these tasks of a filter.
 *
 * @param {{ counts: Counts, filter: { queue?: string, type?: string } }} props
 */
export const StateCounts = ({ counts, filter }) => html`<div class="state-counts">
  <${StateBar} counts=${counts} />
  ${present(counts).map(
    (state) => html`<a key=${state} data-state=${state} href=${link("tasks", { ...filter, status: state })}>
      <b>${count(counts[state])}</b> ${spaced(state)}
    </a>`,
  )}
  ${present(counts).length === 0 && html`<span class="muted">no tasks</span>`}
</div>`;

/** @param {Counts} counts */
const present = (counts) => STATES.filter((state) => counts[state]);
