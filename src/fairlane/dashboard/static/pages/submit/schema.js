// @ts-check
// The fields of a form, made from the JSON Schema of a type's parameters.

import { isObject } from "../../lib/json-values.js";

/**
 * @import { DefinitionView } from "../../../types/api.js"
 * @typedef {Record<string, unknown>} Schema
 * @typedef {"text" | "integer" | "number" | "choice" | "json"} Kind
 */

/**
 * @typedef {object} Field
 * @property {string} name
 * @property {Kind} kind
 * @property {boolean} required
 * @property {string} type What it takes, in words.
 * @property {string} description
 * @property {unknown[]} choices The values of a choice.
 * @property {unknown} [fallback] The value that the handler uses if it gets none.
 */

/**
 * @typedef {object} Shape What a type takes.
 * @property {string} version Tells shapes apart.
 * @property {Field[]} fields
 * @property {boolean} open Whether it also takes parameters that have no field.
 */

/** @type {Partial<Record<string, { kind: Kind, type: string, choices?: unknown[] }>>} */
const KINDS = {
  string: { kind: "text", type: "text" },
  integer: { kind: "integer", type: "whole number" },
  number: { kind: "number", type: "number" },
  boolean: { kind: "choice", type: "true or false", choices: [true, false] },
  array: { kind: "json", type: "list, as JSON" },
  object: { kind: "json", type: "object, as JSON" },
};
const ANYTHING = { kind: /** @type {Kind} */ ("json"), type: "JSON" };

/** Return what a type takes; null if only its handler knows. @param {DefinitionView | null} definition */
export function shapeOf(definition) {
  const schema = definition?.parameters;
  if (!definition || !isObject(schema)) return null;
  const required = new Set(Array.isArray(schema.required) ? schema.required : []);
  const properties = Object.entries(objectIn(schema, "properties"));
  /** @type {Shape} */
  const shape = {
    version: `${definition.type} ${definition.version}`,
    fields: properties.map(([name, each]) => fieldOf(name, each, required.has(name), schema)),
    open: schema.additionalProperties !== false,
  };
  return shape;
}

/**
 * @param {string} name
 * @param {unknown} given
 * @param {boolean} required
 * @param {Schema} root
 * @returns {Field}
 */
function fieldOf(name, given, required, root) {
  const own = isObject(given) ? given : {};
  const schema = resolved(own, root);
  const text = own.description ?? schema.description;
  return {
    name,
    required,
    choices: [],
    ...kindOf(schema),
    description: typeof text === "string" ? text : "",
    fallback: own.default,
  };
}

/** Return a schema without references, and without null beside one other type. */
function resolved(/** @type {Schema} */ given, /** @type {Schema} */ root) {
  const schema = referred(given, root);
  if (!Array.isArray(schema.anyOf)) return schema;
  const others = schema.anyOf.filter((each) => !isObject(each) || each.type !== "null");
  return others.length === 1 && isObject(others[0]) ? referred(others[0], root) : schema;
}

/** @param {Schema} schema @param {Schema} root @returns {Schema} */
function referred(schema, root) {
  if (typeof schema.$ref !== "string") return schema;
  const found = objectIn(root, "$defs")[schema.$ref.replace("#/$defs/", "")];
  return isObject(found) ? found : {};
}

/** @param {Schema} schema */
function kindOf({ type, format, enum: choices }) {
  if (Array.isArray(choices)) return { kind: /** @type {Kind} */ ("choice"), type: "choice", choices };
  const types = [type].flat().filter((each) => each !== "null");
  const found = types.length === 1 ? KINDS[String(types[0])] : undefined;
  if (found?.kind === "text" && typeof format === "string") return { ...found, type: format };
  return found ?? ANYTHING;
}

/** @param {Schema} schema @param {string} name @returns {Schema} */
const objectIn = (schema, name) => {
  const found = schema[name];
  return isObject(found) ? found : {};
};
