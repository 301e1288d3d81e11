// @ts-check
// Circuit breakers: no task of a type that keeps failing begins for a while.

import { now } from "../../lib/clock.js";
import { duration } from "../../lib/format.js";
import { onValue } from "../../lib/inputs.js";
import { html, useId, useState } from "../../lib/preact.js";
import { ActionButton } from "../../ui/action-button.js";
import { Badge } from "../../ui/badges.js";

/** @import { CircuitBreaker, TypeView } from "../../../types/api.js" */

const FIRST = { failures: 5, within_seconds: 60, cooldown_seconds: 60 };

/**
 * The state of a circuit. After the cool-down one task at a time is tried.
 *
 * @param {{ type: TypeView }} props
 */
export function CircuitBadge({ type: { circuit_breaker: breaker, open_until: until } }) {
  if (!breaker) return null;
  const { failures, within_seconds: within, cooldown_seconds: cooldown } = breaker;
  const terms = `${failures} failures within ${duration(within)} open it for ${duration(cooldown)}.`;
  if (!until) return html`<${Badge} tone="good" title=${terms}>closed</${Badge}>`;
  const left = (Date.parse(until) - now.value) / 1000;
  if (left <= 0) {
    return html`<${Badge} tone="warning" title=${`One task at a time is tried. ${terms}`}>trying</${Badge}>`;
  }
  return html`<${Badge} tone="danger" title=${`No task starts until then. ${terms}`}>
    open for ${duration(Math.ceil(left))}
  </${Badge}>`;
}

/**
 * @param {object} props
 * @param {string} props.type
 * @param {CircuitBreaker | null} props.breaker
 * @param {(breaker: CircuitBreaker | null) => Promise<void>} props.set
 */
export function BreakerForm({ type, breaker, set }) {
  const [terms, setTerms] = useState(breaker ?? FIRST);
  const id = useId();
  const complete = Object.values(terms).every((each) => each > 0);
  const input = (/** @type {keyof CircuitBreaker} */ name, /** @type {string} */ label) =>
    html`<label class="visually-hidden" for=${`${id}${name}`}>${label}</label>
    <input id=${`${id}${name}`} type="number" min="1" step=${name === "failures" ? "1" : "any"} required
      value=${terms[name]} onInput=${onValue((value) => setTerms({ ...terms, [name]: Number(value) }))} />`;
  return html`<div class="row breaker-form" role="group" aria-label=${`Circuit breaker of ${type}`}>
    After ${input("failures", "Failures")} failures within ${input("within_seconds", "Within, seconds")} s,
    no task of this type starts for ${input("cooldown_seconds", "Cool-down, seconds")} s.
    <${ActionButton} small primary disabled=${!complete} run=${() => set(terms)}>Set</${ActionButton}>
    ${breaker && html`<${ActionButton} small danger run=${() => set(null)}>Remove</${ActionButton}>`}
  </div>`;
}
