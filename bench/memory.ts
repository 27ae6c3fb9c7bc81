// Resident memory of the whole server with a chat model, beside its weights and its keys and values:
// when it has been ready for 20 s, right after eight streams wrote, and half a second and 20 s
// later. `npm run build && node --import tsx bench/memory.ts [--model file.gguf]
// [--sizes 135M,360M,1B] [--rounds 3]`
import { mkdtempSync, rmSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout } from "node:timers/promises"
import { parseArgs } from "node:util"
import { kvTokenBytes } from "../plugins/backend-onnx/sessions/kv-bank.ts"
import { startChatServer } from "./chat/chat-server.ts"
import { chatModelPath, randomModelIn } from "./chat/models.ts"
import { shapes } from "./chat/random-gguf.ts"
import { codeInWords } from "./deployment/code.ts"
import { printLoadAfter, printMachine } from "./measure/machine.ts"
import { alternate, medianOf } from "./measure/rounds.ts"
import { figure, printTable } from "./measure/table.ts"

const { values } = parseArgs({
  options: {
    model: { type: "string" },
    sizes: { type: "string", default: "135M,360M,1B" },
    rounds: { type: "string", default: "3" },
  },
})
const startedMs = performance.now()
const streams = 8
const tokens = 64
// by `usage`: the question below in the template of SmolLM2
const promptTokens = 37
const goalMb = 250
const quietMs = 20_000
const pauseMs = 500
const megabyte = 2 ** 20

interface Memory {
  readonly readyMb: number
  readonly wroteMb: number
  readonly soonMb: number
  readonly laterMb: number
}

const measure = async (path: string): Promise<Memory> => {
  const server = await startChatServer(path, {})
  try {
    await setTimeout(quietMs)
    const readyMb = server.residentMb()
    await Promise.all(
      Array.from({ length: streams }, (_, at) => server.chat(`${at}: tell me a story.`, tokens)),
    )
    const wroteMb = server.residentMb()
    await setTimeout(pauseMs)
    const soonMb = server.residentMb()
    await setTimeout(quietMs - pauseMs)
    return { readyMb, wroteMb, soonMb, laterMb: server.residentMb() }
  } finally {
    await server.stop()
  }
}

/** Keys and values of `streams` prompts and answers, in MB; native kernels keep them in 16 bits. */
const kvMbOf = (size: string): number => {
  const { layers, kvHeads, width, heads } = shapes[size]!
  const bytes = kvTokenBytes({ layers, kvHeads, headSize: width / heads }, 2)
  return (streams * (promptTokens + tokens) * bytes) / megabyte
}

printMachine("Memory of the whole server with a chat model", codeInWords)
const folder = mkdtempSync(join(tmpdir(), "rakit-memory-"))
try {
  const tokenizer = chatModelPath(values.model)
  const sizes = values.sizes.split(",")
  const pathOf = (size: string) => randomModelIn(folder, size, tokenizer)
  const sides = sizes.map((name) => ({ name, run: () => measure(pathOf(name)) }))
  const results = await alternate(sides, Number(values.rounds), ({ run }) => run())
  const rows = sizes.map((size) => {
    const weightsMb = statSync(pathOf(size)).size / megabyte
    const middle = (of: (memory: Memory) => number) => medianOf(results, size, of)
    const kvMb = kvMbOf(size)
    // the prefix cache has a copy of them, which outlives the streams' own
    const beyond = (of: (memory: Memory) => number, copies: number) => {
      const residentMb = middle(of)
      return `${figure(residentMb)} (${figure(residentMb - weightsMb - copies * kvMb)})`
    }
    return [
      size,
      figure(weightsMb),
      figure(kvMb),
      figure(middle(({ readyMb }) => readyMb)),
      beyond(({ wroteMb }) => wroteMb, 1),
      beyond(({ wroteMb }) => wroteMb, 2),
      beyond(({ soonMb }) => soonMb, 2),
      beyond(({ laterMb }) => laterMb, 1),
    ]
  })
  printTable(
    `Resident MB; in parentheses beyond weights and keys and values (goal ${goalMb})`,
    [
      "",
      "weights",
      "keys and values",
      "ready for 20 s",
      `${streams} streams wrote`,
      "the same, both copies",
      "half a second later, both",
      "20 s later",
    ],
    rows,
  )
  printLoadAfter(startedMs)
} finally {
  rmSync(folder, { recursive: true, force: true })
}
