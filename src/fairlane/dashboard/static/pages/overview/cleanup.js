// @ts-check
// Deletes completed tasks that ended some time ago.

import { get } from "../../lib/api.js";
import { changeAll } from "../../lib/bulk.js";
import { counted } from "../../lib/format.js";
import { onValue } from "../../lib/inputs.js";
import { html, useState } from "../../lib/preact.js";
import { secondsAgo } from "../../lib/samples.js";
import { ActionButton } from "../../ui/action-button.js";
import { Panel } from "../../ui/panel.js";

/** @type {[label: string, seconds: number][]} */
const AGES = [
  ["a moment", 0],
  ["a minute", 60],
  ["an hour", 3600],
  ["a day", 86_400],
  ["a week", 604_800],
];

export function Cleanup() {
  const [seconds, setSeconds] = useState(3600);
  const filter = () => ({ status: /** @type {const} */ ("completed"), ended_before: secondsAgo(seconds) });

  async function question() {
    const { count, exact } = await get("api/v1/tasks/count", filter());
    const some = `${exact ? "" : "more than "}${counted(count, "completed task")}`;
    return `Delete ${some}? They cannot be restored.`;
  }

  const cleanUp = async () => `${counted(await changeAll("delete", filter()), "task")} deleted.`;

  return html`<${Panel} title="Cleanup"
    hint="Ended tasks are deleted automatically, completed ones after a day.">
    <div class="row">
      <label class="inline">Delete completed tasks that ended more than
        <select value=${seconds} onChange=${onValue((value) => setSeconds(Number(value)))}>
          ${AGES.map(([label, value]) => html`<option key=${value} value=${value}>${label}</option>`)}
        </select> ago</label>
      <${ActionButton} danger confirm=${question} run=${cleanUp}>Clean up</${ActionButton}>
    </div>
  </${Panel}>`;
}
