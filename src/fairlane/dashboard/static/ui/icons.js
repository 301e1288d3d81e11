// @ts-check
// Icons: strokes on a grid of 24.

import { html } from "../lib/preact.js";

/** @typedef {keyof typeof PATHS} IconName */

const PATHS = {
  brand: "M4 7h16 M4 12h11 M4 17h6",
  overview: "M4 19V11 M10 19V5 M16 19v-6 M21 19H3",
  tasks: "M9 6h11 M9 12h11 M9 18h11 M4 6h.01 M4 12h.01 M4 18h.01",
  workflows: "M3 9h5v6H3z M16 4h5v5h-5z M16 15h5v5h-5z M8 12h4 M16 6.5h-4v11h4",
  schedules: "M12 4a8 8 0 1 0 0 16a8 8 0 1 0 0-16 M12 8v4l3 2",
  queues: "M4 6h16v4H4z M4 14h16v4H4z",
  workers: "M7 7h10v10H7z M10 3v4 M14 3v4 M10 17v4 M14 17v4 M3 10h4 M3 14h4 M17 10h4 M17 14h4",
  dead: "M4 7l8 6 8-6 M4 7v11h16V7z",
  search: "M11 4a7 7 0 1 0 0 14a7 7 0 1 0 0-14 M16 16l4 4",
  system: "M4 5h16v11H4z M9 20h6 M12 16v4",
  light:
    "M12 8a4 4 0 1 0 0 8a4 4 0 1 0 0-8 M12 3v2 M12 19v2 " +
    "M3 12h2 M19 12h2 M6 6l1 1 M17 17l1 1 M6 18l1-1 M17 7l1-1",
  dark: "M20 14A8 8 0 0 1 10 4a8 8 0 1 0 10 10",
  leave: "M14 4h5v16h-5 M4 12h10 M10 8l4 4-4 4",
  copy: "M8 8h11v11H8z M5 16V5h11",
  close: "M6 6l12 12 M18 6L6 18",
  back: "M15 6l-6 6 6 6",
  next: "M9 6l6 6-6 6",
};

/** An icon beside a text, or in something that has a label. @param {{ name: IconName }} props */
export const Icon = ({ name }) =>
  html`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true"><path d=${PATHS[name]} /></svg>`;
