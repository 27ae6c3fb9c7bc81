// The exact scan of vectors on a GPU against that of the CPU, over the same random rows.
// `node --import tsx bench/device-scan.ts [--rows 1000000] [--dimensions 512] [--searches 20]
// [--rounds 3] [--software]`; `--software` allows adapters that a processor plays.
import { parseArgs } from "node:util"
import { Effect, Exit, Scope } from "effect"
import { makeDevice } from "../plugins/backend-webgpu/device/device.ts"
import { findAdapter } from "../plugins/backend-webgpu/device/find-adapter.ts"
import { toHalves, unitPrefix } from "../plugins/endpoint-retrieval/vectors/half-floats.ts"
import { packedRowBytes } from "../plugins/endpoint-retrieval/vectors/scan/packed-rows.ts"
import {
  openScanHost,
  type ScanLink,
} from "../plugins/endpoint-retrieval/vectors/scan/scan-host.ts"
import { layoutOf, slabsOf } from "../plugins/endpoint-retrieval/vectors/scan/slabs.ts"
import { fakeClock, fakeLog } from "../testing/index.ts"
import { printLoadAfter, printMachine } from "./measure/machine.ts"
import { alternate, medianOf, ratioOf } from "./measure/rounds.ts"
import { figure, printTable, times } from "./measure/table.ts"

const { values } = parseArgs({
  options: {
    rows: { type: "string", default: "1000000" },
    dimensions: { type: "string", default: "512" },
    searches: { type: "string", default: "20" },
    rounds: { type: "string", default: "3" },
    software: { type: "boolean", default: false },
  },
})
const [rows, dimensions, searches] = [values.rows, values.dimensions, values.searches].map(Number)
const startedMs = performance.now()
const rowsOfDocument = 1_000

const unit = () => unitPrefix(Float32Array.from({ length: dimensions! }, gaussian), dimensions!)
const gaussian = () =>
  Math.sqrt(-2 * Math.log(1 - Math.random())) * Math.cos(2 * Math.PI * Math.random())

/** Random rows; those of one document are used again with other signs, which is quicker. */
const template = Array.from({ length: rowsOfDocument }, () => toHalves(unit()))
const packed = (document: number) => {
  const bytes = new Uint8Array(rowsOfDocument * packedRowBytes(dimensions!))
  const view = new DataView(bytes.buffer)
  for (const [row, halves] of template.entries()) {
    const at = row * packedRowBytes(dimensions!)
    view.setInt32(at, row)
    for (const [i, half] of halves.entries()) {
      const sign = Math.random() < 0.5 ? 0x8000 : 0
      view.setUint16(at + 4 + 2 * i, half ^ sign, true)
    }
  }
  return { document, expiresMs: Number.MAX_SAFE_INTEGER, rows: bytes }
}

const settings = { allowSoftware: values.software, restarts: 1, hangSeconds: 600 }
const found = makeDevice(await Effect.runPromise(findAdapter(settings)), {
  settings: { ...settings, driver: undefined },
  log: fakeLog(),
  clock: fakeClock(),
})
let named = 0
const device: typeof found = {
  ...found,
  start: (entry, data) => {
    const channel = found.start(entry, data)
    channel.on("message", ({ type, rows: some }) => {
      if (type === "found" && some) named++
    })
    return channel
  },
}

const scope = Scope.makeUnsafe()
const layout = layoutOf(dimensions!)
const slabs = slabsOf(rows! + rowsOfDocument, layout)
const open = async (isOnDevice: boolean) => {
  const data = { slabs, ...(isOnDevice && { deviceRows: 1 }) }
  const host = openScanHost(fakeLog(), data, isOnDevice ? device : undefined)
  return (await Effect.runPromise(host.pipe(Scope.provide(scope))))()
}
const ask = (link: ScanLink) =>
  Effect.runPromise(
    link.ask({ type: "search", index: 1, query: { vector: unit(), limit: 10, nowMs: 0 } }),
  )

printMachine(`Exact scan on ${device.name}`, "the sources, through tsx")
const links = { device: await open(true), cpu: await open(false) }
for (const link of Object.values(links))
  link.post({ type: "open", index: 1, dimensions: dimensions! })
for (let document = 0; document * rowsOfDocument < rows!; document++) {
  const rowsOf = packed(document)
  links.cpu.post({ type: "add", index: 1, packed: { ...rowsOf, rows: rowsOf.rows.slice() } })
  links.device.post({ type: "add", index: 1, packed: rowsOf })
  // the threads keep up with what is sent
  if (document % 50 === 49) await Promise.all(Object.values(links).map(ask))
}
const loadingFrom = performance.now()
while (named === 0) {
  await ask(links.device)
  if (performance.now() - loadingFrom > 120_000)
    throw new Error("the device answered no search within its 5 s")
}
const side = (name: string, link: ScanLink) => ({
  name,
  run: async () => {
    const from = performance.now()
    for (let i = 0; i < searches!; i++) await ask(link)
    return (performance.now() - from) / searches!
  },
})
const sides = [side("CPU", links.cpu), side("device", links.device)]
const before = named
const rounds = await alternate(sides, Number(values.rounds), ({ run }) => run())
printTable(
  `${rows} rows of ${dimensions}; ${named - before} of ${searches! * Number(values.rounds)} searches on the device`,
  ["", "ms a search", "to the CPU"],
  sides.map(({ name }) => [
    name,
    figure(medianOf(rounds, name, Number)),
    times(ratioOf(rounds, name, "CPU", Number)),
  ]),
)
await Effect.runPromise(Scope.close(scope, Exit.void))
printLoadAfter(startedMs)
process.exit(0)
