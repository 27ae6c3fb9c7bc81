/** Before the second attempt, the third ..., from the end of the one that failed. */
export const waitsMs = [5_000, 30_000, 300_000, 1_800_000] as const
export const maxTries = waitsMs.length + 1
export const giveUpAfterMs = 2 * 60 * 60_000
export const disableAfterMs = 5 * 24 * 60 * 60_000

/** Where the round of a delivery stands. */
export interface Round {
  /** Attempts that have ended. */
  readonly tries: number
  readonly beganMs: number
  /** A test has one attempt. */
  readonly once: boolean
}

export type Verdict =
  | { readonly state: "succeeded" }
  | { readonly state: "giveup" }
  | { readonly state: "pending"; readonly waitMs: number }

/** The first attempt is made however late it is: the servers may have been off. */
export const isOver = ({ tries, beganMs }: Round, nowMs: number): boolean =>
  tries > 0 && nowMs - beganMs >= giveUpAfterMs

/**
 * States of a delivery: pending -> succeeded | giveup (the fifth failure, or 2 hours, or its webhook went) | pending (failed, waits).
 * succeeded, giveup and pending -> pending (redelivered: a new round).
 */
export const verdictOf = (
  round: Round,
  succeeded: boolean,
  endedMs: number,
  random: () => number,
): Verdict => {
  if (succeeded) return { state: "succeeded" }
  const waitMs = waitsMs[round.tries]
  if (round.once || waitMs === undefined || endedMs - round.beganMs >= giveUpAfterMs)
    return { state: "giveup" }
  return { state: "pending", waitMs: Math.round(waitMs * (1 + random() / 5)) }
}

/** A receiver that says 410 is gone, and so is one that has failed for five days. */
export const isGone = (
  statusCode: number | null,
  failingSinceMs: number,
  endedMs: number,
): boolean => statusCode === 410 || endedMs - failingSinceMs >= disableAfterMs
