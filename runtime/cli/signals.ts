/** The first SIGTERM or SIGINT calls `stop`; the second ends the process at once. */
export const onStopSignal = (stop: (signal: "SIGTERM" | "SIGINT") => void): void => {
  let asked = false
  const handle = (signal: "SIGTERM" | "SIGINT") => {
    if (asked) process.exit(signal === "SIGINT" ? 130 : 143)
    asked = true
    stop(signal)
  }
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, () => handle(signal))
}
