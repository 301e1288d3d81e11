// Circuit breakers: a type that keeps failing is left alone for a while.

import { now } from "../../lib/clock.js";
import { duration } from "../../lib/format.js";
import { html, useId, useState } from "../../lib/preact.js";
import { ActionButton } from "../../ui/action-button.js";
import { Badge } from "../../ui/badges.js";

const FIRST = { failures: 5, within_seconds: 60, cooldown_seconds: 60 };

/** How the circuit of a type is. After the cool-down one task at a time is let through to try. */
export function CircuitBadge({ found: { circuit_breaker: breaker, open_until: until } }) {
  if (!breaker) return null;
  const { failures, within_seconds: within, cooldown_seconds: cooldown } = breaker;
  const terms = `${failures} failures within ${duration(within)} open it for ${duration(cooldown)}.`;
  if (!until) return html`<${Badge} tone="good" title=${terms}>closed</${Badge}>`;
  const left = (Date.parse(until) - now.value) / 1000;
  if (left <= 0)
    return html`<${Badge} tone="warning" title=${`One task at a time is tried. ${terms}`}>trying</${Badge}>`;
  return html`<${Badge} tone="danger"
    title=${`No task begins until then. ${terms}`}>open for ${duration(Math.ceil(left))}</${Badge}>`;
}

/** Sets a breaker, or takes it away: `set(null)`. */
export function BreakerForm({ type, breaker, set }) {
  const [terms, setTerms] = useState(breaker ?? FIRST);
  const id = useId();
  const whole = Object.values(terms).every((each) => each > 0);
  const input = (name, label) => html`<label class="visually-hidden" for=${`${id}${name}`}>${label}</label>
  <input id=${`${id}${name}`} type="number" min="1" step=${name === "failures" ? "1" : "any"} required
    value=${terms[name]}
    onInput=${(event) => setTerms({ ...terms, [name]: Number(event.target.value) })} />`;
  return html`<div class="row breaker-form" role="group" aria-label=${`Circuit breaker of ${type}`}>
    After ${input("failures", "Failures")} failures within ${input("within_seconds", "Within, seconds")} s,
    no task of this type begins for ${input("cooldown_seconds", "Cool-down, seconds")} s.
    <${ActionButton} small primary disabled=${!whole} run=${() => set(terms)}>Set</${ActionButton}>
    ${breaker && html`<${ActionButton} small danger run=${() => set(null)}>Remove</${ActionButton}>`}
  </div>`;
}
