// @ts-check
// Dead letters: tasks whose retries are used up, what went wrong, and another chance for them.

import { get } from "../lib/api.js";
import { html, useRef } from "../lib/preact.js";
import { useResource } from "../lib/resource.js";
import { loadStyle } from "../lib/stylesheet.js";
import { Empty } from "../ui/empty.js";
import { fetched } from "../ui/fetched.js";
import { Heading } from "../ui/panel.js";
import { Charts } from "./dead/charts.js";
import { FailureGroups } from "./dead/failure-groups.js";
import { LetterList } from "./dead/letter-list.js";
import { viewOf } from "./dead/query.js";

await loadStyle("folding-tables.css");

// For the analysis the server reads all dead letters: if there are more, it is not fetched after every event.
const FEW = 500;

/** @param {{ query: URLSearchParams }} props */
export function Dead({ query }) {
  const view = viewOf(query);
  const census = useResource(load, [], { on: ["system.metrics"], every: 10_000 });
  const few = useRef(true);
  const analysis = useResource((abort) => get("api/v1/dlq/analysis", {}, abort), [], {
    on: ["task.dead_letter", "task.deleted", "task.queued"],
    concerns: () => few.current,
    every: 15_000,
  });
  few.current = (analysis.data?.analysed ?? 0) < FEW;
  const changed = () => Promise.all([census.refresh(), analysis.refresh()]);

  const group = analysis.data?.groups.find(({ failure }) => failure === view.failure);
  const total = view.failure
    ? { count: group?.count ?? 0, exact: analysis.data?.complete ?? false }
    : undefined;
  return html`
    <${Heading} title="Dead letters" />
    ${fetched(
      census,
      ({ types, queues }) =>
        types.some(({ dead }) => dead)
          ? html`
            <${Charts} view=${view} types=${types} />
            <${FailureGroups} analysis=${analysis} view=${view} changed=${changed} />
            <${LetterList} view=${view} group=${group} total=${total} changed=${changed}
              types=${types.map(({ type }) => type)} queues=${queues} />
          `
          : html`<${Nothing} />`,
      6,
    )}`;
}

/** @param {AbortSignal} abort */
async function load(abort) {
  const [{ types }, { queues }] = await Promise.all([
    get("api/v1/types", {}, abort),
    get("api/v1/queues", {}, abort),
  ]);
  return {
    types: types.map(({ type, by_status: counts }) => ({ type, dead: counts.dead_letter })),
    queues: queues.map(({ queue }) => queue),
  };
}

const Nothing = () => html`<${Empty} title="No dead letters">
  <p>
    A task that failed, and has no retries left, ends here. It does not run again until you replay it.
  </p>
  <p>
    Find out what went wrong, fix it, and replay them: all, a group with the same failure, or a single one.
  </p>
  <p class="muted">
    Set the number of retries where the task is defined, or with <code>fairlane submit --max-retries</code>
  </p>
</${Empty}>`;
