import { readFileSync, writeFileSync } from "node:fs"
import { parse, stringify } from "yaml"
import { type Deployment, makeDeployment } from "../deployment/deployment.ts"

export const linesAtOnce = 64

/**
 * With only the real embedding model where `modelsDir` has it, else with the fake ones. The worker
 * polls every second, so that its throughput is measured and not its polling interval.
 */
export const makeBatchDeployment = (modelsDir: string | undefined): Deployment => {
  const deployment =
    modelsDir === undefined
      ? makeDeployment({ atOnce: true })
      : makeDeployment({ config: "starter.yaml", env: { RAKIT_MODELS: modelsDir } })
  const { plugins, models, ...deps } = parse(readFileSync(deployment.config, "utf8"))
  // images and sounds of chats have no model here to belong to
  const { "model-smollm2-vision": _, "model-commands": __, ...others } = plugins
  const wanted = models.filter(({ task }: { readonly task: string }) => task === "embed")
  writeFileSync(
    deployment.config,
    stringify({
      ...deps,
      plugins: { ...others, "endpoint-batches": { pollMs: 1_000, linesAtOnce } },
      models: wanted,
    }),
  )
  return deployment
}

const words =
  "kapal pasar hujan buku jalan laut guru padi kota pagi malam angin rumah sungai gunung teman".split(
    " ",
  )

/**
 * The embedded texts: sentences of 8 to 24 words, 33 tokens in the median, or paragraphs of 20 to
 * 60 words, 79 tokens.
 */
export type TextKind = "sentence" | "paragraph"

const fewestWords = { sentence: 8, paragraph: 20 }

/** The n-th text; all texts differ. */
export const textOf = (kind: TextKind, n: number): string => {
  const fewest = fewestWords[kind]
  const count = fewest + (n % (2 * fewest + 1))
  return `${Array.from({ length: count }, (_, i) => words[(n * (i + 7) + i * i) % words.length]).join(" ")} ${n}`
}
