// @ts-check
// Create a schedule, or edit one that was not declared in code.

import { get, segment } from "../lib/api.js";
import { html } from "../lib/preact.js";
import { useResource } from "../lib/resource.js";
import { link } from "../lib/router.js";
import { loadStyle } from "../lib/stylesheet.js";
import { Empty } from "../ui/empty.js";
import { fetched } from "../ui/fetched.js";
import { EntryForm } from "./schedule-form/form.js";
import { fetchDefinitions } from "./submit/definitions.js";
import { unreadable } from "./submit/draft.js";

/** @import { ScheduleView } from "../../types/api.js" */

await Promise.all(["fields.css", "submit.css", "schedules.css"].map(loadStyle));

/**
 * The key keeps forms apart: what was entered in one is not in the next.
 *
 * @param {{ query: URLSearchParams }} props
 */
export const ScheduleForm = ({ query }) =>
  html`<${FormPage} key=${query.get("id") ?? ""} id=${query.get("id") ?? ""} />`;

/** @param {{ id: string }} props `id`: the schedule to edit. */
function FormPage({ id }) {
  const known = useResource(async (abort) => {
    const [definitions, schedule] = await Promise.all([fetchDefinitions(abort), fetchSchedule(id, abort)]);
    return { definitions, schedule };
  }, []);
  if (known.error?.status === 404) {
    return html`<${Head} id=${id} /><${Refusal} title="There is no such schedule" text="It was deleted." />`;
  }
  return html`<${Head} id=${id} />
    ${fetched(known, ({ definitions, schedule }) => {
      if (schedule?.source === "code") {
        return html`<${Refusal} title="This schedule is declared in code" text="Change it there." />`;
      }
      const secret = schedule && unreadable(schedule.task.parameters);
      if (secret) return html`<${Refusal} title="These parameters cannot be edited" text=${secret} />`;
      return html`<${EntryForm} definitions=${definitions} schedule=${schedule} />`;
    })}`;
}

/** @param {string} id @param {AbortSignal} abort @returns {Promise<ScheduleView | null>} */
const fetchSchedule = async (id, abort) =>
  id === "" ? null : get(`api/v1/schedules/${segment(id)}`, {}, abort);

/** @param {{ id: string }} props */
const Head = ({ id }) => html`<div class="page-heading">
  <div>
    <a class="muted" href=${link("schedules")}>Schedules</a>
    <h1>${id === "" ? "Create a schedule" : html`Edit <bdi>${id}</bdi>`}</h1>
  </div>
</div>`;

/** @param {{ title: string, text: string }} props */
const Refusal = ({ title, text }) => html`<${Empty} title=${title}>
  <p>${text}</p>
  <a class="button" href=${link("schedules")}>To all schedules</a>
</${Empty}>`;
