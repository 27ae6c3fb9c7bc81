import { createHash } from "node:crypto"
import { ownFiles, packageFiles, packageStyle } from "./asset-list.ts"
import { type Asset, assetRoot, makeAsset } from "./assets.ts"

const importMap = JSON.stringify({
  imports: Object.fromEntries(
    Object.entries(packageFiles).map(([name, file]) => [name, `${assetRoot}/${file}`]),
  ),
})

const styles = [...ownFiles.filter((name) => name.endsWith(".css")), packageStyle]
// the chart's module is loaded by the views that draw one
const early = [
  ...ownFiles.filter((name) => name.endsWith(".js")),
  packageFiles.preact,
  packageFiles["preact/hooks"],
  packageFiles.htm,
]

const page = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Rakit</title>
<link rel="icon" type="image/svg+xml" href="${assetRoot}/icon.svg">
${styles.map((name) => `<link rel="stylesheet" href="${assetRoot}/${name}">`).join("\n")}
<script type="importmap">${importMap}</script>
${early.map((name) => `<link rel="modulepreload" href="${assetRoot}/${name}">`).join("\n")}
<script type="module" src="${assetRoot}/main.js"></script>
</head>
<body>
<div id="app"></div>
<noscript>This page needs JavaScript. The API works without: <a href="/openapi.json">openapi.json</a></noscript>
</body>
</html>
`

export const makePage = (): Asset => makeAsset("page.html", Buffer.from(page))

/**
 * Only this server's files run, and only its API is called; the one inline script is the import
 * map, by its hash. No string ever becomes markup (trusted types).
 */
export const contentSecurityPolicy = [
  "default-src 'none'",
  `script-src 'self' 'sha256-${createHash("sha256").update(importMap).digest("base64")}'`,
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
