// The dead letters themselves, a page at a time.

import { count } from "../../lib/format.js";
import { pageOf } from "../../lib/task-list.js";
import { useResource } from "../../lib/resource.js";
import { link } from "../../lib/router.js";
import { NONE, useSelection } from "../../lib/selection.js";
import { html, useRef, useState } from "../../lib/preact.js";
import { Badge } from "../../ui/badges.js";
import { TaskLink } from "../../ui/links.js";
import { Empty } from "../../ui/empty.js";
import { Fetched } from "../../ui/fetched.js";
import { Panel } from "../../ui/panel.js";
import { Ago } from "../../ui/time.js";
import { LetterActions, MatchingLetters, SelectedLetters } from "./actions.js";
import { FilterBar } from "./filter-bar.js";
import { isUnfiltered, linkTo, queryOf } from "./query.js";

const SIZE = 50;
const EVENTS = ["task.dead_letter", "task.deleted", "task.queued"];
const TITLES = ["Task", "Error", "Queue", "Runs", "Died"];

/** `known`: how many match, if no counter can tell. */
export function LetterList({ view, known, group, types, queues, changed }) {
  const address = link("dead", { ...view, range: null });
  const found = useResource((abort) => load(view, address, abort), [address], { on: EVENTS });
  const [ids, setIds] = useState(NONE);
  const [pointed, setPointed] = useState(false);
  const held = useHeld(found, address, pointed || ids.size > 0);
  const selection = useSelection(held.tasks, address, ids, setIds);
  const refresh = async () => {
    held.release();
    setIds(NONE);
    await Promise.all([found.refresh(), changed()]);
  };
  const some = selection.chosen.length > 0;
  const what = some ? new SelectedLetters(selection.chosen) : new MatchingLetters(view, known);
  return html`<${Panel} title="Dead letters" flush tools=${html`
    <span class="muted">${
      some
        ? `${count(selection.chosen.length)} selected`
        : isUnfiltered(view)
          ? "All of them"
          : "All that match"
    }</span>
    <${LetterActions} small what=${what} changed=${refresh} />`}>
    <${FilterBar} view=${view} group=${group} types=${types} queues=${queues} />
    <${Fetched} resource=${found} rows=${8}>${({ next }) => html`
      ${
        held.tasks.length > 0 &&
        html`<${Table} tasks=${held.tasks} selection=${selection} pointed=${setPointed} changed=${refresh} />`
      }
      ${held.tasks.length === 0 && html`<${Nothing} view=${view} />`}
      <div class="row align-end table-footer">
        ${view.cursor && html`<a class="button" href=${linkTo(view)}>To the newest</a>`}
        ${
          next &&
          html`<a class="button" href=${link("dead", { ...view, cursor: next })}
            onClick=${() => scrollTo(0, 0)}>Older</a>`
        }
      </div>
    `}</${Fetched}>
  </${Panel}>`;
}

async function load(view, address, abort) {
  const page = await pageOf("api/v1/dlq", queryOf(view), { limit: SIZE, cursor: view.cursor }, abort);
  return { address, ...page };
}

// Rows stay where they are while somebody points at them or has selected some: until that is over, or until
// what is fetched after `release` is there.
function useHeld({ data }, address, held) {
  const shown = useRef({ address: null, tasks: [] });
  const released = useRef(null);
  if (data?.address === address) {
    const moves =
      !held || shown.current.address !== address || (released.current && released.current !== data);
    if (moves) {
      shown.current = data;
      released.current = null;
    }
  }
  return {
    tasks: shown.current.tasks,
    release: () => {
      released.current = data;
    },
  };
}

const Table = ({
  tasks,
  selection,
  pointed,
  changed,
}) => html`<table class="folding-table letters" role="table" aria-label="Dead letters"
  onPointerEnter=${(event) => pointed(event.pointerType === "mouse")} onPointerLeave=${() => pointed(false)}>
  <thead role="rowgroup"><tr role="row">
      <th role="columnheader" class="check">
        <input type="checkbox" aria-label="Select the page" checked=${selection.whole}
          indeterminate=${!selection.whole && selection.chosen.length > 0}
          onClick=${() => selection.page(!selection.whole)} /></th>
      ${TITLES.map((title) => html`<th role="columnheader" key=${title} scope="col">${title}</th>`)}
      <th role="columnheader"><span class="visually-hidden">Actions</span></th>
    </tr></thead>
  <tbody role="rowgroup">${tasks.map(
    (task) => html`<${Letter} key=${task.task_id} task=${task} selection=${selection} changed=${changed} />`,
  )}</tbody>
</table>`;

function Letter({ task, selection, changed }) {
  const { task_id: id, task_type: type, error } = task;
  const selected = selection.ids.has(id);
  return html`<tr role="row" aria-selected=${selected}>
    <td role="cell" class="check">
      <input type="checkbox" aria-label=${`Select ${id}`} checked=${selected}
        onClick=${(event) => selection.toggle(id, event.shiftKey)} /></td>
    <th role="rowheader" scope="row" class="name"><${TaskLink} id=${id} /> <span>${type}</span></th>
    <td role="cell" class="error">
      ${error?.code && html`<${Badge} tone="danger">${error.code}</${Badge}>`} <span title=${error?.message}>
        ${error?.message}</span></td>
    <td role="cell" class="muted queue">${task.queue}</td>
    <td role="cell" class="muted" data-title="Runs">${count(task.attempt)}</td>
    <td role="cell" class="muted"><${Ago} at=${task.completed_at ?? task.updated_at} /></td>
    <td role="cell" class="row-actions">
      <${LetterActions} small what=${new SelectedLetters([task])} of=${` (${type})`} changed=${changed} />
    </td>
  </tr>`;
}

const Nothing = ({ view }) => html`<${Empty} title=${view.cursor ? "Nothing more" : "No dead letter matches"}>
  <a class="button" href=${view.cursor ? linkTo(view) : link("dead")}>${
    view.cursor ? "To the newest" : "Show all"
  }</a>
</${Empty}>`;
