// Delays some of the messages that it writes, and reads what comes as a group: see round_trips.py.
//
//     node kafkajs_delayed.js BOOTSTRAP TOPIC GROUP COUNT
"use strict";

const { Kafka, Partitioners, logLevel } = require("kafkajs");

const TIMEOUT_MS = 60_000;
const DELAYS = [undefined, "400ms", "1h"];

const [bootstrap, topic, groupId, count] = process.argv.slice(2);
const kafka = new Kafka({
  clientId: "delayed",
  brokers: bootstrap.split(","),
  logLevel: logLevel.NOTHING,
});

async function produce(sent) {
  const producer = kafka.producer({ createPartitioner: Partitioners.DefaultPartitioner });
  await producer.connect();
  for (let number = 0; number < Number(count); number++) {
    const value = String(number);
    const delay = DELAYS[number % 3];
    const headers = delay === undefined ? {} : { "headwater-delay": delay };
    sent[value] = Date.now();
    await producer.send({ topic, messages: [{ key: value, value, headers }] });
  }
  await producer.disconnect();
}

async function consume(sent, records) {
  const expected = Math.ceil((Number(count) * 2) / 3);
  const consumer = kafka.consumer({ groupId, maxWaitTimeInMs: 50 });
  await consumer.connect();
  await consumer.subscribe({ topic, fromBeginning: true });
  await new Promise((resolve, reject) => {
    const timer = setTimeout(
      () => reject(new Error(`only ${records.length} of ${expected} messages came in time`)),
      TIMEOUT_MS,
    );
    consumer.on(consumer.events.CRASH, ({ payload }) => reject(payload.error));
    consumer.run({
      eachMessage: async ({ partition, message }) => {
        const value = message.value.toString();
        records.push({
          value,
          partition,
          offset: Number(message.offset),
          timestamp_ms: Number(message.timestamp),
          sent_ms: sent[value],
          arrived_ms: Date.now(),
        });
        if (records.length === expected) {
          clearTimeout(timer);
          resolve();
        }
      },
    });
  });
  // It commits what it has handled when it goes.
  await consumer.disconnect();
}

async function main() {
  const report = { records: [], failure: null };
  const sent = {};
  try {
    await produce(sent);
    await consume(sent, report.records);
  } catch (error) {
    report.failure = String(error);
  }
  process.stdout.write(JSON.stringify(report), () => process.exit());
}

main();
