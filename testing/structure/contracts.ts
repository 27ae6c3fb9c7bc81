import { isTest, ownImportsOf, type Rule, sources } from "./sources.ts"

/**
 * The suite of each port that has one, and what a test calls; the suites of models are one for each
 * task.
 */
const suites: Readonly<Record<string, readonly [file: string, ...called: string[]]>> = {
  billing: ["billing", "billingContract"],
  database: ["database", "databaseContract"],
  idempotency: ["idempotency", "idempotencyContract"],
  identity: ["identity", "identityContract"],
  sessions: ["identity", "identityContract"],
  imageSafety: ["image-safety", "imageSafetyContract"],
  queue: ["queue", "queueContract"],
  storage: ["storage", "storageContract"],
  webhook: ["webhook", "webhookContract"],
  backends: ["model"],
}
const listedAfter = (text: string, key: string): readonly string[] =>
  new RegExp(`\\b${key}: \\[([^\\]]*)\\]`).exec(text)?.[1]?.match(/\w+/g) ?? []

export const runsItsContracts: Rule = ({ path, text }) => {
  const plugin = /^plugins\/[^/]+\/(?=plugin\.ts$)/.exec(path)?.[0]
  if (plugin === undefined) return []
  const own = sources.filter((source) => source.path.startsWith(plugin))
  const tasks = own
    .filter((source) => !isTest(source.path))
    .flatMap((source) => listedAfter(source.text, "tasks"))
  return listedAfter(text, "provides").flatMap((token) => {
    const [file, ...called] = suites[token] ?? []
    if (file === undefined) return []
    const wanted = token === "backends" ? tasks.map((task) => `${task}ModelContract`) : called
    return wanted
      .filter(
        (name) =>
          !own.some(
            (source) =>
              isTest(source.path) &&
              ownImportsOf(source).includes(`testing/contracts/${file}.ts`) &&
              source.text.includes(`${name}(`),
          ),
      )
      .map((name) => `provides ${token}, but none of its tests runs ${name} of contracts/${file}`)
  })
}
