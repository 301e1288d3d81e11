// @ts-check
// Failures over time, and the types of dead letters.

import { count, rate } from "../../lib/format.js";
import { html, useMemo } from "../../lib/preact.js";
import { useResource } from "../../lib/resource.js";
import { link } from "../../lib/router.js";
import { fetchSamples, rates, spacedOut, thinned } from "../../lib/samples.js";
import { Chart } from "../../ui/chart.js";
import { fetched } from "../../ui/fetched.js";
import { Panel } from "../../ui/panel.js";
import { StateBar } from "../../ui/state-counts.js";
import { linkTo } from "./query.js";

/**
 * @import { SampleView } from "../../../types/api.js"
 * @import { Columns } from "../../vendor/uplot.js"
 * @import { View } from "./query.js"
 * @typedef {{ type: string, dead: number }} DeadType
 */

/** @type {Record<string, number>} */
const RANGES = { "1 h": 3600, "6 h": 21_600, "24 h": 86_400 };
const SERIES = [{ label: "failed runs a minute", color: "state-failed" }];
const FEW = 7;

/** @param {{ view: View, types: DeadType[] }} props */
export function Charts({ view, types }) {
  const range = view.range && view.range in RANGES ? view.range : "1 h";
  const history = useResource((abort) => fetchSamples(RANGES[range], abort), [range], { every: 5000 });
  const tools = Object.keys(RANGES).map(
    (label) =>
      html`<a key=${label} class="button small" aria-current=${label === range || undefined}
        href=${link("dead", { ...view, range: label })}>${label}</a>`,
  );
  return html`<div class="columns">
    <${Panel} title="Failures" hint="runs that failed, retried or not" tools=${tools}>
      ${fetched(
        history,
        ({ samples, current }) => html`<${FailureChart} samples=${samples} current=${current} />`,
      )}
    </${Panel}>
    <${Panel} title="Dead letters by type" flush><${DeadTypes} types=${types} /></${Panel}>
  </div>`;
}

/** @param {{ samples: SampleView[], current: SampleView }} props */
function FailureChart({ samples, current }) {
  const data = useMemo(() => {
    const [times, , , failed] = rates(thinned(spacedOut([...samples, current])));
    /** @type {Columns} */
    const columns = [times, failed.map((each) => 60 * each)];
    return columns;
  }, [current]);
  return html`<${Chart} label="Runs that failed a minute, over time" series=${SERIES} data=${data}
    format=${rate} />`;
}

/** @param {{ types: DeadType[] }} props */
function DeadTypes({ types }) {
  const rows = types.filter(({ dead }) => dead).sort((one, other) => other.dead - one.dead);
  return html`<ul class="bar-list">
    ${rows.slice(0, FEW).map(
      ({ type, dead }) => html`<li key=${type}>
        <a href=${linkTo({ type })}>${type}</a>
        <${StateBar} counts=${{ dead_letter: dead }} share=${dead / rows[0].dead} />
        <b>${count(dead)}</b>
      </li>`,
    )}
    ${rows.length > FEW && html`<li class="muted">and ${count(rows.length - FEW)} more types</li>`}
  </ul>`;
}
