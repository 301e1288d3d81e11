import { get } from "../../lib/api.js";
import { counted } from "../../lib/format.js";
import { sweep } from "../../lib/sweep.js";
import { html, useState } from "../../lib/view.js";
import { Action } from "../../ui/action.js";
import { Panel } from "../../ui/parts.js";

const AGES = [
  ["a moment", 0],
  ["a minute", 60],
  ["an hour", 3600],
  ["a day", 86_400],
  ["a week", 604_800],
];

/** Deletes completed tasks that ended some time ago. */
export function Cleanup() {
  const [seconds, setSeconds] = useState(3600);
  const chosen = () => ({
    status: "completed",
    ended_before: new Date(Date.now() - 1000 * seconds).toISOString(),
  });

  async function question() {
    const { count, exact } = await get("api/v1/tasks/count", chosen());
    const some = `${exact ? "" : "more than "}${counted(count, "completed task")}`;
    return `Delete ${some}? They cannot be brought back.`;
  }

  return html`<${Panel} title="Cleanup"
    hint="What has ended is deleted by itself after a while: completed tasks after a day.">
    <div class="row">
      <label class="inline">Delete completed tasks that ended more than
        <select value=${seconds} onChange=${(event) => setSeconds(Number(event.target.value))}>
          ${AGES.map(([label, value]) => html`<option key=${value} value=${value}>${label}</option>`)}
        </select> ago</label>
      <${Action} danger confirm=${question}
        run=${async () => `${counted(await sweep("delete", chosen()), "task")} deleted.`}>Clean up</${Action}>
    </div>
  </${Panel}>`;
}
