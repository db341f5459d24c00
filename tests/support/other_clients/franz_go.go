// Delays some of the messages that it writes with twmb/franz-go, and reads what comes as a group:
// see round_trips.py.
//
//	franz_go BOOTSTRAP TOPIC GROUP COUNT
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

type record struct {
	Value       string `json:"value"`
	Partition   int32  `json:"partition"`
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

func produce(ctx context.Context, client *kgo.Client, topic string, count int) error {
	var records []*kgo.Record
	for number := 0; number < count; number++ {
		value := []byte(strconv.Itoa(number))
		each := &kgo.Record{Topic: topic, Key: value, Value: value}
		if delay := delays[number%3]; delay != "" {
			each.Headers = []kgo.RecordHeader{{Key: "headwater-delay", Value: []byte(delay)}}
		}
		records = append(records, each)
	}
	// Half of them one by one, half of them together.
	for _, each := range records[:count/2] {
		if err := client.ProduceSync(ctx, each).FirstErr(); err != nil {
			return err
		}
	}
	return client.ProduceSync(ctx, records[count/2:]...).FirstErr()
}

func run(ctx context.Context, told *report) error {
	count, err := strconv.Atoi(os.Args[4])
	if err != nil {
		return err
	}
	client, err := kgo.NewClient(
		kgo.SeedBrokers(strings.Split(os.Args[1], ",")...),
		kgo.ConsumeTopics(os.Args[2]),
		kgo.ConsumerGroup(os.Args[3]),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(),
		kgo.FetchMaxWait(50*time.Millisecond),
	)
	if err != nil {
		return err
	}
	defer client.Close()
	sent := time.Now().UnixMilli()
	if err := produce(ctx, client, os.Args[2], count); err != nil {
		return fmt.Errorf("sending: %w", err)
	}
	for len(told.Records) < (count*2+2)/3 {
		fetched := client.PollFetches(ctx)
		if err := fetched.Err0(); err != nil {
			return fmt.Errorf("reading after %d: %w", len(told.Records), err)
		}
		if errs := fetched.Errors(); len(errs) > 0 {
			return fmt.Errorf("reading after %d: %w", len(told.Records), errs[0].Err)
		}
		arrived := time.Now().UnixMilli()
		fetched.EachRecord(func(each *kgo.Record) {
			told.Records = append(told.Records, record{
				string(each.Value), each.Partition, each.Offset, each.Timestamp.UnixMilli(), sent, arrived,
			})
		})
	}
	if err := client.CommitUncommittedOffsets(ctx); err != nil {
		return fmt.Errorf("committing: %w", err)
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
