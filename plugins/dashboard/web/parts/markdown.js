import { h } from "preact"
import { useEffect, useMemo, useState } from "preact/hooks"
import { html } from "../html.js"

const isSafe = (href) => /^(https?:|mailto:)/i.test(href)

const plain = (text) => text.replace(/&(amp|lt|gt|quot|#39);/g, (_, name) => entities[name])
const entities = { amp: "&", lt: "<", gt: ">", quot: '"', "#39": "'" }

const inner = ({ tokens, text }) => (tokens ? tokens.map(nodeOf) : plain(text ?? ""))

const link = (token) =>
  isSafe(token.href)
    ? html`<a href=${token.href} target="_blank" rel="noopener noreferrer nofollow">${inner(token)}</a>`
    : inner(token)

const row = (cells, tag) => html`<tr>${cells.map((cell) => h(tag, {}, inner(cell)))}</tr>`

/** Headings of an answer stand below those of the page. */
const headingOf = (depth) => `h${Math.min(6, depth + 2)}`

/** What becomes of a token; markup in an answer is text, and pictures are not fetched. */
const nodes = {
  space: () => null,
  text: inner,
  escape: ({ text }) => plain(text),
  html: ({ text }) => text,
  br: () => h("br"),
  hr: () => h("hr"),
  def: () => null,
  paragraph: (token) => h("p", {}, inner(token)),
  heading: (token) => h(headingOf(token.depth), {}, inner(token)),
  strong: (token) => h("strong", {}, inner(token)),
  em: (token) => h("em", {}, inner(token)),
  del: (token) => h("del", {}, inner(token)),
  codespan: ({ text }) => h("code", {}, text),
  code: ({ text, lang }) =>
    html`<pre class="snippet" tabindex="0" role="region" aria-label=${lang || "code"}><code>${text}</code></pre>`,
  blockquote: (token) => h("blockquote", {}, inner(token)),
  list: ({ ordered, start, items }) =>
    h(ordered ? "ol" : "ul", ordered && start !== 1 ? { start } : {}, items.map(nodeOf)),
  list_item: (token) => h("li", {}, inner(token)),
  checkbox: ({ checked }) => (checked ? "☑ " : "☐ "),
  link,
  image: ({ text, href }) => link({ href, text: text || href }),
  table: ({ header, rows }) =>
    html`<div class="scroll" tabindex="0" role="group"><table><thead>${row(header, "th")}</thead><tbody>${rows.map((cells) => row(cells, "td"))}</tbody></table></div>`,
}

const nodeOf = (token) => (nodes[token.type] ?? (({ raw }) => raw))(token)

/** Preact nodes of marked's tokens: no text ever becomes markup. */
export const nodesOf = (tokens) => tokens.map(nodeOf)

/** The parser takes the square of a paragraph's length: 40,000 characters of `_a` took 11 s. */
const mostOfBlock = 10_000
/** Parser and page go down with each quote in a quote: 3,000 are more than a stack has. */
const mostLevels = 50

const isDeep = (tokens, left) =>
  left === 0 ||
  tokens.some(({ tokens = [], items = [] }) => isDeep(tokens, left - 1) || isDeep(items, left - 1))

/** Preact nodes of a text; undefined where it is not worth parsing: models repeat themselves. */
export const parsed = (lexer, text) => {
  if (text.split(/\n\s*\n/).some((block) => block.length > mostOfBlock)) return undefined
  try {
    const tokens = lexer(text)
    return isDeep(tokens, mostLevels) ? undefined : nodesOf(tokens)
  } catch {
    return undefined
  }
}

let loaded

/** A model's answer. Until the parser is there, and where it can't be used, the text as it came. */
export const Markdown = ({ text }) => {
  const [lexer, setLexer] = useState(() => loaded)
  useEffect(() => {
    import("marked").then(({ lexer }) => {
      loaded = lexer
      setLexer(() => lexer)
    })
  }, [])
  // the messages before are drawn again with each piece of an answer
  const nodes = useMemo(() => lexer && parsed(lexer, text), [lexer, text])
  if (!nodes) return html`<div class="words">${text}</div>`
  return html`<div class="markdown">${nodes}</div>`
}
