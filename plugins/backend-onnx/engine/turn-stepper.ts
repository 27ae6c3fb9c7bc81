import type { Stepper } from "./scheduler.ts"

/** Work that is done in small steps, so that others get their turn and a cancel takes effect soon. */
export interface EngineJob {
  /** True when it is finished. A step should take some tens of milliseconds. */
  step(): Promise<boolean>
}

/** One job a step, accounts in turn. */
export const turnStepper: Stepper<EngineJob> = {
  step: async (running, turn) => {
    const of = turn(running)
    try {
      return (await of.job.step()) ? [{ of }] : []
    } catch (cause) {
      return [{ of, cause }]
    }
  },
  release: () => {},
}
