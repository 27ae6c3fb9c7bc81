import { Effect } from "effect"
import { formatDecimal } from "../../core/money.ts"
import type { Endpoint } from "../../core/ports/endpoint.ts"
import type { Price } from "../../core/pricing.ts"
import { adapterName, type ModelEntry, type ModelSource } from "../../core/services/model-entry.ts"
import { resolve, Tokens } from "../../core/tokens.ts"
import type { AssembledDeployment } from "../boot/assemble.ts"
import { originOf } from "../boot/models.ts"
import { describeModels, shortfall } from "../boot/served-models.ts"
import type { ModelFilesStore } from "../services/model-files/model-files.ts"
import { type Devices, findDevices } from "./devices.ts"
import { formatTable, precisionOf } from "./table.ts"
import { withDeployment } from "./with-deployment.ts"

const pluginRows = (deployment: AssembledDeployment) =>
  deployment.order.map(({ key, plugin }) => [
    key,
    plugin.provides.map((token) => token.name).join(", ") || "-",
    [
      ...plugin.needs.map((token) => token.name),
      ...(plugin.optional ?? []).map((token) => `${token.name} (optional)`),
    ].join(", ") || "-",
    plugin.about,
  ])

const megabytes = (bytes: number) => `${bytes / 2 ** 20} MB`

const largestBody = ({ body, maxBodyBytes, maxTextBytes }: Endpoint): string => {
  if (body === "none") return "-"
  const text = maxTextBytes === undefined ? "" : ` (text ${megabytes(maxTextBytes)})`
  return megabytes(maxBodyBytes) + text
}

const routeRows = (deployment: AssembledDeployment) =>
  deployment.endpoints.flatMap((endpoint) =>
    [endpoint.path, ...(endpoint.aliases ?? [])].map((path) => [
      endpoint.method,
      path,
      endpoint.id,
      endpoint.access,
      largestBody(endpoint),
      [
        endpoint.event && "stream",
        endpoint.batchable && "batch",
        endpoint.creates && "idempotency-key",
      ]
        .filter(Boolean)
        .join(", ") || "-",
    ]),
  )

/** What is metered, with the price of each unit. */
const meters = (price: Price): string =>
  [
    price.input > 0n && `input Rp${formatDecimal(price.input, 9)}/1M`,
    price.output > 0n && `output Rp${formatDecimal(price.output, 9)}/1M`,
    price.image > 0n && `image Rp${formatDecimal(price.image, 9)}`,
    price.audioSecond > 0n && `audio second Rp${formatDecimal(price.audioSecond, 9)}`,
    price.searchUnit > 0n && `search unit Rp${formatDecimal(price.searchUnit, 9)}`,
  ]
    .filter(Boolean)
    .join(", ") || "free"

const digestNote = (files: ModelFilesStore, source: ModelSource): string => {
  if (source.sha256 !== undefined) return ""
  const locked = files.locked(source)
  return locked ? ` (locked: ${locked.sha256.slice(0, 12)})` : " (no digest)"
}

const modelRow =
  (
    { container, models, modelFiles }: AssembledDeployment,
    known: readonly ModelEntry[],
    devices: Devices,
  ) =>
  (entry: ModelEntry) => {
    const isKnown = known.includes(entry)
    const { contextTokens, maxOutputTokens, price } = isKnown
      ? resolve(container, Tokens.catalogue).served(entry)
      : entry
    const byDefault = Math.min(entry.defaultMaxTokens, maxOutputTokens)
    const row = (id: string, sources: readonly ModelSource[]) => [
      id,
      entry.task,
      devices.shown(entry.backend),
      precisionOf(entry),
      // unknown as long as the model's files are not here
      isKnown ? String(contextTokens) : `${contextTokens} (promised)`,
      maxOutputTokens ? `${maxOutputTokens} (${byDefault})` : "-",
      meters(price),
      originOf(models, id),
      sources.map((source) => `${source.url}${digestNote(modelFiles, source)}`).join(" | ") || "-",
    ]
    return [
      row(entry.id, entry.sources),
      ...entry.adapters.map((own) => row(adapterName(entry.id, own), own.sources)),
    ]
  }

/** One line for each model that serves less than config promises. */
const shortfalls = ({ container }: AssembledDeployment, known: readonly ModelEntry[]): string => {
  const { served } = resolve(container, Tokens.catalogue)
  const lines = known.flatMap((entry) => {
    const less = shortfall(entry, served(entry))
    return less === undefined ? [] : [`The model '${entry.id}' serves ${less}.\n`]
  })
  return lines.join("")
}

export const describeDeployment = (
  deployment: AssembledDeployment,
  known: readonly ModelEntry[],
  devices: Devices,
): string =>
  [
    `${deployment.config.deployment.name}: ${deployment.config.file}\n`,
    "PLUGINS, in starting order",
    formatTable([["plugin", "provides", "needs", "about"], ...pluginRows(deployment)]),
    "ROUTES",
    formatTable([
      ["method", "path", "id", "access", "body at most", "also"],
      ...routeRows(deployment),
    ]),
    "MODELS AND METERS",
    formatTable([
      [
        ...["model", "task", "backend", "precision", "window"],
        ...["max_tokens (default)", "price", "from", "sources"],
      ],
      ...resolve(deployment.container, Tokens.catalogue).entries.flatMap(
        modelRow(deployment, known, devices),
      ),
    ]),
    shortfalls(deployment, known),
    devices.missing.map((line) => `${line}\n`).join(""),
    "SERVER",
    formatTable([
      ...Object.entries(deployment.config.deployment.server).map(([key, value]) => [
        key,
        (typeof value === "object" && !Array.isArray(value)
          ? JSON.stringify(value)
          : String(value)) || "-",
      ]),
    ]),
  ]
    .filter((part) => part !== "")
    .join("\n")

export const check = (file: string): Promise<void> =>
  withDeployment(file, (deployment) =>
    Effect.gen(function* () {
      const known = yield* describeModels(deployment)
      const devices = yield* findDevices(deployment)
      process.stdout.write(
        `${deployment.config.mask.text(describeDeployment(deployment, known, devices))}\nThis config is fine.\n`,
      )
    }),
  )
