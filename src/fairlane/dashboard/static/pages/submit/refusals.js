// @ts-check
// Which field of the form a refusal of the API is about.

import { ApiError } from "../../lib/api.js";
import { keyOf, OTHERS, WHOLE } from "./draft.js";

/** @import { Draft, Errors } from "./draft.js" */

/** @type {Partial<Record<string, string>>} */
const KEYS = {
  invalid_type: "type",
  invalid_queue: "queue",
  invalid_priority: "priority",
  invalid_time: "delay_seconds",
  invalid_max_retries: "max_retries",
  invalid_timeout: "timeout_seconds",
  invalid_capabilities: "required_capabilities",
  invalid_tags: "tags",
  invalid_idempotency_key: "idempotency_key",
  idempotency_conflict: "idempotency_key",
  invalid_payload: WHOLE,
  payload_too_large: WHOLE,
  payload_too_deep: WHOLE,
};

/**
 * Return the message of a refusal, by the key of its field. It is empty if no field is to blame.
 *
 * @param {unknown} error
 * @param {Draft} draft
 * @returns {Errors}
 */
export function errorsOf(error, draft) {
  if (!(error instanceof ApiError)) return {};
  const { parameter } = error.details;
  const key = typeof parameter === "string" ? fieldOf(parameter, draft) : KEYS[error.code];
  return key ? { [key]: error.message } : {};
}

/** @param {string} parameter @param {Draft} draft */
function fieldOf(parameter, { shape, json }) {
  if (json !== null) return WHOLE;
  return shape?.fields.some(({ name }) => name === parameter) ? keyOf(parameter) : OTHERS;
}
