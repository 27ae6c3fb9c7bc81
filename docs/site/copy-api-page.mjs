// The page of the API is Swagger UI, which only the build has: two of its files are copied.
import { cpSync, existsSync, mkdirSync } from "node:fs"

const from = new URL("../../node_modules/swagger-ui-dist/", import.meta.url)
const out = new URL("../../dist/api-page/", import.meta.url)
if (existsSync(from)) {
  mkdirSync(out, { recursive: true })
  for (const file of ["swagger-ui-bundle.js", "swagger-ui.css"])
    cpSync(new URL(file, from), new URL(file, out))
} else console.error("no page of the API: npm install brings swagger-ui-dist")
