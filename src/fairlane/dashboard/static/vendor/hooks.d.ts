// What the dashboard uses of Preact's hooks.

export interface Ref<T> {
  current: T;
}

type Inputs = ReadonlyArray<unknown>;

export function useCallback<T extends (...given: never[]) => unknown>(callback: T, inputs: Inputs): T;
export function useEffect(effect: () => void | (() => void), inputs?: Inputs): void;
export function useLayoutEffect(effect: () => void | (() => void), inputs?: Inputs): void;
export function useErrorBoundary(caught: (error: Error) => void): [Error | undefined, () => void];
export function useId(): string;
export function useMemo<T>(make: () => T, inputs: Inputs): T;
export function useRef<T>(initial: T): Ref<T>;
export function useState<T>(initial: T | (() => T)): [T, (next: T | ((last: T) => T)) => void];
