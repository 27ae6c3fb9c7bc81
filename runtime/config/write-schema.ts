import { writeFileSync } from "node:fs"
import { configJsonSchema } from "./json-schema.ts"

/** `npm run schema` */
writeFileSync(new URL("../../config/rakit.schema.json", import.meta.url), `${JSON.stringify(await configJsonSchema(), null, 2)}\n`)
