// Which of the tasks on a page are selected; or all that match, wherever they are.

import { useEffect, useRef, useState } from "./preact.js";

export const NONE = new Set();

/**
 * {ids, chosen (tasks), whole, everything, toggle, page, match, clear}. Nothing is selected that is not
 * shown.
 */
export function useSelection(tasks, address, ids, setIds) {
  const [matched, match] = useState(null);
  const last = useRef(null);
  const there = tasks.filter((task) => !task.gone);
  const chosen = there.filter((task) => ids.has(task.task_id));
  const whole = chosen.length > 0 && chosen.length === there.length;

  useEffect(() => {
    if (chosen.length < ids.size) setIds(new Set(chosen.map((task) => task.task_id)));
  }, [tasks, ids]);

  /** The other way round; with `range`, all from the last one that was toggled become as this one. */
  function toggle(id, range) {
    const on = !ids.has(id);
    const next = new Set(ids);
    for (const each of range ? idsBetween(tasks, last.current, id) : [id]) {
      if (on) next.add(each);
      else next.delete(each);
    }
    last.current = id;
    set(next);
  }

  function set(next) {
    match(null);
    setIds(next);
  }

  return {
    ids,
    chosen,
    whole,
    everything: whole && matched === address,
    toggle,
    page: (on) => set(on ? new Set(there.map((task) => task.task_id)) : NONE),
    match: () => match(address),
    clear: () => set(NONE),
  };
}

function idsBetween(tasks, one, other) {
  const order = tasks.map((task) => task.task_id);
  const ends = [order.indexOf(one), order.indexOf(other)];
  if (ends.includes(-1)) return [other];
  return order.slice(Math.min(...ends), Math.max(...ends) + 1);
}
