"""Asks lb one thing through the openai SDK and prints what an application would have got, as one JSON object.

Arguments: base URL, then `whole`, `stream` or `models`. The SDK's own retries stay as they are by default.
"""

import json
import sys

import openai


def ask(client, how, seen):
    if how == "models":
        seen["text"] = [model.id for model in client.models.list()]
        return
    messages = [{"role": "user", "content": "hello"}]
    answer = client.chat.completions.create(model="chat", messages=messages, stream=how == "stream")
    if how == "whole":
        seen["text"] = answer.choices[0].message.content
        seen["request_id"] = answer._request_id
        return
    for chunk in answer:
        seen["text"] += chunk.choices[0].delta.content or ""


def main():
    base, how = sys.argv[1:]
    seen = {"text": "", "error": None, "status": None, "message": None, "request_id": None}
    client = openai.OpenAI(base_url=base, api_key="client-key", timeout=30)
    try:
        ask(client, how, seen)
    except Exception as error:
        seen["error"] = [kind.__name__ for kind in type(error).__mro__]
        seen["message"] = str(error)
        seen["status"] = getattr(error, "status_code", None)
    print(json.dumps(seen))


main()
