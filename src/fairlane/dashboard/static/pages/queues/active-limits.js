import { now } from "../../lib/clock.js";
import { counted, duration } from "../../lib/format.js";
import { html } from "../../lib/preact.js";

/** What is paused and limited right now, in words. */
export function ActiveLimits({ controls }) {
  const said = sentences(controls, now.value);
  const held = controls.paused || said.some(({ stops }) => stops);
  return html`<div class="banner active-limits" data-held=${held}>
    ${
      said.length === 0
        ? html`<p>Nothing is paused or limited: workers take whatever is next.</p>`
        : html`<ul>${said.map(({ text }) => html`<li key=${text}>${text}</li>`)}</ul>`
    }
  </div>`;
}

function sentences({ paused, rate_limit: rate, paused_queues: queues, types }, time) {
  const rules = Object.entries(types).map(([type, each]) => ({ type, ...each }));
  const stopped = rules.filter((each) => each.paused).map(({ type }) => type);
  const open = rules.filter((each) => Date.parse(each.open_until) > time).map((each) => told(each, time));
  return [
    paused && { stops: true, text: "Everything is paused: what runs goes on, and no other task begins." },
    queues.length && { stops: true, text: `${counted(queues.length, "queue")} paused: ${listed(queues)}.` },
    stopped.length && { stops: true, text: `${counted(stopped.length, "type")} paused: ${listed(stopped)}.` },
    open.length && {
      stops: true,
      text: `${counted(open.length, "circuit")} open after failures: ${listed(open)}.`,
    },
    rate && { text: `All types together begin at most ${counted(rate, "task")} a second.` },
    limited(rules),
  ].filter(Boolean);
}

const told = ({ type, open_until: until }, time) =>
  `${type} for another ${duration(Math.ceil((Date.parse(until) - time) / 1000))}`;

function limited(rules) {
  const kinds = [
    ["rate_limit", "in tasks a second"],
    ["concurrency", "in tasks at once"],
    ["circuit_breaker", "by a circuit breaker"],
  ]
    .map(([name, how]) => [rules.filter((each) => each[name]).length, how])
    .filter(([number]) => number);
  if (!kinds.length) return null;
  return {
    text: `Limited: ${kinds.map(([number, how]) => `${counted(number, "type")} ${how}`).join(", ")}.`,
  };
}

const MOST = 5;
const listed = (names) =>
  names.length <= MOST
    ? names.join(", ")
    : `${names.slice(0, MOST).join(", ")} and ${names.length - MOST} more`;
