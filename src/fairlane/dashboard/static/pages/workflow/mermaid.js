// @ts-check
// A workflow as a Mermaid flowchart, which many tools draw: the text that `fairlane workflow show` prints.

/** @import { WorkflowView } from "../../../types/api.js" */

/** @param {WorkflowView} workflow */
export function mermaidOf({ tasks }) {
  const places = new Map(tasks.map(({ task_id: id }, index) => [id, `n${index + 1}`]));
  const boxes = tasks.map(
    ({ task_id: id, name, status }) => `  ${places.get(id)}["${escaped(name)}<br/>${status}"]`,
  );
  const edges = tasks.flatMap(({ task_id: id, parents }) =>
    parents
      .filter((parent) => places.has(parent))
      .map((parent) => `  ${places.get(parent)} --> ${places.get(id)}`),
  );
  return ["flowchart LR", ...boxes, ...edges].join("\n");
}

/** @param {string} name */
const escaped = (name) => name.replace(/[#"'`<>&;]/g, (each) => `#${each.charCodeAt(0)};`);
