"""Every example, through the classes that openapi-python-client makes of /openapi.json."""

import io
import json
import os
import time
from typing import TypeVar

from rakit_client import AuthenticatedClient, Client
from rakit_client.api.batches import batches_create, batches_list, batches_retrieve
from rakit_client.api.chat import chat_completions
from rakit_client.api.dashboard import dashboard_keys_list, dashboard_usage
from rakit_client.api.embeddings import embeddings
from rakit_client.api.files import files_content, files_create, files_list
from rakit_client.api.models import models_list
from rakit_client.api.receipts import receipts_get
from rakit_client.api.rerank import rerank
from rakit_client.api.uploads import uploads_complete, uploads_create, uploads_parts_create
from rakit_client.api.webhooks import webhooks_create, webhooks_delete
from rakit_client.models.api_key_list import ApiKeyList
from rakit_client.models.batch import Batch
from rakit_client.models.batch_list import BatchList
from rakit_client.models.chat_completion import ChatCompletion
from rakit_client.models.chat_completion_chunk import ChatCompletionChunk
from rakit_client.models.chat_completion_request import ChatCompletionRequest
from rakit_client.models.chat_completion_request_stream_options import (
    ChatCompletionRequestStreamOptions,
)
from rakit_client.models.chat_message import ChatMessage
from rakit_client.models.chat_message_role import ChatMessageRole
from rakit_client.models.complete_upload import CompleteUpload
from rakit_client.models.create_batch import CreateBatch
from rakit_client.models.create_upload import CreateUpload
from rakit_client.models.create_webhook import CreateWebhook
from rakit_client.models.deleted_webhook import DeletedWebhook
from rakit_client.models.dry_run import DryRun
from rakit_client.models.embeddings_request import EmbeddingsRequest
from rakit_client.models.embeddings_response import EmbeddingsResponse
from rakit_client.models.error_detail_code import ErrorDetailCode
from rakit_client.models.error_envelope import ErrorEnvelope
from rakit_client.models.file import File as StoredFile
from rakit_client.models.file_form import FileForm
from rakit_client.models.file_form_purpose import FileFormPurpose
from rakit_client.models.file_list import FileList
from rakit_client.models.files_list_order import FilesListOrder
from rakit_client.models.files_list_purpose import FilesListPurpose
from rakit_client.models.image_block import ImageBlock
from rakit_client.models.image_block_image_url import ImageBlockImageUrl
from rakit_client.models.json_schema_format import JsonSchemaFormat
from rakit_client.models.json_schema_type_0 import JsonSchemaType0
from rakit_client.models.model_list import ModelList
from rakit_client.models.new_webhook import NewWebhook
from rakit_client.models.receipt import Receipt
from rakit_client.models.rerank_request import RerankRequest
from rakit_client.models.rerank_response import RerankResponse
from rakit_client.models.response_format_json_schema import ResponseFormatJsonSchema
from rakit_client.models.text_block import TextBlock
from rakit_client.models.tool import Tool
from rakit_client.models.tool_choice_function import ToolChoiceFunction
from rakit_client.models.tool_choice_function_function import ToolChoiceFunctionFunction
from rakit_client.models.tool_function import ToolFunction
from rakit_client.models.tool_parameters import ToolParameters
from rakit_client.models.upload import Upload
from rakit_client.models.upload_part import UploadPart
from rakit_client.models.upload_part_form import UploadPartForm
from rakit_client.models.usage import Usage
from rakit_client.types import UNSET, File, Unset

url = os.environ["RAKIT_URL"]
client = AuthenticatedClient(base_url=url, token=os.environ["RAKIT_KEY"])
session = AuthenticatedClient(base_url=url, token=os.environ["RAKIT_SESSION"])

A = TypeVar("A")


def of(kind: type[A], reply: object) -> A:
    assert isinstance(reply, kind), reply
    return reply


def code_of(reply: object) -> ErrorDetailCode:
    return of(ErrorEnvelope, reply).error.code


model = "svc-lyt"
messages = [ChatMessage(role=ChatMessageRole.USER, content="one two three")]

# a chat, and its receipt
answer = chat_completions.sync_detailed(
    client=client,
    body=ChatCompletionRequest(model=model, messages=messages, max_tokens=20, stop=["\n"]),
    idempotency_key=os.urandom(8).hex(),
)
completion = of(ChatCompletion, answer.parsed)
assert completion.choices[0].message.content == "one two three"
assert completion.usage.cost_idr > 0
of(Receipt, receipts_get.sync(answer.headers["x-call-id"], client=client))

# a stream
request = ChatCompletionRequest(
    model=model,
    messages=messages,
    stream=True,
    stream_options=ChatCompletionRequestStreamOptions(include_usage=True),
)
chunks: list[ChatCompletionChunk] = []
with client.get_httpx_client().stream(
    "POST", "/v1/chat/completions", json=request.to_dict()
) as stream:
    for line in stream.iter_lines():
        if line.startswith("data: {"):
            chunks.append(ChatCompletionChunk.from_dict(json.loads(line.removeprefix("data: "))))
said = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices]
assert "".join(text for text in said if not isinstance(text, Unset)) == "one two three"
assert chunks[-1].usage is not UNSET

