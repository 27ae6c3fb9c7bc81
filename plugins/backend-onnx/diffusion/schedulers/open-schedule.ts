import { type Metadata, textIn } from "../../weights/gguf-metadata.ts"
import { Unsupported } from "../../weights/model-file-error.ts"
import { ddim, lcm, originalStepsIn } from "./ddim.ts"
import { dpmSolver } from "./dpm-solver.ts"
import { euler, eulerAncestral } from "./euler.ts"
import { flowMatch } from "./flow-match.ts"
import type { Schedule, ScheduleRequest } from "./schedule.ts"

const schedules: Readonly<
  Record<string, (config: Metadata, request: ScheduleRequest) => Schedule>
> = {
  DDIMScheduler: ddim,
  // made for the same levels; its multistep method is DDIM with another estimate of the noise
  PNDMScheduler: (config, request) => ddim(new Map([["clip_sample", false], ...config]), request),
  LCMScheduler: lcm,
  EulerDiscreteScheduler: euler,
  EulerAncestralDiscreteScheduler: eulerAncestral,
  DPMSolverMultistepScheduler: dpmSolver,
  FlowMatchEulerDiscreteScheduler: flowMatch,
}

/** The most steps that a schedule can have; undefined: as many as requests may ask for. */
export const mostSteps = (config: Metadata): number | undefined =>
  textIn(config, "_class_name") === "LCMScheduler" ? originalStepsIn(config) : undefined

/**
 * The schedule of scheduler_config.json for a number of steps. Throws `Unsupported` or `Damaged`.
 */
export const openSchedule = (config: Metadata, request: ScheduleRequest): Schedule => {
  const name = textIn(config, "_class_name")
  const schedule = schedules[name]
  if (!schedule)
    throw new Unsupported(`it is ${name}; this backend has ${Object.keys(schedules).join(", ")}`)
  return schedule(config, request)
}
