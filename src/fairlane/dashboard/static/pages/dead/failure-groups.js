// @ts-check
// Dead letters that failed alike, as one row.

import { count, percent } from "../../lib/format.js";
import { html, useState } from "../../lib/preact.js";
import { Badge } from "../../ui/badges.js";
import { fetched } from "../../ui/fetched.js";
import { TaskLink } from "../../ui/links.js";
import { Panel } from "../../ui/panel.js";
import { Ago } from "../../ui/time.js";
import { LetterActions, MatchingLetters } from "./actions.js";
import { linkTo } from "./query.js";

/**
 * @import { AnalysisView, GroupView } from "../../../types/api.js"
 * @import { Resource } from "../../lib/resource.js"
 * @import { View } from "./query.js"
 * @typedef {{ view: View, changed: () => Promise<unknown> }} Props
 */

const FEW = 8;
const TITLES = ["Failure", "Count", "Seen", "Retriable", "Example"];

/** @param {Props & { analysis: Resource<AnalysisView> }} props */
export const FailureGroups = ({ analysis, view, changed }) =>
  html`<${Panel} title="What went wrong" hint="grouped by failure" flush>
    ${fetched(
      analysis,
      (data) => html`<${GroupTable} analysis=${data} view=${view} changed=${changed} />`,
      4,
    )}
  </${Panel}>`;

/** @param {Props & { analysis: AnalysisView }} props */
function GroupTable({ analysis: { groups, analysed, complete }, view, changed }) {
  const [all, setAll] = useState(false);
  return html`
    <table class="folding-table groups" role="table" aria-label="Failures">
      <thead role="rowgroup"><tr role="row">
          ${TITLES.map(
            (title) => html`<th role="columnheader" key=${title} scope="col"
              class=${title === "Count" ? "number" : ""}>${title}</th>`,
          )}
          <th role="columnheader"><span class="visually-hidden">Actions</span></th>
        </tr></thead>
      <tbody role="rowgroup">${groups.slice(0, all ? undefined : FEW).map(
        (each) => html`<${GroupRow} key=${each.failure} group=${each} exact=${complete}
          chosen=${each.failure === view.failure} changed=${changed} />`,
      )}</tbody>
    </table>
    ${
      groups.length > FEW &&
      !all &&
      html`<p class="table-footer">
        <button type="button" class="button link" onClick=${() => setAll(true)}>
          Show all ${count(groups.length)} failures
        </button>
      </p>`
    }
    ${
      !complete &&
      html`<p class="table-footer muted">Only the newest ${count(analysed)} dead letters were analysed.</p>`
    }`;
}

/** @param {{ group: GroupView, exact: boolean, chosen: boolean, changed: () => Promise<unknown> }} props */
function GroupRow({ group, exact, chosen, changed }) {
  const { type, code, shape, failure } = group;
  const letters = new MatchingLetters({ type, failure }, { count: group.count, exact });
  return html`<tr role="row" aria-selected=${chosen}>
    <th role="rowheader" scope="row" class="name">
      <a href=${linkTo(chosen ? {} : { type, failure })} aria-current=${chosen}
        title=${chosen ? "Show all dead letters" : "Show only these"}>${type}</a>
      ${code && html`<${Badge} tone="danger">${code}</${Badge}>`}
      <div class="failure-shape" title=${shape}>${shape || "no message"}</div>
    </th>
    <td role="cell" class="number"><b>${count(group.count)}</b></td>
    <td role="cell" class="muted">
      ${group.count > 1 && html`first <${Ago} at=${group.first_seen} /><br />last `}
      <${Ago} at=${group.last_seen} />
    </td>
    <td role="cell" data-title="Retriable"
      title="The share that failed with an error that a retry may solve">
      ${percent(group.retriable_share)}
    </td>
    <td role="cell" data-title="Example"><${TaskLink} id=${group.example} /></td>
    <td role="cell" class="row-actions">
      <${LetterActions} letters=${letters} of=${` of ${type}`} changed=${changed} />
    </td>
  </tr>`;
}
