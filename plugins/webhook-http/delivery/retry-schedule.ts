// The retry schedule of webhooks: when the next attempt of a delivery is made, and when a delivery
// is given up or its webhook disabled.

/** The waits before the second, third ... attempt, from the end of the failed one. */
export const retryWaitsMs = [5_000, 30_000, 300_000, 1_800_000] as const
export const maxTries = retryWaitsMs.length + 1
export const giveUpAfterMs = 2 * 60 * 60_000
/** A webhook that has failed for so long without a success is disabled. */
export const disableAfterMs = 5 * 24 * 60 * 60_000

/** One series of attempts of a delivery; a redelivery begins a new one. */
export interface Round {
  /** The number of attempts that have ended. */
  readonly tries: number
  readonly beganMs: number
  /** A test has one attempt. */
  readonly once: boolean
}

export type Outcome =
  | { readonly state: "succeeded" }
  | { readonly state: "giveup" }
  | { readonly state: "pending"; readonly waitMs: number }

/** The first attempt is made however late it is: the servers may have been off. */
export const isOver = ({ tries, beganMs }: Round, nowMs: number): boolean =>
  tries > 0 && nowMs - beganMs >= giveUpAfterMs

/**
 * States of a delivery: pending -> succeeded | giveup (the fifth failure, or 2 hours, or its
 * webhook was deleted or disabled) |
 * pending (failed; waits for its retry). Any state -> pending (redelivered: a new round).
 */
export const outcomeOf = (
  round: Round,
  succeeded: boolean,
  endedMs: number,
  random: () => number,
): Outcome => {
  if (succeeded) return { state: "succeeded" }
  const waitMs = retryWaitsMs[round.tries]
  if (round.once || waitMs === undefined || endedMs - round.beganMs >= giveUpAfterMs)
    return { state: "giveup" }
  return { state: "pending", waitMs: Math.round(waitMs * (1 + random() / 5)) }
}

/**
 * Whether a failing webhook is to be disabled: its receiver answered 410 Gone, or has failed for
 * five days.
 */
export const isGone = (
  statusCode: number | null,
  failingSinceMs: number,
  endedMs: number,
): boolean => statusCode === 410 || endedMs - failingSinceMs >= disableAfterMs
