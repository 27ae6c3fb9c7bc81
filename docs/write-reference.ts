import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { configPage } from "./config-page.ts"
import { metricsPage } from "./metrics-page.ts"
import { modelsPage, withMemoryLine } from "./models-page.ts"
import { readyMadeFiles, readyMadeFolder } from "./ready-made.ts"
import { errorsPage, eventsPage } from "./reference.ts"
import { troubleshootingPage } from "./troubleshooting-page.ts"

/** `npm run docs` */
writeFileSync(join(import.meta.dirname, "events.md"), eventsPage())
writeFileSync(join(import.meta.dirname, "config-reference.md"), configPage())
writeFileSync(join(import.meta.dirname, "troubleshooting.md"), troubleshootingPage())
writeFileSync(join(import.meta.dirname, "errors.md"), errorsPage())
writeFileSync(join(import.meta.dirname, "metrics.md"), metricsPage())
for (const file of readyMadeFiles) writeFileSync(join(readyMadeFolder, file), withMemoryLine(file))
writeFileSync(join(import.meta.dirname, "models.md"), modelsPage())
