import type { Clock } from "../../core/services/clock.ts"
import type { Progress } from "./fsck-run.ts"

const terminalMs = 200
const plainMs = 10_000

/**
 * Shows the progress of long work: on a terminal as one line that is redrawn, elsewhere as a line
 * every 10 s.
 */
export const makeProgressLine = (
  out: Pick<NodeJS.WriteStream, "write" | "isTTY">,
  clock: Pick<Clock, "nowMs">,
): { report(text: () => string): void; clear(): void } => {
  const pauseMs = out.isTTY ? terminalMs : plainMs
  let lastMs: number | undefined
  let isDirty = false
  return {
    report: (text) => {
      const nowMs = clock.nowMs()
      // starting the database may have taken long: the first report only starts the clock
      lastMs ??= nowMs
      if (nowMs - lastMs < pauseMs) return
      lastMs = nowMs
      out.write(out.isTTY ? `\r${text()}\u001b[K` : `${text()}\n`)
      isDirty = out.isTTY === true
    },
    clear: () => {
      if (isDirty) out.write("\r\u001b[K")
      isDirty = false
    },
  }
}

export const countOf = (count: number): string => count.toLocaleString("en-US")

/** The progress of checks. */
export const makeProgress = (
  out: Pick<NodeJS.WriteStream, "write" | "isTTY">,
  clock: Pick<Clock, "nowMs">,
): { readonly report: Progress; clear(): void } => {
  const line = makeProgressLine(out, clock)
  return {
    report: (check, looked, found) =>
      line.report(() => `${check}: ${countOf(looked)} looked at, ${countOf(found)} found`),
    clear: line.clear,
  }
}
