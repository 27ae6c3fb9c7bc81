import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { batchErrorRegistry, errorRegistry } from "../core/errors.ts"
import { table } from "./table.ts"

/**
 * The pages that are generated: docs/events.md from the log calls of all sources, docs/errors.md
 * from core/errors.ts.
 */
const root = join(import.meta.dirname, "..")
const levels = ["error", "warn", "info", "debug"]

export interface LoggedEvent {
  readonly event: string
  /** `info or debug`, where the call decides. */
  readonly level: string
  /** As in the source; what is filled in stands in angle brackets. */
  readonly sentence: string
  readonly path: string
}

const literal = String.raw`"(?:[^"\\]|\\.)*"|${"`"}(?:[^${"`"}\\]|\\.)*${"`"}`
const call = new RegExp(
  String.raw`(?:\.(debug|info|warn|error)|\blog\[([^\]]*)\])\(\s*"(\w+\.\w+)",\s*(${literal}|[\w.]+)`,
  "g",
)
/** What a helper logs as a warning, such as a loop of `repeat`. */
const handedOver = new RegExp(String.raw`\bevent: "(\w+\.\w+)",\s*message:\s*(${literal})`, "g")

const sentenceOf = (source: string): string => {
  const text = /^["`]/.test(source) ? source.slice(1, -1) : `<${source}>`
  return text.replaceAll(/\$\{([^}]*)\}/g, "<$1>").replaceAll('\\"', '"')
}
const levelOf = (fixed: string | undefined, chosen: string): string =>
  fixed ?? levels.filter((level) => chosen.includes(`"${level}"`)).join(" or ")

export const eventsIn = (path: string, text: string): readonly LoggedEvent[] => [
  ...[...text.matchAll(call)].map(([, fixed, chosen = "", event, message]) => ({
    event: event!,
    level: levelOf(fixed, chosen),
    sentence: sentenceOf(message!),
    path,
  })),
  ...[...text.matchAll(handedOver)].map(([, event, message]) => ({
    event: event!,
    level: "warn",
    sentence: sentenceOf(message!),
    path,
  })),
]

const isSource = (path: string): boolean =>
  path.endsWith(".ts") && !path.endsWith(".test.ts") && !path.split("/").includes("testing")

export const loggedEvents = (): readonly LoggedEvent[] =>
  ["core", "plugins", "runtime"]
    .flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, encoding: "utf8" }).map(
        (path) => `${folder}/${path}`,
      ),
    )
    .filter(isSource)
    .flatMap((path) => eventsIn(path, readFileSync(join(root, path), "utf8")))
    .sort((a, b) => (a.event < b.event ? -1 : 1))

export const eventsPage = (): string => {
  const rows = loggedEvents().map(({ event, level, sentence, path }) => [
    `\`${event}\``,
    level,
    sentence,
    path.split("/").slice(0, 2).join("/"),
  ])
  return `# Events of the log

Every line of the log has an \`event\`: a name that does not change, so that alerts can match it. The sentence is for people and may change.
This page is generated from the sources by \`npm run docs\`; a test keeps them equal.

${table(["Event", "Level", "Sentence", "From"], rows)}
`
}

export const errorsPage = (): string => {
  const rows = Object.entries(errorRegistry)
    .map(([code, { status, type, about }]) => ({ code, status, type, about }))
    .sort((a, b) => a.status - b.status)
    .map(({ code, status, type, about }) => [String(status), `\`${code}\``, `\`${type}\``, about])
  return `# Error codes

Every reply that is not 2xx is \`{"error": {"message", "type", "code", "param"}, "request_id"}\`. Match on \`code\`; the message is for people and may change.
Replies with 429, 503 and 507 say in \`Retry-After\` and \`retry-after-ms\` when to try again; so does the 409 of an \`Idempotency-Key\` whose first request still runs.
This page is generated from [core/errors.ts](../core/errors.ts) by \`npm run docs\`; a test keeps them equal.

${table(["Status", "Code", "Type", "Meaning"], rows)}

## Only in the errors of a batch

\`errors.data[].code\` of a batch whose input file was refused is one of the codes above, such as \`invalid_json\`, or one of these. Each error names its \`line\`.

${table(
  ["Code", "Meaning"],
  Object.entries(batchErrorRegistry).map(([code, about]) => [`\`${code}\``, about]),
)}
`
}
