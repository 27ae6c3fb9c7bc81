import { readFileSync, writeFileSync } from "node:fs"
import { parse, stringify } from "yaml"
import { type Deployment, makeDeployment } from "../house/deployment.ts"

export const linesAtOnce = 32

/** With the real embedding model alone where models lie in `modelsDir`, else with the fake ones. The worker looks often: its pace is measured, not its patience. */
export const makeBatchDeployment = (modelsDir: string | undefined): Deployment => {
  const deployment = modelsDir === undefined ? makeDeployment({ atOnce: true }) : makeDeployment({ config: "starter.yaml", env: { RAKIT_MODELS: modelsDir } })
  const { plugins, models, ...house } = parse(readFileSync(deployment.config, "utf8"))
  const wanted = models.filter(({ task }: { readonly task: string }) => task === "embed")
  writeFileSync(deployment.config, stringify({ ...house, plugins: { ...plugins, "endpoint-batches": { pollMs: 50, linesAtOnce } }, models: wanted }))
  return deployment
}

const words = "kapal pasar hujan buku jalan laut guru padi kota pagi malam angin rumah sungai gunung teman".split(" ")

/** Texts of 8 to 24 words, each another. */
export const textOf = (n: number): string => `${Array.from({ length: 8 + (n % 17) }, (_, i) => words[(n * (i + 7) + i * i) % words.length]).join(" ")} ${n}`
