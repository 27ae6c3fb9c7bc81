import { readFileSync } from "node:fs"
import { expect, test } from "vitest"
import type { MetadataValue } from "../../weights/gguf-metadata.ts"
import { openSchedule } from "./open-schedule.ts"

/** What diffusers makes of fixed numbers: fixtures/diffusion/make-schedules.py. */
interface Case {
  readonly config: Readonly<Record<string, MetadataValue>>
  readonly steps: number
  readonly even?: boolean
  readonly tokens?: number
  readonly mu?: number
  readonly timesteps: readonly number[]
  readonly noiseScale: number
  readonly inputs: readonly (readonly number[])[]
  readonly latents: readonly (readonly number[])[]
  readonly begin: number
  readonly noised: readonly number[]
}

const cases = JSON.parse(
  readFileSync(new URL("../../fixtures/diffusion/schedules.json", import.meta.url), "utf8"),
) as readonly Case[]

const numbers = (seed: number) =>
  Float32Array.from({ length: 4 }, (_, i) => Math.sin(seed * 1.7 + i * 2.3 + 0.4))

const open = ({ config, steps, even, tokens, mu }: Case) =>
  openSchedule(new Map(Object.entries(config)), {
    steps,
    tokens: tokens ?? 0,
    ...(mu !== undefined && { shift: mu }),
    ...(even && { evenSigmas: true }),
  })

/** The largest difference, relative to the size of the numbers. */
const gap = (found: ArrayLike<number>, wanted: readonly number[]): number =>
  Math.max(...wanted.map((value, i) => Math.abs(value - found[i]!) / Math.max(1, Math.abs(value))))

test.each(
  cases.map(
    (one) =>
      [`${one.config._class_name} of ${one.steps} ${JSON.stringify(one.config)}`, one] as const,
  ),
)("%s", (_, one) => {
  const schedule = open(one)
  expect(schedule.timesteps).toHaveLength(one.timesteps.length)
  expect(gap(schedule.timesteps, one.timesteps)).toBeLessThan(1e-4)
  expect(gap([schedule.noiseScale], [one.noiseScale])).toBeLessThan(1e-4)
  let drawn = 0
  let latents: Float32Array = numbers(0)
  for (const [index, wanted] of one.latents.entries()) {
    if (one.inputs[index])
      expect(gap(schedule.input(latents, index), one.inputs[index])).toBeLessThan(1e-4)
    const next = schedule.next(latents, numbers(100 + index), index, () => numbers(1_001 + drawn++))
    latents = next.latents
    expect(gap(latents, wanted), `step ${index}`).toBeLessThan(2e-4)
  }
  expect(gap(schedule.noised(numbers(2), numbers(3), one.begin), one.noised)).toBeLessThan(1e-4)
})

test("what would make other pictures is refused by name", () => {
  const refused = (config: Readonly<Record<string, MetadataValue>>) => () =>
    openSchedule(new Map(Object.entries(config)), { steps: 4, tokens: 256 })
  expect(refused({ _class_name: "HeunDiscreteScheduler" })).toThrow("HeunDiscreteScheduler")
  expect(refused({ _class_name: "DDIMScheduler", thresholding: true })).toThrow("thresholding")
  expect(
    refused({ _class_name: "DPMSolverMultistepScheduler", algorithm_type: "sde-dpmsolver++" }),
  ).toThrow("algorithm_type")
  expect(refused({ _class_name: "EulerDiscreteScheduler", beta_schedule: "sigmoid" })).toThrow(
    "beta_schedule",
  )
})

test("a schedule of PNDM is served by DDIM over the same levels", () => {
  const config = { beta_start: 0.00085, beta_end: 0.012, beta_schedule: "scaled_linear" }
  const of = (name: string, more = {}) =>
    openSchedule(new Map(Object.entries({ _class_name: name, ...config, ...more })), {
      steps: 4,
      tokens: 0,
    })
  expect(of("PNDMScheduler").timesteps).toEqual(of("DDIMScheduler").timesteps)
})

test("a single step of a schedule with a last level begins at pure noise", () => {
  const config = new Map<string, string | number>([
    ["_class_name", "FlowMatchEulerDiscreteScheduler"],
    ["shift_terminal", 0.02],
  ])
  expect(openSchedule(config, { steps: 1, tokens: 256 }).timesteps).toEqual([1000])
})
