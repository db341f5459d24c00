import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Consumes a topic with Kafka's Java client, without a consumer group: partitions are assigned.
 *
 * Apache's ConsumerPerformance subscribes, for which a broker must coordinate groups; where one does
 * not, this takes its place for both sides. It uses the settings that the tool has.
 *
 * Arguments: bootstrap servers, topic, number of partitions, number of records.
 * Prints: records, bytes, and milliseconds from before the first poll to the last record.
 */
public class AssignedConsumerPerformance {
    public static void main(String[] args) {
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
