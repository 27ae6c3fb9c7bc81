import { Cause, Effect, Option, Stream } from "effect"
import type { ConsistencyCheck, Finding } from "../../core/ports/consistency.ts"

/** Findings shown for each check; the rest are counted. */
export const maxShown = 100

export interface ShownFinding extends Pick<Finding, "subject" | "problem" | "remedy"> {
  readonly repaired: boolean
  /** Why the repair failed. */
  readonly failure?: string
}

export interface CheckReport extends Pick<ConsistencyCheck, "name" | "about"> {
  readonly looked: number
  readonly found: number
  readonly repaired: number
  /** Findings that --repair would repair. */
  readonly repairable: number
  /** The first `maxShown`. */
  readonly findings: readonly ShownFinding[]
  /** Why the check did not finish. */
  readonly failure?: string
}

export const isClean = ({ found, repaired, failure }: CheckReport): boolean =>
  found === repaired && failure === undefined

const reasonOf = (cause: Cause.Cause<{ readonly message: string }>): string =>
  Option.match(Cause.findErrorOption(cause), {
    onNone: () => Cause.pretty(cause),
    onSome: ({ message }) => message,
  })

const settle = (finding: Finding, repair: boolean): Effect.Effect<ShownFinding> => {
  const { subject, problem, remedy } = finding
  const shown = { subject, problem, ...(remedy !== undefined && { remedy }), repaired: false }
  if (!repair || !finding.repair) return Effect.succeed(shown)
  return finding.repair.pipe(
    Effect.as({ ...shown, repaired: true }),
    Effect.catchCause((cause) =>
      Cause.hasInterruptsOnly(cause)
        ? Effect.interrupt
        : Effect.succeed({ ...shown, failure: reasonOf(cause) }),
    ),
  )
}

export type Progress = (check: string, looked: number, found: number) => void

/**
 * Runs one check to its end, and with `repair` repairs what it can. Keeps the first `maxShown`
 * findings.
 */
export const runCheck = (
  check: ConsistencyCheck,
  repair: boolean,
  progress: Progress,
): Effect.Effect<CheckReport> =>
  Effect.suspend(() => {
    const { name, about } = check
    const counts = { looked: 0, found: 0, repaired: 0, repairable: 0 }
    const findings: ShownFinding[] = []
    const note = (finding: Finding) =>
      Effect.map(settle(finding, repair), (shown) => {
        counts.found++
        if (shown.repaired) counts.repaired++
        else if (finding.repair && !repair) counts.repairable++
        if (findings.length < maxShown) findings.push(shown)
        progress(name, counts.looked, counts.found)
      })
    const looked = (things: number) => {
      counts.looked += things
      progress(name, counts.looked, counts.found)
    }
    const report = (): CheckReport => ({ name, about, ...counts, findings })
    return Stream.runForEach(check.findings(looked), note).pipe(
      Effect.map(report),
      Effect.catchCause((cause) =>
        Cause.hasInterruptsOnly(cause)
          ? Effect.interrupt
          : Effect.succeed({ ...report(), failure: reasonOf(cause) }),
      ),
    )
  })
