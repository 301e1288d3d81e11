// @ts-check
// When a schedule fires: as it is entered, and as the API takes it. Pure functions.

/**
 * @import { ScheduleView } from "../../../types/api.js"
 * @import { Errors } from "../submit/draft.js"
 * @typedef {{ kind: "cron" | "every", cron: string, tz: string }} CronEntry
 * @typedef {CronEntry & { every: string, unit: string, offset: string }} Rule What was entered.
 * @typedef {{ cron: string, tz: string } | { every_seconds: number, offset_seconds: number }} RuleRequest
 */

/** Seconds, by the names of units, the largest first. @type {Record<string, number>} */
export const UNITS = { days: 86_400, hours: 3_600, minutes: 60, seconds: 1 };

/** @param {ScheduleView | null} schedule @param {string} zone The viewer's. @returns {Rule} */
export function ruleOf(schedule, zone) {
  const blank = { cron: "", tz: zone, every: "", unit: "minutes", offset: "" };
  if (!schedule) return { kind: "cron", ...blank };
  if (schedule.cron !== null) {
    return { kind: "cron", ...blank, cron: schedule.cron, tz: schedule.tz ?? "UTC" };
  }
  const seconds = schedule.every_seconds ?? 0;
  const unit = Object.keys(UNITS).find((name) => seconds % UNITS[name] === 0) ?? "seconds";
  const offset = schedule.offset_seconds ? String(schedule.offset_seconds) : "";
  return { kind: "every", ...blank, every: String(seconds / UNITS[unit]), unit, offset };
}

/**
 * Return the rule as it is sent, null if it is incomplete, and what is wrong with it.
 *
 * @param {Rule} rule
 * @returns {{ request: RuleRequest | null, errors: Errors }}
 */
export function parsedRule({ kind, cron, tz, every, unit, offset }) {
  if (kind === "cron") {
    /** @type {Errors} */
    const errors = cron.trim() ? {} : { cron: "A cron expression has five fields, as in 30 2 * * MON-FRI." };
    return { request: cron.trim() ? { cron: cron.trim(), tz: tz.trim() || "UTC" } : null, errors };
  }
  const seconds = Number(every) * UNITS[unit];
  const shift = Number(offset);
  /** @type {Errors} */
  const errors = {};
  if (!(seconds > 0)) errors.every = "An interval is a number above 0.";
  if (!(shift >= 0)) errors.offset = "An offset is a number of zero or more.";
  const wrong = Object.keys(errors).length > 0;
  return { request: wrong ? null : { every_seconds: seconds, offset_seconds: shift }, errors };
}
