import { isSaid } from "./chat-tools.js"

const mostTalks = 30
const mostMessages = 200
const titleLength = 60

/** What is kept of a message: no files, which are large, and no errors. */
const keptOf = (message) => {
  const { role, content, thoughts, usage, callId, toolCalls, toolCallId, name, finish } = message
  return {
    role,
    content,
    ...(toolCalls?.length && { toolCalls }),
    ...(toolCallId && { toolCallId, name }),
    ...(finish && { finish }),
    ...(thoughts && { thoughts }),
    ...(usage && { usage }),
    ...(callId && { callId }),
  }
}

/** The newest ones; results whose calls fell off belong to nothing. */
const newestOf = (messages) => {
  const kept = messages.slice(-mostMessages)
  const first = kept.findIndex(({ role }) => role !== "tool")
  return kept.slice(Math.max(first, 0))
}

export const titleOf = (messages) => {
  const { content = "" } = messages.find(({ role }) => role === "user") ?? {}
  return content.replace(/\s+/g, " ").trim().slice(0, titleLength) || "–"
}

/** Conversations `{ id, title, messages }` in this browser, the newest first, by account. */
export const makeTalks = ({ persisted, makeId }) => {
  const all = () => {
    const kept = persisted.read()
    return Array.isArray(kept) ? kept : []
  }
  return {
    all,
    makeId,
    keep: (id, messages) => {
      const said = messages.filter(isSaid)
      if (said.length === 0) return
      const talk = { id, title: titleOf(said), messages: newestOf(said).map(keptOf) }
      persisted.write([talk, ...all().filter((one) => one.id !== id)].slice(0, mostTalks))
    },
    forget: (id) => persisted.write(all().filter((one) => one.id !== id)),
  }
}
