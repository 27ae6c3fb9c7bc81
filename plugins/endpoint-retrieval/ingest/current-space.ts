import { Effect } from "effect"
import type { ApiError, LoadedModel, Tenant } from "../../../core/index.ts"
import type { VectorSpace } from "../vectors/vector-store.ts"
import { embedTexts } from "./embed-texts.ts"
import type { IngestDeps } from "./ingest-deps.ts"

const probed = new WeakMap<LoadedModel, VectorSpace>()
const nobody: Tenant = { account: "", mode: "live" }

/** Where the model of the settings puts its vectors now: only a vector tells how long they are. */
export const currentSpace = (
  deps: Pick<IngestDeps, "catalogue" | "clock" | "ids" | "settings">,
): Effect.Effect<VectorSpace, ApiError> =>
  Effect.gen(function* () {
    const loaded = yield* deps.catalogue.open("embed", deps.settings.model)
    const known = probed.get(loaded)
    if (known) return known
    const { space } = yield* embedTexts(deps, nobody, ["a"])
    probed.set(loaded, space)
    return space
  })
