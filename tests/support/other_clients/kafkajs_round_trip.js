// Writes messages one by one, reads them back as a group, and prints a report as JSON.
//
//     node kafkajs_round_trip.js BOOTSTRAP TOPIC GROUP COUNT
//
// Metadata is asked for all the time, of whichever broker comes next, so that brokers which
// contradict each other are found out.
"use strict";

const { Kafka, Partitioners, logLevel } = require("kafkajs");

const METADATA_AGE_MS = 20;
const TIMEOUT_MS = 60_000;

const [bootstrap, topic, groupId, count] = process.argv.slice(2);
const complaints = [];
const kafka = new Kafka({
  clientId: "round-trip",
  brokers: bootstrap.split(","),
  logLevel: logLevel.ERROR,
  logCreator: () => ({ log }) => complaints.push(log.message),
});

async function produce(values) {
  const producer = kafka.producer({
    metadataMaxAge: METADATA_AGE_MS,
    createPartitioner: Partitioners.DefaultPartitioner,
  });
  await producer.connect();
  for (const value of values) {
    await producer.send({ topic, messages: [{ key: value, value }] });
  }
  await producer.disconnect();
}

async function consume(expectedCount) {
  const consumer = kafka.consumer({ groupId, metadataMaxAge: METADATA_AGE_MS, maxWaitTimeInMs: 50 });
  await consumer.connect();
  await consumer.subscribe({ topic, fromBeginning: true });
  const values = [];
  await new Promise((resolve, reject) => {
    const timer = setTimeout(
      () => reject(new Error(`only ${values.length} messages came in time`)),
      TIMEOUT_MS,
    );
    consumer.on(consumer.events.CRASH, ({ payload }) => reject(payload.error));
    consumer.run({
      eachMessage: async ({ message }) => {
        values.push(message.value.toString());
        if (values.length === expectedCount) {
          clearTimeout(timer);
          resolve();
        }
      },
    });
  });
  await consumer.disconnect();
  return values;
}

async function main() {
  const report = { consumed: [], complaints, failure: null };
  try {
    const values = Array.from({ length: Number(count) }, (_, number) => `message ${number}`);
    await produce(values);
    report.consumed = await consume(values.length);
  } catch (error) {
    report.failure = String(error);
  }
  process.stdout.write(JSON.stringify(report), () => process.exit());
}

main();
