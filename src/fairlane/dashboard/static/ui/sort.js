// Tables whose columns can be sorted by.

import { html } from "../lib/preact.js";

/**
 * Rows in an order, "name" of a column or "-name": the other way round. Columns: [{name, title, by, down,
 * number}], `by(row)` is a number or a text; of `down` the largest are wanted first; a `number` stands to the
 * right. What is equal stays in the order in which it came.
 */
export function sortRows(rows, columns, order) {
  const [name, sign] = parsed(order);
  const by = columns.find((column) => column.name === name)?.by;
  return by ? rows.toSorted((one, other) => sign * compared(by(one), by(other))) : rows;
}

/** The head of such a table; `to(order)` is the address of the same in another order. */
export function SortableHead({ columns, order, to }) {
  const [current, sign] = parsed(order);
  return html`<thead role="rowgroup"><tr role="row">${columns.map(({ name, title, by, down, number }) => {
    const direction = name === current && (sign > 0 ? "ascending" : "descending");
    return html`<th key=${name} role="columnheader" scope="col" class=${number ? "number" : ""}
      aria-sort=${direction || undefined}>
      ${
        by
          ? html`<a href=${to(next(name, direction, down))}>${title}</a>`
          : html`<span class=${title ? "" : "visually-hidden"}>${title || "Actions"}</span>`
      }
    </th>`;
  })}</tr></thead>`;
}

const parsed = (order) => (order.startsWith("-") ? [order.slice(1), -1] : [order, 1]);

function next(name, direction, down) {
  if (!direction) return down ? `-${name}` : name;
  return direction === "ascending" ? `-${name}` : name;
}

function compared(one, other) {
  if (typeof one === "string") return one.localeCompare(other, "en", { numeric: true });
  return one - other;
}
