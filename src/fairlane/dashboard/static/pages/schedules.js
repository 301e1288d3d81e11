// @ts-check
// Schedules: when each fires next, and what became of its last ticks.

import { get } from "../lib/api.js";
import { html, useCallback } from "../lib/preact.js";
import { useResource } from "../lib/resource.js";
import { link, navigate } from "../lib/router.js";
import { loadStyle } from "../lib/stylesheet.js";
import { ActionButton } from "../ui/action-button.js";
import { fetched } from "../ui/fetched.js";
import { Heading, Panel } from "../ui/panel.js";
import { NoSchedules } from "./schedules/empty.js";
import { Legend } from "./schedules/strip.js";
import { ScheduleTable } from "./schedules/table.js";

/** @import { ScheduleView } from "../../types/api.js" */

await Promise.all(["folding-tables.css", "schedules.css"].map(loadStyle));

const SIZE = 50;

/** @param {{ query: URLSearchParams }} props */
export function Schedules({ query }) {
  const cursor = query.get("cursor");
  // By name, and not as the server sorts them, by what is due next: rows would jump.
  const order = query.get("order") ?? "schedule";
  const page = useResource((abort) => get("api/v1/schedules", { limit: SIZE, cursor }, abort), [cursor], {
    on: ["system.metrics"],
    every: 5000,
  });
  const changed = useCallback(() => page.refresh(), [cursor]); // A new function draws all rows again.
  return html`
    <${Heading} title="Schedules">
      <${ActionButton} primary run=${() => navigate(link("schedule"))}>Create a schedule</${ActionButton}>
    </${Heading}>
    ${fetched(
      page,
      ({ schedules, next_cursor: next }) =>
        schedules.length === 0 && !cursor
          ? html`<${NoSchedules} />`
          : html`<${List} schedules=${schedules} cursor=${cursor} next=${next}
            order=${order} changed=${changed} />`,
      8,
    )}`;
}

/**
 * @param {object} props
 * @param {ScheduleView[]} props.schedules
 * @param {string | null} props.cursor
 * @param {string | null} props.next
 * @param {string} props.order
 * @param {() => Promise<unknown>} props.changed
 */
const List = ({ schedules, cursor, next, order, changed }) => html`<${Panel} flush>
  <${ScheduleTable} schedules=${schedules} changed=${changed} order=${order}
    to=${(/** @type {string} */ other) => link("schedules", { cursor, order: other })} />
  <div class="row table-footer">
    <${Legend} />
    <span class="grow"></span>
    ${cursor && html`<a class="button" href=${link("schedules", { order })}>To the first ones</a>`}
    ${
      next &&
      html`<a class="button" href=${link("schedules", { cursor: next, order })}
        onClick=${() => scrollTo(0, 0)}>
        More
      </a>`
    }
  </div>
</${Panel}>`;
