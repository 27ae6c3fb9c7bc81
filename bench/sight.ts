// A chat model that sees: the first token with an image, cold and repeated, and the images that its
// tower encodes against bare onnxruntime-node on the same graph, and the memory of a request that
// waits with its images read. `node --import tsx --expose-gc bench/sight.ts FOLDER [--rounds 5]
// [--threads 1] [--precision int8] [--only chat,memory,tower]`; FOLDER is a model as the hub has it.
import { readdirSync } from "node:fs"
import { availableParallelism } from "node:os"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { Effect, Stream } from "effect"
import { InferenceSession, Tensor } from "onnxruntime-node"
import sharp from "sharp"
import type { Picture } from "../plugins/backend-onnx/architectures/image-preprocessing.ts"
import type { EmbedJobEvent } from "../plugins/backend-onnx/encoding/embed-job.ts"
import { chatRequest, context, openBackend } from "../plugins/backend-onnx/testing/open-backend.ts"
import { openSightEngine } from "../plugins/backend-onnx/vision/open-sight-engine.ts"
import { codeInWords } from "./deployment/code.ts"
import { printLoadAfter, printMachine } from "./measure/machine.ts"
import { alternate, median, medianOf, ratioOf } from "./measure/rounds.ts"
import { figure, printTable, times } from "./measure/table.ts"

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    rounds: { type: "string", default: "5" },
    threads: { type: "string", default: String(availableParallelism()) },
    precision: { type: "string", default: "int8" },
    only: { type: "string", default: "chat,memory,tower" },
  },
})
const [folder] = positionals
if (!folder) throw new Error("name the folder of a chat model that sees")
const [rounds, threads] = [Number(values.rounds), Number(values.threads)]
const precision = values.precision as "int8" | "fp32"
const startedMs = performance.now()
printMachine("A chat model that sees", codeInWords)

/** A photograph's worth of noise and slopes, another one for each seed. */
const photo = async (seed: number): Promise<Buffer> => {
  const noise = Uint8Array.from(
    { length: 64 * 48 * 3 },
    (_, i) => Math.imul(i + seed, 0x9e3779b1) >> 9,
  )
  return sharp(noise, { raw: { width: 64, height: 48, channels: 3 } })
    .resize(640, 480)
    .jpeg()
    .toBuffer()
}

const backend = openBackend({ threads })
const model = await backend.open("chat", folder, { options: { precision } })

/** Milliseconds to the first token, from the request on, and what the stages took. */
const firstToken = async (bytes: Buffer) => {
  const stages: Record<string, number> = {}
  const own = context({
    time: (stage, ms) => {
      stages[stage] = (stages[stage] ?? 0) + ms
    },
  })
  const media = { type: "media", mediaType: "image/jpeg", bytes } as const
  const content = [media, { type: "text", text: "What is it?" } as const]
  const request = chatRequest("", { messages: [{ role: "user", content }], maxTokens: 2 })
  const from = performance.now()
  const { bound, run } = await Effect.runPromise(model.task.plan(request, own))
  await Effect.runPromise(Stream.runDrain(run))
  return { ms: performance.now() - from, tokens: bound.inputTokens, stages }
}

const [cold, repeated]: [Awaited<ReturnType<typeof firstToken>>[], number[]] = [[], []]
const peak = { before: process.memoryUsage().rss, after: 0 }
const chats = values.only.includes("chat") ? rounds : 0
for (let round = 0; round < chats; round++) {
  const bytes = await photo(round)
  cold.push(await firstToken(bytes))
  repeated.push((await firstToken(bytes)).ms)
  peak.after = Math.max(peak.after, process.memoryUsage().rss)
}
const printChats = () => {
  const coldMs = median(cold.map(({ ms }) => ms))
  printTable(
    `First tokens with an image of 640 x 480, ${cold[0]!.tokens} tokens, ${precision}, ${threads} threads`,
    ["", "ms", "of cold"],
    [
      ["cold", figure(coldMs), times(1)],
      [
        "  of it decoding and the tower",
        figure(median(cold.map(({ stages }) => stages.images ?? 0))),
        "",
      ],
      [
        "  of it the decoder's prefill",
        figure(median(cold.map(({ stages }) => stages.prefill ?? 0))),
        "",
      ],
      ["repeated", figure(median(repeated)), times(median(repeated) / coldMs)],
    ],
  )
  console.log(`  memory of the process: ${figure((peak.after - peak.before) / 2 ** 20)} MB more`)
}
if (chats > 0) printChats()

