/** Bodies that run on the starter's models, by method and path. */
const examples = {
  "post /v1/chat/completions": {
    model: "svc-lyt",
    messages: [{ role: "user", content: "Why is the sky blue?" }],
    max_tokens: 64,
  },
  "post /v1/embeddings": { model: "svc-embed", input: ["a red apple", "a green pear"] },
  "post /v1/rerank": {
    model: "svc-rerank",
    query: "How long is the warranty?",
    documents: ["The warranty lasts two years.", "The device is blue."],
  },
  "post /v1/images/generations": { model: "svc-iris", prompt: "a red apple" },
  "post /v1/retrieval": { query: "How long is the warranty?", top_k: 3 },
}

/** Puts an example that runs into every operation that has one. */
const withExamples = (document) => {
  for (const [place, example] of Object.entries(examples)) {
    const [method, path] = place.split(" ")
    const content = document.paths[path]?.[method]?.requestBody?.content?.["application/json"]
    if (content) content.example = example
  }
  return document
}

/** Tags of what pages, administrators and payment providers call. */
const ofOthers = new Set(["dashboard", "admin", "docs", "hooks"])

/** Names of the schemas that a part of the document refers to. */
const namesIn = (part) =>
  [...JSON.stringify(part).matchAll(/"#\/components\/schemas\/([^"]+)"/g)].map(([, name]) => name)

/** Leaves out what no operation refers to, directly or through another schema. */
const withNeededSchemas = (document) => {
  const { schemas } = document.components
  const needed = new Set(namesIn(document.paths))
  // a set's iteration goes on through what is added meanwhile
  for (const name of needed) for (const other of namesIn(schemas[name])) needed.add(other)
  const kept = Object.entries(schemas).filter(([name]) => needed.has(name))
  document.components.schemas = Object.fromEntries(kept)
  return document
}

/**
 * Leaves what a client with an API key calls: Swagger UI resolves the whole document before it can be
 * used, and more than half of it is what others call.
 */
const forClients = (document) => {
  for (const [path, operations] of Object.entries(document.paths)) {
    const kept = Object.entries(operations).filter(
      ([, { tags = [] }]) => !tags.some((tag) => ofOthers.has(tag)),
    )
    if (kept.length) document.paths[path] = Object.fromEntries(kept)
    else delete document.paths[path]
  }
  document.tags = document.tags?.filter(({ name }) => !ofOthers.has(name))
  const { apiKey } = document.components.securitySchemes
  document.components.securitySchemes = { apiKey }
  return withNeededSchemas(document)
}

const order = ["chat", "embeddings", "rerank", "images", "audio", "retrieval", "files", "batches"]
const place = (tag) => (order.indexOf(tag) + order.length + 1) % (order.length + 1)

const answer = await fetch("/openapi.json")
const showsAll = new URLSearchParams(location.search).has("all")
const whole = withExamples(await answer.json())
const spec = showsAll ? whole : forClients(whole)
if (showsAll) {
  const other = document.querySelector("#operations")
  other.href = "/docs"
  other.textContent = "Clients' operations only"
}
// the server that serves this page, by whatever name it was reached
spec.servers = [{ url: location.origin }]
globalThis.ui = globalThis.SwaggerUIBundle({
  spec,
  dom_id: "#api",
  deepLinking: true,
  docExpansion: "list",
  defaultModelsExpandDepth: -1,
  // what a client calls first stands first
  tagsSorter: (a, b) => place(a) - place(b),
  filter: true,
  tryItOutEnabled: true,
  persistAuthorization: false,
  requestSnippetsEnabled: true,
  validatorUrl: null,
})
