import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, expect, test } from "vitest"
import { withAdapterFile } from "../architectures/adapter-file.ts"
import { readModelHeader } from "../architectures/model-source.ts"
import type { Precision } from "../onnx/linear.ts"
import { fixtureFolder } from "../testing/fixtures.ts"
import { encodeAs, ggmlTypeNamed } from "../testing/ggml-encode.ts"
import { writeGguf } from "../testing/gguf-writer.ts"
import { writeSafetensors } from "../testing/safetensors-writer.ts"
import { tinyLlama, tinyShape } from "../testing/tiny-llama.ts"
import { groupSizes, groupsByHeader } from "./adapter-memory.ts"
import { tileLayout } from "./adapter-tiles.ts"
import { openDecoder } from "./open-decoder.ts"

const root = mkdtempSync(join(tmpdir(), "rakit-adapter-memory-"))
afterAll(() => rmSync(root, { recursive: true, force: true }))

/** As in files whose levels differ by tensor: neighbours in 8 or 5 bits beside ones in 4. */
const inEightBits = /blk\.0\.attn_v|blk\.1\.(attn_q|ffn_up)/
const inFiveBits = /blk\.0\.(attn_k|ffn_up)/
const typeFor = (name: string): string => {
  if (inEightBits.test(name)) return "Q8_0"
  return inFiveBits.test(name) ? "Q5_0" : "Q4_0"
}
const mixed = join(root, "mixed.gguf")
const { metadata, tensors } = tinyLlama(3)
writeFileSync(
  mixed,
  writeGguf({
    metadata,
    tensors: tensors.map((tensor) => {
      if (tensor.dimensions.length < 2) return tensor
      const type = typeFor(tensor.name)
      const values = new Float32Array(tensor.bytes.buffer as ArrayBuffer)
      return { ...tensor, type: ggmlTypeNamed(type).id, bytes: encodeAs(type, values) }
    }),
  }),
)

/** Adapts v and up of both layers. */
const adapter = join(root, "adapter")
mkdirSync(adapter)
const { width, feedForward, kvHeads, headSize } = tinyShape
const zeros = (name: string, ...shape: readonly number[]) => {
  const count = shape.reduce((product, size) => product * size, 1)
  return { name: `base_model.model.model.layers.${name}`, shape, values: new Float32Array(count) }
}
writeFileSync(
  join(adapter, "adapter_model.safetensors"),
  writeSafetensors(
    [0, 1].flatMap((layer) =>
      [
        [`${layer}.self_attn.v_proj`, kvHeads * headSize] as const,
        [`${layer}.mlp.up_proj`, feedForward] as const,
      ].flatMap(([name, rows]) => [
        zeros(`${name}.lora_A.weight`, 2, width),
        zeros(`${name}.lora_B.weight`, rows, 2),
      ]),
    ),
  ),
)
writeFileSync(
  join(adapter, "adapter_config.json"),
  JSON.stringify({ peft_type: "LORA", r: 2, lora_alpha: 2 }),
)

const expectedBytes = (model: string, path: string, precision: Precision): number => {
  const header = readModelHeader(model)
  const sizes = groupSizes(groupsByHeader(header, precision), header.config)
  return withAdapterFile(path, header.config, ({ shapes }) => tileLayout(shapes, sizes).bytes)
}

test.each<readonly [string, string, string, Precision]>([
  ["a file of mixed levels", mixed, adapter, "auto"],
  ["the same in 8 bits", mixed, adapter, "int8"],
  ["a folder", fixtureFolder("llama"), fixtureFolder("llama-adapters/legal"), "auto"],
  ["joined matrices", fixtureFolder("phi3"), fixtureFolder("phi3-adapters/legal"), "fp32"],
])("of %s the header says what memory the graph takes", async (_, path, lora, precision) => {
  const bytes = expectedBytes(path, lora, precision)
  const open = (adapterBytes: number) =>
    openDecoder(
      {
        ...{ path, precision, adapterBytes, graphs: join(root, "graphs"), threads: 1 },
        adapters: [{ id: "a", path: lora }],
      },
      () => {},
    )
  const { session } = await open(bytes)
  expect(session.adapterBytes!()).toBe(bytes)
  await session.close()
  await expect(open(bytes - 1)).rejects.toThrow(/adapterMemoryMb/)
})

test("mixed levels are other products, and take other memory", () => {
  expect(expectedBytes(mixed, adapter, "auto")).not.toBe(expectedBytes(mixed, adapter, "int8"))
})
