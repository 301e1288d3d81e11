// @ts-check
// Times as the clock in some zone shows them, and as fields for a time take them.

/** @type {Intl.DateTimeFormatOptions} */
const MINUTE = {
  timeZone: "UTC",
  weekday: "short",
  day: "numeric",
  month: "short",
  year: "numeric",
  hour: "2-digit",
  minute: "2-digit",
};
const toTheMinute = new Intl.DateTimeFormat(undefined, MINUTE);
const toTheSecond = new Intl.DateTimeFormat(undefined, { ...MINUTE, second: "2-digit" });

/** The viewer's own zone. */
export const OWN_ZONE = new Intl.DateTimeFormat().resolvedOptions().timeZone;

/**
 * A time that has an offset, as a clock in its zone shows it; seconds only if there are some.
 *
 * @param {string} local
 */
export function wallTime(local) {
  const time = new Date(`${local.slice(0, 19)}Z`);
  return (time.getUTCSeconds() ? toTheSecond : toTheMinute).format(time);
}

/**
 * Return a time as a field for it takes it: in the viewer's zone, to the minute.
 *
 * @param {string | null} [iso]
 */
export function localTime(iso) {
  const time = new Date(iso ?? "");
  if (Number.isNaN(time.valueOf())) return "";
  return new Date(time.valueOf() - 60_000 * time.getTimezoneOffset()).toISOString().slice(0, 16);
}

/** Return what was entered into such a field, as the API takes it. @param {string} text */
export const isoTime = (text) => (text ? new Date(text).toISOString() : null);
