// @ts-check
// The form of a schedule: what was entered, what is wrong with it, and sending it.

import { ApiError, patch, post, segment } from "../../lib/api.js";
import { onChecked, onSubmit, onValue } from "../../lib/inputs.js";
import { OWN_ZONE } from "../../lib/local-times.js";
import { html, useMemo, useState } from "../../lib/preact.js";
import { link, navigate } from "../../lib/router.js";
import { ActionButton } from "../../ui/action-button.js";
import { ErrorBanner } from "../../ui/fetched.js";
import { Field } from "../../ui/field.js";
import { Panel } from "../../ui/panel.js";
import { conflictOr } from "../schedules/actions.js";
import { OPTIONS } from "../submit/options.js";
import { useTaskForm } from "../submit/task-form.js";
import { parsedPolicies, policiesOf } from "./policy.js";
import { PolicyFields } from "./policy-fields.js";
import { parsedRule, ruleOf } from "./rule.js";
import { RuleFields } from "./rule-fields.js";

/**
 * @import { DefinitionView, ScheduledTask, SchedulePatch, ScheduleRequest, ScheduleView }
 *   from "../../../types/api.js"
 * @import { Control } from "../../ui/field.js"
 * @import { Errors } from "../submit/draft.js"
 * @import { Policies, PolicyName } from "./policy.js"
 * @import { Rule } from "./rule.js"
 */

const WRONG_FIELDS = "Not saved yet: please correct the marked fields.";
const NO_ID = "A schedule has an id.";

/**
 * @param {object} props
 * @param {DefinitionView[]} props.definitions Some of them.
 * @param {ScheduleView | null} props.schedule The one to edit.
 */
export function EntryForm({ definitions, schedule }) {
  const before = useMemo(() => ({ rule: ruleOf(schedule, OWN_ZONE), policies: policiesOf(schedule) }), []);
  const [id, setId] = useState(schedule?.schedule_id ?? "");
  const [rule, setRule] = useState(before.rule);
  const [policies, setPolicies] = useState(before.policies);
  const [refused, setRefused] = useState(/** @type {string | null} */ (null));
  const [allowed, setAllowed] = useState(false);
  const task = useTaskForm(definitions, schedule && schedule.task, ["idempotency_key"], (type) =>
    type === refused ? html`<${AllowUnknown} allowed=${allowed} set=${setAllowed} />` : null,
  );
  const { form, fields, problem, correct, refuse, refuseFor } = task;

  /** @param {string} text */
  function changeId(text) {
    setId(text);
    correct("schedule_id");
  }

  /** @param {Rule} next @param {keyof Rule} key */
  function changeRule(next, key) {
    setRule(next);
    correct(key);
  }

  /** @param {Policies} next @param {PolicyName} name */
  function changePolicies(next, name) {
    setPolicies(next);
    correct(name);
  }

  async function save() {
    const { request, errors } = collect();
    if (Object.keys(errors).length) return refuse(WRONG_FIELDS, errors);
    try {
      if (schedule) await change(schedule, request);
      else
        await post(
          "api/v1/schedules",
          /** @type {ScheduleRequest} */ ({ ...request, schedule_id: id.trim() }),
        );
    } catch (error) {
      if (error instanceof ApiError && error.code === "unknown_type") {
        setRefused(request.task?.task_type ?? null);
        setAllowed(false);
        return refuse(WRONG_FIELDS, { type: unknownText(error) });
      }
      return refuseFor(error);
    }
    navigate(link(["schedules", id.trim()]), { replace: schedule !== null });
    return schedule ? "Saved." : "Created.";
  }

  /** @returns {{ request: SchedulePatch, errors: Errors }} */
  function collect() {
    const when = parsedRule(rule);
    const how = parsedPolicies(policies, before.policies);
    const what = task.collect();
    /** @type {Errors} */
    const named = id.trim() ? {} : { schedule_id: NO_ID };
    const template = /** @type {ScheduledTask} */ ({ ...unshown(schedule), ...what.request });
    const allow = allowed && template.task_type === refused ? { allow_unknown_type: true } : {};
    return {
      request: { ...when.request, ...how.request, ...allow, task: template },
      errors: { ...named, ...when.errors, ...how.errors, ...what.errors },
    };
  }

  return html`<form ref=${form} class="submit-form" noValidate onSubmit=${onSubmit()}>
    <${ErrorBanner} error=${problem.message && { message: problem.message }} />
    ${
      !schedule &&
      html`<${Panel}>
        <${Field} label="Id" note="required" error=${problem.errors.schedule_id}
          hint="Letters, digits and any of _ - . :"
          input=${(/** @type {Control} */ control) => html`<input ...${control} type="text"
            aria-required="true" autocomplete="off" spellcheck=${false} value=${id} maxlength="200"
            onInput=${onValue(changeId)} />`} />
      </${Panel}>`
    }
    <${RuleFields} rule=${rule} set=${changeRule} errors=${problem.errors} />
    ${fields}
    <${PolicyFields} policies=${policies} set=${changePolicies} errors=${problem.errors} />
    <div class="row">
      <${ActionButton} submit primary run=${save}>${schedule ? "Save" : "Create"}</${ActionButton}>
    </div>
  </form>`;
}

/** @param {ApiError} error */
function unknownText({ details: { similar } }) {
  const names = Array.isArray(similar) ? similar.join(" or ") : "";
  return `No worker handles this type.${names && ` Did you mean ${names}?`}`;
}

/** @param {{ allowed: boolean, set: (allowed: boolean) => void }} props */
const AllowUnknown = ({ allowed, set }) => html`<label class="inline">
  <input type="checkbox" checked=${allowed} onChange=${onChecked(set)} />
  Its workers come later: save the schedule all the same
</label>`;

/** @param {ScheduleView} schedule @param {SchedulePatch} request */
async function change({ schedule_id: id, version }, request) {
  try {
    await patch(`api/v1/schedules/${segment(id)}`, request, version);
  } catch (error) {
    throw conflictOr(error);
  }
}

/**
 * Return what the form does not show of a schedule's task, so that it stays.
 *
 * @param {ScheduleView | null} schedule
 */
function unshown(schedule) {
  const shown = new Set(["task_type", "parameters", ...OPTIONS.map(({ name }) => name)]);
  const others = Object.entries(schedule?.task ?? {}).filter(([name]) => !shown.has(name));
  return Object.fromEntries(others);
}
