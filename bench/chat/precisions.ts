import { statSync } from "node:fs"
import { basename, join } from "node:path"
import type { Precision } from "../../plugins/backend-onnx/onnx/linear.ts"
import { openDecoder } from "../../plugins/backend-onnx/sessions/open-decoder.ts"
import { perplexity, tokensOfText } from "../../plugins/backend-onnx/testing/perplexity.ts"
import { ModelFileError } from "../../plugins/backend-onnx/weights/model-file-error.ts"
import type { EngineSpec } from "../../plugins/backend-onnx/worker/protocol.ts"
import { alternate, medianOf, ratioOf } from "../measure/rounds.ts"
import { figure, times } from "../measure/table.ts"
import { type EngineProcess, openRakit } from "./engine-process.ts"
import { randomModelIn } from "./models.ts"
import { chatPrompts, longText } from "./prompts.ts"
import type { Table } from "./report.ts"
import type { SizesOptions } from "./sizes.ts"

const streamCounts = [1, 8]
const promptTokens = 440
const own = "auto"

interface Measured {
  readonly written: ReadonlyMap<number, number>
  readonly readPerSecond: number
}

const measure =
  (ids: readonly (readonly number[])[], tokens: number) =>
  async (side: EngineProcess): Promise<Measured> => {
    const written = new Map<number, number>()
    for (const streams of streamCounts) {
      const run = await side.run({ prompts: ids.slice(0, streams), tokens })
      written.set(streams, run.writtenPerSecond)
    }
    const first = await side.run({ prompts: [ids.at(-1)!.slice(0, promptTokens)], tokens: 2 })
    return { written, readPerSecond: (promptTokens / first.firstTokenMs) * 1000 }
  }

const orRefused = (cause: unknown): undefined => {
  if (!(cause instanceof ModelFileError)) throw cause
}

/** Perplexity and weights in MB, in this process; undefined where the CPU can't run it. */
const opened = async (
  spec: EngineSpec,
  isTrained: boolean,
): Promise<readonly string[] | undefined> => {
  const decoder = await openDecoder(spec, () => {}).catch(orRefused)
  if (!decoder) return undefined
  try {
    const { size } = statSync(join(decoder.folder, "weights.bin"))
    const surprise = isTrained
      ? (await perplexity(decoder, await tokensOfText(decoder))).toFixed(2)
      : "-"
    return [surprise, figure(size / 1e6)]
  } finally {
    await decoder.session.close()
  }
}

const measureFile = async (
  title: string,
  precisions: readonly Precision[],
  isTrained: boolean,
  { spec, rounds, tokens }: Pick<SizesOptions, "spec" | "rounds" | "tokens">,
): Promise<readonly (readonly string[])[]> => {
  const facts = new Map<Precision, readonly string[]>()
  const sides: EngineProcess[] = []
  try {
    for (const precision of precisions) {
      const each = { ...spec, precision }
      const found = await opened(each, isTrained)
      if (!found) continue
      facts.set(precision, found)
      sides.push(await openRakit(precision, each))
    }
    const { ids } = await sides[0]!.ask<{ readonly ids: readonly (readonly number[])[] }>({
      texts: [...chatPrompts(8), longText()],
    })
    for (const side of sides) await side.run({ prompts: ids.slice(0, 8), tokens: 4 })
    const results = await alternate(sides, rounds, measure(ids, tokens))
    const measured = (side: EngineProcess) => {
      const cell = (of: (measured: Measured) => number) =>
        `${figure(medianOf(results, side.name, of))} (${times(ratioOf(results, side.name, own, of))})`
      return [
        ...streamCounts.map((streams) => cell(({ written }) => written.get(streams)!)),
        cell(({ readPerSecond }) => readPerSecond),
        ...facts.get(side.name as Precision)!,
        figure(side.residentMb()),
      ]
    }
    return precisions.map((precision) => {
      const side = sides.find(({ name }) => name === precision)
      return [`${title}, ${precision}`, ...(side ? measured(side) : ["not by this CPU"])]
    })
  } finally {
    for (const side of sides) side.stop()
  }
}

/** The precisions of the model itself, with what they lose, and of random weights in real shapes. */
export const measurePrecisions = async (options: SizesOptions): Promise<Table> => {
  const { model, folder, sizes, spec } = options
  const rows = [
    ...(await measureFile(
      basename(model, ".gguf"),
      [own, "int8", "int8-channel", "fp32"],
      true,
      options,
    )),
  ]
  for (const size of sizes) {
    const path = randomModelIn(folder, size, model)
    const each = { ...options, spec: { ...spec, path } }
    rows.push(...(await measureFile(`${size} Q4_0`, [own, "int8", "int8-channel"], false, each)))
  }
  return {
    title: "Precisions: tokens a second (ratio to `auto`, the file's own), and what they lose",
    head: [
      "",
      ...streamCounts.map((streams) => `${streams} write`),
      `${promptTokens} read`,
      "perplexity",
      "weights MB",
      "resident MB",
    ],
    rows,
  }
}
