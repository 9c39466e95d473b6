//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/flow"
)

// Defaults: the size of outputs, the number of concurrent outputs, and the number of outputs read
// afterwards.
const (
	outputBytes   = 1_000_000
	outputsAtOnce = 16
	outputsRead   = 100
)

// measureLarge runs tasks whose units return large values, which are kept in a folder. It measures
// the growth of the database, the peak memory, and the time to read a value.
func (b *benchRun) measureLarge() error {
	if b.o.payload == 0 {
		b.o.payload = outputBytes
	}
	b.engine.HandleJSON("large", func(_ context.Context, job troupe.Job) (json.RawMessage, error) {
		var seed uint64
		if err := json.Unmarshal(job.Input, &seed); err != nil {
			return nil, err
		}
		return largeOutput(seed, b.o.payload), nil
	})
	if err := b.publishFlow("payload", fmt.Sprintf(
		"nodes: {each: {kind: fanout, each: {items: $run, concurrency: %d}, func: large}}",
		outputsAtOnce)); err != nil {
		return err
	}
	tasks := max(1, b.o.n/b.o.width)
	ids, seen := make([]string, tasks), &latencySamples{}
	before := b.storeBytes()
	m, err := b.startMeter()
	if err != nil {
		return err
	}
	err = b.forEach(tasks, b.o.concurrency, func(i int) (err error) {
		seeds := make([]uint64, b.o.width)
		for k := range seeds {
			seeds[k] = uint64(i*b.o.width + k)
		}
		began := time.Now()
		ids[i], err = b.runTask("payload", seeds)
		seen.addSample(time.Since(began))
		return err
	})
	if err != nil {
		return err
	}
	reading, err := b.readOutputs(ids)
	if err != nil {
		return err
	}
	if err := m.finishMeter(tasks, tasks*b.o.width); err != nil {
		return err
	}
	seen.fillPercentiles(&b.result)
	b.result.Extra = map[string]float64{"outputs": float64(tasks * b.o.width),
		"output_bytes": float64(b.o.payload), "read_ms": toMillis(reading)}
	b.result.Extra["database_growth_mb"] = float64(b.storeBytes()-before) / 1e6
	if b.dsn != "" {
		b.result.Extra["database_growth_mb"] = b.result.StoreStep * float64(tasks*b.o.width) / 1e6
	}
	b.result.Extra["bucket_mb"] = float64(sizeBelow(b.valuesDir())) / 1e6
	return nil
}

// largeOutput returns a text that is unique to the seed.
func largeOutput(seed uint64, size int) json.RawMessage {
	rng := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16), byte(seed >> 24)})
	v := make([]byte, size)
	_, _ = rng.Read(v) // cannot fail
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-"
	for i := range v {
		v[i] = letters[v[i]&63]
	}
	v[0], v[size-1] = '"', '"'
	return v
}

func (b *benchRun) runTask(slug string, params any) (string, error) {
	id, err := b.startTask(slug, params)
	if err != nil {
		return "", err
	}
	member, err := b.engine.Member(b.ctx)
	if err != nil {
		return "", err
	}
	status, err := member.Await(b.ctx, id) // the complete result is too large to wait for
	if err == nil && status != flow.TaskCompleted {
		err = fmt.Errorf("task %s is %s", id, status)
	}
	return id, err
}

// readOutputs reads some of the outputs, verifies them, and returns the time per output.
func (b *benchRun) readOutputs(ids []string) (time.Duration, error) {
	began := time.Now()
	for i := range outputsRead {
		k := i * len(ids) * b.o.width / outputsRead
		unit := k % b.o.width
		got, err := b.engine.Value(b.ctx, ids[k/b.o.width], "output", troupe.ValueQuery{Step: "each", Unit: &unit})
		if err != nil {
			return 0, err
		}
		if !bytes.Equal(got, largeOutput(uint64(k), b.o.payload)) {
			return 0, fmt.Errorf("output %d is not what was put out", k)
		}
	}
	return time.Since(began) / outputsRead, nil
}

// valuesDir returns the folder of the large values.
func (b *benchRun) valuesDir() string { return filepath.Join(b.dir, "values") }

// storeBytes returns the size of the SQLite files.
func (b *benchRun) storeBytes() (size int64) {
	found, _ := filepath.Glob(filepath.Join(b.dir, "bench.db*"))
	for _, name := range found {
		if info, err := os.Stat(name); err == nil {
			size += info.Size()
		}
	}
	return size
}

func sizeBelow(folder string) (size int64) {
	_ = filepath.WalkDir(folder, func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			if info, err := entry.Info(); err == nil {
				size += info.Size()
			}
		}
		return nil
	})
	return size
}
