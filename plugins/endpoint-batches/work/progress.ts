import { Effect } from "effect"

interface PassedLine {
  readonly line: number
  readonly end: number
  /** Size of its answer; undefined while it runs. */
  answerBytes: number | undefined
}

/**
 * A contiguous completed range, from the last segment on: all lines up to `through` are answered,
 * and the input goes on at byte `offset`.
 */
export interface CompletedRange {
  readonly through: number
  readonly offset: number
}

/**
 * Tracks which lines after the last segment are answered. Lines pass in order of the input, and are
 * done in any order.
 */
export interface Progress {
  passed(line: number, end: number): void
  done(line: number, bytes: number): void
  /** Undefined until it is large enough for a segment. */
  readonly completed: CompletedRange | undefined
  /** The range is in a segment now. */
  forget({ through }: CompletedRange): void
  /**
   * Waits while too many lines after the last segment have passed: the others must not pile up
   * behind a slow one.
   */
  readonly capacity: Effect.Effect<void>
}

export interface ProgressOptions {
  /** A range is worth a segment with so many bytes, or so many lines. */
  readonly segmentBytes: number
  readonly segmentLines: number
  /** So many lines may have passed that are in no segment. */
  readonly maxLines: number
}

export const makeProgress = ({
  segmentBytes,
  segmentLines,
  maxLines,
}: ProgressOptions): Progress => {
  const byLine = new Map<number, PassedLine>()
  const all: PassedLine[] = []
  /** Length of the completed range, and the bytes of its answers. */
  let doneLines = 0
  let doneBytes = 0
  let wake = () => {}

  return {
    passed: (line, end) => {
      const one = { line, end, answerBytes: undefined }
      all.push(one)
      byLine.set(line, one)
    },
    done: (line, bytes) => {
      const one = byLine.get(line)
      if (one) one.answerBytes = bytes
      for (let next = all[doneLines]; next?.answerBytes !== undefined; next = all[doneLines]) {
        doneBytes += next.answerBytes
        doneLines += 1
      }
    },
    get completed() {
      const last = all[doneLines - 1]
      return last && (doneBytes >= segmentBytes || doneLines >= segmentLines)
        ? { through: last.line, offset: last.end }
        : undefined
    },
    forget: ({ through }) => {
      const next = all.findIndex(({ line }) => line > through)
      for (const one of all.splice(0, next < 0 ? all.length : next)) {
        byLine.delete(one.line)
        doneBytes -= one.answerBytes ?? 0
        doneLines -= 1
      }
      wake()
    },
    capacity: Effect.suspend(() => {
      if (all.length < maxLines) return Effect.void
      return Effect.callback<void>((resume) => {
        wake = () => resume(Effect.void)
      })
    }),
  }
}
