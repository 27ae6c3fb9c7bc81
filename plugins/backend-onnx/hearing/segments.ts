/** What was written of a window, from one time to another, in seconds from the start of the sound. */
export interface Segment {
  readonly start: number
  readonly end: number
  readonly tokens: readonly number[]
}

/** A window of sound: where it begins, and how much there is of it, in frames. */
export interface Heard {
  readonly first: number
  readonly frames: number
  readonly secondsOfFrame: number
  /** The token of 0.00 s; absent: the model writes no times. */
  readonly firstTimestamp?: number
}

/**
 * Divides the tokens of a window at its times, and says how many frames it has read: what follows the
 * last pair of times is read again with the next window (Whisper's transcribe.py). A time is one of
 * two frames.
 */
export const segmentsOf = (
  written: readonly number[],
  { first, frames, secondsOfFrame, firstTimestamp = Number.POSITIVE_INFINITY }: Heard,
): { readonly segments: readonly Segment[]; readonly read: number } => {
  const begin = firstTimestamp
  const offset = first * secondsOfFrame
  const secondsAt = (token: number) => offset + (token - begin) * 2 * secondsOfFrame
  const isTime = (token: number | undefined) => token !== undefined && token >= begin
  const endsWithOne = isTime(written.at(-1)) && !isTime(written.at(-2))
  const cuts = written.flatMap((token, i) =>
    i > 0 && isTime(token) && isTime(written[i - 1]) ? [i] : [],
  )
  if (cuts.length === 0) {
    const last = written.findLast(isTime)
    const end = last !== undefined && last !== begin ? secondsAt(last) : undefined
    const segment = { start: offset, end: end ?? offset + frames * secondsOfFrame, tokens: written }
    return { segments: [segment], read: frames }
  }
  const ends = endsWithOne ? [...cuts, written.length] : cuts
  let from = 0
  const segments = ends.map((to): Segment => {
    const tokens = written.slice(from, to)
    from = to
    return { start: secondsAt(tokens[0]!), end: secondsAt(tokens.at(-1)!), tokens }
  })
  // the last pair is the end of what was heard and the start of what follows
  const read = endsWithOne ? frames : Math.min(frames, (written[from - 1]! - begin) * 2)
  return { segments, read: read > 0 ? read : frames }
}
