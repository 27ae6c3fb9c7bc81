import type { RawLine } from "../input/json-lines.ts"
import type { Earlier } from "./earlier.ts"
import { type BatchFileRefused, refused } from "./refused.ts"

/** How much of the input an earlier run has completed, and how much of its two files to keep. */
export interface Resumption {
  readonly completed: number
  readonly failed: number
  readonly outputBytes: number
  readonly errorBytes: number
  /** The first line without a result; undefined: all have one. */
  readonly next: Pick<RawLine, "line" | "offset"> | undefined
}

/**
 * Merges the input with the results, which are in its order. After a power failure one file may
 * miss more than the other: all lines from the
 * first one without a result on run again. Results that belong to no line mean that the files are
 * of another input.
 */
export const makeResume = (output: Earlier, errors: Earlier) => {
  let completed = 0
  let failed = 0
  let next: Resumption["next"]
  /** Results that belong to none of the lines so far. */
  const left = new Set<string>()

  return {
    /** Takes the next line of the input. */
    pass: (customId: string, raw: RawLine): void => {
      if (next) left.delete(customId)
      else if (output.ids[completed] === customId) completed += 1
      else if (errors.ids[failed] === customId) failed += 1
      else {
        next = { line: raw.line, offset: raw.offset }
        for (const id of [...output.ids.slice(completed), ...errors.ids.slice(failed)]) left.add(id)
        left.delete(customId)
      }
    },
    /** Call it after the last line. */
    result: (): Resumption | BatchFileRefused => {
      const unmatched = next
        ? left.size
        : output.ids.length - completed + errors.ids.length - failed
      if (unmatched > 0) {
        const files = [output, errors].filter(({ ids }) => ids.length > 0).map(({ path }) => path)
        return refused(
          `${files.join(" and ")}: not made from this input. Name another --out, or remove what is there.`,
        )
      }
      return {
        completed,
        failed,
        outputBytes: output.ends[completed - 1] ?? 0,
        errorBytes: errors.ends[failed - 1] ?? 0,
        next,
      }
    },
  }
}
