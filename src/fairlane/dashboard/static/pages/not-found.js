// @ts-check
import { html } from "../lib/preact.js";
import { link } from "../lib/router.js";
import { boundTo } from "../lib/session.js";
import { Empty } from "../ui/empty.js";
import { Heading } from "../ui/panel.js";

export const NotFound = () => html`<${Heading} title="Not found" /><${Empty} title="There is no such page">
  <p>The address may be incomplete.</p>
  <a class="button" href=${link("")}>To the overview</a>
</${Empty}>`;

/** What viewers with a bound token see of pages that tell of everybody's tasks. */
export const Refused = () => html`
  <${Heading} title="Not for this token" />
  <${Empty} title="This page tells of everybody's tasks.">
    <p>
      Your token is bound to ${boundTo.value}. <a href=${link("tasks")}>See your tasks</a>, or sign in with a
      token without bounds.
    </p>
  </${Empty}>`;
