import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { build } from "vitepress"
import { forSite, pages, root } from "./pages.ts"

/**
 * Run by `npm run docs:site`: the guide into `dist/guide`, where the plugin `docs` serves it.
 */
const staged = join(root, "dist", "guide-pages")
const out = join(root, "dist", "guide")

const write = (path, text) => {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
}

const home = `---
layout: home
hero:
  name: Rakit
  text: One process, one config file, an OpenAI-style API
  tagline: Chat, embeddings, rerank, images, transcription, retrieval, batches; accounts, limits and signed receipts.
  actions:
    - { theme: brand, text: Quickstart, link: /quickstart }
    - { theme: alt, text: Config reference, link: /config-reference }
    - { theme: alt, text: API guide, link: /api-guide }
---
`

const stage = () => {
  rmSync(staged, { recursive: true, force: true })
  write(join(staged, "index.md"), home)
  for (const [source, page] of pages) {
    const text = forSite(source, readFileSync(join(root, source), "utf8"), (image) =>
      cpSync(join(root, image), join(staged, "public", image)),
    )
    write(join(staged, page), text)
  }
  cpSync(join(root, "plugins/dashboard/web/icon.svg"), join(staged, "public/icon.svg"))
  const settings = JSON.stringify(join(root, "docs/site/config.mjs"))
  write(
    join(staged, ".vitepress/config.ts"),
    `import { siteConfig } from ${settings}\nexport default siteConfig(${JSON.stringify(out)})\n`,
  )
}

stage()
rmSync(out, { recursive: true, force: true })
await build(staged)
rmSync(staged, { recursive: true, force: true })
