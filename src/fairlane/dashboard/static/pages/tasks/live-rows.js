// The tasks on the screen. While somebody points at them, moves among them by keys, has scrolled down or
// selected some, they keep their places: their states are told anew, but none comes, goes or moves.

import { post } from "../../lib/api.js";
import { pageOf } from "../../lib/task-list.js";
import { useResource } from "../../lib/resource.js";
import { useEffect, useRef, useState } from "../../lib/preact.js";
import { concerns } from "./query.js";

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
  "task.snoozed",
  "task.deleted",
];
// So far down the page, the beginning of the list is out of sight.
const TOP = 200;

/** {tasks, fresh (how many are not shown yet), apply (show them), next, ready, error, refresh}. */
export function useLiveRows(view, held) {
  const { address } = view;
  const shown = useRef({ address: null, tasks: [] });
  const [, redraw] = useState(0);
  const scrolled = useScrolled();
  // Of this view, and not to be moved.
  const kept = (held || scrolled) && shown.current.address === address ? shown.current.tasks : [];
  const wanted = useRef(kept);
  wanted.current = kept;
  const { data, error, refresh } = useResource((abort) => load(view, wanted.current, abort), [address], {
    on: EVENTS,
    concerns: concerns(view.filter),
  });

  const ready = data?.address === address;
  if (ready) {
    const old = new Map(shown.current.tasks.map((task) => [task.task_id, task]));
    const tasks = kept.length ? kept.map((task) => newest(task, data)) : data.tasks;
    shown.current = { address, tasks: tasks.map((task) => same(old.get(task.task_id), task)) };
  }
  // What was shown before stays until there is something to take its place.
  const tasks = ready || !error ? shown.current.tasks : [];
  const ids = new Set(tasks.map((task) => task.task_id));

  function apply() {
    shown.current = { address: null, tasks };
    redraw((times) => times + 1);
  }

  return {
    tasks,
    fresh: ready ? data.tasks.filter((task) => !ids.has(task.task_id)).length : 0,
    apply,
    next: ready ? data.next : null,
    ready,
    error,
    refresh,
  };
}

function useScrolled() {
  const [scrolled, set] = useState(scrollY > TOP);
  useEffect(() => {
    const look = () => set(scrollY > TOP);
    addEventListener("scroll", look, { passive: true });
    return () => removeEventListener("scroll", look);
  }, []);
  return scrolled;
}

async function load(view, onScreen, abort) {
  const { tasks, next } = await pageOf("api/v1/tasks/summaries", view.filter, view, abort);
  const there = new Map(tasks.map((task) => [task.task_id, task]));
  const missing = onScreen.map((task) => task.task_id).filter((id) => !there.has(id));
  if (missing.length) {
    const found = await post("api/v1/tasks/lookup", { task_ids: missing });
    found.tasks.forEach((task, index) => there.set(missing[index], task));
  }
  return { address: view.address, tasks, next, known: there };
}

// Null: it has been deleted. Not there: it was not asked for.
function newest(task, { known }) {
  const found = known.get(task.task_id);
  if (found === null) return task.gone ? task : { ...task, gone: true };
  return found ?? task;
}

// What has not changed stays the very same object, so that its row need not be drawn again.
function same(before, task) {
  const unchanged =
    before &&
    before.version === task.version &&
    before.gone === task.gone &&
    before.effective_priority === task.effective_priority &&
    before.progress?.updated_at === task.progress?.updated_at;
  return unchanged ? before : task;
}
