import type { Clock } from "../../core/services/clock.ts"
import type { Progress } from "./fsck-run.ts"

const terminalMs = 200
const plainMs = 10_000

/**
 * Shows the progress of a long check: on a terminal as one line that is redrawn, elsewhere as a
 * line every 10 s.
 */
export const makeProgress = (
  out: Pick<NodeJS.WriteStream, "write" | "isTTY">,
  clock: Pick<Clock, "nowMs">,
): { readonly report: Progress; clear(): void } => {
  const pauseMs = out.isTTY ? terminalMs : plainMs
  let lastMs: number | undefined
  let isDirty = false
  return {
    report: (check, looked, found) => {
      const nowMs = clock.nowMs()
      // starting the database may have taken long: the first report only starts the clock
      lastMs ??= nowMs
      if (nowMs - lastMs < pauseMs) return
      lastMs = nowMs
      const text = `${check}: ${looked.toLocaleString("en-US")} looked at, ${found.toLocaleString("en-US")} found`
      out.write(out.isTTY ? `\r${text}\u001b[K` : `${text}\n`)
      isDirty = out.isTTY === true
    },
    clear: () => {
      if (isDirty) out.write("\r\u001b[K")
      isDirty = false
    },
  }
}
