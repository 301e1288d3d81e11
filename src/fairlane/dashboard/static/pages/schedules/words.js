// @ts-check
// What states, outcomes and policies of schedules are called.

import { counted, duration, exactTime } from "../../lib/format.js";

/**
 * @import { Missed, Outcome, Overlap, RunView, ScheduleState } from "../../../types/api.js"
 * @import { Tone } from "../../ui/badges.js"
 */

/** In the order of the legend. @type {Record<Outcome, { tone: Tone, means: string }>} */
export const OUTCOMES = {
  fired: { tone: "good", means: "Its task was submitted." },
  overlap: { tone: "warning", means: "Skipped: the previous task had not ended." },
  missed: { tone: "danger", means: "Not fired: it lay in the past when a process looked." },
  paused: { tone: "plain", means: "Not fired: the schedule was paused." },
  refused: { tone: "danger", means: "The store refused its task." },
  manual: { tone: "info", means: "Run by hand, besides its ticks." },
};

/** @type {Record<ScheduleState, Tone>} */
export const STATE_TONES = { active: "good", paused: "warning", ended: "plain" };

/** @type {Record<Missed, string>} */
export const MISSED = {
  skip: "Fire none of them",
  once: "Fire the newest one only",
  all: "Fire each of them",
};

/** @type {Record<Overlap, string>} */
export const OVERLAP = {
  skip: "Skip the tick",
  queue: "Wait for its end",
  replace: "Cancel it",
  allow: "Run both",
};

/** Say what became of a tick, or of several in a row. @param {RunView} run */
export function aboutRun({ tick, outcome, count, reason }) {
  const ticks = count === 1 ? "" : ` (${counted(count, "tick")} up to this one)`;
  return `${exactTime(tick)}${ticks}: ${outcome}. ${reason || OUTCOMES[outcome].means}`;
}

/** "2 fired, 1 missed". @param {RunView[]} runs */
export function countOutcomes(runs) {
  const names = /** @type {Outcome[]} */ (Object.keys(OUTCOMES));
  const counts = names.map((name) => {
    const ticks = runs.filter(({ outcome }) => outcome === name).reduce((sum, { count }) => sum + count, 0);
    return ticks > 0 && `${ticks} ${name}`;
  });
  return counts.filter(Boolean).join(", ");
}

/** Describe an interval: "Every 5 min, 30 s later". @param {number} seconds @param {number | null} offset */
export const intervalText = (seconds, offset) =>
  `every ${duration(seconds)}${offset ? `, ${duration(offset)} later` : ""}`;
