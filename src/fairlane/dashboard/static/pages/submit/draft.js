// @ts-check
// The parameters while they are being entered: field by field, or as one JSON text. Pure functions.

import { parseJson } from "../../lib/api.js";
import { isObject } from "../../lib/json-values.js";

/**
 * @import { Field, Shape } from "./schema.js"
 * @typedef {Record<string, unknown>} Parameters
 * @typedef {Record<string, string>} Errors What is wrong, by the key of a field.
 * @typedef {{ text: string, json: boolean }} Entry The text of a field. `json`: it is JSON, because the field
 *   itself cannot show the value.
 */

/**
 * @typedef {object} Draft
 * @property {Shape | null} shape
 * @property {Record<string, Entry>} entries By the names of fields.
 * @property {string} others An object with the parameters that have no field, as JSON.
 * @property {string | null} json All parameters as JSON; null while they are entered field by field.
 */

/** The keys of what is not one of the fields. */
export const WHOLE = "parameters";
export const OTHERS = "other parameters";
/** @param {string} name */
export const keyOf = (name) => `parameter ${name}`;

const EMPTY = { text: "", json: false };

/** @param {Draft} draft @param {Field} field */
export const entryOf = ({ entries }, { name }) => (Object.hasOwn(entries, name) ? entries[name] : EMPTY);

/** @param {Shape | null} shape @param {Parameters} [given] @returns {Draft} */
export function draftOf(shape, given = {}) {
  if (!shape) return { shape, entries: {}, others: "", json: written(given) };
  const known = shape.fields.filter(({ name }) => Object.hasOwn(given, name));
  const names = new Set(known.map(({ name }) => name));
  const rest = Object.entries(given).filter(([name]) => !names.has(name));
  return {
    shape,
    entries: Object.fromEntries(known.map((field) => [field.name, entryFor(field, given[field.name])])),
    others: written(Object.fromEntries(rest)),
    json: null,
  };
}

/**
 * Return what was entered for another shape. Only a JSON text that cannot be parsed stays as it is.
 *
 * @param {Draft} draft
 * @param {Shape | null} shape
 */
export function adapted(draft, shape) {
  if (draft.shape?.version === shape?.version) return draft;
  const asked = draft.shape !== null && draft.json !== null; // The viewer prefers JSON.
  const { parameters, errors } = collected(draft);
  if (draft.json !== null && (asked || errors[WHOLE])) return { ...draft, shape };
  return draftOf(shape, parameters);
}

/** Switch between fields and JSON. @param {Draft} draft @returns {{ draft: Draft, errors: Errors }} */
export function switched(draft) {
  const { parameters, errors } = collected(draft);
  if (Object.keys(errors).length) return { draft, errors };
  if (draft.json === null) return { draft: { ...draft, json: written(parameters) }, errors };
  return { draft: draftOf(draft.shape, parameters), errors };
}

/**
 * Return the parameters, and what is wrong with them. A field that is empty is left out; one that is wrong
 * counts as the text in it.
 *
 * @param {Draft} draft
 * @returns {{ parameters: Parameters, errors: Errors }}
 */
export function collected(draft) {
  if (draft.json !== null) return objectOf(draft.json, WHOLE);
  const { parameters, errors } = objectOf(draft.others, OTHERS);
  const entered = draft.shape?.fields.filter((field) => !isBlank(field, entryOf(draft, field))) ?? [];
  const values = entered.map((field) => {
    const { value, error } = parsed(field, entryOf(draft, field));
    if (error) errors[keyOf(field.name)] = error;
    return [field.name, value];
  });
  return { parameters: { ...parameters, ...Object.fromEntries(values) }, errors };
}

/** Return which required fields are empty. @param {Draft} draft @returns {Errors} */
export function missing(draft) {
  if (draft.json !== null) return {};
  const empty = draft.shape?.fields.filter(
    (field) => field.required && isBlank(field, entryOf(draft, field)),
  );
  return Object.fromEntries((empty ?? []).map(({ name }) => [keyOf(name), "This parameter is required."]));
}

/** @param {Field} field @param {Entry} entry */
const isBlank = ({ kind }, { text, json }) => (kind === "text" && !json ? text : text.trim()) === "";

/** @param {string} text @param {string} key @returns {{ parameters: Parameters, errors: Errors }} */
function objectOf(text, key) {
  const { value, error } = text.trim() === "" ? { value: {} } : fromJson(text);
  if (error) return { parameters: {}, errors: { [key]: error } };
  if (isObject(value)) return { parameters: value, errors: {} };
  return { parameters: {}, errors: { [key]: 'Parameters are an object: {"name": "value"}.' } };
}

/** @param {Field} field @param {Entry} entry @returns {{ value: unknown, error?: string }} */
function parsed({ kind }, { text, json }) {
  if (json || kind === "json" || kind === "choice") return fromJson(text);
  if (kind === "text") return { value: text };
  const whole = /^\+?(-?)0*(\d+)$/.exec(text.trim());
  if (whole) return { value: parseJson(whole[1] + whole[2]) };
  if (kind === "integer") return { value: text, error: "This is not a whole number." };
  const number = Number(text);
  return Number.isFinite(number) ? { value: number } : { value: text, error: "This is not a number." };
}

/** @param {string} text @returns {{ value: unknown, error?: string }} */
function fromJson(text) {
  try {
    return { value: parseJson(text) };
  } catch (error) {
    return { value: text, error: `This is not JSON: ${/** @type {Error} */ (error).message}.` };
  }
}

/**
 * Return the text of a value, as JSON if the field would change it.
 *
 * @param {Field} field
 * @param {unknown} value
 */
function entryFor(field, value) {
  const text = JSON.stringify(value, null, 2);
  const plain = { text: typeof value === "string" && field.kind === "text" ? value : text, json: false };
  return isKept(field, plain, value) ? plain : { text, json: true };
}

/** @param {Field} field @param {Entry} entry @param {unknown} value */
function isKept(field, entry, value) {
  const same = (/** @type {unknown} */ other) => JSON.stringify(other) === JSON.stringify(value);
  if (field.kind === "choice") return field.choices.some(same);
  // Browsers drop the other characters that end a line.
  return !isBlank(field, entry) && !entry.text.includes("\r") && same(parsed(field, entry).value);
}

/** Say why parameters cannot be edited; null if they can. @param {unknown} parameters */
export function unreadable(parameters) {
  if (!isObject(parameters)) return "The server does not show them.";
  const names = Object.keys(parameters).filter((name) => name !== "$broken");
  if (names.length !== 1) return null;
  if (names[0] === "$sealed") return "They are encrypted, and the server cannot read them.";
  if (names[0] === "$blob") return "They are stored outside of the task, by reference.";
  return null;
}

/** @param {Parameters} parameters */
const written = (parameters) => (Object.keys(parameters).length ? JSON.stringify(parameters, null, 2) : "");
