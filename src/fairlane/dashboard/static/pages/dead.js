// Tasks whose retries are used up: what went wrong, and another chance for them.

import { get } from "../lib/api.js";
import { useResource } from "../lib/resource.js";
import { html, useRef } from "../lib/preact.js";
import { Empty } from "../ui/empty.js";
import { Fetched } from "../ui/fetched.js";
import { Heading } from "../ui/panel.js";
import { FailureGroups } from "./dead/failure-groups.js";
import { Charts } from "./dead/charts.js";
import { LetterList } from "./dead/letter-list.js";
import { viewOf } from "./dead/query.js";

const EVENTS = ["task.dead_letter", "task.deleted", "task.queued"];
// The server looks through all dead letters for this: where there are more, not whenever one comes.
const LIGHT = 500;

export function Dead({ query }) {
  const view = viewOf(query);
  const census = useResource(load, [], { on: ["system.metrics"], every: 10_000 });
  const light = useRef(true);
  const analysis = useResource((abort) => get("api/v1/dlq/analysis", {}, abort), [], {
    on: EVENTS,
    concerns: () => light.current,
    every: 15_000,
  });
  light.current = (analysis.data?.analysed ?? 0) < LIGHT;
  const changed = () => Promise.all([census.refresh(), analysis.refresh()]);

  const group = analysis.data?.groups.find(({ failure }) => failure === view.failure);
  const known = view.failure
    ? { count: group?.count ?? 0, exact: analysis.data?.complete ?? false }
    : undefined;
  return html`
    <${Heading} title="Dead letters" />
    <${Fetched} resource=${census} rows=${6}>${({ types, queues }) =>
      types.some(({ dead }) => dead)
        ? html`
          <${Charts} view=${view} types=${types} />
          <${FailureGroups} analysis=${analysis} view=${view} changed=${changed} />
          <${LetterList} view=${view} group=${group} known=${known} changed=${changed}
            types=${types.map(({ type }) => type)} queues=${queues} />
        `
        : html`<${Nothing} />`}</${Fetched}>`;
}

async function load(abort) {
  const [{ types }, { queues }] = await Promise.all(
    ["types", "queues"].map((name) => get(`api/v1/${name}`, {}, abort)),
  );
  return {
    types: types.map(({ type, by_status: states }) => ({ type, dead: states.dead_letter })),
    queues: queues.map(({ queue }) => queue),
  };
}

const Nothing = () => html`<${Empty} title="No dead letters">
  <p>
    A task that failed, and whose retries are used up, ends here: nothing is lost, and nothing runs in
    circles.
  </p>
  <p>
    You can then look what went wrong, put it right, and replay them: all, those that failed alike, or one.
  </p>
  <p class="muted">
    How often a task is retried is said where it is defined, or
    with <code>fairlane submit --max-retries</code>
  </p>
</${Empty}>`;
