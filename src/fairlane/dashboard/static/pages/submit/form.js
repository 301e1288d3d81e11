// @ts-check
// The form that submits a task.

import { send } from "../../lib/api.js";
import { onSubmit } from "../../lib/inputs.js";
import { html } from "../../lib/preact.js";
import { link, navigate } from "../../lib/router.js";
import { ActionButton } from "../../ui/action-button.js";
import { ErrorBanner } from "../../ui/fetched.js";
import { useTaskForm } from "./task-form.js";

/** @import { DefinitionView, TaskAccepted, TaskDetail, TaskRequest } from "../../../types/api.js" */

const WRONG_FIELDS = "Not submitted yet: please correct the marked fields.";

/**
 * @param {object} props
 * @param {DefinitionView[]} props.definitions Some of them.
 * @param {TaskDetail | null} props.source A task to copy.
 */
export function SubmitForm({ definitions, source }) {
  const { form, fields, problem, collect, refuse, refuseFor } = useTaskForm(definitions, source);

  async function submit() {
    const { request, errors } = collect();
    if (Object.keys(errors).length) return refuse(WRONG_FIELDS, errors);
    try {
      return await submitTask(request);
    } catch (error) {
      return refuseFor(error);
    }
  }

  // In a form, Enter presses the button.
  return html`<form ref=${form} class="submit-form" noValidate onSubmit=${onSubmit()}>
    <${ErrorBanner} error=${problem.message && { message: problem.message }} />
    ${fields}
    <div class="row">
      <${ActionButton} submit primary scope="submit" run=${submit}>Submit</${ActionButton}>
    </div>
  </form>`;
}

/** Submit a task, go to its page, and say what happened. @param {TaskRequest} body */
async function submitTask(body) {
  const { status, answer } = await send("POST", "api/v1/tasks", { body });
  navigate(link(["tasks", /** @type {TaskAccepted} */ (answer).task_id]));
  // 201: it is new. 200: another one has its key, or it is not unique.
  return status === 201 ? "Submitted." : "There is such a task already: no other one was submitted.";
}
