/** How long nothing must be held. */
export const idleMs = 5_000

/**
 * Returns a function to be called with what jobs hold, whenever that changes: `release` runs each
 * time nothing was held for `idleMs`, and once more after as long, as V8 shrinks its young
 * generation only where little was allocated for seconds before a collection.
 */
export const releaseWhenIdle = (release: () => void): ((held: number) => void) => {
  let timer: NodeJS.Timeout | undefined
  const releaseTwice = () => {
    release()
    timer = setTimeout(release, idleMs).unref()
  }
  return (held) => {
    clearTimeout(timer)
    timer = held === 0 ? setTimeout(releaseTwice, idleMs).unref() : undefined
  }
}
