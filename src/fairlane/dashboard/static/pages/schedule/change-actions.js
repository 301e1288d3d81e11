// @ts-check
// Edit and delete a schedule that was not declared in code.

import { remove, segment } from "../../lib/api.js";
import { html } from "../../lib/preact.js";
import { link, navigate } from "../../lib/router.js";
import { ActionButton } from "../../ui/action-button.js";
import { conflictOr } from "../schedules/actions.js";

/** @import { ScheduleView } from "../../../types/api.js" */

/** @param {{ schedule: ScheduleView }} props */
export function ChangeActions({ schedule: { schedule_id: id, version } }) {
  async function drop() {
    try {
      await remove(`api/v1/schedules/${segment(id)}`, {}, version);
    } catch (error) {
      throw conflictOr(error);
    }
    navigate(link("schedules"), { replace: true });
    return "Deleted.";
  }
  const question = `Delete ${id}? It fires no more, and its history is lost. Tasks that it submitted stay.`;
  return html`
    <${ActionButton} run=${() => navigate(link("schedule", { id }))}>Edit</${ActionButton}>
    <${ActionButton} danger confirm=${question} run=${drop}>Delete</${ActionButton}>`;
}
