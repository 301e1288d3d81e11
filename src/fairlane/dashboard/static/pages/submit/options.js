// @ts-check
// The options of a submission: what they are called, how they are entered, and how they are sent.

import { duration } from "../../lib/format.js";
import { isObject } from "../../lib/json-values.js";
import { splitTag } from "../../lib/task-list.js";

/**
 * @import { DefinitionView, TaskDetail, TaskRequest } from "../../../types/api.js"
 * @import { Errors } from "./draft.js"
 * @typedef {typeof OPTIONS[number]["name"]} OptionName
 * @typedef {Record<OptionName, string>} Options What was entered. Empty: as the definition says.
 * @typedef {"queue" | "priority" | "max_retries" | "required_capabilities" | "tags"} Copied
 * @typedef {{ timeout_seconds?: number | null, delay_seconds?: number }} CopiedTimes
 * @typedef {Pick<TaskDetail, Copied> & CopiedTimes} CopiedOptions
 */

export const OPTIONS = /** @type {const} */ ([
  { name: "queue", label: "Queue" },
  { name: "priority", label: "Priority" },
  { name: "delay_seconds", label: "Delay", unit: "seconds" },
  { name: "max_retries", label: "Retries", unit: "at most" },
  { name: "timeout_seconds", label: "Timeout", unit: "seconds; 0: no limit" },
  { name: "required_capabilities", label: "Capabilities", unit: "with commas" },
  { name: "idempotency_key", label: "Idempotency key", unit: "one task per key" },
  { name: "tags", label: "Tags", unit: "one per line" },
]);

export const NO_OPTIONS = optionsOf({});

/** Return what the form shows of options. @param {Partial<Options>} given @returns {Options} */
function optionsOf(given) {
  const all = OPTIONS.map(({ name }) => [name, given[name] ?? ""]);
  return /** @type {Options} */ (Object.fromEntries(all));
}

/** Return the options of a task, for another one like it. @param {CopiedOptions} task */
export const copied = (task) =>
  optionsOf({
    queue: task.queue,
    priority: String(task.priority),
    delay_seconds: task.delay_seconds ? String(task.delay_seconds) : "",
    max_retries: String(task.max_retries),
    timeout_seconds: task.timeout_seconds === undefined ? "" : String(task.timeout_seconds ?? 0),
    required_capabilities: task.required_capabilities.join(", "),
    tags: tagText(task.tags),
  });

/**
 * Return what is used where nothing was entered. Without a definition, the server decides by the priority.
 *
 * @param {DefinitionView | null} definition
 */
export function defaultsOf(definition) {
  const { queue = "default", priority = "medium", max_retries: retries, tags = {} } = definition ?? {};
  const { timeout_seconds: timeout, delay_seconds: delay, required_capabilities: able } = definition ?? {};
  return optionsOf({
    queue,
    priority: String(priority),
    max_retries: retries === undefined ? "by priority" : String(retries),
    timeout_seconds: timeout === undefined ? "by priority" : timeout === null ? "no limit" : String(timeout),
    delay_seconds: String(delay ?? 0),
    required_capabilities: able?.join(", ") || "none",
    tags: tagText(tags) || "name:value",
  });
}

/** Say what a definition sets, in a sentence. @param {DefinitionView} definition */
export function defaultsText({ queue, priority, max_retries: retries, timeout_seconds: timeout }) {
  const parts = [
    queue !== undefined && `queue ${queue}`,
    priority !== undefined && `priority ${priority}`,
    retries !== undefined && `at most ${retries} retries`,
    timeout !== undefined && (timeout === null ? "no timeout" : `timeout ${duration(timeout)}`),
  ].filter(Boolean);
  return parts.length ? `Defaults: ${parts.join(", ")}.` : "";
}

/** Return the options as they are sent, and what is wrong with them. @param {Options} options */
export function parsedOptions(options) {
  /** @type {Errors} */
  const errors = {};
  /** @type {TaskRequest} */
  const request = {};
  for (const { name } of OPTIONS) {
    const text = options[name].trim();
    if (text === "") continue;
    try {
      Object.assign(request, { [name]: PARSERS[name](text) });
    } catch (error) {
      errors[name] = /** @type {Error} */ (error).message;
    }
  }
  return { request, errors };
}

/** @type {Record<OptionName, (text: string) => unknown>} */
const PARSERS = {
  queue: (text) => text,
  priority: (text) => (/^\d+$/.test(text) ? Number(text) : text),
  delay_seconds: numberOf,
  max_retries: numberOf,
  timeout_seconds: (text) => numberOf(text) || null,
  required_capabilities: (text) => text.split(/[\s,]+/).filter(Boolean),
  idempotency_key: (text) => text,
  tags: tagsOf,
};

/** @param {string} text */
function numberOf(text) {
  const number = Number(text);
  if (!Number.isFinite(number) || number < 0) throw new Error("This is not a number of zero or more.");
  return number;
}

/** @param {string} text @returns {Record<string, string>} */
function tagsOf(text) {
  const given = tagObject(text);
  if (given) return given;
  const lines = text.split("\n").filter((line) => line.trim());
  const wrong = lines.find((line) => line.indexOf(":") < 1);
  if (wrong !== undefined) throw new Error("A tag has a name and a value: name:value.");
  return Object.fromEntries(lines.map((line) => splitTag(line).map((part) => part.trim())));
}

/**
 * Return tags as text: as JSON if lines would change them.
 *
 * @param {Record<string, string>} tags
 */
function tagText(tags) {
  const pairs = Object.entries(tags);
  const odd = pairs.some(([name, value]) => /:|^\s|\s$|^$/.test(name) || value.trim() !== value);
  return odd ? JSON.stringify(tags, null, 2) : pairs.map((pair) => pair.join(":")).join("\n");
}

/** @param {string} text @returns {Record<string, string> | null} */
function tagObject(text) {
  try {
    const value = JSON.parse(text);
    return isObject(value) ? /** @type {Record<string, string>} */ (value) : null;
  } catch {
    return null;
  }
}
