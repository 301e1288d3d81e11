// @ts-check
// Where the boxes of a graph stand: in layers, from left to right.

import { Graph, layout } from "../../vendor/dagre.js";
import { layered } from "./layers.js";
import { GAP, heightOf, WIDTH } from "./sizes.js";

/**
 * @import { Box, Edge, Structure } from "./boxes.js"
 * @typedef {{ x: number, y: number }} Point
 * @typedef {Point & { width: number, height: number }} Place Where the upper left corner is.
 * @typedef {{ places: Map<string, Place>, lines: Map<string, string>, width: number, height: number }} Layout
 *   `lines`: the path of each edge, by `lineOf` it.
 */

const MARGIN = 16;
const ARROW = 5;
// dagre leads edges around boxes, but takes seconds for some hundred of them.
const MOST_FOR_DAGRE = 120;

/** @param {Edge} edge */
export const lineOf = ([from, to]) => `${from} ${to}`;

/** @param {Structure} structure @returns {Layout} */
export function layoutOf(structure) {
  const small = structure.boxes.length + structure.edges.length <= MOST_FOR_DAGRE;
  const { middles, bends } = small ? byDagre(structure) : layered(structure);
  const places = new Map(structure.boxes.map((box) => [box.id, placeOf(box, middles)]));
  let [width, height] = [0, 0];
  for (const place of places.values()) {
    width = Math.max(width, place.x + place.width);
    height = Math.max(height, place.y + place.height);
  }
  return {
    places,
    lines: new Map(structure.edges.map((edge) => [lineOf(edge), pathOf(edge, places, bends)])),
    width: width + MARGIN,
    height: height + MARGIN,
  };
}

/** @param {Box} box @param {Map<string, Point>} middles @returns {Place} */
function placeOf(box, middles) {
  const { x, y } = /** @type {Point} */ (middles.get(box.id));
  const height = heightOf(box);
  return { x: x - WIDTH / 2 + MARGIN, y: y - height / 2 + MARGIN, width: WIDTH, height };
}

/** @param {Structure} structure */
function byDagre({ boxes, edges }) {
  const graph = new Graph();
  graph.setGraph({ rankdir: "LR", nodesep: GAP.boxes, ranksep: GAP.layers });
  for (const box of boxes) graph.setNode(box.id, { width: WIDTH, height: heightOf(box) });
  // Backwards: boxes that stand below each other keep their order then.
  for (const [from, to] of edges.toReversed()) graph.setEdge(from, to, {});
  layout(graph);
  const bends = edges.map((edge) => {
    const { points } = graph.edge(...edge);
    return /** @type {const} */ ([lineOf(edge), points.slice(1, -1)]);
  });
  return { middles: new Map(boxes.map(({ id }) => [id, graph.node(id)])), bends: new Map(bends) };
}

/**
 * A curve from the right of a box to the left of another, with an arrow at its end.
 *
 * @param {Edge} edge
 * @param {Map<string, Place>} places
 * @param {Map<string, Point[]>} bends
 */
function pathOf(edge, places, bends) {
  const [from, to] = edge.map((id) => /** @type {Place} */ (places.get(id)));
  const start = { x: from.x + from.width, y: from.y + from.height / 2 };
  const end = { x: to.x, y: to.y + to.height / 2 };
  const next = end.x - start.x <= GAP.layers + 1;
  const between = (!next && bends.get(lineOf(edge))) || []; // dagre bends even what could be straight.
  const points = [...between.map(({ x, y }) => ({ x: x + MARGIN, y: y + MARGIN })), end];
  let { x, y } = start;
  let path = `M${round(x)} ${round(y)}`;
  for (const point of points) {
    const middle = round((x + point.x) / 2);
    path += `C${middle} ${round(y)} ${middle} ${round(point.y)} ${round(point.x)} ${round(point.y)}`;
    ({ x, y } = point);
  }
  return `${path}m${-ARROW} ${-ARROW}l${ARROW} ${ARROW}l${-ARROW} ${ARROW}`;
}

const round = Math.round;
