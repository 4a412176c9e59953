"""Asks lb some things through the openai SDK, one after the other, each by a client of its own, and prints what an
application would have got, as a JSON list.

The argument is a list of objects: `base`, the URL; `what`, a key of WHOLE or `at-once`; and, where the defaults of the
SDK or of this program are not wanted, `model`, `key`, `retries` and `ca`: a file with the certificate to trust, over
which HTTP/2 is spoken.
"""

import asyncio
import json
import ssl
import sys

import httpx
import openai

MESSAGES = [{"role": "user", "content": "hello"}]


def models(client, order, value):
    value["ids"] = [model.id for model in client.models.list()]
    value["id"] = client.models.retrieve(value["ids"][0]).id


def chat(client, order, value):
    answer = client.chat.completions.create(model=order["model"], messages=MESSAGES)
    value["text"] = answer.choices[0].message.content
    value["finish"] = answer.choices[0].finish_reason
    value["tokens"] = answer.usage.total_tokens
    value["request_id"] = answer._request_id


def chat_stream(client, order, value):
    value["text"] = ""
    for chunk in client.chat.completions.create(model=order["model"], messages=MESSAGES, stream=True):
        value["text"] += chunk.choices[0].delta.content or ""
        value["finish"] = chunk.choices[0].finish_reason


def responses(client, order, value):
    answer = client.responses.create(model=order["model"], input="hello")
    value.update(id=answer.id, text=answer.output_text, tokens=answer.usage.total_tokens, status=answer.status)


def responses_stream(client, order, value):
    value.update(text="", types=[])
    for event in client.responses.create(model=order["model"], input="hello", stream=True):
        value["types"].append(event.type)
        if event.type == "response.output_text.delta":
            value["text"] += event.delta
        if event.type == "response.completed":
            value["whole"] = event.response.output_text


def embeddings(client, order, value):
    answer = client.embeddings.create(model=order["model"], input=["a", "b"])
    value.update(vectors=[list(one.embedding) for one in answer.data], tokens=answer.usage.total_tokens)


WHOLE = {
    "models": models,
    "chat": chat,
    "chat-stream": chat_stream,
    "responses": responses,
    "responses-stream": responses_stream,
    "embeddings": embeddings,
}


async def at_once(client, order, value):
    """Ten streams of one client, all open before any is read to its end."""
    ask = client.chat.completions.create
    streams = await asyncio.gather(*(ask(model=order["model"], messages=MESSAGES, stream=True) for _ in range(10)))
    value["streams"] = sorted({stream.response.extensions.get("stream_id", 0) for stream in streams})
    value["texts"] = []
    for stream in streams:
        value["texts"].append("".join([chunk.choices[0].delta.content or "" async for chunk in stream]))


def options(order):
    """What both kinds of client are made with, but for their HTTP client."""
    some = {"base_url": order["base"], "api_key": order.get("key", "client-key"), "timeout": 30}
    if "retries" in order:
        some["max_retries"] = order["retries"]
    return some


def transport(order):
    if "ca" not in order:
        return {}
    return {"http2": True, "verify": ssl.create_default_context(cafile=order["ca"])}


def ask(order, seen):
    def heard(response):
        seen["http"] = response.http_version

    async def heard_later(response):
        heard(response)

    if order["what"] == "at-once":
        http = httpx.AsyncClient(event_hooks={"response": [heard_later]}, **transport(order))
        client = openai.AsyncOpenAI(http_client=http, **options(order))
        asyncio.run(at_once(client, order, seen["value"]))
    else:
        http = httpx.Client(event_hooks={"response": [heard]}, **transport(order))
        client = openai.OpenAI(http_client=http, **options(order))
        WHOLE[order["what"]](client, order, seen["value"])


def seen_of(order):
    seen = {"value": {}, "error": None}
    try:
        ask({"model": "chat"} | order, seen)
    except Exception as error:
        seen["error"] = [kind.__name__ for kind in type(error).__mro__]
        seen["message"] = str(error)
        seen["status"] = getattr(error, "status_code", None)
        seen["code"] = getattr(error, "code", None)
        if isinstance(error, openai.APIStatusError):
            seen["retry_after"] = error.response.headers.get("retry-after")
    return seen


print(json.dumps([seen_of(order) for order in json.loads(sys.argv[1])]))
