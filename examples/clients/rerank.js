// Cohere's client works as it is; its addresses have no /v1 in front.
import { CohereClientV2 } from "cohere-ai"
import { connection } from "./connection.js"

const { baseURL, apiKey } = connection()
const client = new CohereClientV2({ token: apiKey, environment: baseURL.replace(/\/v1$/, "") })
const documents = [
  "Jakarta is the capital of Indonesia.",
  "Bananas are rich in potassium.",
  "A cat sleeps most of the day.",
]
const { results } = await client.rerank({
  model: "svc-rerank",
  query: "What is the capital of Indonesia?",
  documents,
})
for (const { index, relevanceScore } of results)
  console.log(relevanceScore.toFixed(4), documents[index])
