import { useEffect, useRef } from "preact/hooks"
import { useApp } from "../app.js"

const everyMs = 3_000

/** Calls `work` every 3 s for as long as `isBusy`; not while nobody looks at the page. */
export const usePoll = (isBusy, work) => {
  const { after } = useApp()
  const newest = useRef(work)
  newest.current = work
  useEffect(() => {
    if (!isBusy) return undefined
    let cancel
    const round = () => {
      if (!document.hidden) newest.current()
      cancel = after(everyMs, round)
    }
    cancel = after(everyMs, round)
    return () => cancel()
  }, [isBusy])
}
