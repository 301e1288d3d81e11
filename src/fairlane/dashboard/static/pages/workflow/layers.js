// @ts-check
// A layout in layers that is fast enough for thousands of boxes. It does not lead edges around boxes.

import { GAP, heightOf, WIDTH } from "./sizes.js";

/**
 * @import { Structure } from "./boxes.js"
 * @import { Point } from "./layout.js"
 * @typedef {{ id: string, height: number, before: Spot[], after: Spot[], layer: number, y: number }} Spot
 */

const SWEEPS = 8;

/** @param {Structure} structure */
export function layered({ boxes, edges }) {
  /** @type {Map<string, Spot>} */
  const spots = new Map(
    boxes.map((box) => [
      box.id,
      { id: box.id, height: heightOf(box), before: [], after: [], layer: 0, y: 0 },
    ]),
  );
  for (const [from, to] of edges) {
    const [one, other] = [from, to].map((id) => /** @type {Spot} */ (spots.get(id)));
    one.after.push(other);
    other.before.push(one);
  }
  const layers = layersOf([...spots.values()]);
  for (const layer of layers) settle(layer);
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const forwards = sweep % 2 === 0;
    const side = forwards ? "before" : "after";
    for (const layer of forwards ? layers : layers.toReversed()) align(layer, side);
  }
  const top = layers.flat().reduce((least, { y, height }) => Math.min(least, y - height / 2), Infinity);
  /** @type {Map<string, Point>} */
  const middles = new Map(
    layers
      .flat()
      .map(({ id, layer, y }) => [id, { x: layer * (WIDTH + GAP.layers) + WIDTH / 2, y: y - top }]),
  );
  return { middles, bends: /** @type {Map<string, Point[]>} */ (new Map()) };
}

/**
 * A box stands right of all those that lead to it; one that none leads to, close to those it leads to.
 *
 * @param {Spot[]} spots
 */
function layersOf(spots) {
  const open = new Map(spots.map((spot) => [spot, spot.before.length]));
  const ready = spots.filter((spot) => spot.before.length === 0);
  for (const spot of ready) {
    for (const next of spot.after) {
      next.layer = Math.max(next.layer, spot.layer + 1);
      const left = /** @type {number} */ (open.get(next)) - 1;
      open.set(next, left);
      if (left === 0) ready.push(next);
    }
  }
  /** @type {Spot[][]} */
  const layers = [];
  for (const spot of spots) {
    if (spot.before.length === 0 && spot.after.length > 0) {
      spot.layer = spot.after.reduce((least, { layer }) => Math.min(least, layer), Infinity) - 1;
    }
    (layers[spot.layer] ??= []).push(spot);
  }
  return Array.from(layers, (layer) => layer ?? []);
}

/** Stand one below the other. @param {Spot[]} layer */
function settle(layer) {
  let y = 0;
  for (const spot of layer) {
    spot.y = y + spot.height / 2;
    y += spot.height + GAP.boxes;
  }
}

/**
 * Sort a layer by where the neighbours of each box are, and move each box as close to them as the others let
 * it: those that would overlap move together, to the mean of where they want to be.
 *
 * @param {Spot[]} layer
 * @param {"before" | "after"} side
 */
function align(layer, side) {
  const wanted = new Map(layer.map((spot) => [spot, meanOf(spot[side]) ?? spot.y]));
  const wish = (/** @type {Spot} */ spot) => /** @type {number} */ (wanted.get(spot));
  layer.sort((one, other) => wish(one) - wish(other) || one.y - other.y);
  /** @type {{ spots: Spot[], sum: number, length: number }[]} */
  const blocks = [];
  for (const spot of layer) {
    const length = spot.height + GAP.boxes;
    let block = { spots: [spot], sum: wish(spot) - length / 2, length };
    for (
      let last = blocks.at(-1);
      last && startOf(last) + last.length > startOf(block);
      last = blocks.at(-1)
    ) {
      blocks.pop();
      block = {
        spots: [...last.spots, ...block.spots],
        sum: last.sum + block.sum - last.length * block.spots.length,
        length: last.length + block.length,
      };
    }
    blocks.push(block);
  }
  for (const block of blocks) {
    let y = startOf(block);
    for (const spot of block.spots) {
      spot.y = y + (spot.height + GAP.boxes) / 2;
      y += spot.height + GAP.boxes;
    }
  }
}

/** @param {{ spots: Spot[], sum: number }} block */
const startOf = ({ spots, sum }) => sum / spots.length;

/** @param {Spot[]} spots */
const meanOf = (spots) => (spots.length ? spots.reduce((sum, { y }) => sum + y, 0) / spots.length : null);
