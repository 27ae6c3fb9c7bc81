// Exits with 3 in the middle of an engine's work. usage: node exit-while-running.mjs MODEL GRAPHS
import { register } from "tsx/esm/api"

register()
const { startThread } = await import("../worker/start-thread.ts")
const [path, graphs] = process.argv.slice(2)
const thread = startThread({
  kind: "decoder",
  path,
  graphs,
  precision: "fp32",
  threads: 1,
  slots: 1,
  kvBytes: 2 ** 34,
  prefixCacheBytes: 0,
  speculation: false,
})
const sampler = { temperature: 0, topP: 1, frequencyPenalty: 0, presencePenalty: 0, logitBias: [] }
thread.on("message", (messages) => {
  if (!messages.some(({ type }) => type === "ready")) return
  thread.postMessage({
    type: "submit",
    id: 1,
    account: "a",
    waitMs: 0,
    priority: "realtime",
    job: {
      kind: "generate",
      owner: "a",
      cacheBreakpoints: [],
      isRepeatable: false,
      promptIds: new Int32Array(30_000).fill(50),
      maxTokens: 1,
      seed: 1,
      stop: [],
      sampler,
    },
  })
  setTimeout(() => process.exit(3), 400)
})
