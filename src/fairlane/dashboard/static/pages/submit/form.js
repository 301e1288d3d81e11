// @ts-check
// The form: what was entered, what is wrong with it, and sending it.

import { send } from "../../lib/api.js";
import { onSubmit } from "../../lib/inputs.js";
import { html, useEffect, useMemo, useRef, useState } from "../../lib/preact.js";
import { link, navigate } from "../../lib/router.js";
import { ActionButton } from "../../ui/action-button.js";
import { ErrorBanner } from "../../ui/fetched.js";
import { useDefinition } from "./definitions.js";
import { adapted, collected, draftOf, missing, switched } from "./draft.js";
import { OptionFields } from "./option-fields.js";
import { copied, NO_OPTIONS, OPTIONS, parsedOptions } from "./options.js";
import { ParameterFields } from "./parameter-fields.js";
import { errorsOf } from "./refusals.js";
import { shapeOf } from "./schema.js";
import { TypeField } from "./type-field.js";

/**
 * @import { DefinitionView, TaskAccepted, TaskDetail, TaskRequest } from "../../../types/api.js"
 * @import { Draft, Errors } from "./draft.js"
 * @import { OptionName, Options } from "./options.js"
 * @typedef {{ message: string | null, errors: Errors, attempt: number }} Problem What is said at the top and
 *   at fields after the last attempt.
 */

/** @type {Problem} */
const NONE = { message: null, errors: {}, attempt: 0 };
const WRONG_FIELDS = "Not submitted yet: please correct the marked fields.";

/**
 * @param {object} props
 * @param {DefinitionView[]} props.definitions Some of them.
 * @param {TaskDetail | null} props.source A task to copy.
 */
export function SubmitForm({ definitions, source }) {
  const [type, setType] = useState(source?.task_type ?? "");
  const [chosen, setChosen] = useState(type);
  const [entered, setEntered] = useState(() => draftOf(null, source?.parameters));
  const [options, setOptions] = useState(source ? copied(source) : NO_OPTIONS);
  const [open, setOpen] = useState(source !== null);
  const [problem, setProblem] = useState(NONE);
  const form = useRef(/** @type {HTMLFormElement | null} */ (null));

  const definition = useDefinition(definitions, type.trim(), chosen.trim());
  const shape = useMemo(() => shapeOf(definition), [definition?.type, definition?.version]);
  const draft = useMemo(() => adapted(entered, shape), [entered, shape]);

  useEffect(() => {
    if (problem.attempt) show(form.current);
  }, [problem.attempt]);

  /** @param {string | null} message @param {Errors} errors */
  function refuse(message, errors) {
    setProblem({ message, errors, attempt: problem.attempt + 1 });
    if (OPTIONS.some(({ name }) => name in errors)) setOpen(true);
  }

  /** Forget what was wrong with a field that is being corrected. @param {string} key */
  const correct = (key) =>
    setProblem(({ errors: { [key]: _, ...errors }, ...others }) => ({ ...others, errors }));

  /** @param {string} text */
  function changeType(text) {
    setType(text);
    correct("type");
  }

  /** @param {Draft} next @param {string} key */
  function changeParameters(next, key) {
    setEntered(next);
    correct(key);
  }

  /** @param {Options} next @param {OptionName} name */
  function changeOptions(next, name) {
    setOptions(next);
    correct(name);
  }

  function toggle() {
    const next = switched(draft);
    if (Object.keys(next.errors).length) return refuse(null, next.errors);
    setEntered(next.draft);
    setProblem(NONE);
  }

  async function submit() {
    const { parameters, errors } = collected(draft);
    const said = parsedOptions(options);
    const wrong = { ...missing(draft), ...errors, ...said.errors, ...(type.trim() ? {} : NO_TYPE) };
    if (Object.keys(wrong).length) return refuse(WRONG_FIELDS, wrong);
    const given = Object.keys(parameters).length ? { parameters } : {};
    try {
      return await submitTask({ task_type: type.trim(), ...given, ...said.request });
    } catch (error) {
      return refuse(/** @type {Error} */ (error).message, errorsOf(error, draft));
    }
  }

  // In a form, Enter presses the button.
  return html`<form ref=${form} class="submit-form" noValidate onSubmit=${onSubmit()}>
    <${ErrorBanner} error=${problem.message && { message: problem.message }} />
    <${TypeField} type=${type} set=${changeType} choose=${setChosen}
      settled=${chosen === type} known=${definitions}
      definition=${definition} error=${problem.errors.type} />
    <${ParameterFields} draft=${draft} set=${changeParameters} toggle=${toggle} errors=${problem.errors} />
    <${OptionFields} options=${options} set=${changeOptions} definition=${definition}
      errors=${problem.errors} open=${open} setOpen=${setOpen} />
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

const NO_TYPE = { type: "A task has a type." };

/**
 * Show the first field that is wrong, or else the message at the top.
 *
 * @param {HTMLFormElement | null} form
 */
function show(form) {
  /** @type {HTMLElement | null | undefined} */
  const wrong = form?.querySelector("[aria-invalid=true]");
  if (wrong) wrong.focus();
  else form?.scrollIntoView({ block: "nearest" });
}
