// Asks lb some things through the openai package of npm and prints what an application would have got, as a JSON list.
//
// The argument is the one of client.py, but for `ca`; and so is the answer, but for `http`.

"use strict";

const { OpenAI } = require("openai");

const messages = [{ role: "user", content: "hello" }];

const WHOLE = {
  async models(client, _order, value) {
    value.ids = [];
    for await (const model of client.models.list()) value.ids.push(model.id);
    value.id = (await client.models.retrieve(value.ids[0])).id;
  },

  async chat(client, order, value) {
    const answer = await client.chat.completions.create({ model: order.model, messages });
    value.text = answer.choices[0].message.content;
    value.finish = answer.choices[0].finish_reason;
    value.tokens = answer.usage.total_tokens;
    value.request_id = answer._request_id;
  },

  async "chat-stream"(client, order, value) {
    value.text = "";
    const stream = await client.chat.completions.create({ model: order.model, messages, stream: true });
    for await (const chunk of stream) {
      value.text += chunk.choices[0].delta.content ?? "";
      value.finish = chunk.choices[0].finish_reason;
    }
  },

  async responses(client, order, value) {
    const answer = await client.responses.create({ model: order.model, input: "hello" });
    const { id, status } = answer;
    Object.assign(value, { id, text: answer.output_text, tokens: answer.usage.total_tokens, status });
  },

  async "responses-stream"(client, order, value) {
    Object.assign(value, { text: "", types: [] });
    const stream = await client.responses.create({ model: order.model, input: "hello", stream: true });
    for await (const event of stream) {
      value.types.push(event.type);
      if (event.type === "response.output_text.delta") value.text += event.delta;
      // The package adds `output_text` only to answers that came whole.
      if (event.type === "response.completed") value.whole = event.response.output[0].content[0].text;
    }
  },

  async embeddings(client, order, value) {
    const answer = await client.embeddings.create({ model: order.model, input: ["a", "b"] });
    value.vectors = answer.data.map((one) => Array.from(one.embedding));
    value.tokens = answer.usage.total_tokens;
  },
};

function kinds(error) {
  const names = [];
  for (let kind = error.constructor; kind?.name; kind = Object.getPrototypeOf(kind)) names.push(kind.name);
  return names;
}

async function seenOf(order) {
  const seen = { value: {}, error: null };
  const some = { baseURL: order.base, apiKey: order.key ?? "client-key", timeout: 30_000 };
  if ("retries" in order) some.maxRetries = order.retries;
  try {
    await WHOLE[order.what](new OpenAI(some), { model: "chat", ...order }, seen.value);
  } catch (error) {
    seen.error = kinds(error);
    seen.message = error.message;
    seen.status = error.status ?? null;
    seen.code = error.code ?? null;
    seen.retry_after = error.headers?.get("retry-after") ?? null;
  }
  return seen;
}

async function main() {
  const all = [];
  for (const order of JSON.parse(process.argv[2])) all.push(await seenOf(order));
  console.log(JSON.stringify(all));
}

main();
