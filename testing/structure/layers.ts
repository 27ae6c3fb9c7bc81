import { isTest, ownImportsOf, type Rule } from "./sources.ts"

/**
 * Inner walls: the folders of an area from top to bottom; files beside them are above all. An entry
 * may be a file
 * that stands higher or lower than the rest of its folder.
 */
const layers: Readonly<Record<string, readonly string[]>> = {
  "plugins/backend-onnx": [
    "tasks",
    "worker/entry.ts",
    "generation",
    "diffusion/engine",
    "diffusion/pipelines",
    "diffusion/transformers",
    "diffusion/unet",
    "diffusion/text",
    "diffusion/vae",
    "diffusion/iris",
    "diffusion/lora",
    "diffusion/graph",
    "diffusion/folder",
    "diffusion/schedulers",
    "diffusion/model.ts",
    "vision",
    "hearing",
    "encoding",
    "output",
    "grammar",
    "sampling",
    "sessions",
    "images",
    "audio",
    "chat-format",
    "worker",
    "onnx",
    "architectures",
    "tokenizer",
    "weights",
    "kernels",
  ],
  "plugins/backend-webgpu": ["device", "process", "settings.ts"],
  "runtime/http": [
    "serve-endpoint.ts",
    "system",
    "openapi",
    "request",
    "response",
    "connection",
    "errors.ts",
    "exchange.ts",
    "limits.ts",
    "timings.ts",
  ],
  "runtime/services/model-files": [
    "fetch-artifact.ts",
    "archive",
    "sources",
    "download",
    "store",
    "context.ts",
    "failure.ts",
    "safe-path.ts",
    "system-error.ts",
  ],
  "plugins/endpoint-files": [
    "check",
    "sweep",
    "uploads",
    "files",
    "blobs",
    "tenant.ts",
    "deps.ts",
    "settings.ts",
    "tables.ts",
  ],
  "plugins/endpoint-batches": [
    "api",
    "check",
    "cli",
    "run-file",
    "work",
    "preflight",
    "input",
    "deps.ts",
    "cancels.ts",
    "wire.ts",
    "settings.ts",
    "tables.ts",
  ],
  "plugins/endpoint-retrieval": [
    "cli",
    "check",
    "api",
    "ingest",
    "search",
    "reading",
    "split",
    "extract",
    "vectors",
    "documents",
    "deps.ts",
    "settings.ts",
    "tables.ts",
  ],
  "plugins/webhook-http": ["api", "delivery", "rows", "deps.ts", "settings.ts"],
}

/**
 * The place of a file in its area's list, 0 at the top; -1 where its folder is missing in the list.
 */
const layerIn = (area: string, path: string): number => {
  const inside = path.slice(area.length + 1)
  const longest = layers[area]!.filter(
    (layer) => inside === layer || inside.startsWith(`${layer}/`),
  ).sort((a, b) => b.length - a.length)[0]
  if (longest !== undefined) return layers[area]!.indexOf(longest) + 1
  return inside.includes("/") ? -1 : 0
}

export const keepsToItsLayer: Rule = (source) => {
  const area = Object.keys(layers).find((folder) => source.path.startsWith(`${folder}/`))
  if (area === undefined || isTest(source.path)) return []
  const mine = layerIn(area, source.path)
  if (mine < 0) return [`is in a folder that the list of layers of ${area} does not name`]
  return ownImportsOf(source)
    .filter((path) => path.startsWith(`${area}/`) && layerIn(area, path) < mine)
    .map((path) => `imports ${path}, but a folder imports only those below it in ${area}`)
}
