// @ts-check
// Queues and types that no worker takes tasks from.

import { html } from "../../lib/preact.js";
import { Badge } from "../../ui/badges.js";

/** @import { WorkerView } from "../../../types/api.js" */

/** @param {WorkerView[]} workers @param {"queues" | "types"} of @param {string} name */
export const isServed = (workers, of, name) =>
  workers.some(
    (worker) =>
      worker.status === "active" &&
      (worker[of]?.includes(name) ?? true) &&
      !(of === "types" && worker.held_back?.includes(name)),
  );

const TITLE =
  "No active worker takes these tasks. Start one, or see on the Workers page which tasks yours take.";

/** @param {{ waiting: boolean }} props Whether a task waits there. */
export const Unserved = ({ waiting }) =>
  html`<${Badge} tone=${waiting ? "danger" : "plain"} title=${TITLE}>no worker</${Badge}>`;
