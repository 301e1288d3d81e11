// @ts-check
// The list of dead letters, a page at a time.

import { count } from "../../lib/format.js";
import { html, useRef, useState } from "../../lib/preact.js";
import { useResource } from "../../lib/resource.js";
import { link } from "../../lib/router.js";
import { NONE, useSelection } from "../../lib/selection.js";
import { fetchPage } from "../../lib/task-list.js";
import { Badge } from "../../ui/badges.js";
import { Empty } from "../../ui/empty.js";
import { fetched } from "../../ui/fetched.js";
import { TaskLink } from "../../ui/links.js";
import { Panel } from "../../ui/panel.js";
import { Ago } from "../../ui/time.js";
import { LetterActions, MatchingLetters, SelectedLetters } from "./actions.js";
import { FilterBar } from "./filter-bar.js";
import { isUnfiltered, linkTo, queryOf } from "./query.js";

/**
 * @import { GroupView, TaskView, Total } from "../../../types/api.js"
 * @import { Selection } from "../../lib/selection.js"
 * @import { View } from "./query.js"
 * @typedef {{ address: string | null, tasks: TaskView[] }} Shown
 * @typedef {{ selection: Selection, changed: () => Promise<unknown> }} RowProps
 */

const SIZE = 50;
const TITLES = ["Task", "Error", "Queue", "Runs", "Died"];

/**
 * @param {object} props
 * @param {View} props.view
 * @param {Total} [props.total] How many match, if the server cannot count them.
 * @param {GroupView} [props.group]
 * @param {string[]} props.types
 * @param {string[]} props.queues
 * @param {() => Promise<unknown>} props.changed
 */
export function LetterList({ view, total, group, types, queues, changed }) {
  const address = link("dead", { ...view, range: null });
  const page = useResource((abort) => load(view, address, abort), [address], {
    on: ["task.dead_letter", "task.deleted", "task.queued"],
  });
  const [ids, setIds] = useState(NONE);
  const [pointed, setPointed] = useState(false);
  const held = useHeld(page.data, address, pointed || ids.size > 0);
  const selection = useSelection(held.tasks, address, ids, setIds);
  const refresh = async () => {
    held.release();
    setIds(NONE);
    await Promise.all([page.refresh(), changed()]);
  };
  const some = selection.selected.length;
  const letters = some ? new SelectedLetters(selection.selected) : new MatchingLetters(view, total);
  const scope = some ? `${count(some)} selected` : isUnfiltered(view) ? "All of them" : "All that match";
  const tools = html`
    <span class="muted">${scope}</span>
    <${LetterActions} letters=${letters} changed=${refresh} />`;
  return html`<${Panel} title="Dead letters" flush tools=${tools}>
    <${FilterBar} view=${view} group=${group} types=${types} queues=${queues} />
    ${fetched(
      page,
      ({ next }) => html`
        ${
          held.tasks.length > 0
            ? html`<${Table} tasks=${held.tasks} selection=${selection} setPointed=${setPointed}
              changed=${refresh} />`
            : html`<${Nothing} view=${view} />`
        }
        <div class="row align-end table-footer">
          ${view.cursor && html`<a class="button" href=${linkTo(view)}>To the newest</a>`}
          ${
            next &&
            html`<a class="button" href=${link("dead", { ...view, cursor: next })}
              onClick=${() => scrollTo(0, 0)}>Older</a>`
          }
        </div>
      `,
      8,
    )}
  </${Panel}>`;
}

/** @param {View} view @param {string} address @param {AbortSignal} abort */
async function load(view, address, abort) {
  const page = await fetchPage("api/v1/dlq", queryOf(view), { limit: SIZE, cursor: view.cursor }, abort);
  return { address, ...page };
}

/**
 * Keep rows in their places while the viewer points at them or has selected some; `release` lets the next
 * data take their place.
 *
 * @param {Shown | undefined} data
 * @param {string} address
 * @param {boolean} held
 */
function useHeld(data, address, held) {
  const shown = useRef(/** @type {Shown} */ ({ address: null, tasks: [] }));
  const released = useRef(/** @type {Shown | null | undefined} */ (null));
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

/** @param {RowProps & { tasks: TaskView[], setPointed: (pointed: boolean) => void }} props */
function Table({ tasks, selection, setPointed, changed }) {
  const { selected, wholePage, selectPage } = selection;
  const point = (/** @type {PointerEvent} */ event) => setPointed(event.pointerType === "mouse");
  return html`<table class="folding-table letters" role="table" aria-label="Dead letters"
    onPointerEnter=${point} onPointerLeave=${() => setPointed(false)}>
    <thead role="rowgroup"><tr role="row">
        <th role="columnheader" class="check">
          <input type="checkbox" aria-label="Select the page" checked=${wholePage}
            indeterminate=${!wholePage && selected.length > 0} onClick=${() => selectPage(!wholePage)} />
        </th>
        ${TITLES.map((title) => html`<th role="columnheader" key=${title} scope="col">${title}</th>`)}
        <th role="columnheader"><span class="visually-hidden">Actions</span></th>
      </tr></thead>
    <tbody role="rowgroup">${tasks.map(
      (task) =>
        html`<${Letter} key=${task.task_id} task=${task} selection=${selection} changed=${changed} />`,
    )}</tbody>
  </table>`;
}

/** @param {RowProps & { task: TaskView }} props */
function Letter({ task, selection, changed }) {
  const { task_id: id, task_type: type, error } = task;
  const selected = selection.ids.has(id);
  const select = (/** @type {MouseEvent} */ event) => selection.toggle(id, event.shiftKey);
  return html`<tr role="row" aria-selected=${selected}>
    <td role="cell" class="check">
      <input type="checkbox" aria-label=${`Select ${id}`} checked=${selected} onClick=${select} />
    </td>
    <th role="rowheader" scope="row" class="name"><${TaskLink} id=${id} /> <span>${type}</span></th>
    <td role="cell" class="error">
      ${error?.code && html`<${Badge} tone="danger">${error.code}</${Badge}> `}
      <span title=${error?.message}>${error?.message}</span>
    </td>
    <td role="cell" class="muted queue">${task.queue}</td>
    <td role="cell" class="muted" data-title="Runs">${count(task.attempt)}</td>
    <td role="cell" class="muted"><${Ago} at=${task.completed_at ?? task.updated_at} /></td>
    <td role="cell" class="row-actions">
      <${LetterActions} letters=${new SelectedLetters([task])} of=${` (${type})`} changed=${changed} />
    </td>
  </tr>`;
}

/** @param {{ view: View }} props */
const Nothing = ({ view }) => html`<${Empty} title=${view.cursor ? "Nothing more" : "No dead letter matches"}>
  <a class="button" href=${view.cursor ? linkTo(view) : link("dead")}>
    ${view.cursor ? "To the newest" : "Show all"}
  </a>
</${Empty}>`;
