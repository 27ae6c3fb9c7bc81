/**
 * Chat templates like those of published models: they use the same variables in the same way, in
 * few words of their own.
 */

const start = "<|im_start|>"
const end = "<|im_end|>\\n"

const chatml = `{%- if messages[0].role == 'system' %}{{ '${start}system\\n' + messages[0].content + '${end}' }}{% endif %}`
const hermesTools = `{%- if tools %}
{{- '${start}system\\n' }}
{%- if messages[0].role == 'system' %}{{- messages[0].content + '\\n\\n' }}{%- endif %}
{{- "Tools:\\n<tools>" }}
{%- for tool in tools %}{{- "\\n" }}{{- tool | tojson }}{%- endfor %}
{{- "\\n</tools>\\nCall them as <tool_call>\\n{\\"name\\": <name>, \\"arguments\\": <arguments>}\\n</tool_call>${end}" }}
{%- else %}${chatml}{%- endif %}`

const call = `{%- for tool_call in message.tool_calls %}
{%- if (loop.first and message.content) or not loop.first %}{{- '\\n' }}{%- endif %}
{%- if tool_call.function %}{%- set tool_call = tool_call.function %}{%- endif %}
{{- '<tool_call>\\n{"name": "' + tool_call.name + '", "arguments": ' }}
{%- if tool_call.arguments is string %}{{- tool_call.arguments }}{%- else %}{{- tool_call.arguments | tojson }}{%- endif %}
{{- '}\\n</tool_call>' }}
{%- endfor %}`

const results = `{%- if loop.first or (messages[loop.index0 - 1].role != "tool") %}{{- '${start}user' }}{%- endif %}
{{- '\\n<tool_response>\\n' + message.content + '\\n</tool_response>' }}
{%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}{{- '${end}' }}{%- endif %}`

/** Qwen2.5, Hermes 2 and 3. */
export const hermesTemplate = `${hermesTools}
{%- for message in messages %}
{%- if (message.role == "user") or (message.role == "system" and not loop.first) or (message.role == "assistant" and not message.tool_calls) %}
{{- '${start}' + message.role + '\\n' + message.content + '${end}' }}
{%- elif message.role == "assistant" %}
{{- '${start}assistant\\n' }}{%- if message.content %}{{- message.content }}{%- endif %}${call}{{- '${end}' }}
{%- elif message.role == "tool" %}${results}{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '${start}assistant\\n' }}{%- endif %}`

/** Qwen3: reasoning of earlier turns is left out, and thinking can be turned off. */
export const thinkingTemplate = `${hermesTools}
{%- set ns = namespace(last_query = messages|length - 1, searching = true) %}
{%- for message in messages[::-1] %}
{%- set index = (messages|length - 1) - loop.index0 %}
{%- if ns.searching and message.role == "user" and not(message.content.startswith('<tool_response>') and message.content.endswith('</tool_response>')) %}
{%- set ns.searching = false %}{%- set ns.last_query = index %}
{%- endif %}
{%- endfor %}
{%- for message in messages %}
{%- if (message.role == "user") or (message.role == "system" and not loop.first) %}
{{- '${start}' + message.role + '\\n' + message.content + '${end}' }}
{%- elif message.role == "assistant" %}
{%- set content = message.content %}{%- set reasoning = '' %}
{%- if message.reasoning_content is defined and message.reasoning_content is not none %}{%- set reasoning = message.reasoning_content %}
{%- elif '</think>' in message.content %}{%- set reasoning = content.split('</think>')[0].split('<think>')[-1].strip('\\n') %}{%- set content = content.split('</think>')[-1].lstrip('\\n') %}
{%- endif %}
{{- '${start}assistant\\n' }}
{%- if loop.index0 > ns.last_query and reasoning %}{{- '<think>\\n' + reasoning.strip('\\n') + '\\n</think>\\n\\n' }}{%- endif %}
{{- content }}
{%- if message.tool_calls %}${call}{%- endif %}
{{- '${end}' }}
{%- elif message.role == "tool" %}${results}{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '${start}assistant\\n' }}
{%- if enable_thinking is defined and enable_thinking is false %}{{- '<think>\\n\\n</think>\\n\\n' }}{%- endif %}
{%- endif %}`

/**
 * DeepSeek's distilled models: the prompt always opens the reasoning. Their own call syntax is not
 * supported.
 */
export const alwaysThinkingTemplate = `{%- for message in messages %}
{%- if message['role'] == 'assistant' and message['tool_calls'] %}{{ '<tool_sep>' + message['tool_calls'][0]['function']['arguments'] }}
{%- elif message['role'] == 'assistant' %}{{ 'A:' + message['content'].split('</think>')[-1] + '\\n' }}
{%- else %}{{ message['role'] + ':' + message['content'] + '\\n' }}{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ 'A:<think>\\n' }}{%- endif %}`

/**
 * Llama 3.1 to 3.3: tools in the first message of the user, one call in a message, its result as
 * the environment's.
 */
