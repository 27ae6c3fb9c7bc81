import { Effect } from "effect"
import { type ApiError, apiError, type Call, type Tenant } from "../../core/index.ts"

/** The call path lets no request through without a key. */
export const tenantOf = <Body>({ caller }: Call<Body>): Effect.Effect<Tenant, ApiError> =>
  caller ? Effect.succeed(caller.tenant) : Effect.fail(apiError("authentication_error"))
