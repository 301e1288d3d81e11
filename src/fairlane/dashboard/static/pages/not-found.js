// @ts-check
import { html } from "../lib/preact.js";
import { link } from "../lib/router.js";
import { Empty } from "../ui/empty.js";
import { Heading } from "../ui/panel.js";

export const NotFound = () => html`<${Heading} title="Not found" /><${Empty} title="There is no such page">
  <p>The address may be incomplete.</p>
  <a class="button" href=${link("")}>To the overview</a>
</${Empty}>`;
