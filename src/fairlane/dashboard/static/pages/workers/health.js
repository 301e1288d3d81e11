import { duration, percent, spaced } from "../../lib/format.js";

const MB = 1e6;

// What Fairlane's own workers tell; others tell what they like.
const KNOWN = {
  memory_bytes: ["memory", (bytes) => `${Math.round(bytes / MB)} MB`],
  cpu_share: ["CPU", percent],
  loop_lag_seconds: ["loop lag", duration],
  abandoned_threads: ["abandoned threads", String],
  pid: ["pid", String],
};

/** [name, value] of what a worker tells of itself, for people. */
export const healthOf = (health) =>
  Object.entries(health).map(([name, value]) => {
    const [title, shown] =
      typeof value === "number" && Object.hasOwn(KNOWN, name) ? KNOWN[name] : [spaced(name), plain];
    return [title, shown(value)];
  });

const plain = (value) => (typeof value === "string" ? value : JSON.stringify(value));
