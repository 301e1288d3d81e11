// @ts-check
// What is paused and limited right now, in sentences.

import { now } from "../../lib/clock.js";
import { counted, duration } from "../../lib/format.js";
import { html } from "../../lib/preact.js";

/**
 * @import { ControlsView, RulesView } from "../../../types/api.js"
 * @typedef {RulesView & { type: string }} TypeRules
 */

/** @param {{ controls: ControlsView }} props */
export function ActiveLimits({ controls }) {
  const pauses = pausesOf(controls, now.value);
  const sentences = [...pauses, ...limitsOf(controls)];
  return html`<div class="banner active-limits" data-held=${pauses.length > 0}>
    ${
      sentences.length === 0
        ? html`<p>Nothing is paused or limited: workers take whatever is next.</p>`
        : html`<ul>${sentences.map((text) => html`<li key=${text}>${text}</li>`)}</ul>`
    }
  </div>`;
}

/** @param {ControlsView} controls @param {number} time */
function pausesOf({ paused, paused_queues: queues, types }, time) {
  const stopped = rulesOf(types).filter((each) => each.paused);
  const open = rulesOf(types).filter((each) => secondsOpen(each, time) > 0);
  const circuits = open.map(
    (each) => `${each.type} for another ${duration(Math.ceil(secondsOpen(each, time)))}`,
  );
  return [
    paused && "Everything is paused: running tasks continue, and no other task starts.",
    queues.length && `${counted(queues.length, "queue")} paused: ${listed(queues)}.`,
    stopped.length &&
      `${counted(stopped.length, "type")} paused: ${listed(stopped.map(({ type }) => type))}.`,
    circuits.length && `${counted(circuits.length, "circuit")} open after failures: ${listed(circuits)}.`,
  ].filter(Boolean);
}

/** @param {ControlsView} controls */
function limitsOf({ rate_limit: rate, types }) {
  const rules = rulesOf(types);
  const kinds = [
    { number: rules.filter((each) => each.rate_limit).length, how: "in tasks a second" },
    { number: rules.filter((each) => each.concurrency).length, how: "in tasks at once" },
    { number: rules.filter((each) => each.timeout_seconds).length, how: "in the time of a run" },
    { number: rules.filter((each) => each.circuit_breaker).length, how: "by a circuit breaker" },
  ].filter(({ number }) => number);
  return [
    rate && `All types together start at most ${counted(rate, "task")} a second.`,
    kinds.length &&
      `Limited: ${kinds.map(({ number, how }) => `${counted(number, "type")} ${how}`).join(", ")}.`,
  ].filter(Boolean);
}

/** @param {Record<string, RulesView>} types @returns {TypeRules[]} */
const rulesOf = (types) => Object.entries(types).map(([type, rules]) => ({ type, ...rules }));

/** @param {TypeRules} rules @param {number} time */
const secondsOpen = ({ open_until: until }, time) => (until ? (Date.parse(until) - time) / 1000 : 0);

const MOST = 5;

/** @param {string[]} names */
const listed = (names) =>
  names.length <= MOST
    ? names.join(", ")
    : `${names.slice(0, MOST).join(", ")} and ${names.length - MOST} more`;
