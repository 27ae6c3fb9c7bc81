/** How long nothing must be held. */
export const idleMs = 5_000

/**
 * Returns a function to be called with what jobs hold, whenever that changes: `release` runs once
 * each time nothing was held for `idleMs`.
 */
export const releaseWhenIdle = (release: () => void): ((held: number) => void) => {
  let timer: NodeJS.Timeout | undefined
  return (held) => {
    clearTimeout(timer)
    timer = held === 0 ? setTimeout(release, idleMs).unref() : undefined
  }
}
