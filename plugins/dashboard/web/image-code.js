import { indented, python, shellQuoted } from "./chat-request.js"
import { curlOf, javascriptClient, pythonClient } from "./play-request.js"

const lookFields = ["lora", "lora_strength"]
/** OpenAI's client in Python takes these, and all others as `extra_body`. */
const pythonFields = ["model", "prompt", "size"]

const pick = (body, keep) => Object.fromEntries(Object.entries(body).filter(([name]) => keep(name)))

const moved = (text, spaces) => text.replaceAll("\n", `\n${spaces}`)

const curlForm = (address, body, names) => {
  const quoted = (name) => `"${name.replace(/["\\]/g, "\\$&")}"`
  const parts = [
    ...names.map((name) => `-F ${shellQuoted(`image[]=@${quoted(name)}`)}`),
    ...Object.entries(body).map(
      ([field, value]) => `--form-string ${shellQuoted(`${field}=${value}`)}`,
    ),
  ]
  return [`curl ${address}`, '-H "Authorization: Bearer $RAKIT_API_KEY"', ...parts].join(" \\\n  ")
}

const curlCode = (base, bodies, names) =>
  bodies
    .map((body, at) => {
      const call = names.length
        ? curlForm(`${base}/images/edits`, body, names)
        : curlOf(`${base}/images/generations`, body)
      const file = bodies.length > 1 ? `picture-${at + 1}.png` : "picture.png"
      return `${call} |\n  jq -r '.data[0].b64_json' | base64 -d > ${file}`
    })
    .join("\n\n")

const javascriptCall = (names, body) => {
  const files = names.map((name) => `createReadStream(${JSON.stringify(name)})`).join(", ")
  return names.length
    ? `client.images.edit({ image: [${files}], ...${body} })`
    : `client.images.generate(${body})`
}

const javascriptCode = (base, bodies, names) => {
  const head = `import { ${names.length ? "createReadStream, " : ""}writeFileSync } from "node:fs"
${javascriptClient(base)}
`
  const save = (file) => `writeFileSync(${file}, Buffer.from(reply.data[0].b64_json, "base64"))`
  if (bodies.length === 1)
    return `${head}const picture = ${indented(bodies[0], "")}
const reply = await ${javascriptCall(names, "picture")}
${save('"picture.png"')}`
  const looks = bodies.map((body) => pick(body, (name) => lookFields.includes(name)))
  const rest = pick(bodies[0], (name) => !lookFields.includes(name))
  return `${head}const picture = ${indented(rest, "")}
const looks = ${indented(looks, "")}
for (const [at, look] of looks.entries()) {
  const reply = await ${javascriptCall(names, "{ ...picture, ...look }")}
  ${save("`picture-${at + 1}.png`")}
}`
}

const pythonCall = (body, names, further) => {
  const files = names.map((name) => `open(${JSON.stringify(name)}, "rb")`).join(", ")
  const own = pick(body, (name) => pythonFields.includes(name))
  const lines = [
    ...(names.length ? [`image=[${files}]`] : []),
    ...Object.entries(own).map(([name, value]) => `${name}=${python(value)}`),
    `extra_body=${further}`,
  ]
  const name = names.length ? "edit" : "generate"
  return `reply = client.images.${name}(\n${lines.map((line) => `    ${moved(line, "    ")},\n`).join("")})`
}

const pythonCode = (base, bodies, names) => {
  const head = `import base64\n${pythonClient(base)}`
  const save = (file) => `with open(${file}, "wb") as file:
    file.write(base64.b64decode(reply.data[0].b64_json))`
  const further = pick(bodies[0], (name) => !pythonFields.includes(name))
  if (bodies.length === 1)
    return `${head}\n${pythonCall(bodies[0], names, python(further))}\n${save('"picture.png"')}`
  const looks = bodies.map((body) => pick(body, (name) => lookFields.includes(name)))
  const common = pick(further, (name) => !lookFields.includes(name))
  const loop = `${pythonCall(bodies[0], names, "{**common, **look}")}
${save('f"picture-{at + 1}.png"')}`
  return `${head}
common = ${python(common)}
looks = ${python(looks)}
for at, look in enumerate(looks):
    ${moved(loop, "    ")}`
}

/** The calls in three languages, by their names. `bodies` without their images; `names`: the images' files. */
export const imageCode = (base, bodies, names) => ({
  curl: curlCode(base, bodies, names),
  JavaScript: javascriptCode(base, bodies, names),
  Python: pythonCode(base, bodies, names),
})
