/** SIGTERM or SIGINT once: stop in an orderly way. Twice: end now. */
export const onStopSignal = (stop: (signal: string) => void): void => {
  let asked = false
  const handle = (signal: NodeJS.Signals) => {
    if (asked) process.exit(signal === "SIGINT" ? 130 : 143)
    asked = true
    stop(signal)
  }
  process.on("SIGTERM", handle)
  process.on("SIGINT", handle)
}
