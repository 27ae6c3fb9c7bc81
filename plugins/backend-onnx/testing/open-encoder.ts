import { readFileSync } from "node:fs"
import { join } from "node:path"
import type { EmbedJobEvent, EncoderInput } from "../encoding/embed-job.ts"
import { openEncoderEngine } from "../encoding/open-encoder-engine.ts"
import { spaceDimensions, stackedRotations } from "../encoding/stacked-rotations.ts"
import type { EncoderOptions } from "../worker/protocol.ts"
import { encoderFolder } from "./fixtures.ts"

/** What other implementations make of a tiny encoder, see fixtures/make-encoders.py. */
export interface ExpectedEncoder {
  readonly texts?: readonly {
    readonly text: string
    readonly ids: readonly number[]
    /** The tokens of `Query für: ` and the text. */
    readonly promptedIds: readonly number[]
    readonly vector: readonly number[]
  }[]
  readonly pooled?: Readonly<Record<string, readonly (readonly number[])[]>>
  /** With a prompt before each text, by the name of the prompt. */
  readonly prompted?: Readonly<
    Record<
      string,
      readonly { readonly ids: readonly number[]; readonly vector: readonly number[] }[]
    >
  >
  readonly pairs?: readonly {
    readonly query: string
    readonly document: string
    readonly ids: readonly number[]
    readonly secondFrom: number
    readonly logit: number
  }[]
}

export const expectedEncoder = (name: string) =>
  JSON.parse(readFileSync(join(encoderFolder(name), "expected.json"), "utf8")) as ExpectedEncoder

/** Opens an encoder in this thread. */
export const openEncoder = (
  path: string,
  graphs: string,
  {
    precision = "fp32",
    ...encoder
  }: EncoderOptions & { readonly precision?: "fp32" | "int8" } = {},
) =>
  openEncoderEngine(
    {
      kind: "encoder",
      path,
      precision,
      encoder,
      graphs,
      threads: 1,
      slots: 1,
      kvBytes: 0,
      prefixCacheBytes: 0,
      speculation: false,
    },
    () => {},
  )

/** What an encoder makes of texts, or of pairs, in one request. */
export const outputsOf = async (
  engine: Awaited<ReturnType<typeof openEncoder>>,
  texts: readonly EncoderInput[],
): Promise<readonly Float32Array[]> => {
  const vectors: Float32Array[] = []
  const job = engine.start({ texts }, (event: EmbedJobEvent) => {
    if (event.type === "vector") vectors[event.index] = event.vector
  })
  const running = { id: 1, account: "a", priority: "realtime", job } as const
  let ended = await engine.runner.step([running], ([first]) => first!)
  while (!ended.length) ended = await engine.runner.step([running], ([first]) => first!)
  if (ended[0]!.cause) throw ended[0]!.cause
  return vectors
}

const dot = (a: ArrayLike<number>, b: ArrayLike<number>) =>
  Array.from(a).reduce((sum, value, i) => sum + value * b[i]!, 0)
export const cosine = (a: ArrayLike<number>, b: ArrayLike<number>): number =>
  dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b))

const maps = new Map<number, Float32Array>()
/** The model's own vector of one of the space: the columns of the map are orthonormal. */
export const unmapped = (vector: Float32Array, width: number): readonly number[] => {
  const map = maps.get(width) ?? stackedRotations(width, spaceDimensions)
  maps.set(width, map)
  return Array.from({ length: width }, (_, column) =>
    vector.reduce((sum, value, row) => sum + value * map[row * width + column]!, 0),
  )
}
