// @ts-check
// What the forms share that describe a task: what was entered, and what is wrong with it.

import { html, useEffect, useMemo, useRef, useState } from "../../lib/preact.js";
import { useDefinition } from "./definitions.js";
import { adapted, collected, draftOf, missing, switched } from "./draft.js";
import { OptionFields } from "./option-fields.js";
import { copied, NO_OPTIONS, OPTIONS, parsedOptions } from "./options.js";
import { ParameterFields } from "./parameter-fields.js";
import { errorsOf } from "./refusals.js";
import { shapeOf } from "./schema.js";
import { TypeField } from "./type-field.js";

/**
 * @import { DefinitionView, TaskRequest } from "../../../types/api.js"
 * @import { Children } from "../../lib/preact.js"
 * @import { Draft, Errors, Parameters } from "./draft.js"
 * @import { CopiedOptions, OptionName, Options } from "./options.js"
 * @typedef {{ message: string | null, errors: Errors, attempt: number }} Problem What is said at the top and
 *   at fields after the last attempt.
 * @typedef {CopiedOptions & { task_type: string, parameters: unknown }} Source A task to copy.
 */

/** @type {Problem} */
const NONE = { message: null, errors: {}, attempt: 0 };
const NO_TYPE = { type: "A task has a type." };

/**
 * @param {DefinitionView[]} definitions Some of them.
 * @param {Source | null} source
 * @param {OptionName[]} [without] Options that are not offered.
 * @param {(type: string) => Children} [besideType] What is shown below a type.
 */
export function useTaskForm(definitions, source, without = [], besideType = () => null) {
  const [type, setType] = useState(source?.task_type ?? "");
  const [chosen, setChosen] = useState(type);
  const [entered, setEntered] = useState(() =>
    draftOf(null, /** @type {Parameters | undefined} */ (source?.parameters)),
  );
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

  /**
   * Say what is wrong: at the top, and at fields by their keys.
   *
   * @param {string | null} message
   * @param {Errors} errors
   */
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

  /**
   * Return the task as it is sent, and what is wrong with it.
   *
   * @returns {{ request: TaskRequest, errors: Errors }}
   */
  function collect() {
    const { parameters, errors } = collected(draft);
    const said = parsedOptions(options);
    const given = Object.keys(parameters).length ? { parameters } : {};
    return {
      request: { task_type: type.trim(), ...given, ...said.request },
      errors: { ...missing(draft), ...errors, ...said.errors, ...(type.trim() ? {} : NO_TYPE) },
    };
  }

  /** Say why the server refused what was sent. @param {unknown} error */
  const refuseFor = (error) => refuse(/** @type {Error} */ (error).message, errorsOf(error, draft));

  const fields = html`
    <${TypeField} type=${type} set=${changeType} choose=${setChosen}
      settled=${chosen === type} known=${definitions}
      definition=${definition} error=${problem.errors.type} more=${besideType(type.trim())} />
    <${ParameterFields} draft=${draft} set=${changeParameters} toggle=${toggle} errors=${problem.errors} />
    <${OptionFields} options=${options} set=${changeOptions} definition=${definition} without=${without}
      errors=${problem.errors} open=${open} setOpen=${setOpen} />`;
  return { form, fields, problem, collect, correct, refuse, refuseFor };
}

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
