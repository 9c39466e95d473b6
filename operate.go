package troupe

import (
	"context"
	"iter"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
)

type (
	// JobState is a job with its attempts.
	JobState = wire.Job
	// WaitingJob is a job in a queue.
	WaitingJob = wire.WaitingJob
	// Queue is the queue of one service with its length.
	Queue = wire.Queue
	// KnownWorker is a worker that was in contact recently.
	KnownWorker = wire.Worker
	// Cluster holds the members and the shards that they own.
	Cluster = wire.Cluster
	// Shards holds the owner of each shard.
	Shards = wire.Shards
	// Member is one member of the cluster.
	Member = wire.Member
	// Info holds the version and the features of a server.
	Info = wire.ServerInfo
	// Overview sums up what runs, waits and fails.
	Overview = wire.Overview
	// FlowStats holds the statistics of one flow.
	FlowStats = wire.FlowStats
	// StatsSeries holds statistics over time.
	StatsSeries = wire.StatsSeries
)

// StatsOf selects statistics.
type StatsOf = client.StatsOf

// Job reads a job; ended jobs stay readable for as long as their task.
func (e *jobCalls) Job(ctx context.Context, id string) (*JobState, error) {
	return withTypedError(e.client.Job(ctx, id))
}

// Log reads the log of a job.
func (e *jobCalls) Log(ctx context.Context, job string) (string, error) {
	log, err := e.client.Log(ctx, job)
	return log, toTypedError(err)
}

// LogQuery picks lines of a task's logs.
type LogQuery = client.LogQuery

// LogEntry is a line that an attempt of a task has printed.
type LogEntry = wire.LogEntry

// Logs reads a page of the output of a task's attempts. Its Next is the After of the next page.
func (e *jobCalls) Logs(ctx context.Context, task string, q LogQuery) (*Page[LogEntry], error) {
	return withTypedError(e.client.Logs(ctx, task, q))
}

// FollowLogs returns the output of a task's attempts as it is printed, and ends with the task.
func (e *jobCalls) FollowLogs(ctx context.Context, task string, q LogQuery) iter.Seq2[LogEntry, error] {
	return func(yield func(LogEntry, error) bool) {
		for line, err := range e.client.FollowLogs(ctx, task, q) {
			if !yield(line, toTypedError(err)) {
				return
			}
		}
	}
}

// StreamInfo is a stream of a task, to which its steps write values while they run.
type StreamInfo = wire.Stream

// StreamValue is a value of a stream.
type StreamValue = wire.StreamValue

// StreamPage is a part of a stream.
type StreamPage = wire.StreamPage

// Streams lists the streams of a task.
func (e *jobCalls) Streams(ctx context.Context, task string) ([]StreamInfo, error) {
	list, err := e.client.Streams(ctx, task)
	return list, toTypedError(err)
}

// StreamPage reads values of a stream from an offset on. The Next of the page is the offset of the
// next one.
func (e *jobCalls) StreamPage(ctx context.Context, task, stream string, from int64) (*StreamPage, error) {
	return withTypedError(e.client.StreamPage(ctx, task, stream, from, 0))
}

// FollowStream returns the values of a stream from an offset on as they are written. It ends with
// the stream or with the task.
func (e *jobCalls) FollowStream(ctx context.Context, task, stream string, from int64) iter.Seq2[StreamValue, error] {
	return func(yield func(StreamValue, error) bool) {
		for value, err := range e.client.FollowStream(ctx, task, stream, from) {
			if !yield(value, toTypedError(err)) {
				return
			}
		}
	}
}

// Jobs lists the jobs in the queue, of the given services or of all, longest wait first.
func (e *jobCalls) Jobs(ctx context.Context, p Paging, services ...string) (*Page[WaitingJob], error) {
	return withTypedError(e.client.Jobs(ctx, p, services...))
}

// Queues returns the lengths of the queues.
func (e *jobCalls) Queues(ctx context.Context) ([]Queue, error) {
	queues, err := e.client.Queues(ctx)
	return queues, toTypedError(err)
}

// Workers lists the workers in order of their first registration.
func (e *clusterCalls) Workers(ctx context.Context) ([]KnownWorker, error) {
	workers, err := e.client.Workers(ctx)
	return workers, toTypedError(err)
}

// Worker reads one worker.
func (e *clusterCalls) Worker(ctx context.Context, id string) (*KnownWorker, error) {
	return withTypedError(e.client.Worker(ctx, id))
}

// Overview returns a summary of the whole system.
func (e *clusterCalls) Overview(ctx context.Context) (*Overview, error) {
	return withTypedError(e.client.Overview(ctx))
}

// FlowStats returns the statistics of a flow's tasks and nodes.
func (e *clusterCalls) FlowStats(ctx context.Context, flow string, of StatsOf) (*FlowStats, error) {
	return withTypedError(e.client.FlowStats(ctx, flow, of))
}

// StatsSeries returns statistics of tasks, or of a node, over time.
func (e *clusterCalls) StatsSeries(ctx context.Context, of StatsOf) (*StatsSeries, error) {
	return withTypedError(e.client.StatsSeries(ctx, of))
}

// Info returns the version and the features of this member.
func (e *clusterCalls) Info(ctx context.Context) (*Info, error) {
	return withTypedError(e.client.Info(ctx))
}

// Members lists the members of the cluster.
func (e *clusterCalls) Members(ctx context.Context) (*Cluster, error) {
	return withTypedError(e.client.Members(ctx))
}

// Shards returns the owner of each shard; with a task, only of the shard that holds it.
func (e *clusterCalls) Shards(ctx context.Context, task string) (*Shards, error) {
	return withTypedError(e.client.Shards(ctx, task))
}

// Drain drains a member: it hands over its shards and gets none until Undrain.
func (e *clusterCalls) Drain(ctx context.Context, member string) (*Member, error) {
	return withTypedError(e.client.Drain(ctx, member))
}

// Undrain lets a drained member own shards again.
func (e *clusterCalls) Undrain(ctx context.Context, member string) (*Member, error) {
	return withTypedError(e.client.Undrain(ctx, member))
}
