// A chat engine of backend-onnx in a process of its own. `node --import tsx
// bench/chat/rakit-engine.ts SPEC [cpu|gpu|software]` (SPEC is JSON); speaks protocol.ts over IPC.
import { Effect, Scope, Stream } from "effect"
import type { Json } from "../../core/json.ts"
import type {
  DecoderEvent,
  DecoderInfo,
  DecoderRequest,
} from "../../plugins/backend-onnx/generation/decoder-jobs.ts"
import type { EngineSpec } from "../../plugins/backend-onnx/worker/protocol.ts"
import { load } from "../deployment/code.ts"
import { consoleLog as log } from "../measure/console-log.ts"
import { openDevice, type Place } from "../measure/open-device.ts"
import { type StreamMarks, type Task, timingOf } from "./protocol.ts"

const spec = JSON.parse(process.argv[2]!) as EngineSpec
const { startEngine } = await load<typeof import("../../plugins/backend-onnx/worker/host.ts")>(
  "plugins/backend-onnx/worker/host",
)
const { loadChatTokenizer } = await load<
  typeof import("../../plugins/backend-onnx/tokenizer/chat-tokenizer.ts")
>("plugins/backend-onnx/tokenizer/chat-tokenizer")
const { onDevice } = await load<
  typeof import("../../plugins/backend-onnx/worker/device-placement.ts")
>("plugins/backend-onnx/worker/device-placement")

const device = await openDevice((process.argv[3] ?? "cpu") as Place)
const engine = await Effect.runPromise(
  startEngine<DecoderRequest, DecoderEvent, DecoderInfo>({
    spec,
    queue: 1_000,
    log,
    progress: () => {},
    ...(device && { placement: onDevice("webgpu", device, log) }),
  }).pipe(Scope.provide(Scope.makeUnsafe())),
)
if (device && engine.servedBy().endsWith("cpu")) throw new Error(engine.servedBy())
const { tokenizer, format } = loadChatTokenizer(engine.info.folder)
// no stream ends by itself
const logitBias = Object.values(format.controlTokens).map((id) => [id, -100] as const)

const request = (
  promptIds: readonly number[],
  owner: string,
  maxTokens: number,
  temperature: number,
  schema?: Json,
): DecoderRequest => ({
  kind: "generate",
  owner,
  promptIds: Int32Array.from(promptIds),
  cacheBreakpoints: [],
  maxTokens,
  sampler: { temperature, topP: 1, frequencyPenalty: 0, presencePenalty: 0, logitBias },
  seed: 1,
  stop: [],
  ...(schema !== undefined && {
    grammar: { grammar: { kind: "schema", schema }, closeOnLength: false },
  }),
})

const write = async (job: DecoderRequest): Promise<StreamMarks> => {
  const startedMs = performance.now()
  let firstMs = 0
  let answer = ""
  const translate = (event: DecoderEvent) => {
    if (event.type === "token" && !firstMs) firstMs = performance.now() - startedMs
    if ("text" in event) answer += event.text
    return undefined
  }
  await Effect.runPromise(
    Stream.runDrain(
      engine.run(job, {
        account: "bench",
        priority: "realtime",
        waitMs: 600_000,
        timeoutMs: () => 600_000,
        translate,
      }),
    ),
  )
  return { firstMs, lastMs: performance.now() - startedMs, answer }
}

let runs = 0
const run = async ({ id, prompts, tokens, warm, temperature = 0, schema }: Task) => {
  // a cold cache for every run
  const owner = `run ${runs++}`
  if (warm) await write(request(prompts[0]!, owner, 1, 0))
  process.send!(
    timingOf(
      id,
      tokens,
      await Promise.all(
        prompts.map((prompt) => write(request(prompt, owner, tokens, temperature, schema))),
      ),
    ),
  )
}

const encode = async (texts: readonly string[]) =>
  Promise.all(
    texts.map(async (text) =>
      (await tokenizer.encode(text, null, { addSpecialTokens: false })).getIds(),
    ),
  )

process.on("message", (message: Task | { readonly texts: readonly string[] }) => {
  if ("texts" in message) void encode(message.texts).then((ids) => process.send!({ ids }))
  else void run(message)
})
process.on("disconnect", () => process.exit(0))
process.send!({ ready: true })
