// @ts-check
// Submit a task: a new one, or one like another, with changes.

import { get, segment } from "../lib/api.js";
import { html } from "../lib/preact.js";
import { useResource } from "../lib/resource.js";
import { link } from "../lib/router.js";
import { boundTo } from "../lib/session.js";
import { loadStyle } from "../lib/stylesheet.js";
import { Empty } from "../ui/empty.js";
import { fetched } from "../ui/fetched.js";
import { TaskLink } from "../ui/links.js";
import { fetchDefinitions } from "./submit/definitions.js";
import { unreadable } from "./submit/draft.js";
import { SubmitForm } from "./submit/form.js";

/**
 * @import { EventType, TaskDetail } from "../../types/api.js"
 * @import { Children } from "../lib/preact.js"
 */

await Promise.all(["fields.css", "submit.css"].map(loadStyle));

/** @type {{ on: EventType[], every: number }} Workers publish their types when they start. */
const REFETCH = { on: ["worker.joined"], every: 30_000 };

/**
 * The key keeps forms apart: what was entered in one is not in the next.
 *
 * @param {{ query: URLSearchParams }} props
 */
export const Submit = ({ query }) =>
  html`<${SubmitPage} key=${query.get("from") ?? ""} from=${query.get("from") ?? ""} />`;

/** @param {{ from: string }} props `from`: the id of the task to copy. */
function SubmitPage({ from }) {
  const definitions = useResource(fetchDefinitions, [boundTo.value], REFETCH);
  const source = useResource((abort) => fetchSource(from, abort), []);
  if (source.error?.status === 404) {
    return html`<${Head} /><${Refusal} title="There is no such task"
      text="It was deleted, or its id is incomplete.">
      <a class="button" href=${link("submit")}>Submit another task</a>
    </${Refusal}>`;
  }
  return html`
    <${Head}>${source.data && html`<${Copied} task=${source.data} />`}</${Head}>
    ${fetched(source, (task) => {
      const secret = task && unreadable(task.parameters);
      if (secret) {
        const text = `${secret} You can replay the task as it is.`;
        return html`<${Refusal} title="These parameters cannot be edited" text=${text}>
          <a class="button" href=${link(["tasks", from])}>Back to the task</a>
        </${Refusal}>`;
      }
      return fetched(definitions, (some) => html`<${SubmitForm} definitions=${some} source=${task} />`, 8);
    })}`;
}

/** @param {string} id @param {AbortSignal} abort @returns {Promise<TaskDetail | null>} */
const fetchSource = async (id, abort) => (id === "" ? null : get(`api/v1/tasks/${segment(id)}`, {}, abort));

/** @param {{ children?: Children }} props */
const Head = ({ children }) => html`<div class="page-heading">
  <div>
    <a class="muted" href=${link("tasks")}>Tasks</a>
    <h1>Submit a task</h1>
    ${children}
  </div>
</div>`;

/** @param {{ task: TaskDetail }} props */
const Copied = ({ task }) => html`<p class="muted">
  A new task like <${TaskLink} id=${task.task_id} />. Its idempotency key, delay, expiry, dependencies and
  retry policy are not copied.
</p>`;

/** @param {{ title: string, text: string, children: Children }} props */
const Refusal = ({ title, text, children }) =>
  html`<${Empty} title=${title}><p>${text}</p>${children}</${Empty}>`;
