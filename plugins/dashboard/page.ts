import { type Asset, assetRoot, makeAsset } from "./assets.ts"

/** The address of the file that the bundler made of an entry. */
const addressOf = (assets: ReadonlyMap<string, Asset>, entry: string): string => {
  const name = [...assets.keys()].find((one) => one.startsWith(`${entry}-`))
  if (name === undefined) throw new Error(`the dashboard's bundle has no '${entry}'`)
  return `${assetRoot}/${name}`
}

export const makePage = (assets: ReadonlyMap<string, Asset>): Asset => {
  const of = (entry: string) => addressOf(assets, entry)
  const page = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Rakit</title>
<link rel="icon" type="image/svg+xml" href="${of("icon")}">
<link rel="stylesheet" href="${of("styles")}">
<script type="module" src="${of("main")}"></script>
</head>
<body>
<div id="app"></div>
<noscript>This page needs JavaScript. The API works without: <a href="/openapi.json">openapi.json</a></noscript>
</body>
</html>
`
  return makeAsset("page.html", Buffer.from(page))
}

/** Only this server's files run, and only its API is called. No string ever becomes markup (trusted types). */
export const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  // previews of what is attached in the playground
  "img-src 'self' blob:",
  "connect-src 'self'",
  "form-action 'none'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join("; ")
