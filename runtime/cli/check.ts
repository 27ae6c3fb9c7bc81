import { Effect } from "effect"
import { formatDecimal } from "../../core/money.ts"
import type { Endpoint } from "../../core/ports/endpoint.ts"
import type { Price } from "../../core/pricing.ts"
import { adapterName, type ModelEntry, type ModelSource } from "../../core/services/model-entry.ts"
import { resolve, Tokens } from "../../core/tokens.ts"
import type { AssembledDeployment } from "../boot/assemble.ts"
import { kernelTokens } from "../boot/kernel.ts"
import { originOf } from "../boot/models.ts"
import { filesOf, localTrouble } from "../boot/open-models.ts"
import { describeModels, modelTrouble, shortfall } from "../boot/served-models.ts"
import type { Mask } from "../config/mask.ts"
import { shownUrl } from "../services/model-files/failure.ts"
import type { ModelFilesStore } from "../services/model-files/model-files.ts"
import { type Devices, findDevices } from "./devices.ts"
import { reasonsOf, splitFix } from "./refuse.ts"
import { formatTable, precisionOf, wrapped } from "./table.ts"
import { withDeployment } from "./with-deployment.ts"

const pluginRows = (deployment: AssembledDeployment) =>
  deployment.order.map(({ key, plugin }) => [
    key,
    plugin.provides.map((token) => token.name).join(", ") || "-",
    // of other plugins: the kernel brings the rest
    [
      ...plugin.needs.map((token) => token.name).filter((name) => !kernelTokens.has(name)),
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

/** Exact, as a price is what one computes with. `units`: of 10^-9 rupiah. */
const rupiah = (units: bigint): string => {
  const [whole = "", fraction] = formatDecimal(units, 9).split(".")
  return `Rp ${BigInt(whole).toLocaleString("en")}${fraction ? `.${fraction}` : ""}`
}

/** What is metered, with the price of each unit. */
const meters = (price: Price): string =>
  [
    price.input > 0n && `input ${rupiah(price.input)}/1M`,
    price.output > 0n && `output ${rupiah(price.output)}/1M`,
    price.image > 0n && `image ${rupiah(price.image)}`,
    price.audioSecond > 0n && `audio second ${rupiah(price.audioSecond)}`,
    price.searchUnit > 0n && `search unit ${rupiah(price.searchUnit)}`,
  ]
    .filter(Boolean)
    .join(", ") || "free"

const digestNote = (files: ModelFilesStore, source: ModelSource): string => {
  if (source.sha256 !== undefined) return ""
  const locked = files.locked(source)
  return locked ? ` (locked: ${locked.sha256.slice(0, 12)})` : " (no digest)"
}

interface Facts {
  readonly deployment: AssembledDeployment
  /** The entries of which it is known what they can do, as their files are here. */
  readonly known: readonly ModelEntry[]
  /** A sentence for each model and adapter whose files on this machine can't be used or opened. */
  readonly troubles: readonly string[]
  readonly devices: Devices
}

const modelRow =
  ({ deployment: { container }, known, devices }: Facts) =>
  (entry: ModelEntry) => {
    const isKnown = known.includes(entry)
    const { contextTokens, maxOutputTokens, price } = isKnown
      ? resolve(container, Tokens.catalogue).served(entry)
      : entry
    const byDefault = Math.min(entry.defaultMaxTokens, maxOutputTokens)
    return [
      entry.id,
      entry.task,
      devices.shown(entry.backend),
      precisionOf(entry),
      // unknown as long as the model's files are not here
      isKnown ? String(contextTokens) : `${contextTokens} (promised)`,
      maxOutputTokens ? `${maxOutputTokens} (${byDefault})` : "-",
      meters(price),
    ]
  }

const sourceRows =
  ({ deployment: { models, modelFiles } }: Facts) =>
  ({ id, sources, adapters }: ModelEntry) => {
    const row = (name: string, from: readonly ModelSource[]) => [
      name,
      originOf(models, name),
      from
        .map((source) => `${shownUrl(source.url)}${digestNote(modelFiles, source)}`)
        .join(" | ") || "-",
    ]
    return [row(id, sources), ...adapters.map((own) => row(adapterName(id, own), own.sources))]
  }

const troublesOf = (
  deployment: AssembledDeployment,
  entry: ModelEntry,
  isKnown: boolean,
): Effect.Effect<readonly string[]> =>
  Effect.gen(function* () {
    const absent = yield* Effect.forEach(filesOf(entry), (files) =>
      Effect.map(localTrouble(deployment, files), (trouble) =>
        trouble === undefined ? [] : [`The files of '${files.id}' can't be used: ${trouble}.`],
      ),
    )
    if (isKnown || absent.some(({ length }) => length > 0)) return absent.flat()
    const trouble = yield* modelTrouble(deployment, entry)
    return trouble === undefined ? [] : [`The model '${entry.id}' can't be opened: ${trouble}`]
  })

const findTroubles = (
  deployment: AssembledDeployment,
  known: readonly ModelEntry[],
): Effect.Effect<readonly string[]> =>
  Effect.map(
    Effect.forEach(resolve(deployment.container, Tokens.catalogue).entries, (entry) =>
      troublesOf(deployment, entry, known.includes(entry)),
    ),
    (lines) => lines.flat(),
  )

/** One line for each model that serves less than promised, and for what is missing. */
const warningsOf = ({
  deployment: { container },
  known,
  troubles,
  devices,
}: Facts): readonly string[] => {
  const { served } = resolve(container, Tokens.catalogue)
  const shortfalls = known.flatMap((entry) => {
    const less = shortfall(entry, served(entry))
    return less === undefined ? [] : [`The model '${entry.id}' serves ${less}.`]
  })
  return [...shortfalls, ...troubles, ...devices.missing]
}

const counted = (count: number, what: string): string => `${count} ${what}${count === 1 ? "" : "s"}`

/** As wide as a terminal beside an editor. */
const columns = 100

const serverRows = ({ config }: AssembledDeployment) =>
  Object.entries(config.deployment.server).map(([key, value]) => [
    key,
    (typeof value === "object" && !Array.isArray(value) ? JSON.stringify(value) : String(value)) ||
      "-",
  ])

/**
 * The verdict, what it is made of, and then the tables, without values of the environment: those
 * are hidden before a table breaks them into lines.
 */
export const describeDeployment = (facts: Facts): string => {
  const { deployment } = facts
  const { mask, file } = deployment.config
  const { entries } = resolve(deployment.container, Tokens.catalogue)
  const { name } = deployment.config.deployment
  const section = (title: string, head: readonly string[], rows: readonly (readonly string[])[]) =>
    `${title}\n${formatTable([head, ...rows.map((row) => row.map(mask.text))], columns)}`
  return [
    mask.text(
      `This config is fine: ${name}, ${counted(deployment.order.length, "plugin")}, ${counted(deployment.endpoints.length, "endpoint")}, ${counted(entries.length, "model")}.\n${file}\n`,
    ),
    warningsOf(facts)
      .map((line) => `${mask.text(line)}\n`)
      .join(""),
    section(
      "PLUGINS, in starting order",
      ["plugin", "provides", "needs", "about"],
      pluginRows(deployment),
    ),
    section(
      "ROUTES",
      ["method", "path", "id", "access", "body at most", "also"],
      routeRows(deployment),
    ),
    section(
      "MODELS AND METERS",
      ["model", "task", "backend", "precision", "window", "max_tokens (default)", "price"],
      entries.map(modelRow(facts)),
    ),
    section(
      "FILES OF MODELS AND THEIR ADAPTERS",
      ["model", "from", "sources"],
      entries.flatMap(sourceRows(facts)),
    ),
    section("SERVER", ["key", "value"], serverRows(deployment)),
  ]
    .filter((part) => part !== "")
    .join("\n")
}

/** The same facts for programs. */
const deploymentJson = (facts: Facts) => {
  const { deployment } = facts
  const named = (head: readonly string[], rows: readonly (readonly string[])[]) =>
    rows.map((row) => Object.fromEntries(head.map((key, column) => [key, row[column]])))
  const { entries } = resolve(deployment.container, Tokens.catalogue)
  return {
    object: "deployment",
    is_fine: true,
    name: deployment.config.deployment.name,
    file: deployment.config.file,
    warnings: warningsOf(facts),
    plugins: deployment.order.map(({ key, plugin }) => ({
      plugin: key,
      provides: plugin.provides.map((token) => token.name),
      needs: plugin.needs.map((token) => token.name),
      optional: (plugin.optional ?? []).map((token) => token.name),
      about: plugin.about,
    })),
    routes: named(
      ["method", "path", "id", "access", "largest_body", "also"],
      routeRows(deployment),
    ),
    models: named(
      ["model", "task", "backend", "precision", "window", "max_tokens", "price"],
      entries.map(modelRow(facts)),
    ),
    files: named(["model", "from", "sources"], entries.flatMap(sourceRows(facts))),
    server: deployment.config.deployment.server,
  }
}

/** The verdict on a config that is refused, and what to mend. */
const printProblems =
  (file: string, json: boolean) =>
  (error: unknown, mask: Mask): never => {
    const problems = reasonsOf(error).map((reason) => splitFix(mask.text(reason)))
    if (json) {
      const facts = { object: "deployment", is_fine: false, file, problems }
      process.stdout.write(`${JSON.stringify(facts, null, 2)}\n`)
    } else process.stderr.write(problemsText(problems))
    process.exit(1)
  }

export const problemsText = (problems: readonly ReturnType<typeof splitFix>[]): string => {
  const lines = problems.flatMap(({ message, fix }) => [
    "",
    ...wrapped(message, columns),
    ...(fix ? wrapped(`Fix: ${fix}`, columns - 4).map((line) => `    ${line}`) : []),
  ])
  return `This config is not fine: ${counted(problems.length, "problem")}.\n${lines.join("\n")}\n`
}

export const check = (file: string, json = false): Promise<void> =>
  withDeployment(
    file,
    (deployment) =>
      Effect.gen(function* () {
        const known = yield* describeModels(deployment)
        const troubles = yield* findTroubles(deployment, known)
        const devices = yield* findDevices(deployment)
        const facts = { deployment, known, troubles, devices }
        const masked = (_: string, value: unknown) =>
          typeof value === "string" ? deployment.config.mask.text(value) : value
        process.stdout.write(
          json
            ? `${JSON.stringify(deploymentJson(facts), masked, 2)}\n`
            : describeDeployment(facts),
        )
      }),
    printProblems(file, json),
  )
