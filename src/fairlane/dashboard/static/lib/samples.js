// @ts-check
// Samples of the store's counters over time, and what charts make of them.

import { get } from "./api.js";

/** @import { SampleView } from "../../types/api.js" */

const MOST_POINTS = 240;
const LEAST_SECONDS_APART = 1;
/** The counters that charts show as rates, in this order. */
export const COUNTERS = /** @type {const} */ (["submitted", "completed", "failed"]);

/**
 * Fetch the samples of the last seconds, and the counters as they are now.
 *
 * @param {number} seconds
 * @param {AbortSignal} abort
 */
export const fetchSamples = (seconds, abort) =>
  get("api/v1/stats/history", { since: secondsAgo(seconds), limit: 10_000 }, abort);

/** @param {number} seconds */
export const secondsAgo = (seconds) => new Date(Date.now() - 1000 * seconds).toISOString();

/** Return when a sample was taken, in seconds. @param {Pick<SampleView, "timestamp">} sample */
export const timeOf = (sample) => Date.parse(sample.timestamp) / 1000;

/**
 * Leave out samples that follow another so closely that a rate between them would mean nothing.
 *
 * @param {SampleView[]} samples
 */
export function spacedOut(samples) {
  let last = -Infinity;
  return samples.filter((each) => {
    const far = timeOf(each) - last >= LEAST_SECONDS_APART;
    if (far) last = timeOf(each);
    return far;
  });
}

/**
 * Keep as many samples as a chart can show, evenly, and the last one always.
 *
 * @param {SampleView[]} samples
 */
export function thinned(samples) {
  const step = Math.ceil(samples.length / MOST_POINTS);
  return samples.filter((_, index) => (samples.length - 1 - index) % step === 0);
}

/**
 * Return [times, rates of each counter…]: how fast the counters grew between each sample and the one before.
 *
 * @param {SampleView[]} samples
 * @returns {[number[], ...number[][]]}
 */
export function rates(samples) {
  const times = samples.slice(1).map(timeOf);
  const rateOf = (/** @type {typeof COUNTERS[number]} */ counter) =>
    samples.slice(1).map((each, index) => {
      const passed = timeOf(each) - timeOf(samples[index]);
      return passed > 0 ? Math.max(0, each[counter] - samples[index][counter]) / passed : 0;
    });
  return [times, ...COUNTERS.map(rateOf)];
}
