import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, expect, test } from "vitest"
import { seededRandom } from "../sampling/random.ts"
import { expectedOf, fixtureFolder, walkerOf } from "../testing/fixtures.ts"
import { writeSafetensors } from "../testing/safetensors-writer.ts"
import { openDecoder } from "./open-decoder.ts"

const root = mkdtempSync(join(tmpdir(), "rakit-adapter-rounding-"))
afterAll(() => rmSync(root, { recursive: true, force: true }))

/** A LoRA for matrices whose product has 128 rows. */
const adapterOf = (rank: number): string => {
  const random = seededRandom(rank)
  const tensor = (name: string, ...shape: readonly [number, number]) => ({
    name: `base_model.model.model.layers.${name}.weight`,
    shape,
    values: Float32Array.from({ length: shape[0] * shape[1] }, () => (random() - 0.5) / 4),
  })
  const folder = join(root, `rank-${rank}`)
  mkdirSync(folder, { recursive: true })
  const tensors = ["0.mlp.up_proj", "1.mlp.up_proj"].flatMap((name) => [
    tensor(`${name}.lora_A`, rank, 32),
    tensor(`${name}.lora_B`, 64, rank),
  ])
  writeFileSync(join(folder, "adapter_model.safetensors"), writeSafetensors(tensors))
  const config = { peft_type: "LORA", r: rank, lora_alpha: rank }
  writeFileSync(join(folder, "adapter_config.json"), JSON.stringify(config))
  return folder
}

// ONNX Runtime's own products add up more than 128 ranks in other blocks where threads share them
test.each([
  [128, 1],
  [128, 2],
  [130, 1],
  [130, 2],
  [256, 2],
])(
  "with %i ranks and %i threads a row is said to have its bits in any company only if it has",
  async (rank, threads) => {
    const { session } = await openDecoder(
      {
        path: fixtureFolder("llama"),
        graphs: join(root, "graphs"),
        precision: "fp32",
        threads,
        adapters: [{ id: "wide", path: adapterOf(rank) }],
      },
      () => {},
    )
    const { ids } = expectedOf("llama")
    const run = async (rows: number) => {
      const adapters = Array.from({ length: rows }, () => ({ id: "wide", strength: 1 }))
      const { step } = walkerOf(session, rows, 64, { adapters })
      for (const id of ids.slice(0, 3)) await step(adapters.map(() => [id]))
      const logits = await step(adapters.map(() => ids.slice(3, 4)))
      return logits[0]!
    }
    const alone = await run(1)
    const others = [await run(2), await run(5), await run(16)]
    const isSame = others.every((own) => Buffer.from(own.buffer).equals(Buffer.from(alone.buffer)))
    expect([isSame, session.isInvariant]).not.toEqual([false, true])
    if (rank <= 128) expect([isSame, session.isInvariant]).toEqual([true, true])
    await session.close()
  },
)
