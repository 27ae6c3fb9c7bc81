import { createHash } from "node:crypto"
import { type ApiError, errorBody, type Json } from "../../../core/index.ts"

/** A line's id, the same whenever it runs again. */
export const lineId = (batch: string, line: number): string =>
  `batch_req_${createHash("sha256").update(`${batch} ${line}`).digest("hex").slice(0, 24)}`

/** A line of the output file. */
export const outputLine = (id: string, customId: string, statusCode: number, body: Json): string =>
  JSON.stringify({
    id,
    custom_id: customId,
    response: { status_code: statusCode, body },
    error: null,
  })

/** A line of the error file. A line that can't be read has no `custom_id`. */
export const errorLine = (id: string, customId: string | null, error: ApiError): string =>
  JSON.stringify({ id, custom_id: customId, response: null, error: errorBody(error) })
