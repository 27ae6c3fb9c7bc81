const at = (id) => document.getElementById(id)
const rupiah = new Intl.NumberFormat("id-ID", { style: "currency", currency: "IDR", maximumFractionDigits: 6 })

const cell = (text, className = "") => {
  const td = document.createElement("td")
  td.textContent = text
  td.className = className
  return td
}

const price = ({ pricing = {} }) =>
  Object.entries(pricing)
    .filter(([, amount]) => amount > 0)
    .map(([what, amount]) => `${what.replace(/_idr$/, "").replaceAll("_", " ")} ${rupiah.format(amount)}${/^(in|out)put/.test(what) ? " / 1M" : ""}`)
    .join(", ")

const stateText = (state = {}) => {
  if (state.state === "pulling" && state.total_bytes) return `pulling ${Math.floor((100 * state.done_bytes) / state.total_bytes)} %`
  return [state.state, state.detail ?? state.reason].filter(Boolean).join(": ")
}

const fillChoice = (models) => {
  if (at("model").options.length > 0) return
  for (const model of models.filter((m) => m.capabilities.includes("chat"))) at("model").add(new Option(model.id))
}

const refresh = async () => {
  const [ready, models] = await Promise.all([fetch("/readyz"), fetch("/v1/models")].map(async (reply) => (await reply).json()))
  const states = Object.fromEntries(ready.models.map((model) => [model.id, model]))
  at("overall").textContent = ready.status
  at("overall").className = `badge ${ready.status === "ready" ? "ready" : "loading"}`
  at("models").replaceChildren(
    ...models.data.map((model) => {
      const row = document.createElement("tr")
      const state = states[model.id]
      row.append(cell(model.id), cell(stateText(state), state?.state), cell(model.context_window.toLocaleString()), cell(price(model)))
      return row
    }),
  )
  fillChoice(models.data)
  return ready.status === "ready"
}

/** Server-sent events of one answer, an object each. */
async function* eventsOf(reply) {
  let text = ""
  for await (const piece of reply.body.pipeThrough(new TextDecoderStream())) {
    text += piece
    const blocks = text.split("\n\n")
    text = blocks.pop()
    for (const block of blocks) if (block.startsWith("data: {")) yield JSON.parse(block.slice(6))
  }
}

const send = async () => {
  at("answer").textContent = ""
  at("cost").textContent = ""
  const body = { model: at("model").value, messages: [{ role: "user", content: at("message").value }], stream: true, stream_options: { include_usage: true }, max_tokens: 400 }
  const reply = await fetch("/v1/chat/completions", {
    method: "POST",
    headers: { authorization: `Bearer ${at("key").value.trim()}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  })
  if (!reply.ok) throw new Error((await reply.json()).error.message)
  for await (const event of eventsOf(reply)) {
    if (event.error) throw new Error(event.error.message)
    at("answer").append(event.choices[0]?.delta.content ?? "")
    if (event.usage) at("cost").textContent = `${event.usage.prompt_tokens} + ${event.usage.completion_tokens} tokens, ${rupiah.format(event.usage.cost_idr)}`
  }
}

at("try").addEventListener("submit", async (event) => {
  event.preventDefault()
  const button = event.target.querySelector("button")
  button.disabled = true
  await send().catch((error) => {
    at("answer").textContent = error.message
  })
  button.disabled = false
})

const poll = async () => {
  const ready = await refresh().catch(() => {
    at("overall").textContent = "not reachable"
    return false
  })
  setTimeout(poll, ready ? 15_000 : 1_000)
}
poll()
