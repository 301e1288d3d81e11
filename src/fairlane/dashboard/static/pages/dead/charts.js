// Failures over time, and the types that dead letters are of.

import { get } from "../../lib/api.js";
import { count, rate } from "../../lib/format.js";
import { useResource } from "../../lib/resource.js";
import { link } from "../../lib/router.js";
import { html, useMemo } from "../../lib/preact.js";
import { Chart } from "../../ui/chart.js";
import { Fetched } from "../../ui/fetched.js";
import { Panel } from "../../ui/panel.js";
import { StateBar } from "../../ui/state-counts.js";
import { spacedOut, rates, thinned } from "../overview/charts.js";
import { linkTo } from "./query.js";

const RANGES = { "1 h": 3600, "6 h": 21_600, "24 h": 86_400 };
const SERIES = [{ label: "failed runs a minute", color: "state-failed" }];
const FEW = 7;

export function Charts({ view, types }) {
  const range = view.range in RANGES ? view.range : "1 h";
  const history = useResource((abort) => samples(RANGES[range], abort), [range], { every: 5000 });
  const tools = Object.keys(RANGES).map(
    (label) =>
      html`<a key=${label} class="button small" aria-current=${label === range || undefined}
        href=${link("dead", { ...view, range: label })}>${label}</a>`,
  );
  return html`<div class="columns">
    <${Panel} title="Failures" hint="runs that failed, retried or not" tools=${tools}>
      <${Fetched} resource=${history}>${(found) => html`<${RecentFailures} samples=${found} />`}</${Fetched}>
    </${Panel}>
    <${Panel} title="Dead letters by type" flush><${Types} types=${types} /></${Panel}>
  </div>`;
}

function RecentFailures({ samples }) {
  const data = useMemo(() => {
    const [times, , , failed] = rates(thinned(spacedOut(samples)));
    return [times, failed.map((each) => 60 * each)];
  }, [samples]);
  return html`<${Chart} label="Runs that failed a minute, over time" series=${SERIES} data=${data}
    value=${rate} />`;
}

async function samples(seconds, abort) {
  const since = new Date(Date.now() - 1000 * seconds).toISOString();
  const found = await get("api/v1/stats/history", { since, limit: 10_000 }, abort);
  return [...found.samples, found.current];
}

function Types({ types }) {
  const rows = types.filter((each) => each.dead).sort((one, other) => other.dead - one.dead);
  return html`<ul class="bar-list">
    ${rows.slice(0, FEW).map(
      ({ type, dead }) => html`<li key=${type}>
        <a href=${linkTo({ type })}>${type}</a>
        <${StateBar} states=${{ dead_letter: dead }} share=${dead / rows[0].dead} /><b>${count(dead)}</b>
      </li>`,
    )}
    ${rows.length > FEW && html`<li class="muted">and ${count(rows.length - FEW)} more types</li>`}
  </ul>`;
}