export const llamaTemplate = `{%- if not tools is defined %}{%- set tools = none %}{%- endif %}
{%- if messages[0]['role'] == 'system' %}{%- set system_message = messages[0]['content']|trim %}{%- set messages = messages[1:] %}
{%- else %}{%- set system_message = "" %}{%- endif %}
{{- "[system]" + system_message + "<|im_end|>" }}
{%- if tools is not none %}
{%- if messages | length != 0 %}{%- set first_user_message = messages[0]['content']|trim %}{%- set messages = messages[1:] %}
{%- else %}{{- raise_exception("there's no first user message!") }}{%- endif %}
{{- '[user]Respond in the format {"name": function name, "parameters": dictionary of argument name and its value}.\\n' }}
{%- for t in tools %}{{- t | tojson(indent=4) }}{{- "\\n\\n" }}{%- endfor %}
{{- first_user_message + "<|im_end|>" }}
{%- endif %}
{%- for message in messages %}
{%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
{{- '[' + message['role'] + ']' + message['content'] | trim + '<|im_end|>' }}
{%- elif 'tool_calls' in message %}
{%- if not message.tool_calls|length == 1 %}{{- raise_exception("This model only supports single tool-calls at once!") }}{%- endif %}
{%- set tool_call = message.tool_calls[0].function %}
{{- '[assistant]{"name": "' + tool_call.name + '", "parameters": ' }}{{- tool_call.arguments | tojson }}{{- "}<|im_end|>" }}
{%- elif message.role == "tool" or message.role == "ipython" %}
{{- "[ipython]" }}{%- if message.content is mapping %}{{- message.content | tojson }}{%- else %}{{- message.content }}{%- endif %}{{- "<|im_end|>" }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '[assistant]' }}{%- endif %}`

/** Mistral 7B v0.3 and Nemo: turns alternate, ids have nine characters. */
export const mistralTemplate = `{%- if messages[0]["role"] == "system" %}{%- set system_message = messages[0]["content"] %}{%- set loop_messages = messages[1:] %}
{%- else %}{%- set loop_messages = messages %}{%- endif %}
{%- if not tools is defined %}{%- set tools = none %}{%- endif %}
{%- set user_messages = loop_messages | selectattr("role", "equalto", "user") | list %}
{%- set ns = namespace() %}{%- set ns.index = 0 %}
{%- for message in loop_messages %}
{%- if not (message.role == "tool" or message.role == "tool_results" or (message.tool_calls is defined and message.tool_calls is not none)) %}
{%- if (message["role"] == "user") != (ns.index % 2 == 0) %}{{- raise_exception("roles must alternate user/assistant") }}{%- endif %}
{%- set ns.index = ns.index + 1 %}
{%- endif %}
{%- endfor %}
{%- for message in loop_messages %}
{%- if message["role"] == "user" %}
{%- if tools is not none and (message == user_messages[-1]) %}{{- "[AVAILABLE_TOOLS]" + (tools | tojson) + "[/AVAILABLE_TOOLS]" }}{%- endif %}
{{- "[INST]" + message["content"] + "[/INST]" }}
{%- elif message.tool_calls is defined and message.tool_calls is not none %}
{{- "[TOOL_CALLS][" }}
{%- for tool_call in message.tool_calls %}
{%- set out = tool_call.function|tojson %}{{- out[:-1] }}
{%- if not tool_call.id is defined or tool_call.id|length != 9 %}{{- raise_exception("Tool call IDs should have length 9!") }}{%- endif %}
{{- ', "id": "' + tool_call.id + '"}' }}{%- if not loop.last %}{{- ", " }}{%- else %}{{- "]<|im_end|>" }}{%- endif %}
{%- endfor %}
{%- elif message["role"] == "assistant" %}{{- message["content"] + "<|im_end|>" }}
{%- elif message["role"] == "tool_results" or message["role"] == "tool" %}
{%- if not message.tool_call_id is defined or message.tool_call_id|length != 9 %}{{- raise_exception("Tool call IDs should have length 9!") }}{%- endif %}
{{- '[TOOL_RESULTS]{"content": ' + message.content|string + ', "call_id": "' + message.tool_call_id + '"}[/TOOL_RESULTS]' }}
{%- else %}{{- raise_exception("unknown role") }}
{%- endif %}
{%- endfor %}`

/** SmolLM2: nothing about tools. */
export const smolTemplate = `{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '${start}system\\nYou are SmolLM.${end}' }}{% endif %}{{'${start}' + message['role'] + '\\n' + message['content'] + '${end}'}}{% endfor %}{% if add_generation_prompt %}{{ '${start}assistant\\n' }}{% endif %}`

/** SmolLM3: tools under another name, calls only as text, two modes. */
export const smol3Template = `{%- if enable_thinking is not defined %}{%- set enable_thinking = true %}{%- endif %}
{{- '${start}system\\n' }}
{%- if messages[0].role == 'system' %}{{- messages[0].content }}{%- endif %}
{%- if xml_tools %}{{- "<tools>\\n" }}{%- for tool in xml_tools %}{{- tool | string }}{{- "\\n" }}{%- endfor %}{{- "</tools>\\nas <tool_call>\\n{}\\n</tool_call>" }}{%- endif %}
{{- '${end}' }}
{%- for message in messages %}
{%- if message.role == "user" %}{{- '${start}user\\n' + message.content + '${end}' }}
{%- elif message.role == "assistant" %}{{- '${start}assistant\\n' }}{%- if not enable_thinking %}{{- '<think>\\n\\n</think>\\n' }}{%- endif %}{{- message.content + '${end}' }}
{%- elif message.role == "tool" %}{{- '${start}user\\n' + message.content + '${end}' }}{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '${start}assistant\\n' }}{%- if not enable_thinking %}{{- '<think>\\n\\n</think>\\n' }}{%- endif %}{%- endif %}`

/** Gemma 2: no system text, turns alternate. */
export const alternatingTemplate = `{%- if messages[0]['role'] == 'system' %}{{- raise_exception('System role not supported') }}{%- endif %}
{%- for message in messages %}
{%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{- raise_exception('Conversation roles must alternate') }}{%- endif %}
{{- '<' + message['role'] + '>' + message['content'] | trim + '<|im_end|>' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<model>' }}{%- endif %}`
