// @ts-check
// Which part of the list is shown, and the way to the next and the previous page.

import { count } from "../../lib/format.js";
import { onValue } from "../../lib/inputs.js";
import { html } from "../../lib/preact.js";
import { navigate } from "../../lib/router.js";
import { Icon } from "../../ui/icons.js";
import { amount, linkTo, SIZES } from "./query.js";

/**
 * @import { Total } from "../../../types/api.js"
 * @import { View } from "./query.js"
 */

/**
 * Cursors only lead forward: this remembers from which page the viewer came to another.
 *
 * @type {Map<string, string>}
 */
const previous = new Map();

/** "1–50 of 12,345". @param {{ from: number, shown: number, total?: Total }} props */
export function PageRange({ from, shown, total }) {
  if (!shown) return html`<span></span>`;
  // The tasks are not counted at the very moment they are listed: the total may be too small.
  const known = total && total.count >= from + shown;
  return html`<span class="page-range">
    ${count(from + 1)}–${count(from + shown)}${known && ` of ${amount(total)}`}
  </span>`;
}

/** @param {{ view: View, shown: number, next: string | null }} props */
export function Paging({ view, shown, next }) {
  const first = linkTo({ ...view, cursor: undefined, from: 0 });

  function forward() {
    const ahead = linkTo({ ...view, cursor: next ?? undefined, from: view.from + shown });
    previous.set(ahead, view.address);
    turnPage(ahead);
  }
  const back = () => turnPage(previous.get(view.address) ?? first);
  const setSize = onValue((size) => navigate(linkTo({ filter: view.filter, limit: Number(size) })));

  return html`<div class="row">
    <label class="inline">
      <span class="visually-hidden">Tasks a page</span>
      <select value=${view.limit} onChange=${setSize}>
        ${SIZES.map((size) => html`<option key=${size} value=${size}>${size} a page</option>`)}
      </select>
    </label>
    <button type="button" class="button small" disabled=${!view.cursor} onClick=${back}>
      <${Icon} name="back" />Previous
    </button>
    <button type="button" class="button small" disabled=${!next} onClick=${forward}>
      Next<${Icon} name="next" />
    </button>
  </div>`;
}

/** @param {string} address */
function turnPage(address) {
  navigate(address);
  scrollTo(0, 0);
}
