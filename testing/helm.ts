import { execFileSync } from "node:child_process"
import { existsSync } from "node:fs"
import { homedir } from "node:os"
import { join } from "node:path"
import { parseAllDocuments } from "yaml"

/** The release that .ci/run builds: helm.sh/helm/v3/cmd/helm. */
const version = "v3.19.0"
const chart = join(import.meta.dirname, "../deploy/helm")

/** Where .ci/run keeps the built program; RAKIT_TEST_HELM names another. */
const program = (): string | undefined => {
  const cache = process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache")
  const found = process.env.RAKIT_TEST_HELM ?? join(cache, "rakit", `helm-${version}`, "helm")
  return existsSync(found) ? found : undefined
}

/** Why tests of the chart are left out; undefined where helm is there. */
export const noHelm = (): string | undefined =>
  program() === undefined
    ? `no helm: GOBIN=~/.cache/rakit/helm-${version} go install helm.sh/helm/v3/cmd/helm@${version}`
    : undefined

export const helm = (...args: readonly string[]): string =>
  execFileSync(program()!, args, { encoding: "utf8", stdio: "pipe" })

/** A Kubernetes object, as far as tests read it. */
// biome-ignore lint/suspicious/noExplicitAny: the shape is the kind's
export type Manifest = Record<string, any>

/** The chart's manifests with values as `--set` takes them. */
export const render = (...values: readonly string[]): Manifest[] =>
  parseAllDocuments(
    helm("template", "rakit", chart, ...values.flatMap((value) => ["--set", value])),
  )
    .map((document) => {
      if (document.errors.length > 0) throw document.errors[0]
      return document.toJS() as Manifest | null
    })
    .filter((one) => one !== null)

/** Throws what helm says, warnings included. */
export const lint = (): string => helm("lint", "--strict", chart)
