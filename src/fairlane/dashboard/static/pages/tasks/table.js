// @ts-check
// The table of tasks, with its keys.

import { useKeys } from "../../lib/keyboard.js";
import { html, useEffect, useRef } from "../../lib/preact.js";
import { link, navigate } from "../../lib/router.js";
import { Row } from "./row.js";

/**
 * @import { Ref } from "../../lib/preact.js"
 * @import { ListedTask, Selection } from "../../lib/selection.js"
 * @import { RowHandlers } from "./row.js"
 * @typedef {HTMLTableSectionElement | null} Body
 */

const COLUMNS = [
  ["id", "ID"],
  ["type", "Type"],
  ["state", "Status"],
  ["level", "Priority"],
  ["queue", "Queue"],
  ["attempts", "Attempts"],
  ["created", "Created"],
];

/**
 * @param {object} props
 * @param {ListedTask[]} props.tasks
 * @param {Selection} props.selection
 * @param {() => Promise<unknown>} props.refresh
 * @param {boolean} props.pending Whether the tasks of another view are on their way.
 * @param {(pointed: boolean) => void} props.setPointed Whether the pointer is on the rows.
 * @param {(entered: boolean) => void} props.setEntered Whether the keyboard's focus is in the rows.
 */
export function Table({ tasks, selection, refresh, pending, setPointed, setEntered }) {
  const body = useRef(/** @type {Body} */ (null));
  /** @type {RowHandlers} */
  const latest = {
    toggle: selection.toggle,
    async changed(id) {
      await refresh();
      requestAnimationFrame(() => refocus(body.current, id));
    },
  };
  const handlers = useRef(latest);
  handlers.current = latest;
  const { selected, wholePage, selectPage } = selection;
  useTableKeys(body, selection);
  useEffect(
    () => () => {
      setPointed(false);
      setEntered(false);
    },
    [],
  );
  const point = (/** @type {PointerEvent} */ event) => {
    if (event.pointerType === "mouse") setPointed(true);
  };
  const enter = (/** @type {FocusEvent} */ { target }) =>
    setEntered(target instanceof Element && target.matches(":focus-visible"));
  const leave = (/** @type {FocusEvent} */ { relatedTarget }) => {
    if (!(relatedTarget instanceof Node && body.current?.contains(relatedTarget))) setEntered(false);
  };

  return html`<table class="tasks" role="table" aria-label="Tasks" aria-busy=${pending}>
    <thead role="rowgroup"><tr role="row">
        <th role="columnheader" class="check">
          <input type="checkbox" aria-label="Select the page" checked=${wholePage}
            indeterminate=${!wholePage && selected.length > 0} onClick=${() => selectPage(!wholePage)} />
        </th>
        ${COLUMNS.map(
          ([name, title]) => html`<th role="columnheader" key=${name} class=${name}>${title}</th>`,
        )}
        <th role="columnheader" class="row-actions"><span class="visually-hidden">Actions</span></th>
      </tr></thead>
    <tbody role="rowgroup" ref=${body} onPointerEnter=${point} onPointerLeave=${() => setPointed(false)}
      onFocusIn=${enter} onFocusOut=${leave}>
      ${tasks.map(
        (task) =>
          html`<${Row} key=${task.task_id} task=${task} handlers=${handlers}
            selected=${selection.ids.has(task.task_id)} />`,
      )}
    </tbody>
  </table>`;
}

/** Give the focus to a row whose button disappeared with it. @param {Body} body @param {string} id */
function refocus(body, id) {
  if (document.activeElement !== document.body) return;
  /** @type {HTMLElement | null | undefined} */
  const row = body?.querySelector(`[data-id="${id}"]`);
  row?.focus({ preventScroll: true });
}

/**
 * Keys act on the row that has the focus, itself or something in it.
 *
 * @param {Ref<Body>} body
 * @param {Selection} selection
 */
function useTableKeys(body, selection) {
  const rows = () => [...(body.current?.rows ?? [])];
  const current = () => rows().find((row) => row.contains(document.activeElement));
  const move = (/** @type {number} */ step) => {
    const all = rows();
    const at = all.findIndex((row) => row === current());
    all[Math.max(0, Math.min(all.length - 1, at + step))]?.focus();
  };
  const moveWithin = (/** @type {number} */ step) => (current() ? move(step) : false);
  const toggle = (/** @type {boolean} */ range) => {
    const id = current()?.dataset.id;
    if (id) selection.toggle(id, range);
  };
  const open = (/** @type {KeyboardEvent} */ { target }) => {
    const row = current();
    return row?.dataset.id && target === row ? navigate(link(["tasks", row.dataset.id])) : false;
  };
  useKeys({
    j: () => move(1),
    k: () => move(-1),
    ArrowDown: () => moveWithin(1),
    ArrowUp: () => moveWithin(-1),
    x: () => toggle(false),
    X: () => toggle(true),
    Enter: open,
    Escape: () => (selection.selected.length ? selection.clear() : false),
  });
}
