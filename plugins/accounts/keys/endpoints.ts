import type { Endpoint } from "../../../core/index.ts"
import type { OpenHouse } from "../house.ts"

/** `/dashboard/keys` and the key of the playground. */
export const keyEndpoints = (_open: OpenHouse): readonly Endpoint[] => []
