import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ExecutionException;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ListConsumerGroupOffsetsSpec;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Kafka's own client, used as its users do, in one virtual machine that is started once.
 *
 * Each line of standard input is a task: its name and its arguments, with tabs between them; the first argument is
 * where the cluster is. A task prints what it found out, then comes a line with "finished", or "failed" and the error.
 */
public class JavaClient {
    private static final long PATIENCE_NS = 60_000_000_000L;

    public static void main(String[] ignored) throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] words = line.split("\t");
            String[] args = Arrays.copyOfRange(words, 1, words.length);
            try {
                switch (words[0]) {
                    case "produce" -> produce(args[0], args[1], Integer.parseInt(args[2]));
                    case "consume" -> consume(args[0], args[1], args[2], args[3], Integer.parseInt(args[4]));
                    case "delayed" -> delayed(args[0], args[1], args[2], args[3], Integer.parseInt(args[4]));
                    case "copy" -> copy(args[0], args[1], args[2], args[3], args[4], Integer.parseInt(args[5]));
                    case "topics" -> topics(args[0], args[1]);
                    case "groups" -> groups(args[0], args[1], args[2]);
                    case "metrics" -> metrics(args[0], args[1], args[2], args[3]);
                    case "share" -> share(args[0], args[1], args[2]);
                    default -> throw new IllegalArgumentException("no such task: " + words[0]);
                }
                System.out.println("finished");
            } catch (Exception error) {
                Throwable cause = error instanceof ExecutionException ? error.getCause() : error;
                System.out.println("failed " + cause.toString().replace('\n', ' '));
            }
            System.out.flush();
        }
    }

    /** Sends the numbers from 0 on, which have themselves as keys. */
    private static void produce(String bootstrap, String topic, int count) throws Exception {
        Properties settings = producerSettings(bootstrap);
        settings.put("compression.type", "zstd");
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings)) {
            for (int number = 0; number < count; number++) {
                producer.send(new ProducerRecord<>(topic, "" + number, "" + number));
            }
            producer.flush();
            System.out.println("partitions " + producer.partitionsFor(topic).size());
        }
    }

    /** Reads so many values as the only member of a group, and commits. */
    private static void consume(String bootstrap, String protocol, String topic, String group, int count) {
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(consumerSettings(bootstrap, protocol, group))) {
            consumer.subscribe(List.of(topic));
            TreeSet<Integer> values = new TreeSet<>();
            long start = System.nanoTime();
            while (values.size() < count) {
                check(System.nanoTime() - start < PATIENCE_NS, "only " + values.size() + " records came");
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                    check(values.add(Integer.parseInt(record.value())), record.value() + " came twice");
                }
            }
            consumer.commitSync();
            System.out.println("read " + values.size() + " up to " + values.last());
            System.out.println("committed " + sum(consumer.committed(consumer.assignment()).values()));
        }
    }

    /**
     * Sends numbers: every third at once, every third a little later, every third in an hour. Then one of each in a
     * transaction that is committed, and some in one that is aborted. Reads what comes, and none before its time.
     */
    private static void delayed(String bootstrap, String protocol, String topic, String group, int count)
            throws Exception {
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(producerSettings(bootstrap))) {
            for (int number = 0; number < count; number++) {
                // Some in batches of their own, some together.
                producer.send(delayedRecord(topic, number)).get();
                producer.send(delayedRecord(topic, ++number));
            }
        }
        Properties settings = producerSettings(bootstrap);
        settings.put("transactional.id", group + "-delayed");
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings)) {
            producer.initTransactions();
            for (int first : new int[] {count * 1000, count}) {
                producer.beginTransaction();
                for (int number = first; number < first + 3; number++) {
                    producer.send(delayedRecord(topic, number)).get();
                }
                if (first == count) {
                    producer.commitTransaction();
                } else {
                    producer.abortTransaction();
                }
            }
        }
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(consumerSettings(bootstrap, protocol, group))) {
            consumer.subscribe(List.of(topic));
            TreeSet<Integer> values = new TreeSet<>();
            long start = System.nanoTime();
            while (values.size() < count / 3 * 2 + 2) {
                check(System.nanoTime() - start < PATIENCE_NS, "only " + values.size() + " records came");
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                    int number = Integer.parseInt(record.value());
                    check(number < count + 3 && number % 3 != 2, number + " came");
                    check(values.add(number), number + " came twice");
                    check(record.timestamp() <= System.currentTimeMillis(), number + " came early");
                    check((record.headers().lastHeader("headwater-delay") == null) == (number % 3 == 0), "headers");
                }
            }
            consumer.commitSync();
            System.out.println("read " + values.size());
            Map<TopicPartition, Long> ends = consumer.endOffsets(consumer.assignment());
            long lag = 0;
            long uncommitted = 0;
            for (Map.Entry<TopicPartition, Long> end : ends.entrySet()) {
                lag += Math.abs(end.getValue() - consumer.position(end.getKey()));
                uncommitted += Math.abs(end.getValue() - consumer.committed(Set.of(end.getKey())).get(end.getKey()).offset());
            }
            System.out.println("lag " + lag);
            System.out.println("uncommitted " + uncommitted);
        }
    }

    private static ProducerRecord<String, String> delayedRecord(String topic, int number) {
        ProducerRecord<String, String> record = new ProducerRecord<>(topic, "" + number, "" + number);
        if (number % 3 != 0) {
            byte[] delay = (number % 3 == 1 ? "300ms" : "1h").getBytes(StandardCharsets.UTF_8);
            record.headers().add("headwater-delay", delay);
        }
        return record;
    }

    /** Copies a topic exactly once. The first transaction is aborted, and what was in it is read again. */
    private static void copy(
            String bootstrap, String protocol, String source, String target, String group, int count) {
        Properties settings = producerSettings(bootstrap);
        settings.put("transactional.id", group + "-copier");
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(consumerSettings(bootstrap, protocol, group));
                KafkaProducer<String, String> producer = new KafkaProducer<>(settings)) {
            producer.initTransactions();
            consumer.subscribe(List.of(source));
            int copied = 0;
            boolean isAborted = false;
            long start = System.nanoTime();
            while (copied < count) {
                check(System.nanoTime() - start < PATIENCE_NS, "only " + copied + " records were copied");
                ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(200));
                if (records.isEmpty()) {
                    continue;
                }
                producer.beginTransaction();
                for (ConsumerRecord<String, String> record : records) {
                    producer.send(new ProducerRecord<>(target, record.key(), record.value()));
                }
                producer.sendOffsetsToTransaction(records.nextOffsets(), consumer.groupMetadata());
                if (isAborted) {
                    producer.commitTransaction();
                    copied += records.count();
                } else {
                    isAborted = true;
                    producer.flush();
                    producer.abortTransaction();
                    for (TopicPartition partition : records.partitions()) {
                        consumer.seek(partition, records.records(partition).get(0).offset());
                    }
                }
            }
            System.out.println("copied " + copied);
            System.out.println("committed " + sum(consumer.committed(consumer.assignment()).values()));
        }
    }

    /** What an administrator does with topics, on one that is made for it. */
    private static void topics(String bootstrap, String topic) throws Exception {
        try (Admin admin = Admin.create(Map.<String, Object>of("bootstrap.servers", bootstrap))) {
            admin.createTopics(List.of(new NewTopic(topic, 1, (short) 1).configs(Map.of("retention.ms", "7200000")))).all().get();
            admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(2))).all().get();
            await(() -> admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions().size() == 2);
            ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
            AlterConfigOp setting = new AlterConfigOp(new ConfigEntry("cleanup.policy", "compact,delete"), AlterConfigOp.OpType.SET);
            admin.incrementalAlterConfigs(Map.of(resource, List.of(setting))).all().get();
            await(() -> admin.describeConfigs(List.of(resource)).all().get().get(resource).get("cleanup.policy").value().equals("compact,delete"));
            System.out.println("retention " + admin.describeConfigs(List.of(resource)).all().get().get(resource).get("retention.ms").value());
            produce(bootstrap, topic, 20);
            TopicPartition first = new TopicPartition(topic, 0);
            long end = offset(admin, first, OffsetSpec.latest());
            admin.deleteRecords(Map.of(first, RecordsToDelete.beforeOffset(end))).all().get();
            System.out.println("left " + (end - offset(admin, first, OffsetSpec.earliest())));
            System.out.println("tiered " + offset(admin, first, OffsetSpec.latestTiered()) + " "
                    + offset(admin, first, OffsetSpec.earliestPendingUpload()));
            int broker = admin.describeCluster().nodes().get().iterator().next().id();
            System.out.println("cordoned " + admin.describeLogDirs(List.of(broker)).allDescriptions().get().get(broker)
                    .values().stream().map(each -> "" + each.isCordoned()).collect(Collectors.joining(",")));
            System.out.println("producers " + admin.describeProducers(List.of(first)).partitionResult(first).get().activeProducers().size());
            System.out.println("features " + new TreeMap<>(admin.describeFeatures().featureMetadata().get().finalizedFeatures()).keySet());
            admin.deleteTopics(List.of(topic)).all().get();
            await(() -> !admin.listTopics().names().get().contains(topic));
        }
    }

    /** What an administrator does with a group that has no members any more. */
    private static void groups(String bootstrap, String group, String topic) throws Exception {
        try (Admin admin = Admin.create(Map.<String, Object>of("bootstrap.servers", bootstrap))) {
            await(() -> admin.describeConsumerGroups(List.of(group)).all().get().get(group).groupState().toString().equals("Empty"));
            System.out.println("listed " + admin.listGroups().all().get().stream().anyMatch(each -> each.groupId().equals(group)));
            Map<TopicPartition, OffsetAndMetadata> offsets = offsets(admin, group);
            System.out.println("offsets " + sum(offsets.values()));
            TopicPartition first = new TopicPartition(topic, 0);
            admin.alterConsumerGroupOffsets(group, Map.of(first, new OffsetAndMetadata(1))).all().get();
            System.out.println("altered " + offsets(admin, group).get(first).offset());
            admin.deleteConsumerGroupOffsets(group, Set.of(first)).all().get();
            System.out.println("kept " + offsets(admin, group).containsKey(first));
            admin.deleteConsumerGroups(List.of(group)).all().get();
            try {
                admin.deleteConsumerGroups(List.of(group)).all().get();
            } catch (ExecutionException error) {
                System.out.println("again " + error.getCause().getClass().getSimpleName());
            }
        }
    }

    /** Writes and reads a record. Both clients stay until the broker's page shows metrics that they have pushed. */
    private static void metrics(String bootstrap, String page, String topic, String group) throws Exception {
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(producerSettings(bootstrap))) {
            producer.send(new ProducerRecord<>(topic, "key", "value")).get();
            String id = producer.clientInstanceId(Duration.ofNanos(PATIENCE_NS)).toString();
            await(() -> read(page).contains(id));
            System.out.println("producer " + id);
        }
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(consumerSettings(bootstrap, "consumer", group))) {
            consumer.subscribe(List.of(topic));
            await(() -> !consumer.poll(Duration.ofMillis(200)).isEmpty());
            String id = consumer.clientInstanceId(Duration.ofNanos(PATIENCE_NS)).toString();
            await(() -> read(page).contains(id));
            System.out.println("consumer " + id);
        }
    }

    private static String read(String page) throws IOException {
        try (InputStream stream = URI.create(page).toURL().openStream()) {
            return new String(stream.readAllBytes(), StandardCharsets.UTF_8);
        }
    }

    /** What becomes of a share consumer. */
    private static void share(String bootstrap, String topic, String group) {
        Properties settings = consumerSettings(bootstrap, null, group);
        settings.remove("auto.offset.reset");
        settings.remove("isolation.level");
        settings.remove("enable.auto.commit");
        try (KafkaShareConsumer<String, String> consumer = new KafkaShareConsumer<>(settings)) {
            consumer.subscribe(List.of(topic));
            long start = System.nanoTime();
            while (System.nanoTime() - start < PATIENCE_NS) {
                consumer.poll(Duration.ofMillis(200));
            }
        }
    }

    private static Properties producerSettings(String bootstrap) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("key.serializer", StringSerializer.class.getName());
        settings.put("value.serializer", StringSerializer.class.getName());
        return settings;
    }

    private static Properties consumerSettings(String bootstrap, String protocol, String group) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("group.id", group);
        settings.put("enable.auto.commit", "false");
        settings.put("auto.offset.reset", "earliest");
        settings.put("isolation.level", "read_committed");
        settings.put("key.deserializer", StringDeserializer.class.getName());
        settings.put("value.deserializer", StringDeserializer.class.getName());
        if (protocol != null) {
            settings.put("group.protocol", protocol);
        }
        return settings;
    }

    private static Map<TopicPartition, OffsetAndMetadata> offsets(Admin admin, String group) throws Exception {
        Map<TopicPartition, OffsetAndMetadata> found = new HashMap<>(admin
                .listConsumerGroupOffsets(Map.of(group, new ListConsumerGroupOffsetsSpec()))
                .partitionsToOffsetAndMetadata(group).get());
        found.values().removeIf(each -> each == null);
        return found;
    }

    private static long offset(Admin admin, TopicPartition partition, OffsetSpec which) throws Exception {
        return admin.listOffsets(Map.of(partition, which)).partitionResult(partition).get().offset();
    }

    private static long sum(Collection<OffsetAndMetadata> offsets) {
        return offsets.stream().mapToLong(OffsetAndMetadata::offset).sum();
    }

    private static void check(boolean isTrue, String fault) {
        if (!isTrue) {
            throw new IllegalStateException(fault);
        }
    }

    private interface Condition {
        boolean holds() throws Exception;
    }

    /** What was changed shows a moment later where another broker is asked. */
    private static void await(Condition condition) throws Exception {
        long start = System.nanoTime();
        while (!condition.holds()) {
            check(System.nanoTime() - start < PATIENCE_NS, "it did not come about");
            Thread.sleep(20);
        }
    }
}
