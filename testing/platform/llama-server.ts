import { spawn } from "node:child_process"
import { once } from "node:events"
import { createServer } from "node:net"
import { expect, vi } from "vitest"

const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, "127.0.0.1")
  await once(server, "listening")
  const { port } = server.address() as { readonly port: number }
  server.close()
  await once(server, "close")
  return port
}

/** The model's own template has no place for tools. This one has, in the form of Hermes 2 Pro. */
export const toolTemplate = `{%- if tools %}{{- '<|im_start|>system\\nCall functions of <tools>' }}
{%- for tool in tools %}{{- '\\n' + (tool | tojson) }}{%- endfor %}
{{- '\\n</tools> so:\\n<tool_call>\\n{"name": <name>, "arguments": <object>}\\n</tool_call>' }}
{{- '<|im_end|>\\n' }}{%- endif %}
{%- for message in messages %}
{%- if message.role == 'tool' %}
{{- '<|im_start|>user\\n<tool_response>\\n' + message.content + '\\n</tool_response><|im_end|>\\n' }}
{%- else %}{{- '<|im_start|>' + message.role + '\\n' }}
{%- if message.content %}{{- message.content }}{%- endif %}
{%- for call in message.tool_calls or [] %}
{{- '\\n<tool_call>\\n{"name": "' + call.function.name + '", "arguments": ' }}
{{- call.function.arguments | tojson }}{{- '}\\n</tool_call>' }}
{%- endfor %}{{- '<|im_end|>\\n' }}{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}`

/** A server of llama.cpp with two slots of 2,048 tokens. Returns when it has its model. */
export const startLlama = async (
  program: string,
  model: string,
  more: readonly string[] = [],
): Promise<{ readonly url: string; kill(): void }> => {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const sizes = ["-c", "4096", "-np", "2", "-t", "1"]
  const place = ["--host", "127.0.0.1", "--port", String(port), "--alias", "smollm2"]
  const args = ["-m", model, "--jinja", ...sizes, ...place, ...more]
  const server = spawn(program, args, { stdio: "ignore" })
  await vi.waitFor(async () => expect((await fetch(`${url}/health`)).status).toBe(200), {
    timeout: 60_000,
  })
  return { url, kill: () => void server.kill("SIGKILL") }
}
