import { useKeys } from "../../lib/keyboard.js";
import { navigate, link } from "../../lib/router.js";
import { html, useEffect, useRef } from "../../lib/preact.js";
import { Row } from "./row.js";

const COLUMNS = [
  ["id", "ID"],
  ["type", "Type"],
  ["state", "Status"],
  ["level", "Priority"],
  ["queue", "Queue"],
  ["runs", "Attempts"],
  ["made", "Created"],
];

/** The tasks. `pointed` and `entered` are told whether somebody points at them, or is among them by keys. */
export function Table({ tasks, selection, refresh, pending, pointed, entered }) {
  const body = useRef(null);
  const acts = useRef(null);
  acts.current = {
    toggle: selection.toggle,
    async changed(id) {
      await refresh();
      requestAnimationFrame(() => refocus(body.current, id));
    },
  };
  const { chosen, whole } = selection;
  useTableKeys(body, selection);
  useEffect(
    () => () => {
      pointed(false);
      entered(false);
    },
    [],
  );

  return html`<table class="tasks" role="table" aria-label="Tasks" aria-busy=${pending}>
    <thead role="rowgroup"><tr role="row">
        <th role="columnheader" class="check">
          <input type="checkbox" aria-label="Select the page" checked=${whole} indeterminate=${
            !whole && chosen.length > 0
          }
            onClick=${() => selection.page(!whole)} /></th>
        ${COLUMNS.map(
          ([name, title]) => html`<th role="columnheader" key=${name} class=${name}>${title}</th>`,
        )}
        <th role="columnheader" class="row-actions"><span class="visually-hidden">Actions</span></th>
      </tr></thead>
    <tbody role="rowgroup" ref=${body}
      onPointerEnter=${(event) => event.pointerType === "mouse" && pointed(true)}
      onPointerLeave=${() => pointed(false)}
      onFocusIn=${(event) => entered(event.target.matches(":focus-visible"))} onFocusOut=${(event) =>
        body.current?.contains(event.relatedTarget) || entered(false)}>
      ${tasks.map(
        (task) =>
          html`<${Row} key=${task.task_id} task=${task} acts=${acts}
            selected=${selection.ids.has(task.task_id)} />`,
      )}
    </tbody>
  </table>`;
}

// A button that is no longer offered took the focus with it: its row has it then.
function refocus(body, id) {
  if (document.activeElement === document.body)
    body?.querySelector(`[data-id="${id}"]`)?.focus({ preventScroll: true });
}

// The row that keys go to is the one that has the focus, itself or something in it.
function useTableKeys(body, selection) {
  const rows = () => [...body.current.rows];
  const current = () => rows().find((row) => row.contains(document.activeElement));
  const move = (step) => {
    const all = rows();
    const at = all.indexOf(current());
    all[Math.max(0, Math.min(all.length - 1, at + step))]?.focus();
  };
  const within = (step) => (current() ? move(step) : false);
  const toggle = (range) => {
    const row = current();
    if (row) selection.toggle(row.dataset.id, range);
  };
  useKeys({
    j: () => move(1),
    k: () => move(-1),
    ArrowDown: () => within(1),
    ArrowUp: () => within(-1),
    x: () => toggle(false),
    X: () => toggle(true),
    Enter: ({ target }) => (target === current() ? navigate(link(["tasks", target.dataset.id])) : false),
    Escape: () => (selection.chosen.length ? selection.clear() : false),
  });
}
