// @ts-check
// Kinds of JSON values. Numbers that JavaScript cannot represent exactly are raw JSON, which is an object.

/**
 * Whether a value is a JSON object or a list.
 *
 * @param {unknown} value
 * @returns {value is unknown[] | Record<string, unknown>}
 */
export const isBranch = (value) => typeof value === "object" && value !== null && !JSON.isRawJSON?.(value);

/**
 * @param {unknown} value
 * @returns {value is Record<string, unknown>}
 */
export const isObject = (value) => isBranch(value) && !Array.isArray(value);
