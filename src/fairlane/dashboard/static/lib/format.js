// Numbers and times for people. Pure: what they tell depends on what they are given alone.

const UNITS = [
  ["d", 86_400],
  ["h", 3_600],
  ["min", 60],
];

const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long" });
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const plain = new Intl.NumberFormat("en");
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

/** 12345 → "12,345"; from a million on "1.2M". */
export const count = (number) => (Math.abs(number) < 1e6 ? plain.format(number) : short.format(number));

/** 12345 → "12.3K": for where there is little room. */
export const compact = (number) => short.format(number);

/** A rate: "0.3", "12", "1.2K". */
export const rate = (number) =>
  number && number < 10 ? number.toFixed(1) : short.format(Math.round(number));

export const percent = (share) => `${Math.round(share * 100)} %`;

/** "1 task", "2 tasks". */
export const counted = (number, noun) => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;

/** Seconds as "350 ms", "4.2 s", "12 s", "3 min", "2 h", "5 d". */
export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 1) return seconds === 0 ? "0 s" : `${Math.max(1, Math.round(seconds * 1000))} ms`;
  const [name, size] = UNITS.find(([, each]) => seconds >= each) ?? ["s", 1];
  const amount = seconds / size;
  return `${amount < 10 ? Math.floor(10 * amount) / 10 : Math.floor(amount)} ${name}`;
}

/** A time from where `now` is: "just now", "3 min ago", "in 2 h". */
export function ago(iso, now) {
  const seconds = (now - Date.parse(iso)) / 1000;
  if (Math.abs(seconds) < 1.5) return "just now";
  const whole = duration(Math.floor(Math.abs(seconds)));
  return seconds > 0 ? `${whole} ago` : `in ${whole}`;
}

/** A time in the viewer's zone, to the second, with the zone. */
export const exactTime = (iso) => exact.format(new Date(iso));

/** The time of day alone. */
export const timeOfDay = (iso) => clock.format(new Date(iso));

/** Seconds between two times. */
export const secondsBetween = (from, to) => (Date.parse(to) - Date.parse(from)) / 1000;

/** The end of an id, which tells ids apart: their beginning is a time. */
export const shortId = (id) => `…${id.slice(-8)}`;

/** "dead_letter" → "dead letter". */
export const spaced = (name) => name.replaceAll("_", " ");
