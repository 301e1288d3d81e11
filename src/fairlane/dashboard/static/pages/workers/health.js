// @ts-check
// What workers report about their health.

import { duration, percent, spaced } from "../../lib/format.js";

const MB = 1e6;

/**
 * What Fairlane's own workers report. Others may report anything.
 *
 * @type {Record<string, [title: string, format: (value: number) => string]>}
 */
const KNOWN = {
  memory_bytes: ["memory", (bytes) => `${Math.round(bytes / MB)} MB`],
  cpu_share: ["CPU", percent],
  loop_lag_seconds: ["loop lag", duration],
  abandoned_threads: ["abandoned threads", String],
  pid: ["pid", String],
};

/** @param {Record<string, unknown>} health @returns {[title: string, text: string][]} */
export const healthOf = (health) =>
  Object.entries(health)
    .filter(([name]) => name !== "held_back") // which the worker shows by itself
    .map(([name, value]) => {
      if (typeof value === "number" && Object.hasOwn(KNOWN, name)) {
        const [title, format] = KNOWN[name];
        return [title, format(value)];
      }
      return [spaced(name), typeof value === "string" ? value : JSON.stringify(value)];
    });
