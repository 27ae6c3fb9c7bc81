// Image models: steps/s of the engine against bare sessions that get the same inputs, with a LoRA and
// without, of one user and two, and against diffusers where Python has it; then the memory of one
// whole picture. `node --import tsx bench/images.ts FOLDER [--lora FILE] [--size 256] [--steps 6]
// [--rounds 3] [--large 960] [--precision fp32] [--offload] [--python PYTHON] [--threads 2]`; FOLDER
// is in the layout of diffusers.
import { execFileSync } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { availableParallelism, tmpdir } from "node:os"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { Effect, Stream } from "effect"
import { InferenceSession } from "onnxruntime-node"
import { imageFamily } from "../plugins/backend-onnx/diffusion/pipelines/families.ts"
import { localEngine } from "../plugins/backend-onnx/diffusion/testing/local-engine.ts"
import type { Precision } from "../plugins/backend-onnx/onnx/linear.ts"
import { printLoadAfter, printMachine } from "./measure/machine.ts"
import { alternate, medianOf, ratioOf } from "./measure/rounds.ts"
import { figure, printTable, times } from "./measure/table.ts"

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    lora: { type: "string" },
    size: { type: "string", default: "256" },
    large: { type: "string", default: "960" },
    steps: { type: "string", default: "6" },
    rounds: { type: "string", default: "3" },
    precision: { type: "string", default: "fp32" },
    offload: { type: "boolean", default: false },
    python: { type: "string" },
    threads: { type: "string", default: String(availableParallelism()) },
  },
})
const [path] = positionals
if (!path) throw new Error("name the folder of an image model, in the layout of diffusers")
const [size, large, steps] = [Number(values.size), Number(values.large), Number(values.steps)]
const startedMs = performance.now()
const graphs = mkdtempSync(join(tmpdir(), "rakit-images-bench-"))

type Feeds = Parameters<InferenceSession["run"]>[0]
let last: { readonly session: InferenceSession; readonly feeds: Feeds } | undefined
const { prototype } = InferenceSession as unknown as { readonly prototype: InferenceSession }
const bareRun = prototype.run as (this: InferenceSession, feeds: Feeds) => Promise<unknown>
prototype.run = function (this: InferenceSession, feeds: Feeds) {
  // the denoiser is the one whose inputs have a timestep
  if ("timestep" in feeds) last = { session: this, feeds }
  return bareRun.call(this, feeds)
} as InferenceSession["run"]

const open = (lora: string | undefined) =>
  imageFamily(path).open(path, {
    graphs,
    threads: Number(values.threads),
    precision: values.precision as Precision,
    offload: values.offload,
    tileSize: 512,
    adapters: lora === undefined ? [] : [{ id: "lora", path: lora }],
    adapterBytes: 2 ** 32,
    progress: () => {},
  })

type Engine = ReturnType<typeof localEngine>

/** Draws a picture; returns the milliseconds between its first step and its last. */
const draw = async (engine: Engine, edge: number, seed: number, lora: boolean): Promise<number> => {
  const at: number[] = []
  const job = {
    prompt: "a red cat beside a tree",
    ...{ width: edge, height: edge, steps, seed, guidanceScale: 1, sources: [] },
    ...(lora && { adapter: { id: "lora", strength: 0.6 } }),
  }
  const events = engine.run(job, {
    account: `user ${seed}`,
    priority: "realtime",
    waitMs: 60_000,
    timeoutMs: () => 3_600_000,
    translate: (event) => {
      if (event.type === "step") at.push(performance.now())
      return [event]
    },
  })
  await Effect.runPromise(Stream.runDrain(events))
  return at.at(-1)! - at[0]!
}

const perSecond = (ms: number, count = steps - 1): number => (1000 * count) / ms

const bare = async (): Promise<number> => {
  const { session, feeds } = last!
  const from = performance.now()
  for (let step = 1; step < steps; step++) await bareRun.call(session, feeds)
  return perSecond(performance.now() - from)
}

const sidesOf = async () => {
  const plain = localEngine(await open(undefined))
  const sides = [
    { name: "bare session", run: bare, warm: async () => {} },
    { name: "Rakit", run: async () => perSecond(await draw(plain, size, 1, false)) },
    {
      name: "two users at once, whole pictures",
      run: async () => {
        const from = performance.now()
        await Promise.all([draw(plain, size, 1, false), draw(plain, size, 2, false)])
        return perSecond(performance.now() - from, 2 * steps)
      },
    },
  ]
  if (values.lora === undefined) return { plain, sides }
  const adapted = localEngine(await open(values.lora))
  return {
    plain,
    sides: [
      ...sides,
      {
        name: "no LoRA, of a model with one",
        run: async () => perSecond(await draw(adapted, size, 1, false)),
      },
      { name: "with the LoRA", run: async () => perSecond(await draw(adapted, size, 1, true)) },
    ],
  }
}

const diffusers = (): number | undefined =>
  values.python === undefined
    ? undefined
    : Number(
        execFileSync(values.python, [
          join(import.meta.dirname, "images", "diffusers-steps.py"),
          ...[path, String(size), String(steps), values.threads],
        ]),
      )

printMachine("Image models, steps a second", "the sources, through tsx")
try {
  const { plain, sides } = await sidesOf()
  for (const side of [...sides.slice(1), sides[1]!]) await side.run()
  const rounds = await alternate(sides, Number(values.rounds), async (side) => {
    // the bare session gets the inputs of the model without LoRAs
    if (side.name === "bare session") await sides[1]!.run()
    return side.run()
  })
  const peer = diffusers()
  const own = medianOf(rounds, "Rakit", Number)
  printTable(
    `${size} x ${size}, ${values.precision}, ${values.threads} threads`,
    ["", "steps/s", "to the bare session"],
    [
      ...sides.map(({ name }) => [
        name,
        figure(medianOf(rounds, name, Number)),
        times(ratioOf(rounds, name, "bare session", Number)),
      ]),
      ...(peer === undefined ? [] : [["diffusers", figure(peer), `Rakit: ${times(own / peer)}`]]),
    ],
  )
  const before = process.memoryUsage().rss
  const from = performance.now()
  await draw(plain, large, 1, false)
  const seconds = (performance.now() - from) / 1000
  const most = process.resourceUsage().maxRSS * 1024
  const megabytes = (bytes: number) => `${Math.round(bytes / 1e6)} MB`
  console.log(
    `\n${large} x ${large}: ${figure(seconds)} s, at most ${megabytes(most)} in memory (${megabytes(before)} before)`,
  )
} finally {
  rmSync(graphs, { recursive: true, force: true })
}
printLoadAfter(startedMs)
// sessions of several models are open
process.exit(0)
