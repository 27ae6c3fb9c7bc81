import { basename } from "node:path"
import type { Precision } from "../../plugins/backend-onnx/onnx/linear.ts"
import { alternate, medianOf, ratioOf } from "../measure/rounds.ts"
import { figure, times } from "../measure/table.ts"
import { type EngineProcess, openRakit } from "./engine-process.ts"
import { lossOf } from "./loss.ts"
import { randomModelIn } from "./models.ts"
import { chatPrompts, longText } from "./prompts.ts"
import type { Table } from "./report.ts"
import { type Measured, measureSide, promptTokens, type SizesOptions } from "./sizes.ts"

const streamCounts = [1, 8]
const own = "auto"

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
      const loss = await lossOf(each, isTrained)
      if (!loss) continue
      const { onText, megabytes } = loss
      facts.set(precision, [onText?.perplexity.toFixed(2) ?? "-", figure(megabytes)])
      sides.push(await openRakit(precision, each))
    }
    const ids = await sides[0]!.encode([...chatPrompts(8), longText()])
    for (const side of sides) await side.run({ prompts: ids.slice(0, 8), tokens: 4 })
    const results = await alternate(sides, rounds, measureSide(streamCounts, ids, tokens))
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
