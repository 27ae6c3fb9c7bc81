import type { RawLine } from "../input/json-lines.ts"
import type { Earlier } from "./earlier.ts"
import { type BatchFileRefused, refused } from "./refused.ts"

/** How much of the input an earlier run has done, and how much of its two files to keep. */
export interface Resumption {
  readonly completed: number
  readonly failed: number
  readonly outputBytes: number
  readonly errorBytes: number
  /** The first line that has no result; undefined: all have one. */
  readonly next: Pick<RawLine, "line" | "offset"> | undefined
}

/**
 * Walks through the input beside the results, which came in its order. After a power failure the one file may miss more than the other: from the
 * first line without a result on, all run again. Results that belong to no line at all mean that the files are of another input.
 */
export const makeResume = (output: Earlier, errors: Earlier) => {
  let completed = 0
  let failed = 0
  let next: Resumption["next"]
  /** Results that are not those of the lines so far. */
  const left = new Set<string>()

  return {
    /** The next line of the input. */
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
    /** After the last line. */
    found: (): Resumption | BatchFileRefused => {
      const strangers = next
        ? left.size
        : output.ids.length - completed + errors.ids.length - failed
      if (strangers > 0) {
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
