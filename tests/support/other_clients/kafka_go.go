// Delays some of the messages that it writes with segmentio/kafka-go, and reads what comes as a
// group: see round_trips.py.
//
//	kafka_go BOOTSTRAP TOPIC GROUP COUNT
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"
)

type record struct {
	Value       string `json:"value"`
	Partition   int    `json:"partition"`
	Offset      int64  `json:"offset"`
	TimestampMs int64  `json:"timestamp_ms"`
	SentMs      int64  `json:"sent_ms"`
	ArrivedMs   int64  `json:"arrived_ms"`
}

type report struct {
	Records []record `json:"records"`
	Failure *string  `json:"failure"`
}

var delays = []string{"", "400ms", "1h"}

func produce(ctx context.Context, brokers []string, topic string, count int) (int64, error) {
	writer := &kafka.Writer{
		Addr:         kafka.TCP(brokers...),
		Topic:        topic,
		Balancer:     &kafka.Hash{},
		RequiredAcks: kafka.RequireAll,
		BatchTimeout: 5 * time.Millisecond,
	}
	defer writer.Close()
	sent := time.Now().UnixMilli()
	var messages []kafka.Message
	for number := 0; number < count; number++ {
		value := []byte(strconv.Itoa(number))
		message := kafka.Message{Key: value, Value: value}
		if delay := delays[number%3]; delay != "" {
			message.Headers = []kafka.Header{{Key: "headwater-delay", Value: []byte(delay)}}
		}
		messages = append(messages, message)
	}
	// Half of them one by one, half of them together.
	for _, message := range messages[:count/2] {
		if err := writer.WriteMessages(ctx, message); err != nil {
			return sent, err
		}
	}
	return sent, writer.WriteMessages(ctx, messages[count/2:]...)
}

func run(ctx context.Context, told *report) error {
	brokers := strings.Split(os.Args[1], ",")
	topic, group := os.Args[2], os.Args[3]
	count, err := strconv.Atoi(os.Args[4])
	if err != nil {
		return err
	}
	sent, err := produce(ctx, brokers, topic, count)
	if err != nil {
		return fmt.Errorf("sending: %w", err)
	}
	reader := kafka.NewReader(kafka.ReaderConfig{
		Brokers:     brokers,
		Topic:       topic,
		GroupID:     group,
		StartOffset: kafka.FirstOffset,
		MaxWait:     50 * time.Millisecond,
	})
	defer reader.Close()
	for len(told.Records) < (count*2+2)/3 {
		message, err := reader.FetchMessage(ctx)
		if err != nil {
			return fmt.Errorf("reading after %d: %w", len(told.Records), err)
		}
		told.Records = append(told.Records, record{
			string(message.Value), message.Partition, message.Offset, message.Time.UnixMilli(),
			sent, time.Now().UnixMilli(),
		})
		if err := reader.CommitMessages(ctx, message); err != nil {
			return fmt.Errorf("committing: %w", err)
		}
	}
	return nil
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	told := report{Records: []record{}}
	if err := run(ctx, &told); err != nil {
		text := err.Error()
		told.Failure = &text
	}
	json.NewEncoder(os.Stdout).Encode(told)
}