# tools
parameters = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
}
called = of(
    ChatCompletion,
    chat_completions.sync(
        client=client,
        body=ChatCompletionRequest(
            model=model,
            messages=messages,
            tools=[
                Tool(
                    type_="function",
                    function=ToolFunction(
                        name="get_weather", parameters=ToolParameters.from_dict(parameters)
                    ),
                )
            ],
            tool_choice=ToolChoiceFunction(
                type_="function", function=ToolChoiceFunctionFunction(name="get_weather")
            ),
        ),
    ),
)
calls = called.choices[0].message.tool_calls
assert not isinstance(calls, Unset) and calls[0].function.name == "get_weather"

# structured output
structured = of(
    ChatCompletion,
    chat_completions.sync(
        client=client,
        body=ChatCompletionRequest(
            model=model,
            messages=messages,
            response_format=ResponseFormatJsonSchema(
                type_="json_schema",
                json_schema=JsonSchemaFormat(
                    name="city", schema=JsonSchemaType0.from_dict(parameters), strict=True
                ),
            ),
        ),
    ),
)
assert json.loads(structured.choices[0].message.content or "") == {"city": "sample"}

# an image, which is refused by name
seen = chat_completions.sync(
    client=client,
    body=ChatCompletionRequest(
        model=model,
        messages=[
            ChatMessage(
                role=ChatMessageRole.USER,
                content=[
                    TextBlock(type_="text", text="What is this?"),
                    ImageBlock(
                        type_="image_url",
                        image_url=ImageBlockImageUrl(url="https://example.com/cat.png"),
                    ),
                ],
            )
        ],
    ),
)
assert code_of(seen) == ErrorDetailCode.UNSUPPORTED_PARAMETER

# embeddings and rerank
vectors = of(
    EmbeddingsResponse,
    embeddings.sync(client=client, body=EmbeddingsRequest(model="svc-embed", input_=["a", "b"])),
)
assert len(vectors.data) == 2
ranked = of(
    RerankResponse,
    rerank.sync(
        client=client,
        body=RerankRequest(model="svc-rerank", query="a", documents=["a", "b"], top_n=1),
    ),
)
assert len(ranked.results) == 1

# models, without a key
models = of(ModelList, models_list.sync(client=Client(base_url=url)))
assert model in [one.id for one in models.data]

# a file: upload, list, download, and in parts
lines = "\n".join(
    json.dumps(
        {
            "custom_id": f"line-{n}",
            "method": "POST",
            "url": "/v1/chat/completions",
            "body": {"model": model, "messages": [{"role": "user", "content": "one"}]},
        }
    )
    for n in range(2)
)
file = of(
    StoredFile,
    files_create.sync(
        client=client,
        body=FileForm(
            file=File(payload=io.BytesIO(lines.encode()), file_name="lines.jsonl"),
            purpose=FileFormPurpose.BATCH,
            expires_afteranchor="created_at",
            expires_afterseconds=3_600,
        ),
    ),
)
assert file.bytes_ == len(lines)
files = of(
    FileList,
    files_list.sync(
        client=client,
        limit=1,
        order=FilesListOrder.DESC,
        purpose=FilesListPurpose.BATCH_INPUT,
    ),
)
assert files.data[0].id == file.id
content = of(File, files_content.sync(file.id, client=client))
assert content.payload.read().decode() == lines

upload = of(
    Upload,
    uploads_create.sync(
        client=client,
        body=CreateUpload(
            filename="lines.jsonl", purpose="batch", bytes_=4, mime_type="application/jsonl"
        ),
    ),
)
part = of(
    UploadPart,
    uploads_parts_create.sync(
        upload.id,
        client=client,
        body=UploadPartForm(data=File(payload=io.BytesIO(b"{}{}"), file_name="part")),
    ),
)
whole = of(
    Upload,
    uploads_complete.sync(upload.id, client=client, body=CompleteUpload(part_ids=[part.id])),
)
assert of(StoredFile, whole.file).bytes_ == 4

# a batch: what it would cost, then for real
order = CreateBatch(input_file_id=file.id, endpoint="/v1/chat/completions")
forecast = of(
    DryRun,
    batches_create.sync(client=client, body=order, x_dry_run=True),
)
assert forecast.would_succeed
batch = of(Batch, batches_create.sync(client=client, body=order))
while batch.status in ("validating", "in_progress"):
    time.sleep(0.05)
    batch = of(Batch, batches_retrieve.sync(batch.id, client=client))
assert batch.status == "completed"
assert of(BatchList, batches_list.sync(client=client, limit=5)).first_id == batch.id

# webhooks
webhook = of(
    NewWebhook,
    webhooks_create.sync(
        client=client,
        body=CreateWebhook(url="https://example.com/hooks", events=["batch.completed"]),
    ),
)
assert of(DeletedWebhook, webhooks_delete.sync(webhook.id, client=client)).deleted

# a session
assert len(of(ApiKeyList, dashboard_keys_list.sync(client=session, limit=1)).data) == 1
of(Usage, dashboard_usage.sync(client=session, group_by="model"))

# an error
wrong = AuthenticatedClient(base_url=url, token="svc_live_wrong")
assert code_of(files_list.sync(client=wrong)) == ErrorDetailCode.AUTHENTICATION_ERROR
print("every example")
