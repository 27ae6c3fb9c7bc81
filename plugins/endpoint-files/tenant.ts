import { Effect } from "effect"
import { type ApiError, apiError, type Call, type Tenant } from "../../core/index.ts"

/** A tenant, and the key that it calls with. */
export interface Uploader extends Tenant {
  readonly keyId?: string | undefined
}

/** The call path lets no request through without a key. */
export const tenantOf = <Body>({ caller }: Call<Body>): Effect.Effect<Uploader, ApiError> =>
  caller
    ? Effect.succeed({ ...caller.tenant, keyId: caller.keyId })
    : Effect.fail(apiError("authentication_error"))
