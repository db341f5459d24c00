import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.KafkaConsumer;
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
                    case "consume" -> ConsumerPerformance.main(args);
                    case "first-record" -> firstRecord(args);
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
     * How long a consumer that is the first of its group waits for a record.
     *
     * Arguments: bootstrap servers, topic, group. Prints: milliseconds from the first poll to the first record.
     */
    private static void firstRecord(String[] args) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", args[0]);
        settings.put("group.id", args[2]);
        settings.put("enable.auto.commit", "false");
        settings.put("auto.offset.reset", "earliest");
        settings.put("key.deserializer", ByteArrayDeserializer.class.getName());
        settings.put("value.deserializer", ByteArrayDeserializer.class.getName());
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings)) {
            consumer.subscribe(List.of(args[1]));
            long start = System.nanoTime();
            while (consumer.poll(Duration.ofMillis(1000)).isEmpty()) {
                if (System.nanoTime() - start > 30_000_000_000L) {
                    throw new IllegalStateException("no record came");
                }
            }
            System.out.println((System.nanoTime() - start) / 1e6);
        }
    }
}
