const tokens = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g

const escaped = (name) => String(name).replaceAll("~", "~0").replaceAll("/", "~1")

/** Where each member and item of a JSON text begins, by its JSON pointer. The text is valid. */
export const placesIn = (text) => {
  const places = new Map([["", 0]])
  const open = []
  const pointer = () => {
    const top = open.at(-1)
    return top ? `${top.pointer}/${escaped(top.isList ? top.index : top.key)}` : ""
  }
  const begin = (token, at) => {
    const top = open.at(-1)
    if (top?.isList) places.set(pointer(), at)
    if (token === "{") open.push({ pointer: pointer(), isList: false, key: undefined })
    if (token === "[") open.push({ pointer: pointer(), isList: true, index: 0 })
  }
  const next = (top) => {
    if (top.isList) top.index += 1
    else top.key = undefined
  }
  for (const { 0: token, index: at } of text.matchAll(tokens)) {
    const top = open.at(-1)
    if (token === "}" || token === "]") open.pop()
    else if (token === ",") next(top)
    else if (token === ":") continue
    else if (top && !top.isList && top.key === undefined) {
      top.key = JSON.parse(token)
      places.set(pointer(), at)
    } else begin(token, at)
  }
  return places
}

/** The line of a place in a text, from 1 on. */
export const lineAt = (text, at) => text.slice(0, at).split("\n").length

const valid =
  /\s*(?:("(?:[^"\\\p{Cc}]|\\(?:["\\/bfnrt]|u[\da-fA-F]{4}))*")|(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)(?![\w.])|[{}[\],:])/uy

const isOpening = (token) => token === "{" || token === "["

/** What may follow: `value`, `item` (or the end of the list), `name`, `member` (a name or the end), `colon`, `after` a value. */
const following = (expected, token, open) => {
  const kind = token.startsWith('"') ? "text" : /^[{}[\],:]$/.test(token) ? token : "scalar"
  if (kind === open.at(-1) && expected !== "value" && expected !== "name" && expected !== "colon")
    return open.pop() && "after"
  if (expected === "colon") return kind === ":" ? "value" : undefined
  if (expected === "name" || expected === "member") return kind === "text" ? "colon" : undefined
  if (expected === "after")
    return kind === "," && open.length > 0 ? (open.at(-1) === "}" ? "name" : "value") : undefined
  if (isOpening(token)) open.push(token === "{" ? "}" : "]")
  if (isOpening(token)) return token === "{" ? "member" : "item"
  return kind === "text" || kind === "scalar" ? "after" : undefined
}

/** The line at which a text stops being JSON; browsers' errors say it or not, each in another way. */
export const lineOfError = (text) => {
  const open = []
  let expected = "value"
  for (let at = 0; ; at = valid.lastIndex) {
    valid.lastIndex = at
    const [found] = valid.exec(text) ?? []
    const token = found?.trim()
    expected = token && following(expected, token, open)
    if (!expected) return lineAt(text, at + /^\s*/.exec(text.slice(at))[0].length)
  }
}
