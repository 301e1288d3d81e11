// @ts-check
// The progress of a running task, if it reports any.

import { percent } from "../../lib/format.js";
import { html } from "../../lib/preact.js";
import { Meter } from "../../ui/meter.js";
import { Panel } from "../../ui/panel.js";
import { Ago } from "../../ui/time.js";

/** @import { ProgressView } from "../../../types/api.js" */

/** @param {{ progress: ProgressView | null }} props */
export function Progress({ progress }) {
  if (!progress) return null;
  const { percent: done, message, updated_at: at } = progress;
  const share = done === null ? "" : percent(done / 100);
  return html`<${Panel} title="Progress" hint=${html`<${Ago} at=${at} />`}>
    <div class="progress">
      ${done !== null && html`<${Meter} value=${done} most=${100} label=${`${share} done`} /><b>${share}</b>`}
      <span aria-live="polite">${message}</span>
    </div>
  </${Panel}>`;
}
