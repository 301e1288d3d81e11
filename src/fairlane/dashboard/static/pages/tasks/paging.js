import { count } from "../../lib/format.js";
import { navigate } from "../../lib/router.js";
import { html } from "../../lib/preact.js";
import { Icon } from "../../ui/icons.js";
import { amount, linkTo, SIZES } from "./query.js";

// Lists only go on from where one is: from which page one came to another is remembered here.
const before = new Map();

/** "1–50 of 12,345". */
export function Range({ view: { from }, shown, total }) {
  if (!shown) return html`<span></span>`;
  const known = total?.count >= from + shown; // They are not counted at the very moment they are listed.
  return html`<span class="page-range">${count(from + 1)}–${count(from + shown)}${
    known && ` of ${amount(total)}`
  }
  </span>`;
}

/** To the next page and back, and how long a page is. */
export function Paging({ view, shown, next }) {
  const ahead = next && linkTo({ ...view, cursor: next, from: view.from + shown });
  const first = linkTo({ ...view, cursor: undefined, from: 0 });

  function forth() {
    before.set(ahead, view.address);
    turnPage(ahead);
  }
  const back = () => turnPage(before.get(view.address) ?? first);

  return html`<div class="row">
    <label class="inline"><span class="visually-hidden">Tasks a page</span>
      <select value=${view.limit}
        onChange=${(event) => navigate(linkTo({ filter: view.filter, limit: Number(event.target.value) }))}>
        ${SIZES.map((size) => html`<option key=${size} value=${size}>${size} a page</option>`)}
      </select></label>
    <button type="button" class="button small" disabled=${!view.cursor} onClick=${back}>
      <${Icon} name="back" />Previous</button>
    <button type="button" class="button small" disabled=${!next} onClick=${forth}>Next<${Icon} name="next" />
    </button>
  </div>`;
}

function turnPage(address) {
  navigate(address);
  scrollTo(0, 0);
}
