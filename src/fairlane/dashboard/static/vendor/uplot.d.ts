// What the dashboard uses of uPlot.

export type Columns = [times: number[], ...values: (number | null)[][]];

type Range = (plot: uPlot, low: number, high: number) => [number, number];

interface Axis {
  stroke: string;
  grid: { stroke: string; width: number };
  ticks: { show: boolean };
  font: string;
  size: number;
  space?: number;
  values: (plot: uPlot, splits: number[]) => string[];
}

interface Line {
  stroke?: string;
  fill?: string;
  width?: number;
  points?: { show: boolean };
}

export interface Options {
  width: number;
  height: number;
  legend: { show: boolean };
  cursor: { y: boolean; drag: { x: boolean; y: boolean } };
  hooks: { setCursor: ((plot: uPlot) => void)[] };
  scales: { x: { range: Range }; y: { range: Range } };
  axes: Axis[];
  series: Line[];
  bands: { series: [number, number] }[];
}

export default class uPlot {
  constructor(options: Options, data: Columns, parent: HTMLElement);
  readonly cursor: { idx?: number | null };
  setData(data: Columns): void;
  setSize(size: { width: number; height: number }): void;
  destroy(): void;
}
