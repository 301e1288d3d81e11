// @ts-check
// The policies of a schedule: how they are entered, and how they are sent. Pure functions.

import { isoTime, localTime } from "../../lib/local-times.js";

/**
 * @import { ScheduleView } from "../../../types/api.js"
 * @import { Errors } from "../submit/draft.js"
 * @typedef {typeof POLICIES[number]["name"]} PolicyName
 * @typedef {Record<PolicyName, string>} Policies What was entered. Empty: as `blank` says.
 */

/** `blank`: what holds if nothing is entered. */
export const POLICIES = /** @type {const} */ ([
  { name: "overlap", label: "If the last task runs", kind: "choice", blank: "skip" },
  { name: "missed", label: "Missed ticks", kind: "choice", blank: "once" },
  { name: "most", label: "At most", unit: "missed ticks", kind: "number", blank: 100 },
  {
    name: "within_seconds",
    label: "At the latest",
    unit: "seconds after the tick",
    kind: "number",
    blank: 86_400,
  },
  { name: "jitter_seconds", label: "Jitter", unit: "seconds", kind: "number", blank: 0 },
  { name: "count", label: "Ends after", unit: "ticks", kind: "number", blank: null },
  {
    name: "pause_after_failures",
    label: "Pause after",
    unit: "failed tasks in a row",
    kind: "number",
    blank: null,
  },
  { name: "starts_at", label: "Starts", unit: "your time", kind: "time", blank: null },
  { name: "ends_at", label: "Ends", unit: "your time", kind: "time", blank: null },
  { name: "note", label: "Note", kind: "text", blank: "" },
]);

/** @param {ScheduleView | null} schedule @returns {Policies} */
export function policiesOf(schedule) {
  const all = POLICIES.map(({ name, kind, blank }) => {
    const value = schedule === null ? blank : schedule[name];
    if (kind === "time") return [name, localTime(/** @type {string | null} */ (value))];
    return [name, value === blank && kind !== "choice" ? "" : String(value ?? "")];
  });
  return /** @type {Policies} */ (Object.fromEntries(all));
}

/**
 * Return those policies that differ from others, as they are sent, and what is wrong with them.
 *
 * @param {Policies} policies
 * @param {Policies} before
 */
export function parsedPolicies(policies, before) {
  /** @type {Errors} */
  const errors = {};
  /** @type {Record<string, string | number | null>} */
  const request = {};
  for (const { name, kind, blank } of POLICIES) {
    const text = policies[name].trim();
    if (text === before[name]) continue;
    if (text === "") request[name] = blank;
    else if (kind === "time") request[name] = isoTime(text);
    else if (kind === "number") request[name] = Number(text);
    else request[name] = text;
    if (Number.isNaN(request[name])) errors[name] = "This is not a number.";
  }
  return { request, errors };
}
