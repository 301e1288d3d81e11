// @ts-check
// Tasks that wait although no worker takes them.

import { counted, duration } from "../../lib/format.js";
import { html } from "../../lib/preact.js";
import { link } from "../../lib/router.js";

/** @import { Stats, UnservedLane } from "../../../types/api.js" */

/** @param {{ stats: Stats }} props */
export function Unserved({ stats: { unserved = [] } }) {
  return html`<section class="banner unserved" aria-label="Tasks that no worker takes">
    <ul>
      ${unserved.map((lane) => html`<li key=${JSON.stringify(lane)}><${Sentence} lane=${lane} /></li>`)}
    </ul>
  </section>`;
}

/** @param {{ lane: UnservedLane }} props */
function Sentence({ lane: { queue, type, count, required_capabilities: capabilities, ...lane } }) {
  const filter = { status: "queued", queue, type };
  const needs = [`queue ${queue}`, `type ${type}`, ...capabilities.map((name) => `capability ${name}`)];
  const why = lane.held_back
    ? `Every worker that serves ${needs.join(", ")} holds the type back, because its handlers hang:`
    : `No worker serves ${needs.join(", ")}:`;
  return html`${why}${" "}
    <a href=${link("tasks", filter)}>${counted(count, "task")}</a>${" "}
    ${count === 1 ? "waits" : "wait"}, the oldest for ${duration(lane.oldest_age_seconds)}.`;
}
