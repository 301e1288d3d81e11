// @ts-check
// What is drawn of a workflow: a box for each task, and one for many tasks that are alike.

/**
 * @import { NodeView } from "../../../types/api.js"
 * @typedef {{ id: string, members: string[] }} Box `id`: that of its first task; `members`: the ids of all.
 * @typedef {[from: string, to: string]} Edge
 * @typedef {{ boxes: Box[], edges: Edge[], boxOf: Map<string, string> }} Structure `boxOf`: by tasks.
 */

/** More tasks than these are drawn as one box, if they are alike. */
const MOST_ALIKE = 30;

/**
 * Say what a workflow looks like, as a text: states and times are no part of it.
 *
 * @param {NodeView[]} tasks
 */
export const shapeOf = (tasks) =>
  tasks.map(({ task_id: id, task_type: type, parents }) => `${id} ${type} ${parents.join()}`).join("\n");

/** @param {NodeView[]} tasks @returns {Structure} */
export function structureOf(tasks) {
  const boxes = boxesOf(tasks);
  /** @type {Map<string, string>} */
  const boxOf = new Map(boxes.flatMap(({ id, members }) => members.map((member) => [member, id])));
  /** @type {Map<string, Edge>} */
  const edges = new Map();
  const children = childrenOf(tasks);
  for (const { task_id: id, parents, on_exit: last } of tasks) {
    const to = /** @type {string} */ (boxOf.get(id));
    for (const parent of parents) {
      // What runs at the end depends on all others: lines from those that nothing else follows say so.
      if (last && (children.get(parent)?.length ?? 0) > 1) continue;
      const from = boxOf.get(parent); // A parent may be of no workflow, or deleted.
      if (from) edges.set(`${from} ${to}`, [from, to]);
    }
  }
  return { boxes, edges: [...edges.values()], boxOf };
}

/**
 * Tasks are alike if they have the same type, the same parents and the same children.
 *
 * @param {NodeView[]} tasks
 * @returns {Box[]}
 */
function boxesOf(tasks) {
  const children = childrenOf(tasks);
  const alike = Map.groupBy(tasks, ({ task_id: id, task_type: type, parents }) =>
    [type, parents.toSorted().join(), children.get(id)?.toSorted().join()].join(" "),
  );
  return [...alike.values()].flatMap((group) => {
    const ids = group.map((task) => task.task_id);
    return ids.length > MOST_ALIKE
      ? [{ id: ids[0], members: ids }]
      : ids.map((id) => ({ id, members: [id] }));
  });
}

/** @param {NodeView[]} tasks @returns {Map<string, string[]>} */
export function childrenOf(tasks) {
  /** @type {Map<string, string[]>} */
  const children = new Map(tasks.map((task) => [task.task_id, []]));
  for (const { task_id: id, parents } of tasks) {
    for (const parent of parents) children.get(parent)?.push(id);
  }
  return children;
}
