// node-llama-cpp in a process of its own. `node bench/peers/llama-cpp.js MODEL THREADS`; speaks ../chat/protocol.ts over IPC.
import { getLlama } from "node-llama-cpp"

const [modelPath, threads] = process.argv.slice(2)
const llama = await getLlama({
  gpu: false,
  build: "never",
  maxThreads: Number(threads),
  logLevel: "error",
})
const model = await llama.loadModel({ modelPath })

const write = async (sequence, ids, tokens, startedMs) => {
  let firstMs = 0
  let written = 0
  for await (const _ of sequence.evaluate(ids, { temperature: 0, yieldEogToken: true })) {
    firstMs ||= performance.now() - startedMs
    if (++written >= tokens) break
  }
  return { firstMs, lastMs: performance.now() - startedMs }
}

const run = async ({ id, prompts, tokens, warm }) => {
  const longest = Math.max(...prompts.map((prompt) => prompt.length))
  const contextSize = Math.ceil((longest + tokens + 8) / 256) * 256
  const context = await model.createContext({
    sequences: prompts.length,
    contextSize,
    threads: { ideal: Number(threads), min: Number(threads) },
  })
  const sequences = prompts.map(() => context.getSequence())
  if (warm)
    for (const [i, sequence] of sequences.entries())
      await sequence.evaluateWithoutGeneratingNewTokens(prompts[i].slice(0, -1))
  const startedMs = performance.now()
  const marks = await Promise.all(
    sequences.map((sequence, i) =>
      write(sequence, warm ? prompts[i].slice(-1) : prompts[i], tokens, startedMs),
    ),
  )
  await context.dispose()
  const first = marks.map((mark) => mark.firstMs).sort((a, b) => a - b)
  const lastMs = Math.max(...marks.map((mark) => mark.lastMs))
  process.send({
    id,
    tokensPerSecond: ((prompts.length * tokens) / lastMs) * 1000,
    writtenPerSecond: ((prompts.length * (tokens - 1)) / (lastMs - first.at(-1))) * 1000,
    firstTokenMs: first[Math.floor(first.length / 2)],
  })
}

process.on("message", (task) => void run(task))
process.on("disconnect", () => process.exit(0))
process.send({ ready: true })
