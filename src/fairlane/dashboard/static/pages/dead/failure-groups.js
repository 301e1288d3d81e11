import { count, percent } from "../../lib/format.js";
import { html, useState } from "../../lib/preact.js";
import { Badge } from "../../ui/badges.js";
import { TaskLink } from "../../ui/links.js";
import { Fetched } from "../../ui/fetched.js";
import { Panel } from "../../ui/panel.js";
import { Ago } from "../../ui/time.js";
import { LetterActions, MatchingLetters } from "./actions.js";
import { linkTo } from "./query.js";

const FEW = 8;
const TITLES = ["Failure", "Count", "Seen", "Retriable", "Example"];

/** Dead letters that failed alike, as one. */
export function FailureGroups({ analysis, view, changed }) {
  const [all, setAll] = useState(false);
  return html`<${Panel} title="What went wrong" hint="alike failures are one" flush>
    <${Fetched} resource=${analysis} rows=${4}>${({ groups, analysed, complete }) => html`
      <table class="folding-table groups" role="table" aria-label="Failures">
        <thead role="rowgroup"><tr role="row">
            ${TITLES.map(
              (title) =>
                html`<th role="columnheader" key=${title} scope="col" class=${
                  title === "Count" ? "number" : ""
                }>${title}</th>`,
            )}
            <th role="columnheader"><span class="visually-hidden">Actions</span></th>
          </tr></thead>
        <tbody role="rowgroup">${groups.slice(0, all ? undefined : FEW).map(
          (each) => html`<${FailureGroup} key=${each.failure} found=${each} exact=${complete}
            chosen=${each.failure === view.failure} changed=${changed} />`,
        )}</tbody>
      </table>
      ${
        groups.length > FEW &&
        !all &&
        html`<p class="table-footer">
          <button type="button" class="button link"
            onClick=${() => setAll(true)}>Show all ${count(groups.length)} failures</button></p>`
      }
      ${
        !complete &&
        html`<p
          class="table-footer muted">Only the newest ${count(analysed)} dead letters were looked at.</p>`
      }
    `}</${Fetched}></${Panel}>`;
}

function FailureGroup({ found, exact, chosen, changed }) {
  const { type, code, shape, failure } = found;
  const members = new MatchingLetters({ type, failure }, { count: found.count, exact });
  return html`<tr role="row" aria-selected=${chosen}>
    <th role="rowheader" scope="row" class="name">
      <a href=${linkTo(chosen ? {} : { type, failure })} aria-current=${chosen} title=${
        chosen ? "Show all dead letters" : "Show these alone"
      }>${type}</a>
      ${code && html`<${Badge} tone="danger">${code}</${Badge}>`}
      <div class="failure-shape" title=${shape}>${shape || "without a message"}</div>
    </th>
    <td role="cell" class="number"><b>${count(found.count)}</b></td>
    <td role="cell" class="muted">${
      found.count > 1 && html`first <${Ago} at=${found.first_seen} /><br />last `
    }<${Ago} at=${found.last_seen} /></td>
    <td role="cell" data-title="Retriable" title="How many failed with an error that may pass by itself">
      ${percent(found.retriable_share)}</td>
    <td role="cell" data-title="Example"><${TaskLink} id=${found.example} /></td>
    <td role="cell" class="row-actions">
      <${LetterActions} small what=${members} of=${` of ${type}`} changed=${changed} />
    </td>
  </tr>`;
}
