import { link } from "../lib/router.js";
import { html } from "../lib/view.js";
import { Empty, Heading } from "../ui/parts.js";

export const NotFound = () => html`<${Heading} title="Not found" /><${Empty} title="There is no such page">
  <p>The address may have been cut off on its way here.</p>
  <a class="button" href=${link("")}>To the overview</a>
</${Empty}>`;
