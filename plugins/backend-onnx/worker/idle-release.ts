/** How long nothing must be held before all is released. */
export const idleMs = 5_000
/** The same before what costs little is; a client that asks again at once does not wait for it. */
export const pauseMs = 250

/**
 * Returns a function to be called with what jobs hold, whenever that changes: `trim` runs each time
 * nothing was held for `pauseMs`, `release` where nothing was for `idleMs`, and once more after as
 * long, as V8 shrinks its young generation only where little was allocated for seconds before a
 * collection.
 */
export const releaseWhenIdle = (
  trim: () => void,
  release: () => void,
): ((held: number) => void) => {
  let timer: NodeJS.Timeout | undefined
  const after = (ms: number, work: () => void) => {
    timer = setTimeout(work, ms).unref()
  }
  const releaseTwice = () => {
    release()
    after(idleMs, release)
  }
  const trimFirst = () => {
    trim()
    after(idleMs - pauseMs, releaseTwice)
  }
  return (held) => {
    clearTimeout(timer)
    if (held === 0) after(pauseMs, trimFirst)
  }
}
