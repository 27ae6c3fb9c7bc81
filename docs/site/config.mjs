import { createHash } from "node:crypto"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { sidebar } from "./sidebar.ts"

/** Colours of code by classes: the guide's policy allows no inline styles. */
const classes = new Map()
const classOf = (style) => {
  const name = `c${createHash("sha256").update(style).digest("hex").slice(0, 8)}`
  classes.set(name, style)
  return name
}
const styleToClass = (element) => {
  const { style } = element.properties
  if (style === undefined) return
  const text =
    typeof style === "string"
      ? style
      : Object.entries(style)
          .map(([key, value]) => `${key}:${value}`)
          .join(";")
  element.properties.class = `${element.properties.class ?? ""} ${classOf(text)}`.trim()
  delete element.properties.style
}

/** Settings of VitePress; `out` is the folder of the site. */
export const siteConfig = (out) => ({
  title: "Rakit",
  description: "A plugin-based inference server",
  base: "/docs/guide/",
  outDir: out,
  cleanUrls: true,
  metaChunk: true,
  // it would write a style element each time
  appearance: { disableTransition: false },
  // links to other pages are checked; what runs on the reader's machine is not
  ignoreDeadLinks: "localhostLinks",
  head: [
    ["link", { rel: "stylesheet", href: "/docs/guide/code.css" }],
    ["link", { rel: "icon", href: "/docs/guide/icon.svg", type: "image/svg+xml" }],
  ],
  markdown: {
    // `<dataDir>` in a sentence is no element
    html: false,
    config: (md) => {
      md.core.ruler.push("aligned-by-class", (state) => {
        for (const token of state.tokens) {
          const side = /^text-align:(\w+)/.exec(token.attrGet("style") ?? "")?.[1]
          if (side === undefined) continue
          token.attrs = token.attrs.filter(([name]) => name !== "style")
          token.attrJoin("class", side)
        }
      })
    },
    codeTransformers: [
      {
        name: "style-to-class",
        pre: styleToClass,
        span: styleToClass,
      },
    ],
  },
  themeConfig: {
    sidebar,
    outline: [2, 3],
    search: { provider: "local" },
  },
  // what the theme writes into pages; the scripts of the page set it again
  transformHtml: (html) =>
    html
      .replaceAll(' style="position:relative;"', " data-relative")
      .replaceAll(/ style="(--vp-vh:0px;)?"/g, ""),
  buildEnd: () => {
    const rules = [...classes].map(([name, style]) => `.${name}{${style}}`).sort()
    rules.push(".right{text-align:right}", ".center{text-align:center}")
    rules.push("[data-relative]{position:relative}", ".vp-doc table{font-size:13px}")
    // tables of settings have long cells
    rules.push(".vp-doc td,.vp-doc th{padding:6px 10px}", ".vp-doc td{min-width:90px}")
    writeFileSync(join(out, "code.css"), `${rules.join("\n")}\n`)
  },
})
