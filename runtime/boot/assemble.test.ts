import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import { afterAll, expect, it } from "vitest"
import { resolve, Tokens } from "../../core/tokens.ts"
import { fakeLog } from "../../testing/index.ts"
import { loadConfig } from "../config/load.ts"
import { assemble } from "./assemble.ts"
import { startDeployment } from "./start.ts"

const folder = mkdtempSync(join(tmpdir(), "rakit-assemble-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

it("gives each of two deployments in one process plugins with a state of their own", async () => {
  const file = join(folder, "rakit.yaml")
  writeFileSync(file, `dataDir: ${folder}\nplugins: { storage-disk: {}, billing-free: {} }\n`)
  const config = loadConfig(file, {})
  const open = Effect.gen(function* () {
    const deployment = yield* assemble(config, "command", fakeLog())
    yield* startDeployment(deployment)
    return deployment
  })
  await Effect.runPromise(
    Effect.scoped(
      Effect.gen(function* () {
        const [one, other] = [yield* open, yield* open]
        const [first, second] = [one, other].map((deployment) => deployment.order[0])
        expect(first?.plugin).toBe(second?.plugin)
        expect(first?.instance).not.toBe(second?.instance)
        const billings = [one, other].map(({ container }) => resolve(container, Tokens.billing))
        expect(billings[0]).not.toBe(billings[1])
      }),
    ),
  )
})
