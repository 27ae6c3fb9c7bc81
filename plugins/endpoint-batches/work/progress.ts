import { Effect } from "effect"

interface Passed {
  readonly line: number
  readonly end: number
  /** Of what it became; undefined while it runs. */
  doneBytes: number | undefined
}

/** What may become a part: all lines up to `through` are answered, and the input goes on at `offset`. */
export interface Stretch {
  readonly through: number
  readonly offset: number
}

/** Which lines after those in parts are answered. Lines pass in the order of the input, and are done in any order. */
export interface Progress {
  passed(line: number, end: number): void
  done(line: number, bytes: number): void
  /** Undefined until it is worth a part. */
  readonly stretch: Stretch | undefined
  /** They lie in a part now. */
  forget({ through }: Stretch): void
  /** Waits while too many lines have passed that lie in no part: a line that takes long must not let all others pile up. */
  readonly room: Effect.Effect<void>
}

export const makeProgress = ({
  partBytes,
  partLines,
  maxLines,
}: {
  readonly partBytes: number
  readonly partLines: number
  readonly maxLines: number
}): Progress => {
  const byLine = new Map<number, Passed>()
  const all: Passed[] = []
  /** So many at the beginning are done, with so many bytes. */
  let doneLines = 0
  let doneBytes = 0
  let wake = () => {}

  return {
    passed: (line, end) => {
      const one = { line, end, doneBytes: undefined }
      all.push(one)
      byLine.set(line, one)
    },
    done: (line, bytes) => {
      const one = byLine.get(line)
      if (one) one.doneBytes = bytes
      for (let next = all[doneLines]; next?.doneBytes !== undefined; next = all[doneLines]) {
        doneBytes += next.doneBytes
        doneLines += 1
      }
    },
    get stretch() {
      const last = all[doneLines - 1]
      return last && (doneBytes >= partBytes || doneLines >= partLines)
        ? { through: last.line, offset: last.end }
        : undefined
    },
    forget: ({ through }) => {
      const gone = all.findIndex(({ line }) => line > through)
      for (const one of all.splice(0, gone < 0 ? all.length : gone)) {
        byLine.delete(one.line)
        doneBytes -= one.doneBytes ?? 0
        doneLines -= 1
      }
      wake()
    },
    room: Effect.suspend(() => {
      if (all.length < maxLines) return Effect.void
      return Effect.callback<void>((resume) => {
        wake = () => resume(Effect.void)
      })
    }),
  }
}
