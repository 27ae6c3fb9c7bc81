import { join } from "node:path"
import type { DecoderConfig } from "../architectures/decoder-config.ts"
import type { Building } from "../onnx/building.ts"
import { buildDecoderGraph } from "../onnx/decoder-graph.ts"
import { writeGraph } from "../onnx/graph-cache.ts"
import { openSession } from "../onnx/onnx-session.ts"
import { BuiltSession, type Embed, type Rounding } from "./built-session.ts"
import type { AdapterChoice, DecoderOutput, DecoderSession, ForwardPass } from "./decoder.ts"
import { emptyStore } from "./kv-bank.ts"
import type { KvNumbers, KvStore } from "./kv-store.ts"

const files = { graph: "probe.onnx", weights: "probe.bin" }
const headRows = 512
const tokens = 64
const company = 5
const capacity = 128

/** Logits, keys and values of one token. */
type TokenBits = readonly KvNumbers[]

const same = (a: TokenBits, b: TokenBits): boolean =>
  a.every((values, i) => {
    const others = b[i]!
    return values.every((value, at) => Object.is(value, others[at]))
  })

class Probe {
  private readonly session: DecoderSession
  private readonly adapter: AdapterChoice | undefined
  private readonly ids: readonly number[]
  /** The bits of each token when all are read at once. */
  private wanted: readonly TokenBits[] = []
  /** The keys and values of all tokens. */
  private whole: KvNumbers = new Float32Array()

  constructor(session: DecoderSession, adapter?: AdapterChoice) {
    this.session = session
    this.adapter = adapter
    const { vocabulary } = session.shape
    this.ids = Array.from({ length: tokens }, (_, i) => (i * 7919 + 13) % vocabulary)
  }

  private bitsOf({ logits, fresh }: DecoderOutput, of: number): readonly TokenBits[] {
    const { vocabulary, kvHeads, headSize, layers } = this.session.shape
    const width = kvHeads * headSize
    const part = (array: number, index: number) =>
      fresh.slice((array * of + index) * width, (array * of + index + 1) * width)
    return Array.from({ length: of }, (_, index) => [
      logits.slice(index * vocabulary, (index + 1) * vocabulary),
      ...Array.from({ length: 2 * layers }, (_, array) => part(array, index)),
    ])
  }

  /** The keys and values before each of these positions, as rows of a store. */
  private past(positions: readonly number[]): KvStore {
    const store = emptyStore(this.session, capacity).another(positions.length, capacity)
    for (const [row, keep] of positions.entries())
      store.write(row, 0, this.whole, { rows: 1, index: 0, count: tokens, keep })
    return store
  }

  private forward(positions: readonly number[], count: number): Promise<DecoderOutput> {
    const ids = positions.flatMap((from) => this.ids.slice(from, from + count))
    const pass: ForwardPass = {
      rows: positions.length,
      count,
      ids,
      pastLens: positions,
      ...this.past(positions).rowsFrom(0, positions.length),
      capacity,
      logitsAt: ids.map((_, i) => i),
      ...(this.adapter && { adapters: positions.map(() => this.adapter) }),
    }
    return this.session.forward(pass)
  }

  async readAll(): Promise<void> {
    const output = await this.forward([0], tokens)
    this.whole = output.fresh.slice()
    this.wanted = this.bitsOf(output, tokens)
  }

  /** Whether these rows, `count` tokens each, are what they were among all. */
  async matches(positions: readonly number[], count = 1): Promise<boolean> {
    const got = this.bitsOf(await this.forward(positions, count), positions.length * count)
    const at = positions.flatMap((from) => Array.from({ length: count }, (_, i) => from + i))
    return got.every((bits, i) => same(bits, this.wanted[at[i]!]!))
  }
}

/**
 * Compares tokens that are read alone, in small company and among 64, at several positions, on a
 * model of one layer. `open` opens it, with lonely rows computed twice or as they are.
 */
export const probeRounding = async (
  open: (lonelyTwice: boolean) => DecoderSession,
): Promise<Rounding> => {
  const alone = async (lonelyTwice: boolean): Promise<boolean> => {
    const probe = new Probe(open(lonelyTwice))
    await probe.readAll()
    for (const position of [0, 7, 31, 63]) if (!(await probe.matches([position]))) return false
    return true
  }
  const lonelyTwice = !(await alone(false))
  const probe = new Probe(open(lonelyTwice))
  await probe.readAll()
  const others = [61, 3, 40, 17, 62].slice(0, company)
  const isInvariant =
    (!lonelyTwice || (await alone(true))) &&
    (await probe.matches(others)) &&
    (await probe.matches([30], 2)) &&
    (await probe.matches([9], company))
  return { lonelyTwice, isInvariant }
}

/** The same of rows of a whole model that have one of these adapters. */
export const roundsAlikeWith = async (
  session: DecoderSession,
  adapters: readonly string[],
): Promise<boolean> => {
  for (const id of adapters) {
    const probe = new Probe(session, { id, strength: 1 })
    await probe.readAll()
    for (const positions of [[7], [63], [61, 3, 40, 17, 62]])
      if (!(await probe.matches(positions))) return false
  }
  return true
}

const probed = (config: DecoderConfig): DecoderConfig => ({
  ...config,
  layers: 1,
  contextTokens: capacity,
})

/** Writes the graph of the model's first layer and the first rows of its head beside the model's. */
export const writeProbe = (folder: string, building: Omit<Building, "graph">): void => {
  const rows = Math.min(headRows, building.config.vocabulary)
  const { config, weights, precision } = building
  writeGraph(folder, files, (graph) =>
    buildDecoderGraph(
      { graph, config: probed(config), weights, precision, headRows: rows },
      () => {},
    ),
  )
}

/** Runs the graph that `writeProbe` wrote. */
export const runProbe = async (
  folder: string,
  threads: number,
  config: DecoderConfig,
  embed: Embed,
): Promise<Rounding> => {
  const session = await openSession(join(folder, files.graph), threads)
  const shape = { ...probed(config), vocabulary: Math.min(headRows, config.vocabulary) }
  try {
    return await probeRounding(
      (lonelyTwice) =>
        new BuiltSession(session, { shape, embed, rounding: { lonelyTwice, isInvariant: false } }),
    )
  } finally {
    await session.release()
  }
}
