import type { Endpoint } from "../../../core/index.ts"
import type { OpenHouse } from "../house.ts"

/** Sign-up, sign-in, and what mails lead to. */
export const sessionEndpoints = (_open: OpenHouse): readonly Endpoint[] => []
