// @ts-check
// The list of tasks: found by filters, and changed one by one, or all that match at once.

import { get } from "../lib/api.js";
import { counted } from "../lib/format.js";
import { html, useState } from "../lib/preact.js";
import { useResource } from "../lib/resource.js";
import { link, navigate } from "../lib/router.js";
import { NONE, useSelection } from "../lib/selection.js";
import { ActionButton } from "../ui/action-button.js";
import { Empty, NoTasks } from "../ui/empty.js";
import { ErrorBanner, Loading } from "../ui/fetched.js";
import { GlobalControls } from "../ui/global-controls.js";
import { Heading, Panel } from "../ui/panel.js";
import { BulkActions } from "./tasks/bulk-actions.js";
import { FilterBar } from "./tasks/filter-bar.js";
import { useLiveRows } from "./tasks/live-rows.js";
import { PageRange, Paging } from "./tasks/paging.js";
import { isUnfiltered, linkTo, viewOf } from "./tasks/query.js";
import { Table } from "./tasks/table.js";

/**
 * @import { Total } from "../../types/api.js"
 * @import { BulkProgress } from "./tasks/bulk-actions.js"
 * @import { LiveRows } from "./tasks/live-rows.js"
 * @import { Filter, View } from "./tasks/query.js"
 */

// With this many rows, the buttons to turn pages are repeated below them.
const LONG = 20;

/** @param {{ query: URLSearchParams }} props */
export function Tasks({ query }) {
  const view = viewOf(query);
  const { filter, limit, address } = view;
  const [pointed, setPointed] = useState(false);
  const [entered, setEntered] = useState(false);
  const [ids, setIds] = useState(NONE);
  const [progress, setProgress] = useState(/** @type {BulkProgress | null} */ (null));
  const rows = useLiveRows(view, pointed || entered || ids.size > 0);
  const selection = useSelection(rows.tasks, address, ids, setIds);
  const counting = useResource((abort) => get("api/v1/tasks/count", filter, abort), [linkTo({ filter })], {
    on: ["system.metrics"],
  });
  const total = totalOf(counting.data, view, rows);
  const refresh = () => Promise.all([rows.refresh(), counting.refresh()]);
  const setFilter = (/** @type {Filter} */ other) => navigate(linkTo({ filter: other, limit }));

  const shown = rows.tasks.length;
  const paging = html`<${Paging} view=${view} shown=${shown} next=${rows.next} />`;
  return html`
    <${Heading} title="Tasks">
      <${GlobalControls} />
      <${ActionButton} primary scope="submit" run=${() => navigate(link("submit"))}>
        Submit a task
      </${ActionButton}>
    </${Heading}>
    <${FilterBar} filter=${filter} set=${setFilter} />
    <${ErrorBanner} error=${rows.error} refresh=${rows.refresh} />
    <${Panel} flush>
      <div class="list-toolbar">
        ${
          selection.selected.length || progress
            ? html`<${BulkActions} selection=${selection} filter=${filter} total=${total}
              progress=${progress} setProgress=${setProgress} refresh=${refresh} />`
            : html`<${PageRange} from=${view.from} shown=${shown} total=${total} />`
        }
        ${
          rows.fresh > 0 &&
          html`<button type="button" class="button small new-tasks" onClick=${rows.apply}>
            ${counted(rows.fresh, "new task")}
          </button>`
        }
        ${paging}
      </div>
      ${
        shown > 0 &&
        html`<${Table} tasks=${rows.tasks} selection=${selection} refresh=${refresh}
          pending=${!rows.ready} setPointed=${setPointed} setEntered=${setEntered} />`
      }
      ${shown === 0 && rows.ready && html`<${Nothing} view=${view} next=${rows.next} />`}
      ${shown === 0 && !rows.ready && !rows.error && html`<${Loading} rows=${12} />`}
      ${shown >= LONG && html`<div class="list-toolbar bottom">${paging}</div>`}
    </${Panel}>`;
}

/**
 * If the store has not counted all tasks, there are at least those that are shown.
 *
 * @param {Total | undefined} total
 * @param {View} view
 * @param {LiveRows} rows
 */
function totalOf(total, { from }, { tasks, next, ready }) {
  if (!total || total.exact || !ready) return total;
  const seen = from + tasks.length;
  return next ? { count: Math.max(total.count, seen), exact: false } : { count: seen, exact: true };
}

/** @param {{ view: View, next: string | null }} props */
function Nothing({ view, next }) {
  const { filter, cursor } = view;
  if (next) {
    return html`<${Empty} title="None so far">
      <p>The server stopped searching, because there are many tasks.</p>
      <a class="button" href=${linkTo({ ...view, cursor: next })}>Search further</a>
    </${Empty}>`;
  }
  if (cursor) {
    return html`<${Empty} title="Nothing more">
      <a class="button" href=${linkTo({ filter })}>To the first page</a>
    </${Empty}>`;
  }
  if (isUnfiltered(filter)) return html`<${NoTasks} />`;
  return html`<${Empty} title="No task matches">
    <p>Remove a filter to see more.</p>
    <a class="button" href=${link("tasks")}>Clear all filters</a>
  </${Empty}>`;
}
