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

const order = ["chat", "embeddings", "rerank", "images", "audio", "retrieval", "files", "batches"]
const place = (tag) => (order.indexOf(tag) + order.length + 1) % (order.length + 1)

const answer = await fetch("/openapi.json")
const spec = withExamples(await answer.json())
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
