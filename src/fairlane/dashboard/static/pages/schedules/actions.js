// @ts-check
// What an operator can do with a schedule: run it now, pause it and resume it.

import { ApiError, post, segment } from "../../lib/api.js";
import { shortId } from "../../lib/format.js";
import { onValue } from "../../lib/inputs.js";
import { isoTime } from "../../lib/local-times.js";
import { html, useEffect, useMemo } from "../../lib/preact.js";
import { ActionButton } from "../../ui/action-button.js";
import { MISSED } from "./words.js";

/**
 * @import { Missed, PauseRequest, ResumeRequest, ScheduleView } from "../../../types/api.js"
 * @typedef {{ schedule: ScheduleView, changed: () => Promise<unknown>, small?: boolean }} Props
 */

/** A button that submits a task at once, and one that pauses or resumes. @param {Props} props */
export const ScheduleActions = (props) => html`
  <${RunNow} ...${props} />
  ${
    props.schedule.state === "paused"
      ? html`<${Resume} key="resume" ...${props} />`
      : props.schedule.state === "active" && html`<${Pause} key="pause" ...${props} />`
  }`;

/** @param {Props} props */
function RunNow({ schedule: { schedule_id: id }, changed, small }) {
  async function run() {
    const { task_id: task } = await post(`api/v1/schedules/${segment(id)}/run`);
    await changed();
    return `The task ${shortId(task)} was submitted.`;
  }
  const question = `Run ${id} now? It submits a task at once, besides its ticks.`;
  return html`<${ActionButton} small=${small} confirm=${question} run=${run}>Run now</${ActionButton}>`;
}

/** @param {Props} props */
function Pause({ schedule: { schedule_id: id }, changed, small }) {
  const terms = useMemo(() => /** @type {PauseRequest} */ ({}), [id]);
  async function run() {
    await post(`api/v1/schedules/${segment(id)}/pause`, terms);
    await changed();
    return "Paused.";
  }
  return html`<${ActionButton} small=${small} confirm=${() => html`<${PauseTerms} id=${id} terms=${terms} />`}
    run=${run}>Pause</${ActionButton}>`;
}

/**
 * Write what is entered into `terms`, as the API takes them.
 *
 * @param {{ id: string, terms: PauseRequest }} props
 */
function PauseTerms({ id, terms }) {
  useEffect(() => {
    Object.assign(terms, { note: "", until: null });
  }, []);
  const setNote = (/** @type {string} */ note) => {
    terms.note = note.trim();
  };
  const setUntil = (/** @type {string} */ until) => {
    terms.until = isoTime(until);
  };
  return html`
    <span>Pause ${id}? No tick is fired until somebody resumes it, or until the time below.</span>
    <span class="schedule-terms">
      <label>Note <input type="text" maxlength="1000" placeholder="why, for your colleagues"
        onInput=${onValue(setNote)} /></label>
      <label>Until <input type="datetime-local" onInput=${onValue(setUntil)} /></label>
    </span>`;
}

/** @param {Props} props */
function Resume({ schedule: { schedule_id: id }, changed, small }) {
  const terms = useMemo(() => /** @type {ResumeRequest} */ ({}), [id]);
  async function run() {
    await post(`api/v1/schedules/${segment(id)}/resume`, terms);
    await changed();
    return "Resumed.";
  }
  return html`<${ActionButton} small=${small} primary run=${run}
    confirm=${() => html`<${ResumeTerms} id=${id} terms=${terms} />`}>Resume</${ActionButton}>`;
}

/** @param {{ id: string, terms: ResumeRequest }} props */
function ResumeTerms({ id, terms }) {
  useEffect(() => {
    terms.missed = "skip";
  }, []);
  const setMissed = (/** @type {string} */ missed) => {
    terms.missed = /** @type {Missed} */ (missed);
  };
  return html`
    <span>Resume ${id}?</span>
    <span class="schedule-terms">
      <label>Ticks that it missed <select onChange=${onValue(setMissed)}>
        ${Object.entries(MISSED).map(
          ([missed, text]) => html`<option key=${missed} value=${missed}>${text}</option>`,
        )}
      </select></label>
    </span>`;
}

/**
 * Say what to do if somebody else has changed the schedule; any other error stays as it is.
 *
 * @param {unknown} error
 */
export const conflictOr = (error) =>
  error instanceof ApiError && error.code === "schedule_conflict"
    ? new Error("Somebody else has changed this schedule meanwhile: reload it, and repeat your change.")
    : error;
