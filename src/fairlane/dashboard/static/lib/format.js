// @ts-check
// Numbers and times for people: pure functions.

/** @type {[name: string, seconds: number][]} */
const UNITS = [
  ["d", 86_400],
  ["h", 3_600],
  ["min", 60],
];

const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long" });
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const plain = new Intl.NumberFormat("en");
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

/** 12345 → "12,345"; from a million on "1.2M". @param {number} number */
export const count = (number) => (Math.abs(number) < 1e6 ? plain.format(number) : short.format(number));

/** 12345 → "12.3K", where there is little room. @param {number} number */
export const compact = (number) => short.format(number);

/** A rate: "0.3", "12", "1.2K". @param {number} number */
export const rate = (number) =>
  number && number < 10 ? number.toFixed(1) : short.format(Math.round(number));

/** 0.25 → "25 %". @param {number} share */
export const percent = (share) => `${Math.round(share * 100)} %`;

/** "1 task", "2 tasks". @param {number} number @param {string} noun */
export const counted = (number, noun) => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;

/** Seconds as "350 ms", "4.2 s", "12 s", "3 min", "2 h", "5 d". @param {number | null} [seconds] */
export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 1) return seconds === 0 ? "0 s" : `${Math.max(1, Math.round(seconds * 1000))} ms`;
  const [name, size] = UNITS.find(([, each]) => seconds >= each) ?? ["s", 1];
  const amount = seconds / size;
  return `${amount < 10 ? Math.floor(10 * amount) / 10 : Math.floor(amount)} ${name}`;
}

/** A time relative to `now`: "just now", "3 min ago", "in 2 h". @param {string} iso @param {number} now */
export function ago(iso, now) {
  const seconds = (now - Date.parse(iso)) / 1000;
  if (Math.abs(seconds) < 1.5) return "just now";
  const whole = duration(Math.floor(Math.abs(seconds)));
  return seconds > 0 ? `${whole} ago` : `in ${whole}`;
}

/** A time in the viewer's zone, to the second, with the zone. @param {string | number} time */
export const exactTime = (time) => exact.format(new Date(time));

/** The time of day alone. @param {string | number} time */
export const timeOfDay = (time) => clock.format(new Date(time));

/** Seconds between two times. @param {string} from @param {string} to */
export const secondsBetween = (from, to) => (Date.parse(to) - Date.parse(from)) / 1000;

/** The end of an id: ids begin with a time, and differ at their end. @param {string} id */
export const shortId = (id) => `…${id.slice(-8)}`;

/** A name that somebody gave, which cannot turn around the text beside it. @param {string} name */
export const isolated = (name) => `\u2068${name}\u2069`;

/** "dead_letter" → "dead letter". @param {string} name */
export const spaced = (name) => name.replaceAll("_", " ");
