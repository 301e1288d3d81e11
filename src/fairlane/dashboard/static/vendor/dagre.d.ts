// What the dashboard uses of dagre.

interface Point {
  x: number;
  y: number;
}

/** A box; `layout` writes where its middle is. */
type Box = { width: number; height: number } & Partial<Point>;

export class Graph {
  setGraph(options: { rankdir: "LR"; nodesep: number; ranksep: number; ranker?: string }): void;
  setNode(id: string, box: Box): void;
  setEdge(from: string, to: string, label: object): void;
  /** After the layout. */
  node(id: string): Required<Box>;
  edge(from: string, to: string): { points: Point[] };
}

export function layout(graph: Graph): void;
