import { builtFolder, loadFolder, ownFolder, type ServedFile, servedFile } from "./files.ts"

/** The page of the API: Swagger UI over /openapi.json, all of it from this server. */
const htmlOf = (hasGuide: boolean) => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Rakit API</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/docs/assets/swagger-ui.css">
<link rel="stylesheet" href="/docs/assets/page.css">
<script src="/docs/assets/swagger-ui-bundle.js" defer></script>
<script type="module" src="/docs/assets/page.js"></script>
</head>
<body>
<header>
<h1>Rakit API</h1>
<nav>${hasGuide ? '<a href="/docs/guide">Guide</a> ' : ""}<a href="/dashboard">Dashboard</a> <a href="/openapi.json">openapi.json</a> <a id="operations" href="/docs?all">All operations, the dashboard's too</a></nav>
<p>Press <b>Authorize</b> and enter an API key; then every example runs with it. The key stays in this page and is forgotten with it.</p>
</header>
<main id="api"><noscript>This page needs JavaScript. <a href="/openapi.json">openapi.json</a> says the same.</noscript></main>
</body>
</html>
`

export interface ApiPage {
  readonly page: ServedFile
  readonly files: ReadonlyMap<string, ServedFile>
}

/** @returns undefined where the build has left no Swagger UI. */
export const makeApiPage = (hasGuide: boolean): ApiPage | undefined => {
  const built = loadFolder(builtFolder("api-page"))
  if (!built.has("swagger-ui-bundle.js")) return undefined
  const page = servedFile("page.html", Buffer.from(htmlOf(hasGuide)))!
  return { page, files: new Map([...built, ...loadFolder(ownFolder)]) }
}
