const mostTalks = 30
const mostMessages = 200
const titleLength = 60

/** What is kept of a message: no files, which are large, and no errors. */
const keptOf = ({ role, content, thoughts, usage, callId }) => ({
  role,
  content,
  ...(thoughts && { thoughts }),
  ...(usage && { usage }),
  ...(callId && { callId }),
})

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
      const said = messages.filter(({ content, problem }) => content !== "" && !problem)
      if (said.length === 0) return
      const talk = { id, title: titleOf(said), messages: said.slice(-mostMessages).map(keptOf) }
      persisted.write([talk, ...all().filter((one) => one.id !== id)].slice(0, mostTalks))
    },
    forget: (id) => persisted.write(all().filter((one) => one.id !== id)),
  }
}
