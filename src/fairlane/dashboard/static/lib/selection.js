// @ts-check
// Which tasks are selected: some on the page, or all that match, on whatever page.

import { useEffect, useRef, useState } from "./preact.js";

/**
 * @import { TaskSummary } from "../../types/api.js"
 * @typedef {TaskSummary & { gone?: boolean }} ListedTask A task of a list; it may be deleted meanwhile.
 */

/** @type {Set<string>} */
export const NONE = new Set();

/**
 * @typedef {object} Selection
 * @property {Set<string>} ids
 * @property {ListedTask[]} selected
 * @property {boolean} wholePage Whether all tasks on the page are selected.
 * @property {boolean} allMatching Whether all tasks that match are selected, on whatever page.
 * @property {(id: string, range: boolean) => void} toggle Select a task or not; with `range`, all tasks from
 *   the one that was toggled last.
 * @property {(on: boolean) => void} selectPage
 * @property {() => void} selectAllMatching
 * @property {() => void} clear
 */

/**
 * Only what is shown can be selected.
 *
 * @param {ListedTask[]} tasks
 * @param {string} address Tells views apart.
 * @param {Set<string>} ids
 * @param {(ids: Set<string>) => void} setIds
 * @returns {Selection}
 */
export function useSelection(tasks, address, ids, setIds) {
  const [matched, setMatched] = useState(/** @type {string | null} */ (null));
  const last = useRef(/** @type {string | null} */ (null));
  const selectable = tasks.filter((task) => !task.gone);
  const selected = selectable.filter((task) => ids.has(task.task_id));
  const wholePage = selected.length > 0 && selected.length === selectable.length;

  useEffect(() => {
    if (selected.length < ids.size) setIds(new Set(selected.map((task) => task.task_id)));
  }, [tasks, ids]);

  /** @param {string} id @param {boolean} range */
  function toggle(id, range) {
    const on = !ids.has(id);
    const next = new Set(ids);
    for (const each of range ? idsBetween(tasks, last.current, id) : [id]) {
      if (on) next.add(each);
      else next.delete(each);
    }
    last.current = id;
    select(next);
  }

  /** @param {Set<string>} next */
  function select(next) {
    setMatched(null);
    setIds(next);
  }

  return {
    ids,
    selected,
    wholePage,
    allMatching: wholePage && matched === address,
    toggle,
    selectPage: (on) => select(on ? new Set(selectable.map((task) => task.task_id)) : NONE),
    selectAllMatching: () => setMatched(address),
    clear: () => select(NONE),
  };
}

/** @param {ListedTask[]} tasks @param {string | null} first @param {string} last */
function idsBetween(tasks, first, last) {
  const order = tasks.map((task) => task.task_id);
  const ends = [first === null ? -1 : order.indexOf(first), order.indexOf(last)];
  if (ends.includes(-1)) return [last];
  return order.slice(Math.min(...ends), Math.max(...ends) + 1);
}
