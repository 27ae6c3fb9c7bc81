import type { Json } from "../../../core/json.ts"

/** One server-sent event (WHATWG HTML, section 9.2). JSON text has no line breaks, so one `data:` line is enough. */
export const frame = (event: Json): string => `data: ${JSON.stringify(event)}\n\n`
export const pingFrame = ": ping\n\n"
export const doneFrame = "data: [DONE]\n\n"
