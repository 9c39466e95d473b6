package objects

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Heartbeat is the interval between two heartbeats of a worker.
const Heartbeat = 10 * time.Second

// Job is an attempt that a worker carries out.
type Job struct {
	Spec   Spec
	bucket Bucket
	folder string
	status Status
}

// maxSpec is the largest size of a spec that a worker reads.
const maxSpec = 256 << 20

// Take reads the spec of an attempt. The folder ends with a slash, or is "" for the bucket itself.
func Take(ctx context.Context, b Bucket, folder string) (*Job, error) {
	text, err := b.Get(ctx, folder+SpecFile, maxSpec)
	if err != nil {
		return nil, err
	}
	j := &Job{bucket: b, folder: folder}
	if err := json.Unmarshal(text, &j.Spec); err != nil {
		return nil, fmt.Errorf("%s makes no sense: %w", SpecFile, err)
	}
	return j, nil
}

// ErrCalledOff is the cancellation cause of the context of a canceled job.
var ErrCalledOff = errors.New("nobody waits for it any longer")

// Do runs work, sends heartbeats meanwhile and then reports the result. It returns the error of
// work, or of reporting.
func (j *Job) Do(ctx context.Context, every time.Duration, work func(context.Context) (json.RawMessage, error)) error {
	now := time.Now().UTC()
	j.status = Status{Status: Running, Attempt: j.Spec.Attempt, StartedAt: now, Heartbeat: now}
	if err := j.writeStatus(ctx); err != nil {
		return err
	}
	working, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var beating sync.WaitGroup
	beating.Go(func() { j.sendHeartbeats(working, every, stop) })
	output, failure := work(working)
	stop(nil)
	beating.Wait()
	ctx = context.WithoutCancel(ctx) // the end is reported even if the worker is being stopped
	if failure == nil && len(output) > 0 {
		failure = j.bucket.Put(ctx, j.folder+OutputFile, output)
	}
	now = time.Now().UTC()
	j.status.Heartbeat, j.status.FinishedAt, j.status.Status = now, &now, Success
	if failure != nil {
		j.status.Status, j.status.Error = Failed, failure.Error()
	}
	return errors.Join(failure, j.writeStatus(ctx))
}

func (j *Job) writeStatus(ctx context.Context) error {
	text, err := json.Marshal(j.status)
	if err != nil {
		return err
	}
	if err := j.bucket.Put(ctx, j.folder+StatusFile, text); err != nil {
		return fmt.Errorf("%s could not be written: %w", StatusFile, err)
	}
	return nil
}

// sendHeartbeats writes a heartbeat at every interval, and checks whether the job was canceled.
func (j *Job) sendHeartbeats(ctx context.Context, every time.Duration, stop context.CancelCauseFunc) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if _, err := j.bucket.Get(ctx, j.folder+CancelFile, 0); err == nil {
			stop(ErrCalledOff)
			return
		}
		j.status.Heartbeat = time.Now().UTC()
		_ = j.writeStatus(ctx) // the next write may succeed; the server times out a silent worker
	}
}
