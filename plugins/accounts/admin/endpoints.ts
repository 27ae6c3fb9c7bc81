import type { Endpoint } from "../../../core/index.ts"
import type { OpenHouse } from "../house.ts"

/** `/admin/*`. */
export const adminEndpoints = (_open: OpenHouse): readonly Endpoint[] => []
