// @ts-check
// How large boxes are, and how far apart.

/** @import { Box } from "./boxes.js" */

export const WIDTH = 172;
export const GAP = { layers: 56, boxes: 14 };
const HEIGHT = 46;
const GROUP_HEIGHT = 70;

/** @param {Box} box */
export const heightOf = ({ members }) => (members.length > 1 ? GROUP_HEIGHT : HEIGHT);