/** Requests that are planned, so their images are decoded, and not run yet. */
const printMemory = async () => {
  const asked = async (seed: number, side: number) => {
    const bytes = await sharp(await photo(seed))
      .resize(side, (side * 3) / 4)
      .jpeg()
      .toBuffer()
    const media = { type: "media", mediaType: "image/jpeg", bytes } as const
    return chatRequest("", { messages: [{ role: "user", content: [media] }], maxTokens: 2 })
  }
  const used = async () => {
    // memory outside of the heap is given back between turns
    for (let turn = 0; turn < 3; turn++) {
      globalThis.gc?.()
      await new Promise((next) => setImmediate(next))
    }
    const { rss, heapUsed, external } = process.memoryUsage()
    return { rss, own: heapUsed + external }
  }
  const rows: string[][] = []
  for (const side of [640, 4_000]) {
    const requests = await Promise.all(Array.from({ length: 16 }, (_, i) => asked(i + 99, side)))
    await Effect.runPromise(model.task.plan(requests[0]!, context()))
    const before = await used()
    const plans: unknown[] = []
    let most = before.rss
    for (const request of requests) {
      plans.push(await Effect.runPromise(model.task.plan(request, context())))
      most = Math.max(most, process.memoryUsage().rss)
    }
    const after = await used()
    const megabytes = (bytes: number) => figure(bytes / 2 ** 20)
    const kept = (after.own - before.own) / plans.length
    plans.length = 0
    rows.push([`${side} x ${(side * 3) / 4}`, megabytes(kept), megabytes(most - before.rss)])
  }
  printTable(
    "Memory of 16 requests with an image each, planned one after the other",
    ["image", "MB kept for each", "MB more of the process at most"],
    rows,
  )
}
if (values.only.includes("memory")) await printMemory()

if (!values.only.includes("tower")) {
  await backend.close()
  process.exit()
}
const graphs = join(backend.dataDir, "graphs")
const spec = { kind: "sight", path: folder, graphs, precision, threads, slots: 1 } as const
const engine = await openSightEngine(
  { ...spec, kvBytes: 0, prefixCacheBytes: 0, speculation: false },
  () => {},
)
const { width: edge } = engine.info.preprocessing
if (edge === 0) throw new Error("its pictures have sizes of their own: --only chat,memory")
const pixels = new Uint8Array(edge * edge * 3).fill(100)
const tiles: readonly Picture[] = Array.from({ length: 2 }, () => ({
  ...{ pixels, width: edge, height: edge },
}))
const byEngine = async () => {
  const job = engine.start({ images: tiles }, (_: EmbedJobEvent) => {})
  const running = { id: 1, account: "a", priority: "realtime" as const, job }
  let ended = 0
  while (ended === 0) ended = (await engine.runner.step([running], ([first]) => first!)).length
}
const graphOf = async () => {
  for (const name of readdirSync(graphs)) {
    const files = readdirSync(join(graphs, name)).filter((file) => file.endsWith(".onnx"))
    for (const file of files) {
      const session = await InferenceSession.create(join(graphs, name, file), {
        intraOpNumThreads: threads,
      })
      if (session.inputNames.includes("pixels")) return session
      await session.release()
    }
  }
  throw new Error("no graph of a tower")
}
const session = await graphOf()
const bare = async () => {
  for (const tile of tiles)
    await session.run({ pixels: new Tensor("uint8", tile.pixels, [1, edge, edge, 3]) })
}
const sides = [
  { name: "Rakit's engine", run: byEngine },
  { name: "bare onnxruntime-node", run: bare },
]
if (values.only.includes("tower")) for (const { run } of sides) await run()
const towers = values.only.includes("tower") ? rounds : 0
const measured = await alternate(sides, towers, async ({ run }) => {
  const [from, used] = [performance.now(), process.cpuUsage()]
  await run()
  const { user, system } = process.cpuUsage(used)
  const perSecond = (ms: number) => (tiles.length * 1000) / ms
  return { wall: perSecond(performance.now() - from), cpu: perSecond((user + system) / 1000) }
})
type Measured = { readonly wall: number; readonly cpu: number }
const [wall, cpu] = [(own: Measured) => own.wall, (own: Measured) => own.cpu]
printTable(
  `Tiles of ${edge} x ${edge} a second`,
  ["", "tiles/s", "of bare", "tiles a second of processor time", "of bare"],
  sides.map(({ name }) => [
    name,
    ...[wall, cpu].flatMap((of) => [
      figure(medianOf(measured, name, of)),
      times(ratioOf(measured, name, "bare onnxruntime-node", of)),
    ]),
  ]),
)
await engine.close()
await session.release()
await backend.close()
printLoadAfter(startedMs)
