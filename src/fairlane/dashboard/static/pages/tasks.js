// All tasks: found by filters, and changed one by one or all that match.

import { get } from "../lib/api.js";
import { counted } from "../lib/format.js";
import { useResource } from "../lib/resource.js";
import { navigate, link } from "../lib/router.js";
import { NONE, useSelection } from "../lib/selection.js";
import { html, useState } from "../lib/preact.js";
import { Empty, NoTasks } from "../ui/empty.js";
import { Loading, ErrorBanner } from "../ui/fetched.js";
import { Heading, Panel } from "../ui/panel.js";
import { GlobalControls } from "../ui/global-controls.js";
import { BulkActions } from "./tasks/bulk-actions.js";
import { isUnfiltered, linkTo, viewOf } from "./tasks/query.js";
import { FilterBar } from "./tasks/filter-bar.js";
import { Paging, Range } from "./tasks/paging.js";
import { useLiveRows } from "./tasks/live-rows.js";
import { Table } from "./tasks/table.js";

export function Tasks({ query }) {
  const view = viewOf(query);
  const { filter, limit, address } = view;
  const [pointed, setPointed] = useState(false);
  const [entered, setEntered] = useState(false);
  const [ids, setIds] = useState(NONE);
  const [progress, setProgress] = useState(null);
  const rows = useLiveRows(view, pointed || entered || ids.size > 0);
  const selection = useSelection(rows.tasks, address, ids, setIds);
  const counting = useResource((abort) => get("api/v1/tasks/count", filter, abort), [linkTo({ filter })], {
    on: ["system.metrics"],
  });
  const total = totalOf(counting.data, view, rows);
  const refresh = () => Promise.all([rows.refresh(), counting.refresh()]);

  const paging = html`<${Paging} view=${view} shown=${rows.tasks.length} next=${rows.next} />`;
  return html`
    <${Heading} title="Tasks"><${GlobalControls} /></${Heading}>
    <${FilterBar} filter=${filter} set=${(other) => navigate(linkTo({ filter: other, limit }))} />
    <${ErrorBanner} error=${rows.error} refresh=${rows.refresh} />
    <${Panel} flush>
      <div class="list-toolbar">
        ${
          selection.chosen.length || progress
            ? html`<${BulkActions} selection=${selection} filter=${filter} total=${total} progress=${progress}
              setProgress=${setProgress} refresh=${refresh} />`
            : html`<${Range} view=${view} shown=${rows.tasks.length} total=${total} />`
        }
        ${
          rows.fresh > 0 &&
          html`<button type="button" class="button small new-tasks" onClick=${rows.apply}>
            ${counted(rows.fresh, "new task")}</button>`
        }
        ${paging}
      </div>
      ${
        rows.tasks.length > 0 &&
        html`<${Table} tasks=${rows.tasks} selection=${selection} refresh=${refresh} pending=${!rows.ready}
          pointed=${setPointed} entered=${setEntered} />`
      }
      ${
        rows.tasks.length === 0 &&
        (rows.ready
          ? html`<${Nothing} view=${view} next=${rows.next} />`
          : !rows.error && html`<${Loading} rows=${12} />`)
      }
      ${rows.tasks.length >= LONG && html`<div class="list-toolbar bottom">${paging}</div>`}
    </${Panel}>`;
}

// Where the store has not counted them all, at least those are there that are shown.
function totalOf(counted, { from }, { tasks, next, ready }) {
  if (!counted || counted.exact || !ready) return counted;
  const seen = from + tasks.length;
  return next ? { count: Math.max(counted.count, seen), exact: false } : { count: seen, exact: true };
}

// From so many rows on, whoever is at their end finds the way on there as well.
const LONG = 20;

function Nothing({ view, next }) {
  const { filter, cursor } = view;
  if (next) {
    return html`<${Empty} title="None so far">
      <p>There are more tasks to look through than is done at once.</p>
      <a class="button" href=${linkTo({ ...view, cursor: next })}>Look further</a>
    </${Empty}>`;
  }
  if (cursor)
    return html`<${Empty} title="Nothing more">
      <a class="button" href=${linkTo({ filter })}>To the first page</a></${Empty}>`;
  if (isUnfiltered(filter)) return html`<${NoTasks} />`;
  return html`<${Empty} title="No task matches">
    <p>There may be some if fewer things are asked for at once.</p>
    <a class="button" href=${link("tasks")}>Clear all filters</a>
  </${Empty}>`;
}
