import { Cause, Effect, Option, Stream } from "effect"
import type { ConsistencyCheck, Finding } from "../../core/ports/consistency.ts"

/** Of one check; the rest is only counted. */
export const maxShown = 100

export interface ShownFinding extends Pick<Finding, "subject" | "problem" | "remedy"> {
  readonly mended: boolean
  /** Why mending did not work. */
  readonly failure?: string
}

export interface CheckReport extends Pick<ConsistencyCheck, "name" | "about"> {
  readonly looked: number
  readonly found: number
  readonly mended: number
  /** Could be mended; nobody asked for it. */
  readonly mendable: number
  /** The first of them. */
  readonly findings: readonly ShownFinding[]
  /** Why the check did not come to its end. */
  readonly failure?: string
}

export const isClean = ({ found, mended, failure }: CheckReport): boolean =>
  found === mended && failure === undefined

const reasonOf = (cause: Cause.Cause<{ readonly message: string }>): string =>
  Option.match(Cause.findErrorOption(cause), {
    onNone: () => Cause.pretty(cause),
    onSome: ({ message }) => message,
  })

const settle = (finding: Finding, mend: boolean): Effect.Effect<ShownFinding> => {
  const { subject, problem, remedy } = finding
  const shown = { subject, problem, ...(remedy !== undefined && { remedy }), mended: false }
  if (!mend || !finding.mend) return Effect.succeed(shown)
  return finding.mend.pipe(
    Effect.as({ ...shown, mended: true }),
    Effect.catchCause((cause) =>
      Cause.hasInterruptsOnly(cause)
        ? Effect.interrupt
        : Effect.succeed({ ...shown, failure: reasonOf(cause) }),
    ),
  )
}

export type Progress = (check: string, looked: number, found: number) => void

/** Goes through all findings of a check, and mends those that can be mended where that is wanted. Holds the first hundred. */
export const runCheck = (
  check: ConsistencyCheck,
  mend: boolean,
  progress: Progress,
): Effect.Effect<CheckReport> =>
  Effect.suspend(() => {
    const { name, about } = check
    const counts = { looked: 0, found: 0, mended: 0, mendable: 0 }
    const findings: ShownFinding[] = []
    const note = (finding: Finding) =>
      Effect.map(settle(finding, mend), (shown) => {
        counts.found++
        if (shown.mended) counts.mended++
        else if (finding.mend && !mend) counts.mendable++
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
