import type { Effect, Scope } from "effect"
import type { Clock, Micros, ModelId } from "../../../core/index.ts"
import type { BatchFileRefused } from "./refused.ts"
import type { SurveyDeps } from "./survey.ts"

/**
 * The progress of a run. Tokens and cost are those of this run; lines include those of earlier
 * runs.
 */
export interface BatchFileSums {
  readonly lines: number
  /** Lines that had a result before this run. */
  readonly earlier: number
  readonly completed: number
  readonly failed: number
  readonly inputTokens: number
  readonly outputTokens: number
  /** At the price of a batch; it is not billed. */
  readonly costMicros: Micros
}

export interface BatchFileJob<E> {
  readonly input: string
  readonly output: string
  readonly errors: string
  /** Path; that of the first line by default. */
  readonly endpoint?: string | undefined
  /** The value of the plugin's settings by default. */
  readonly linesAtOnce?: number | undefined
  /** Go on where an earlier run of the same file ended; otherwise the two files must not exist. */
  readonly resume: boolean
  /** Opens the models that the file names, after its pre-flight. */
  open(models: readonly ModelId[]): Effect.Effect<void, E, Scope.Scope>
  onProgress(sums: BatchFileSums): void
}

export interface BatchRunnerDeps extends Omit<SurveyDeps, "maxLineBytes"> {
  readonly clock: Clock
  readonly random: () => number
  /** The settings of the plugin, where the deployment has it. */
  readonly settings?: unknown
}

/** Runs a file. The Scope closes its files. */
export type BatchRunner = <E>(
  job: BatchFileJob<E>,
) => Effect.Effect<BatchFileSums, BatchFileRefused | E, Scope.Scope>
