// Cohere's client works as it is; its addresses have no /v1 in front.
import { CohereClient, CohereClientV2 } from "cohere-ai"
import { connection } from "./connection.js"

const { baseURL, apiKey } = connection()
const options = { token: apiKey, environment: baseURL.replace(/\/v1$/, "") }
const model = "svc-rerank"
const query = "What is the capital of Indonesia?"
const documents = [
  "Jakarta is the capital of Indonesia.",
  "Bananas are rich in potassium.",
  "A cat sleeps most of the day.",
]
const client = new CohereClientV2(options)
const { results } = await client.rerank({ model, query, documents })
for (const { index, relevanceScore } of results)
  console.log(relevanceScore.toFixed(4), documents[index])

// version 1 sends objects, too, and gets them back with all their fields
const reply = await new CohereClient(options).rerank({
  model,
  query,
  documents: documents.map((text, page) => ({ text, page: String(page) })),
  returnDocuments: true,
  topN: 1,
})
console.log(JSON.stringify(reply.results[0].document))
