// @ts-check
// The graph of a workflow. Where its boxes stand depends on which tasks it has, and not on their states: it
// is laid out once.

import { count, spaced } from "../../lib/format.js";
import { memo } from "../../lib/memo.js";
import { html, useLayoutEffect, useMemo, useRef, useState } from "../../lib/preact.js";
import { StateBar } from "../../ui/state-counts.js";
import { Card } from "./card.js";
import { CriticalSample } from "./critical-sample.js";
import { layoutOf, lineOf } from "./layout.js";
import { nextInDirection } from "./moves.js";
import { usePointing } from "./pointing.js";
import { countStates, countsText, tookText } from "./words.js";

/**
 * @import { NodeView, State } from "../../../types/api.js"
 * @import { Shown } from "../workflow.js"
 * @import { Box, Edge } from "./boxes.js"
 * @import { Layout, Place } from "./layout.js"
 */

const ZOOM = { least: 0.1, most: 1.6, step: 1.25, atFirst: 0.6 };

/** @param {{ shown: Shown }} props */
export function Graph({ shown }) {
  const { structure, path } = shown;
  const layout = useMemo(() => layoutOf(structure), [structure]);
  const pointing = usePointing();
  const [current, setCurrent] = useState(structure.boxes[0]?.id);
  const { frame, scale, zoom, fit } = useZoom(layout);
  const reachable = layout.places.has(current) ? current : structure.boxes[0]?.id;

  /** @param {KeyboardEvent} event */
  function move(event) {
    const box = event.target instanceof HTMLElement ? event.target.dataset.box : undefined;
    const next = box && nextInDirection(layout.places, box, event.key);
    if (!next || !frame.current) return;
    event.preventDefault();
    setCurrent(next);
    boxElement(frame.current, next)?.focus();
  }

  return html`
    <div class="row view-legend">
      <${CriticalSample} />
      <span class="grow"></span>
      <${Zoom} scale=${scale} zoom=${zoom} fit=${fit} />
    </div>
    <div class="graph" ref=${frame} role="group" aria-label="Graph" onKeyDown=${move} ...${pointing.over}>
      <div style=${{ width: `${scale * layout.width}px`, height: `${scale * layout.height}px` }}>
        <div class="graph-canvas" style=${{
          width: `${layout.width}px`,
          height: `${layout.height}px`,
          transform: `scale(${scale})`,
        }}>
          <${Lines} layout=${layout} edges=${structure.edges} critical=${criticalLines(shown)} />
          ${structure.boxes.map((box) => {
            const place = /** @type {Place} */ (layout.places.get(box.id));
            const tab = box.id === reachable ? 0 : -1;
            return box.members.length > 1
              ? html`<${GroupBox} key=${box.id} box=${box} place=${place} shown=${shown} tab=${tab} />`
              : taskBox(shown, box, place, tab);
          })}
        </div>
      </div>
    </div>
    <${Card} pointing=${pointing} shown=${shown} />
    <p class="visually-hidden">
      The arrow keys lead from task to task. The list shows the same tasks as a table.
      The critical path has ${count(path.size)} of them.
    </p>`;
}

/** @param {Element} frame @param {string} id @returns {HTMLElement | null} */
const boxElement = (frame, id) => frame.querySelector(`[data-box="${CSS.escape(id)}"]`);

/** @param {Shown} shown @param {Box} box @param {Place} place @param {number} tab */
function taskBox({ byId, path, timings }, { id }, place, tab) {
  const task = /** @type {NodeView} */ (byId.get(id));
  return html`<${TaskBox} key=${id} id=${id} name=${task.name} state=${task.status}
    note=${tookText(task, timings.get(id))} critical=${path.has(id)} tab=${tab} place=${place} />`;
}

const TaskBox = memo(
  /**
   * @param {object} props
   * @param {string} props.id
   * @param {string} props.name
   * @param {State} props.state
   * @param {string} props.note
   * @param {boolean} props.critical
   * @param {number} props.tab
   * @param {Place} props.place
   */
  ({ id, name, state, note, critical, tab, place }) => html`<a class="graph-box" data-box=${id}
    data-state=${state} data-critical=${critical} href=${`#/tasks/${id}`} tabindex=${tab}
    style=${styleOf(place)}>
    <b class="ellipsis">${name}</b>
    <small class="ellipsis">${spaced(state)}${note && ` · ${note}`}</small>
  </a>`,
);

/** @param {{ box: Box, place: Place, shown: Shown, tab: number }} props */
function GroupBox({ box: { id, members }, place, shown, tab }) {
  const { byId, path } = shown;
  const type = byId.get(id)?.task_type;
  const counts = countStates(members, byId);
  return html`<a class="graph-box group" data-box=${id} href=${shown.to({ view: "list", like: id })}
    data-critical=${members.some((member) => path.has(member))} tabindex=${tab} style=${styleOf(place)}>
    <b class="ellipsis">${count(members.length)} × ${type}</b>
    <${StateBar} counts=${counts} />
    <small class="ellipsis" title=${countsText(counts)}>${countsText(counts)}</small>
  </a>`;
}

/** @param {Place} place */
const styleOf = ({ x, y, width, height }) => ({
  left: `${x}px`,
  top: `${y}px`,
  width: `${width}px`,
  height: `${height}px`,
});

/** The edges between boxes that follow each other on the critical path. @param {Shown} shown */
function criticalLines({ path, structure: { boxOf } }) {
  const boxes = Array.from(path, (id) => /** @type {string} */ (boxOf.get(id)));
  return boxes
    .slice(1)
    .map((box, index) => lineOf([box, boxes[index]]))
    .join();
}

/** All edges are two paths, however many they are. */
const Lines = memo(
  /** @param {{ layout: Layout, edges: Edge[], critical: string }} props */
  ({ layout: { lines, width, height }, edges, critical }) => {
    const isCritical = new Set(critical.split(","));
    const [others, marked] = [false, true].map((wanted) =>
      edges
        .map(lineOf)
        .filter((line) => isCritical.has(line) === wanted)
        .map((line) => lines.get(line))
        .join(""),
    );
    return html`<svg width=${width} height=${height} aria-hidden="true">
      <path d=${others} /><path class="critical" d=${marked} />
    </svg>`;
  },
);

/** @param {{ scale: number, zoom: (factor: number) => void, fit: () => void }} props */
const Zoom = ({ scale, zoom, fit }) => html`<div class="row" role="group" aria-label="Size">
  <button type="button" class="button small" aria-label="Smaller" onClick=${() => zoom(1 / ZOOM.step)}>
    −
  </button>
  <span class="zoom muted">${Math.round(100 * scale)} %</span>
  <button type="button" class="button small" aria-label="Larger" onClick=${() => zoom(ZOOM.step)}>+</button>
  <button type="button" class="button small" onClick=${fit}>All of it</button>
</div>`;

/**
 * At first a graph is as wide as there is room, if one can still read it.
 *
 * @param {Layout} layout
 */
function useZoom({ width, height }) {
  const frame = useRef(/** @type {HTMLElement | null} */ (null));
  const [scale, setScale] = useState(1);
  const bounded = (/** @type {number} */ next) => Math.min(ZOOM.most, Math.max(ZOOM.least, next));
  const wide = () => (frame.current?.clientWidth ?? width) / width;
  useLayoutEffect(() => setScale(Math.max(ZOOM.atFirst, Math.min(1, wide()))), [width]);
  return {
    frame,
    scale,
    zoom: (/** @type {number} */ factor) => setScale(bounded(scale * factor)),
    fit: () => setScale(bounded(Math.min(1, wide(), (frame.current?.clientHeight ?? height) / height))),
  };
}
