import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.tools.ConsumerPerformance;
import org.apache.kafka.tools.ProducerPerformance;

/**
 * Runs Apache Kafka's measuring tools in one virtual machine, one run after the other.
 *
 * Each of the tools measures from its first record on. In a virtual machine of its own most of a short run
 * would be the compiler's, so both servers are measured, in turn, by one that is warm.
 *
 * Each line of standard input is a run: a tool and its arguments, with tabs between them. The tool prints
 * what it always does, then comes a line with "finished" or "failed" and the reason.
 */
public class JavaClients {
    public static void main(String[] ignored) throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] words = line.split("\t");
            String[] args = Arrays.copyOfRange(words, 1, words.length);
            try {
                switch (words[0]) {
                    case "produce" -> ProducerPerformance.main(args);
                    case "consume-as-group" -> ConsumerPerformance.main(args);
                    case "consume-assigned" -> consumeAssigned(args);
                    default -> throw new IllegalArgumentException("no such tool: " + words[0]);
                }
                System.out.println("finished");
            } catch (Exception error) {
                System.out.println("failed " + error.toString().replace('\n', ' '));
            }
            System.out.flush();
        }
    }

    /**
     * Consumes a topic without a consumer group: partitions are assigned. ConsumerPerformance subscribes, for
     * which a server must coordinate groups; where one does not, this takes its place for both, with its settings.
     *
     * Arguments: bootstrap servers, topic, number of partitions, number of records.
     * Prints: records, bytes, and milliseconds from before the first poll to the last record.
     */
    private static void consumeAssigned(String[] args) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", args[0]);
        settings.put("enable.auto.commit", "false");
        settings.put("auto.offset.reset", "earliest");
        settings.put("receive.buffer.bytes", Integer.toString(2 * 1024 * 1024));
        settings.put("max.partition.fetch.bytes", Integer.toString(1024 * 1024));
        settings.put("check.crcs", "false");
        settings.put("key.deserializer", ByteArrayDeserializer.class.getName());
        settings.put("value.deserializer", ByteArrayDeserializer.class.getName());
        List<TopicPartition> partitions = new ArrayList<>();
        for (int index = 0; index < Integer.parseInt(args[2]); index++) {
            partitions.add(new TopicPartition(args[1], index));
        }
        long wanted = Long.parseLong(args[3]);
        long count = 0;
        long bytes = 0;
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings)) {
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            long start = System.nanoTime();
            long last = start;
            while (count < wanted) {
                ConsumerRecords<byte[], byte[]> records = consumer.poll(Duration.ofMillis(100));
                long now = System.nanoTime();
                if (records.isEmpty()) {
                    if (now - last > 30_000_000_000L) {
                        throw new IllegalStateException("only " + count + " records came");
                    }
                    continue;
                }
                last = now;
                for (ConsumerRecord<byte[], byte[]> record : records) {
                    count++;
                    bytes += record.value().length;
                }
            }
            System.out.println(count + " " + bytes + " " + (last - start) / 1e6);
        }
    }
}
