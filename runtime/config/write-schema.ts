import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { configJsonSchema } from "./json-schema.ts"

/** Run by `npm run schema`. */
writeFileSync(
  join(import.meta.dirname, "..", "..", "config", "rakit.schema.json"),
  `${JSON.stringify(await configJsonSchema(), null, 2)}\n`,
)
