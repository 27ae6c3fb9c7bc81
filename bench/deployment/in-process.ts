import { Effect, Exit, Scope } from "effect"
import type { CallPath } from "../../core/call/contract.ts"
import type { Caller } from "../../core/caller.ts"
import type { Endpoint } from "../../core/ports/endpoint.ts"
import type { Catalogue } from "../../core/services/catalogue.ts"
import { load } from "./code.ts"
import type { Deployment } from "./deployment.ts"

/**
 * A deployment without its HTTP server, in this process: real plugins, real PostgreSQL, fake
 * models.
 */
export interface DeploymentInProcess {
  readonly caller: Caller
  readonly catalogue: Catalogue
  readonly endpoint: (id: string) => Endpoint
  /** With the deployment's own billing. */
  readonly path: CallPath
  /** The same path with a billing that admits everything and does nothing. */
  readonly pathWithoutBilling: CallPath
  close(): Promise<void>
}

const modules = async () => ({
  ...(await load<typeof import("../../runtime/boot/assemble.ts")>("runtime/boot/assemble")),
  ...(await load<typeof import("../../runtime/boot/kernel.ts")>("runtime/boot/kernel")),
  ...(await load<typeof import("../../runtime/boot/open-models.ts")>("runtime/boot/open-models")),
  ...(await load<typeof import("../../runtime/boot/start.ts")>("runtime/boot/start")),
  ...(await load<typeof import("../../runtime/config/load.ts")>("runtime/config/load")),
  ...(await load<typeof import("../../runtime/services/log.ts")>("runtime/services/log")),
  ...(await load<typeof import("../../core/index.ts")>("core/index")),
})
type Modules = Awaited<ReturnType<typeof modules>>

const pathWithoutBilling = (
  { makeCallPath, makeIds, systemClock, resolve, Tokens }: Modules,
  container: Parameters<Modules["resolve"]>[0],
): CallPath => {
  const billing = {
    admit: () => Effect.succeed({ limit: 60, remaining: 59, resetMs: 1000 }),
    settle: () => Effect.void,
    voidChildren: () => Effect.void,
    balance: () => Effect.succeed({ balanceMicros: 0n, heldMicros: 0n }),
    spentThisMonth: () => Effect.succeed(new Map<string, bigint>()),
    adjust: () => Effect.void,
  }
  return makeCallPath({
    billing: () => billing,
    idempotency: () => undefined,
    catalogue: resolve(container, Tokens.catalogue),
    clock: systemClock,
    ids: makeIds(systemClock.nowMs),
    log: resolve(container, Tokens.log),
    timeoutMs: 60_000,
  })
}

const open = (code: Modules, { config, env, apiKey }: Deployment) =>
  Effect.gen(function* () {
    const { resolve, Tokens } = code
    const deployment = yield* code.assemble(
      code.loadConfig(config, env),
      "all",
      code.makeLog({ level: "silent" }),
    )
    yield* code.makeDataDir(resolve(deployment.container, Tokens.deployment))
    yield* code.startDeployment(deployment)
    yield* code.openModels(deployment, { report: () => {}, done: () => {} })
    const caller = yield* resolve(deployment.container, Tokens.identity).authenticate(apiKey)
    const endpoint = (id: string) => {
      const found = deployment.endpoints.find((one) => one.id === id)
      if (!found) throw new Error(`there is no endpoint ${id}`)
      return found
    }
    return {
      caller,
      endpoint,
      catalogue: resolve(deployment.container, Tokens.catalogue),
      path: resolve(deployment.container, Tokens.callPath),
      pathWithoutBilling: pathWithoutBilling(code, deployment.container),
    }
  })

export const openDeployment = async (deployment: Deployment): Promise<DeploymentInProcess> => {
  const scope = Scope.makeUnsafe()
  const close = () => Effect.runPromise(Scope.close(scope, Exit.void))
  try {
    return {
      ...(await Effect.runPromise(open(await modules(), deployment).pipe(Scope.provide(scope)))),
      close,
    }
  } catch (error) {
    await close()
    throw error
  }
}
