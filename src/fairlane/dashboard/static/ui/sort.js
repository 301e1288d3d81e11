// @ts-check
// Tables that can be sorted by their columns. An order is the name of a column, "-name" if it is reversed.

import { html } from "../lib/preact.js";

/**
 * @template Row
 * @typedef {object} Column
 * @property {string} name
 * @property {string} title
 * @property {(row: Row) => number | string} [by] What to sort by; without it the column cannot be sorted by.
 * @property {boolean} [down] Whether the largest come first.
 * @property {boolean} [number] Whether it is aligned to the right.
 */

/**
 * Return the rows in an order. Rows that are equal keep their order.
 *
 * @template Row
 * @param {Row[]} rows
 * @param {Column<Row>[]} columns
 * @param {string} order
 */
export function sortRows(rows, columns, order) {
  const { name, sign } = parse(order);
  const by = columns.find((column) => column.name === name)?.by;
  return by ? rows.toSorted((one, other) => sign * compare(by(one), by(other))) : rows;
}

/**
 * The head of a table whose columns are links; `to` returns the address of the table in another order.
 *
 * @param {{ columns: Column<never>[], order: string, to: (order: string) => string }} props
 */
export function SortableHead({ columns, order, to }) {
  const current = parse(order);
  return html`<thead role="rowgroup"><tr role="row">${columns.map(({ name, title, by, down, number }) => {
    const direction = name !== current.name ? undefined : current.sign > 0 ? "ascending" : "descending";
    const reversed = direction ? direction === "ascending" : down;
    return html`<th key=${name} role="columnheader" scope="col" class=${number ? "number" : ""}
      aria-sort=${direction}>
      ${
        by
          ? html`<a href=${to(reversed ? `-${name}` : name)}>${title}</a>`
          : html`<span class=${title ? "" : "visually-hidden"}>${title || "Actions"}</span>`
      }
    </th>`;
  })}</tr></thead>`;
}

/** @param {string} order */
const parse = (order) =>
  order.startsWith("-") ? { name: order.slice(1), sign: -1 } : { name: order, sign: 1 };

/** @param {number | string} one @param {number | string} other */
function compare(one, other) {
  if (typeof one === "number" && typeof other === "number") return one - other;
  return String(one).localeCompare(String(other), "en", { numeric: true });
}
