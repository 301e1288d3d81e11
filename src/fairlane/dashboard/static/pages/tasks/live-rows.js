// @ts-check
// The tasks on the screen. While the viewer points at them, moves among them by keys, has scrolled down or
// selected some, they keep their places: their states are updated, but none comes, goes or moves.

import { post } from "../../lib/api.js";
import { useEffect, useRef, useState } from "../../lib/preact.js";
import { useResource } from "../../lib/resource.js";
import { fetchPage } from "../../lib/task-list.js";
import { concerns } from "./query.js";

/**
 * @import { EventType, TaskSummary } from "../../../types/api.js"
 * @import { Failure } from "../../lib/resource.js"
 * @import { ListedTask } from "../../lib/selection.js"
 * @import { View } from "./query.js"
 */

/**
 * @typedef {object} LiveRows
 * @property {ListedTask[]} tasks
 * @property {number} fresh How many new tasks are not shown yet.
 * @property {() => void} apply Show them.
 * @property {string | null} next The cursor of the next page.
 * @property {boolean} ready Whether the tasks are those of this view.
 * @property {Failure | null} error
 * @property {() => Promise<void>} refresh
 */

/** @type {EventType[]} */
const EVENTS = [
  "task.submitted",
  "task.started",
  "task.progress",
  "task.completed",
  "task.failed",
  "task.retrying",
  "task.dead_letter",
  "task.cancelled",
  "task.queued",
  "task.waiting",
  "task.snoozed",
  "task.deleted",
];
// This far down the page, the beginning of the list is out of sight.
const TOP = 200;

/** @param {View} view @param {boolean} held @returns {LiveRows} */
export function useLiveRows(view, held) {
  const { address } = view;
  const shown = useRef(
    /** @type {{ address: string | null, tasks: ListedTask[] }} */ ({ address: null, tasks: [] }),
  );
  const [, redraw] = useState(0);
  const scrolled = useScrolled();
  // Tasks of this view that have to keep their places.
  const kept = (held || scrolled) && shown.current.address === address ? shown.current.tasks : [];
  const latest = useRef(kept);
  latest.current = kept;
  const { data, error, refresh } = useResource((abort) => load(view, latest.current, abort), [address], {
    on: EVENTS,
    concerns: concerns(view.filter),
  });

  const current = data?.address === address ? data : null;
  if (current) {
    const old = new Map(shown.current.tasks.map((task) => [task.task_id, task]));
    const tasks = kept.length ? kept.map((task) => newest(task, current.known)) : current.tasks;
    shown.current = { address, tasks: tasks.map((task) => stable(old.get(task.task_id), task)) };
  }
  // The tasks of the view before stay until there are others to take their place.
  const tasks = current || !error ? shown.current.tasks : [];
  const ids = new Set(tasks.map((task) => task.task_id));

  function apply() {
    shown.current = { address: null, tasks };
    redraw((times) => times + 1);
  }

  return {
    tasks,
    fresh: current ? current.tasks.filter((task) => !ids.has(task.task_id)).length : 0,
    apply,
    next: current ? current.next : null,
    ready: current !== null,
    error,
    refresh,
  };
}

function useScrolled() {
  const [scrolled, setScrolled] = useState(scrollY > TOP);
  useEffect(() => {
    const update = () => setScrolled(scrollY > TOP);
    addEventListener("scroll", update, { passive: true });
    return () => removeEventListener("scroll", update);
  }, []);
  return scrolled;
}

/** @param {View} view @param {ListedTask[]} onScreen @param {AbortSignal} abort */
async function load(view, onScreen, abort) {
  const { tasks, next } = await fetchPage("api/v1/tasks/summaries", view.filter, view, abort);
  /** @type {Map<string, TaskSummary | null>} */
  const known = new Map(tasks.map((task) => [task.task_id, task]));
  const missing = onScreen.map((task) => task.task_id).filter((id) => !known.has(id));
  if (missing.length) {
    const found = await post("api/v1/tasks/lookup", { task_ids: missing });
    found.tasks.forEach((task, index) => known.set(missing[index], task));
  }
  return { address: view.address, tasks, next, known };
}

/**
 * Null in `known`: the task was deleted. Not there: it was not asked for.
 *
 * @param {ListedTask} task
 * @param {Map<string, TaskSummary | null>} known
 */
function newest(task, known) {
  const found = known.get(task.task_id);
  if (found === null) return task.gone ? task : { ...task, gone: true };
  return found ?? task;
}

/**
 * Return the very same object if nothing changed, so that its row is not drawn again.
 *
 * @param {ListedTask | undefined} before
 * @param {ListedTask} task
 */
function stable(before, task) {
  const unchanged =
    before &&
    before.version === task.version &&
    before.gone === task.gone &&
    before.effective_priority === task.effective_priority &&
    before.progress?.updated_at === task.progress?.updated_at;
  return unchanged ? before : task;
}
